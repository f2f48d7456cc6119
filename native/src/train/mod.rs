//! Training: config, run directory, data feed, loop.

pub mod environment;
pub mod extend;
pub mod facts;
pub mod feed;
pub mod job;
pub mod layers;
pub mod learner;
pub mod log;
pub mod run;
pub mod run_dir;
pub mod settings;
pub mod signals;
pub mod standing;
pub mod tensorboard;
