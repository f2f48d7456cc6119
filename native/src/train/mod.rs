//! Training: config, run directory, data feed, loop.

pub mod layers;
pub mod log;
pub mod run_dir;
pub mod signals;
pub mod tensorboard;
