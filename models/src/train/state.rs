//! A trainer's state as bytes: a safetensors file of parameters and moments, with the counts in its metadata.

use std::collections::HashMap;

use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde::{Deserialize, Serialize};

use super::AdamW;
use crate::ModelConfig;

/// Bytes that are no state of this trainer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// No training state at all, or cut short.
    #[error("not a training state: {0}")]
    Malformed(String),
    /// Of another run.
    #[error("a training state of another {0}")]
    Other(&'static str),
    /// Numbers that training cannot leave behind.
    #[error("training state: `{0}` holds a number that is not finite")]
    NotFinite(String),
}

const FORMAT: u32 = 1;

/// The metadata entry that holds [`Counts`] as JSON.
const ENTRY: &str = "training_state";

/// All of a state that is no tensor.
#[derive(Serialize, Deserialize)]
struct Counts {
    format: u32,
    model: ModelConfig,
    seed: u64,
    step: u64,
    /// As bits: decimal digits need not lead back to the same number.
    untouched_scale_bits: u64,
}

/// Kinds of tensors: the numbers themselves, and their moments.
const KINDS: [&str; 3] = ["parameter", "first_moment", "second_moment"];

/// A trainer's state, borrowed.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a> {
    pub model: &'a ModelConfig,
    pub seed: u64,
    pub step: u64,
    pub untouched_scale: f64,
    pub names: &'a [String],
    pub parameters: &'a [Vec<f32>],
    pub adam: &'a AdamW,
}

/// What of a state changes from step to step.
pub(crate) struct Loaded {
    pub step: u64,
    pub untouched_scale: f64,
    pub parameters: Vec<Vec<f32>>,
    pub adam: AdamW,
}

pub(crate) fn save(trainer: Parts) -> Vec<u8> {
    let counts = Counts {
        format: FORMAT,
        model: trainer.model.clone(),
        seed: trainer.seed,
        step: trainer.step,
        untouched_scale_bits: trainer.untouched_scale.to_bits(),
    };
    // One entry: the order of several would differ from save to save.
    let counts = serde_json::to_string(&counts).unwrap_or_default();
    let metadata = HashMap::from([(ENTRY.to_string(), counts)]);
    let kinds = [trainer.parameters, &trainer.adam.first, &trainer.adam.second];
    let mut tensors: Vec<(String, Vec<u8>)> = Vec::new();
    for (kind, values) in KINDS.iter().zip(kinds) {
        for (name, values) in trainer.names.iter().zip(values) {
            let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
            tensors.push((format!("{kind}.{name}"), bytes));
        }
    }
    let views = tensors.iter().map(|(name, bytes)| {
        let view = TensorView::new(Dtype::F32, vec![bytes.len() / 4], bytes);
        (name.as_str(), view.unwrap_or_else(|_| unreachable!("length and shape agree")))
    });
    safetensors::serialize(views, Some(metadata))
        .unwrap_or_else(|_| unreachable!("tensors in memory have valid offsets"))
}

/// Reads a state of the same model and seed as `trainer`.
pub(crate) fn load(trainer: Parts, bytes: &[u8]) -> Result<Loaded, StateError> {
    let malformed = |error: safetensors::SafeTensorError| StateError::Malformed(error.to_string());
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(malformed)?;
    let entry = header.metadata().as_ref().and_then(|metadata| metadata.get(ENTRY));
    let entry = entry.ok_or_else(|| StateError::Malformed(format!("no entry `{ENTRY}`")))?;
    let counts: Counts =
        serde_json::from_str(entry).map_err(|error| StateError::Malformed(error.to_string()))?;
    if counts.format != FORMAT {
        return Err(StateError::Other("format version"));
    }
    if counts.model != *trainer.model {
        return Err(StateError::Other("model"));
    }
    if counts.seed != trainer.seed {
        return Err(StateError::Other("seed"));
    }
    let untouched_scale = f64::from_bits(counts.untouched_scale_bits);
    if !untouched_scale.is_finite() {
        return Err(StateError::NotFinite("untouched_scale".into()));
    }

    let tensors = SafeTensors::deserialize(bytes).map_err(malformed)?;
    let read = |kind: &str| -> Result<Vec<Vec<f32>>, StateError> {
        let expected = trainer.names.iter().zip(trainer.parameters);
        expected.map(|(name, old)| tensor(&tensors, format!("{kind}.{name}"), old.len())).collect()
    };
    let [parameters, first, second] = [read(KINDS[0])?, read(KINDS[1])?, read(KINDS[2])?];

    let adam = AdamW { first, second };
    Ok(Loaded { step: counts.step, untouched_scale, parameters, adam })
}

fn tensor(tensors: &SafeTensors, name: String, len: usize) -> Result<Vec<f32>, StateError> {
    let view = tensors.tensor(&name).map_err(|e| StateError::Malformed(e.to_string()))?;
    if view.dtype() != Dtype::F32 || view.shape() != [len] {
        return Err(StateError::Malformed(format!("`{name}` has another shape or type")));
    }
    let values: Vec<f32> =
        view.data().as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    if values.iter().all(|x| x.is_finite()) { Ok(values) } else { Err(StateError::NotFinite(name)) }
}
