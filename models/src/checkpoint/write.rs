//! A checkpoint to bytes: the same config, weights, facts and options give the same bytes, always.
//!
//! Names ascend, in the header and in the data; the header is padded with spaces to a multiple of eight bytes, so
//! that every tensor is aligned to its numbers.

use std::collections::BTreeMap;

use super::{
    codec,
    config::{
        CONFIG_KEY, EmbeddingRows, embedding_name, expected_tensors, has_benchmark_vocabulary,
    },
    error::{CheckpointError, quoted},
    facts::TrainingFacts,
    header::{Dtype, HEADER_LIMIT_BYTES},
    read::{self, FORMAT, FORMAT_KEY},
};
use crate::{
    config::ModelConfig,
    parameters::{NamedTensor, Parameters},
    vocabulary::COMPACT_ROWS,
};

/// How weights are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    /// Number format of every tensor.
    pub dtype: Dtype,
    /// Rows of the embedding to store; networks of another vocabulary than the benchmark's always store all.
    pub rows: EmbeddingRows,
}

impl WriteOptions {
    /// Exact: f32. Rows that no game reads are left out.
    pub const EXACT: WriteOptions =
        WriteOptions { dtype: Dtype::F32, rows: EmbeddingRows::Reachable };
    /// For shipping: f16, the smallest file.
    pub const SMALL: WriteOptions =
        WriteOptions { dtype: Dtype::F16, rows: EmbeddingRows::Reachable };
    /// For the reference: f32, one row for every token.
    pub const REFERENCE: WriteOptions =
        WriteOptions { dtype: Dtype::F32, rows: EmbeddingRows::Full };
}

/// Writes a safetensors file with the config in its metadata. The embedding may be given in full or compact; rows
/// that are not given become zero.
///
/// # Errors
/// Tensors that the config does not call for, or lacks; numbers that are not finite, or too large for f16.
pub fn write(
    config: &ModelConfig,
    tensors: &Parameters,
    training: Option<&TrainingFacts>,
    options: WriteOptions,
) -> Result<Vec<u8>, CheckpointError> {
    let embedding = embedding_name(config);
    let prunes = has_benchmark_vocabulary(config) && embedding.is_some();
    let rows = if prunes { options.rows } else { EmbeddingRows::Full };
    let expected: BTreeMap<_, _> = expected_tensors(config, rows).into_iter().collect();
    if let Some(name) = tensors.keys().find(|name| !expected.contains_key(*name)) {
        return Err(CheckpointError::ExtraTensor { name: quoted(name) });
    }

    // Maps that sort by key, whatever the features of serde_json: equal checkpoints are equal bytes.
    let mut header =
        BTreeMap::from([("__metadata__", Item::Metadata(metadata(config, training, rows)))]);
    let mut data = Vec::new();
    for (name, shape) in &expected {
        let Some(tensor) = tensors.get(name) else {
            return Err(CheckpointError::MissingTensor { name: name.clone() });
        };
        check_length(name, tensor)?;
        let resized =
            if Some(name.as_str()) == embedding { resize(config, tensor, rows) } else { None };
        let tensor = resized.as_ref().unwrap_or(tensor);
        check_shape(name, tensor, shape)?;
        let begin = data.len();
        codec::encode(name, options.dtype, &tensor.data, &mut data)?;
        let data_offsets = [begin, data.len()];
        header.insert(name, Item::Tensor { dtype: options.dtype.name(), shape, data_offsets });
    }

    // Strings as keys, numbers and text as values: nothing here fails to serialise.
    let mut json = serde_json::to_string(&header).unwrap_or_default();
    json.extend(std::iter::repeat_n(' ', json.len().next_multiple_of(8) - json.len()));
    if json.len() as u64 > HEADER_LIMIT_BYTES {
        let (claimed_bytes, limit_bytes) = (json.len() as u64, HEADER_LIMIT_BYTES);
        return Err(CheckpointError::HeaderTooLong { claimed_bytes, limit_bytes });
    }
    let mut file = Vec::with_capacity(8 + json.len() + data.len());
    file.extend((json.len() as u64).to_le_bytes());
    file.extend(json.as_bytes());
    file.extend(data);
    Ok(file)
}

/// An entry of the header.
#[derive(serde::Serialize)]
#[serde(untagged)]
enum Item<'a> {
    Metadata(BTreeMap<&'static str, String>),
    Tensor { dtype: &'static str, shape: &'a [usize], data_offsets: [usize; 2] },
}

fn metadata(
    config: &ModelConfig,
    training: Option<&TrainingFacts>,
    rows: EmbeddingRows,
) -> BTreeMap<&'static str, String> {
    let mut metadata = BTreeMap::from([
        // What Hugging Face's loaders ask for: PyTorch's names and layout.
        ("format", "pt".into()),
        (FORMAT_KEY, FORMAT.into()),
        (CONFIG_KEY, config.to_json()),
        (EmbeddingRows::KEY, rows.name().into()),
    ]);
    if let Some(training) = training {
        metadata.insert(TrainingFacts::KEY, training.to_json());
    }
    metadata
}

