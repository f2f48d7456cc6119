//! Bytes to a checkpoint: header, config, tensors, each checked before the next is believed.

use std::{collections::BTreeMap, fmt::Write as _};

use sha2::{Digest, Sha256};

use super::{
    codec,
    config::{self, EmbeddingRows, embedding_name},
    error::{CheckpointError, quoted},
    facts::TrainingFacts,
    header::{Dtype, Header},
    torch,
};
use crate::{
    config::ModelConfig,
    parameters::{NamedTensor, Parameters},
};
use cwm_core::chess::MoveToken;

/// The metadata key of the format's version.
pub const FORMAT_KEY: &str = "cwm.format";
/// The version that is written and read.
pub const FORMAT: &str = "1";

/// A network's config and weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// The network's shape.
    pub config: ModelConfig,
    /// Every parameter under the reference's name, matrices as `[out, in]`; the embedding as [`Info::rows`] says.
    pub tensors: Parameters,
    /// What else the file tells.
    pub info: Info,
}

/// What kind of file a checkpoint was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// A safetensors file.
    #[default]
    Safetensors,
    /// A PyTorch checkpoint of the reference; config and facts are translated from its arguments.
    Torch,
}

/// What a file tells besides config and weights.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Info {
    /// What kind of file it was.
    pub kind: FileKind,
    /// Number formats and how many tensors have each.
    pub dtypes: BTreeMap<Dtype, usize>,
    /// Rows of the embedding that are stored.
    pub rows: EmbeddingRows,
    /// All of `__metadata__`.
    pub metadata: BTreeMap<String, String>,
    /// How the weights came to be, where the file says so.
    pub training: Option<TrainingFacts>,
    /// The file's length.
    pub file_bytes: u64,
    /// The file's SHA-256, lower-case hexadecimal.
    pub sha256: String,
}

impl Checkpoint {
    /// Reads a checkpoint of the benchmark's vocabulary: a safetensors file and, where there is one, the config.json
    /// beside it; or a PyTorch checkpoint of the reference, which needs no config.
    ///
    /// # Errors
    /// The first fault found, see [`CheckpointError`].
    pub fn read(file: &[u8], config_json: Option<&str>) -> Result<Self, CheckpointError> {
        Self::read_checked(file, config_json, config::require_benchmark_vocabulary)
    }

    /// Like [`Checkpoint::read`], for networks of any vocabulary.
    ///
    /// # Errors
    /// The first fault found, see [`CheckpointError`].
    pub fn read_any_vocabulary(
        file: &[u8],
        config_json: Option<&str>,
    ) -> Result<Self, CheckpointError> {
        Self::read_checked(file, config_json, |_| Ok(()))
    }

    fn read_checked(
        file: &[u8],
        config_json: Option<&str>,
        check_vocabulary: impl Fn(&ModelConfig) -> Result<(), CheckpointError>,
    ) -> Result<Self, CheckpointError> {
        if torch::is_torch(file) {
            return torch::read(file, check_vocabulary);
        }
        let header = Header::parse(file)?;
        if let Some(found) = header.metadata.get(FORMAT_KEY)
            && found != FORMAT
        {
            return Err(CheckpointError::Format { found: quoted(found), known: FORMAT });
        }
        let config = config::settle(&header, config_json)?;
        check_vocabulary(&config)?;
        let rows = EmbeddingRows::of(&header)?;
        if rows == EmbeddingRows::Reachable {
            config::require_benchmark_vocabulary(&config)?;
        }
        let shapes = header.tensors.iter().map(|(name, entry)| (name.as_str(), &entry.shape[..]));
        config::check_tensors(&shapes.collect(), &config, rows)?;

        let mut tensors = Parameters::new();
        let mut dtypes = BTreeMap::new();
        for (name, entry) in &header.tensors {
            let data = codec::decode(name, entry.dtype, entry.bytes(file))?;
            let shape = entry.shape.iter().map(|&d| d as usize).collect();
            *dtypes.entry(entry.dtype).or_default() += 1;
            tensors.insert(name.clone(), NamedTensor { shape, data });
        }
        let training = header.metadata.get(TrainingFacts::KEY);
        let info = Info {
            kind: FileKind::Safetensors,
            dtypes,
            rows,
            training: training.and_then(|json| serde_json::from_str(json).ok()),
            metadata: header.metadata,
            file_bytes: file.len() as u64,
            sha256: sha256_hex(file),
        };
        Ok(Checkpoint { config, tensors, info })
    }

    /// The tensors with one embedding row for every token. Rows that a pruned file does not store belong to moves
    /// that no legal game holds; they become zero, and no game ever reads them.
    pub fn full_tensors(&self) -> Parameters {
        let mut tensors = self.tensors.clone();
        if self.info.rows == EmbeddingRows::Reachable
            && let Some(name) = embedding_name(&self.config)
            && let Some(embedding) = tensors.get_mut(name)
        {
            expand(embedding);
        }
        tensors
    }
}

/// Gives a compact embedding a row for every token, zero where it has none.
pub(super) fn expand(embedding: &mut NamedTensor) {
    let width = embedding.shape.get(1).copied().unwrap_or(0);
    let mut full = NamedTensor {
        shape: vec![MoveToken::VOCAB, width],
        data: vec![0.0; MoveToken::VOCAB * width],
    };
    if embedding.expand_rows_into(&mut full).is_some() {
        *embedding = full;
    }
}

/// SHA-256 as lower-case hexadecimal.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
