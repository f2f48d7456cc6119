//! The reference's own checkpoints (`latest.pt`), read without running any of their code.
//!
//! A file of `torch.save` is a zip archive (`archive`) that holds a pickle and the bytes of each storage. The pickle is
//! read by a machine that makes values and calls nothing (`pickle`, `globals`); a file that asks for any other class
//! than those a checkpoint is made of is refused, by name. The payload is a dict: `model` (tensors under the reference's
//! names), `args` (the command line), `spec` (the vocabulary), `step`, `epoch`, `torch_version`, and the optimiser's state,
//! which is not looked into.

mod archive;
mod args;
mod error;
mod fields;
mod globals;
mod pickle;
mod tensors;
mod value;

use std::collections::BTreeMap;

pub use error::TorchError;

use self::{
    archive::Archive,
    fields::{Field, Fields, named_entries},
    value::{Id, Tensor, Value, Values},
};
use super::{
    config::{self, EmbeddingRows},
    error::{CheckpointError, quoted},
    facts::{DatasetFacts, ImportFacts, TrainingFacts},
    header::NAME_LIMIT_BYTES,
    read::{Checkpoint, FileKind, Info, sha256_hex},
};
use crate::{config::ModelConfig, parameters::Parameters};
use cwm_core::chess::label::LABELS;

/// Whether a file begins as one that `torch.save` writes: a zip archive, or a bare pickle as before PyTorch 1.6.
pub fn is_torch(head: &[u8]) -> bool {
    // A safetensors header of 640 bytes begins like a pickle; the brace behind its length tells them apart.
    head.starts_with(b"PK\x03\x04") || (is_pickle(head) && head.get(8) != Some(&b'{'))
}

fn is_pickle(head: &[u8]) -> bool {
    head.starts_with(b"\x80\x02")
}

/// Reads a checkpoint of the reference.
pub(super) fn read(
    file: &[u8],
    check_vocabulary: impl Fn(&ModelConfig) -> Result<(), CheckpointError>,
) -> Result<Checkpoint, CheckpointError> {
    if is_pickle(file) {
        return Err(TorchError::OldFormat.into());
    }
    let archive = Archive::open(file)?;
    let (values, whole) = pickle::read(archive.pickle()?)?;
    let payload =
        Payload { entries: named_entries(&values, whole, "the payload")?, values: &values };
    let args = Fields::read(&values, payload.get("args")?, "args")?;
    let spec = Fields::read(&values, payload.get("spec")?, "spec")?;
    if spec.count("state_len")? != LABELS as u64 {
        return Err(spec.wrong("state_len", spec.required("state_len")?, "75").into());
    }
    let config = args::config(&args, &spec)?;
    check_vocabulary(&config)?;

    let model = payload.model()?;
    let shapes = model.iter().map(|(name, tensor)| (*name, &tensor.shape[..])).collect();
    config::check_tensors(&shapes, &config, EmbeddingRows::Full)?;
    let mut dtypes = BTreeMap::new();
    for (name, tensor) in &model {
        *dtypes.entry(tensors::dtype_of(name, tensor)?).or_default() += 1;
    }
    tensors::check_apart(&model)?;
    let mut parameters = Parameters::new();
    for (name, tensor) in model {
        parameters.insert(name.to_string(), tensors::read(name, tensor, &archive)?);
    }

    let sha256 = sha256_hex(file);
    let info = Info {
        kind: FileKind::Torch,
        dtypes,
        rows: EmbeddingRows::Full,
        metadata: BTreeMap::new(),
        training: Some(payload.facts(&args, &sha256)),
        file_bytes: file.len() as u64,
        sha256,
    };
    Ok(Checkpoint { config, tensors: parameters, info })
}

/// The dict that the reference saves.
struct Payload<'v, 'a> {
    values: &'v Values<'a>,
    entries: BTreeMap<&'a str, Id>,
}

impl<'v, 'a> Payload<'v, 'a> {
    fn get(&self, key: &str) -> Result<Id, TorchError> {
        self.entries.get(key).copied().ok_or_else(|| TorchError::MissingKey { key: key.into() })
    }

    /// The network's tensors.
    fn model(&self) -> Result<BTreeMap<&'a str, &'v Tensor<'a>>, CheckpointError> {
        let mut model = BTreeMap::new();
        for (name, id) in named_entries(self.values, self.get("model")?, "model")? {
            let wrong = |expected, found| TorchError::WrongKind {
                key: format!("model.{}", quoted(name)),
                expected,
                found,
            };
            if name.len() > NAME_LIMIT_BYTES {
                return Err(wrong("a short name", "a long one").into());
            }
            match self.values.get(id) {
                Value::Tensor(tensor) => drop(model.insert(name, &**tensor)),
                other => return Err(wrong("a tensor", other.kind()).into()),
            }
        }
        if model.is_empty() {
            return Err(CheckpointError::NoTensors);
        }
        Ok(model)
    }

    fn count(&self, key: &str) -> Option<u64> {
        match self.values.get(*self.entries.get(key)?) {
            Value::Int(value @ 0..) => Some(*value as u64),
            _ => None,
        }
    }

    /// What the file tells of its training.
    fn facts(&self, args: &Fields<'_>, sha256: &str) -> TrainingFacts {
        let torch_version = self.entries.get("torch_version").map(|&id| self.values.get(id));
        let torch_version = match torch_version {
            Some(Value::Str(version)) => Some(quoted(version)),
            _ => None,
        };
        let data = match args.get("data_path") {
            // Where it lay is nobody's business.
            Some(Field::Str(path)) => path.trim_end_matches('/').rsplit(['/', '\\']).next(),
            _ => None,
        };
        TrainingFacts {
            steps: self.count("step").unwrap_or(0),
            seed: match args.get("seed") {
                Some(Field::Int(seed @ 0..)) => Some(seed as u64),
                _ => None,
            },
            dataset: data.map(|name| DatasetFacts { name: quoted(name), ..Default::default() }),
            imported: Some(ImportFacts {
                sha256: sha256.to_string(),
                torch_version,
                epoch: self.count("epoch"),
                ..Default::default()
            }),
            settings: args::settings(args).collect(),
            ..Default::default()
        }
    }
}
