//! Checkpoints: a network's weights and config as one safetensors file, or as a folder in Hugging Face layout.
//!
//! Bytes in, bytes out; finding and writing files is the command line's part. docs/formats.md describes the layout.

pub mod card;
mod codec;
pub mod config;
pub mod error;
pub mod facts;
pub mod header;
mod header_json;
mod quote;
pub mod read;
pub mod summary;
pub mod torch;
pub mod write;

pub use card::Card;
pub use config::{EmbeddingRows, expected_tensors};
pub use error::CheckpointError;
pub use facts::{CurvePoint, DatasetFacts, ImportFacts, TrainingFacts};
pub use header::{Dtype, Header};
pub use read::{Checkpoint, FileKind, Info};
pub use summary::{Part, Summary};
pub use torch::TorchError;
pub use write::{WriteOptions, write};
