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

pub mod backend;
pub mod checkpoint;
pub mod config;
pub mod parameters;
pub mod splits;
pub mod vocabulary;

pub use config::{ConfigError, ModelConfig, TransformerConfig};
pub use parameters::{NamedTensor, ParameterError, Parameters};
pub use vocabulary::TokenRows;
