//! A trainer's state as bytes: a safetensors file of parameters and moments, with the counts in its metadata.

use std::collections::HashMap;

use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use super::Trainer;

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

const FORMAT: &str = "1";

/// Kinds of tensors: the numbers themselves, and their moments.
const KINDS: [&str; 3] = ["parameter", "first_moment", "second_moment"];

pub(super) fn save(trainer: &Trainer) -> Vec<u8> {
    let metadata = HashMap::from([
        ("format".to_string(), FORMAT.to_string()),
        ("model".to_string(), trainer.model.config().to_json()),
        ("seed".to_string(), trainer.seed.to_string()),
        ("step".to_string(), trainer.step.to_string()),
        ("untouched_scale".to_string(), format!("{:016x}", trainer.untouched_scale.to_bits())),
    ]);
    let kinds = [&trainer.parameters, &trainer.adam.first, &trainer.adam.second];
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

pub(super) fn load(trainer: &mut Trainer, bytes: &[u8]) -> Result<(), StateError> {
    let malformed = |error: safetensors::SafeTensorError| StateError::Malformed(error.to_string());
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(malformed)?;
    let metadata = header.metadata().clone().unwrap_or_default();
    let entry = |key: &str| {
        metadata.get(key).ok_or_else(|| StateError::Malformed(format!("no entry `{key}`")))
    };
    let number = |key: &str, radix: u32| {
        u64::from_str_radix(entry(key)?, radix)
            .map_err(|_| StateError::Malformed(format!("`{key}` is no number")))
    };
    if entry("format")? != FORMAT {
        return Err(StateError::Other("format version"));
    }
    if *entry("model")? != trainer.model.config().to_json() {
        return Err(StateError::Other("model"));
    }
    let (seed, step) = (number("seed", 10)?, number("step", 10)?);
    if seed != trainer.seed {
        return Err(StateError::Other("seed"));
    }
    let untouched_scale = f64::from_bits(number("untouched_scale", 16)?);
    if !untouched_scale.is_finite() {
        return Err(StateError::NotFinite("untouched_scale".into()));
    }

    let tensors = SafeTensors::deserialize(bytes).map_err(malformed)?;
    let read = |kind: &str| -> Result<Vec<Vec<f32>>, StateError> {
        let expected = trainer.names.iter().zip(&trainer.parameters);
        expected.map(|(name, old)| tensor(&tensors, format!("{kind}.{name}"), old.len())).collect()
    };
    let [parameters, first, second] = [read(KINDS[0])?, read(KINDS[1])?, read(KINDS[2])?];

    trainer.parameters = parameters;
    trainer.adam.first = first;
    trainer.adam.second = second;
    trainer.step = step;
    trainer.untouched_scale = untouched_scale;
    trainer.put_parameters();
    Ok(())
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