/// The embedding with the rows to store, where it has others.
fn resize(config: &ModelConfig, tensor: &NamedTensor, rows: EmbeddingRows) -> Option<NamedTensor> {
    match rows {
        EmbeddingRows::Reachable => tensor.compact_rows(),
        EmbeddingRows::Full
            if has_benchmark_vocabulary(config) && tensor.shape.first() == Some(&COMPACT_ROWS) =>
        {
            let mut full = tensor.clone();
            read::expand(&mut full);
            Some(full)
        }
        EmbeddingRows::Full => None,
    }
}

fn check_length(name: &str, tensor: &NamedTensor) -> Result<(), CheckpointError> {
    let needed = tensor.shape.iter().try_fold(1_usize, |n, &d| n.checked_mul(d));
    if needed == Some(tensor.data.len()) {
        return Ok(());
    }
    let (shape, found) = (tensor.shape.clone(), tensor.data.len());
    Err(CheckpointError::Inconsistent { name: name.into(), shape, found })
}

fn check_shape(
    name: &str,
    tensor: &NamedTensor,
    expected: &[usize],
) -> Result<(), CheckpointError> {
    if tensor.shape == expected {
        return Ok(());
    }
    Err(CheckpointError::WrongShape {
        name: name.into(),
        expected: expected.to_vec(),
        found: tensor.shape.iter().map(|&d| d as u64).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        checkpoint::{Checkpoint, Header},
        config::TransformerConfig,
    };

    /// Weights that differ from each other and that f16 holds exactly.
    fn weights(config: &ModelConfig) -> Parameters {
        let shapes = config.parameter_shapes().into_iter();
        shapes
            .map(|(name, shape)| {
                let data = (0..shape.iter().product::<usize>()).map(|i| (i % 2048) as f32 / 64.0);
                let data = data.collect();
                (name, NamedTensor { shape, data })
            })
            .collect()
    }

    fn config(move_vocab: usize) -> ModelConfig {
        let mut config = TransformerConfig { move_vocab, ..TransformerConfig::new(4, 1, 2) };
        if move_vocab < 20_482 {
            (config.start_move_id, config.pad_move_id) = (0, 1);
        }
        ModelConfig::Transformer(config)
    }

    #[test]
    fn what_is_written_is_read() {
        let config = config(20_482);
        let full = weights(&config);
        let facts = TrainingFacts { steps: 9, ..Default::default() };
        for dtype in [Dtype::F32, Dtype::F16] {
            for rows in [EmbeddingRows::Full, EmbeddingRows::Reachable] {
                let options = WriteOptions { dtype, rows };
                let file = write(&config, &full, Some(&facts), options).unwrap();
                let read = Checkpoint::read(&file, None).unwrap();
                assert_eq!(read.config, config);
                assert_eq!(read.info.training.as_ref(), Some(&facts));
                assert_eq!((read.info.rows, read.info.file_bytes), (rows, file.len() as u64));
                assert_eq!(read.info.dtypes, BTreeMap::from([(dtype, full.len())]));
                // From full or from pruned tensors, the bytes are the same.
                let again = write(&config, &read.tensors, Some(&facts), options).unwrap();
                assert!(again == file);
                let expanded = read.full_tensors();
                let row = |tensors: &Parameters, token: usize| {
                    tensors["tok_emb.weight"].data[token * 4..][..4].to_vec()
                };
                assert_eq!(row(&expanded, 3980), row(&full, 3980), "e2e4");
                assert_eq!(row(&expanded, 20_481), row(&full, 20_481), "PAD");
                let a1a1 = if rows == EmbeddingRows::Full { row(&full, 1) } else { vec![0.0; 4] };
                assert_eq!(row(&expanded, 1), a1a1);
            }
        }
    }

    #[test]
    fn every_tensor_is_aligned() {
        let config = config(33);
        for dtype in [Dtype::F32, Dtype::F16] {
            let options = WriteOptions { dtype, rows: EmbeddingRows::Reachable };
            let file = write(&config, &weights(&config), None, options).unwrap();
            let header = Header::parse(&file).unwrap();
            for entry in header.tensors.values() {
                assert_eq!(entry.span_bytes.start % dtype.bytes() as u64, 0);
            }
            assert_eq!(Checkpoint::read(&file, None).unwrap_err().code(), "CKPT-VOCABULARY");
            let read = Checkpoint::read_any_vocabulary(&file, None).unwrap();
            assert_eq!(read.info.rows, EmbeddingRows::Full);
        }
    }

    #[test]
    fn tensors_of_another_network_are_refused() {
        let config = config(33);
        let code = |change: fn(&mut Parameters)| {
            let mut tensors = weights(&config);
            change(&mut tensors);
            write(&config, &tensors, None, WriteOptions::EXACT).unwrap_err().code()
        };
        assert_eq!(code(|t| drop(t.remove("final_norm.weight"))), "CKPT-MISSING");
        assert_eq!(
            code(|t| drop(t.insert("spare".into(), NamedTensor { shape: vec![0], data: vec![] }))),
            "CKPT-EXTRA"
        );
        assert_eq!(
            code(|t| t.get_mut("final_norm.weight").unwrap().shape = vec![2, 2]),
            "CKPT-SHAPE"
        );
        assert_eq!(
            code(|t| t.get_mut("tok_emb.weight").unwrap().data.truncate(3)),
            "CKPT-INCONSISTENT"
        );
        assert_eq!(
            code(|t| t.get_mut("output_head.bias").unwrap().data[3] = f32::NAN),
            "CKPT-NON-FINITE"
        );
    }
}
