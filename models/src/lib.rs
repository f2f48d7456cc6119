//! The benchmark's networks on Burn: what they compute, how they are trained, how they answer as trackers.
//!
//! Shape letters, here and in every module of the crate:
//!
//! | letter | meaning |
//! |---|---|
//! | B | games in a batch |
//! | T | steps of the longest game in a batch |
//! | N | valid steps of a batch, packed without padding; also the state width of a recurrent mixer |
//! | D | model width |
//! | F | width inside an MLP |
//! | H | heads |
//! | K | key width of a head |
//! | V | value width of a head |
//! | R | MIMO rank |
//! | C | classes of a label |
//! | J | the 75 labels of a state |
//!
//! Bytes in, bytes out: nothing here opens a file, and without default features all of it compiles to wasm32.

pub mod activations;
pub mod attention;
pub mod backend;
pub mod checkpoint;
pub mod config;
#[cfg(feature = "gpu")]
mod cube;
pub mod device;
pub mod embedding;
pub mod feedback;
pub mod gated_deltanet;
pub mod init;
pub mod kernel;
pub mod linear;
pub mod loss;
pub mod mamba;
pub mod memory;
pub mod mlp;
pub mod model;
pub mod network;
pub mod norm;
pub mod ops;
mod parallel;
pub mod parameters;
pub mod predictor;
pub mod presets;
pub mod slice;
pub mod splits;
pub mod tracker;
#[cfg(feature = "train")]
pub mod train;
pub mod transformer;
pub mod transition;
pub mod vocabulary;

pub use activations::{Activation, Place};
pub use config::{ConfigError, ModelConfig, TransformerConfig};
pub use gated_deltanet::GatedDeltaNetConfig;
pub use mamba::{Mamba2Config, Mamba3Config};
pub use model::{Model, ModelError};
pub use parameters::{NamedTensor, ParameterError, Parameters};
pub use predictor::{Answers, Predictor};
pub use slice::SliceConfig;
pub use tracker::{ModelMemory, ModelTracker};
pub use transition::TransitionConfig;
pub use vocabulary::TokenRows;
