//! Checkpoints: a network's weights and config as one safetensors file, or as a folder in Hugging Face layout.
//!
//! Bytes in, bytes out; finding and writing files is the command line's part. docs/formats.md describes the layout.

mod codec;
pub mod error;
pub mod header;
mod header_json;

pub use error::CheckpointError;
pub use header::{Dtype, Header};
