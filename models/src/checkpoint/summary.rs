//! A checkpoint in words and numbers, for `cwm inspect` and the page.

use std::collections::{BTreeMap, BTreeSet};

use cwm_core::report::ModelInfo;
use serde::{Deserialize, Serialize};

use super::{
    config::{CONFIG_KEY, EmbeddingRows, has_benchmark_vocabulary},
    facts::TrainingFacts,
    read::{Checkpoint, FORMAT_KEY, FileKind},
};
use crate::{config::ModelConfig, presets};

/// The version of [`Summary`]'s layout.
pub const SUMMARY_VERSION: u32 = 1;

/// What a checkpoint is, checked: its tensors are all there, of the right shapes, and finite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Always [`SUMMARY_VERSION`].
    pub version: u32,
    /// The family, e.g. `transformer`.
    pub family: String,
    /// Width and depth, e.g. `d128/l1`.
    pub size: String,
    /// The preset whose shape this is (dropout aside), e.g. `transformer-d128`.
    pub preset: Option<String>,
    /// The network's shape.
    pub config: ModelConfig,
    /// Parameters of the network, with an embedding row for every token.
    pub parameters: u64,
    /// Parameters in the file.
    pub stored_parameters: u64,
    /// The network's parts in the order that data takes through them.
    pub parts: Vec<Part>,
    /// `f32`, `f16`, or both with their numbers of tensors.
    pub dtype: String,
    /// What kind of file it is.
    #[serde(default)]
    pub file_kind: FileKind,
    /// Rows of the embedding in the file.
    pub embedding_rows: EmbeddingRows,
    /// The file's length.
    pub file_bytes: u64,
    /// The file's SHA-256, lower-case hexadecimal.
    pub sha256: String,
    /// How the weights came to be, where the file says so.
    pub training: Option<TrainingFacts>,
    /// Metadata that are not ours.
    pub other_metadata: BTreeMap<String, String>,
    /// What a user should know before trusting the file.
    pub warnings: Vec<String>,
}

/// A part of a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The common start of its tensors' names, e.g. `blocks.0`.
    pub name: String,
    /// Its tensors.
    pub tensors: usize,
    /// Its parameters, with an embedding row for every token.
    pub parameters: u64,
    /// Its parameters in the file.
    pub stored_parameters: u64,
}

impl Checkpoint {
    /// Describes the checkpoint.
    pub fn describe(&self) -> Summary {
        let Checkpoint { config, tensors, info } = self;
        let mut parts: Vec<Part> = Vec::new();
        for (name, shape) in config.parameter_shapes() {
            let part = part_of(&name);
            if parts.last().is_none_or(|last| last.name != part) {
                let (name, tensors) = (part.to_string(), 0);
                parts.push(Part { name, tensors, parameters: 0, stored_parameters: 0 });
            }
            if let Some(last) = parts.last_mut() {
                last.tensors += 1;
                last.parameters += shape.iter().map(|&d| d as u64).product::<u64>();
                last.stored_parameters += tensors.get(&name).map_or(0, |t| t.data.len() as u64);
            }
        }
        Summary {
            version: SUMMARY_VERSION,
            family: config.family().into(),
            size: config.size(),
            preset: preset_of(config),
            config: config.clone(),
            parameters: parts.iter().map(|p| p.parameters).sum(),
            stored_parameters: parts.iter().map(|p| p.stored_parameters).sum(),
            parts,
            dtype: self.dtype_text(),
            file_kind: info.kind,
            embedding_rows: info.rows,
            file_bytes: info.file_bytes,
            sha256: info.sha256.clone(),
            training: info.training.clone(),
            other_metadata: info
                .metadata
                .iter()
                .filter(|(key, _)| *key != "format" && !key.starts_with("cwm."))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            warnings: self.warnings(),
        }
    }

    /// What reports say of the checkpoint, which lay at `path`.
    pub fn model_info(&self, path: &str) -> ModelInfo {
        let config = &self.config;
        let training = self.info.training.as_ref();
        ModelInfo {
            family: config.family().to_string(),
            size: config.size(),
            d_model: config.d_model() as u64,
            n_layers: config.n_layers() as u64,
            parameters: config.parameter_count() as u64,
            sha256: self.info.sha256.clone(),
            path: path.to_string(),
            train_steps: training.map(|training| training.steps),
            train_games: training.and_then(|training| training.dataset.as_ref()?.games),
            games_read: training.and_then(|training| training.games_seen),
            structured: config.is_structured(),
        }
    }

    fn dtype_text(&self) -> String {
        match self.info.dtypes.iter().collect::<Vec<_>>()[..] {
            [(dtype, _)] => dtype.to_string(),
            ref several => {
                let each = several.iter().map(|(dtype, tensors)| format!("{dtype} x {tensors}"));
                each.collect::<Vec<_>>().join(", ")
            }
        }
    }

    fn warnings(&self) -> Vec<String> {
        let Checkpoint { config, tensors, info } = self;
        let mut warnings = Vec::new();
        if !has_benchmark_vocabulary(config) {
            warnings.push(format!(
                "the vocabulary of {} tokens is not the benchmark's: this network cannot be graded",
                config.move_vocab()
            ));
        }
        if info.kind == FileKind::Safetensors && !info.metadata.contains_key(CONFIG_KEY) {
            warnings.push(
                "the file does not hold its config: keep config.json beside it, or export it again"
                    .into(),
            );
        }
        match (&info.training, info.metadata.get(TrainingFacts::KEY)) {
            (None, None) => warnings.push("the file does not say how it was trained".into()),
            (None, Some(_)) => warnings.push(format!(
                "the file says how it was trained (`{}`), but this version cannot read it",
                TrainingFacts::KEY
            )),
            (Some(_), _) => {}
        }
        let norms = || tensors.iter().filter(|(name, _)| name.contains("norm"));
        if norms().count() > 0 && norms().all(|(_, t)| t.data.iter().all(|&v| v == 1.0)) {
            warnings.push("every norm weight is 1: the network looks untrained".into());
        }
        let known =
            BTreeSet::from([FORMAT_KEY, CONFIG_KEY, EmbeddingRows::KEY, TrainingFacts::KEY]);
        for key in info.metadata.keys() {
            if key.starts_with("cwm.") && !known.contains(key.as_str()) {
                let key = super::error::quoted(key);
                warnings.push(format!("the metadata's `{key}` is not known to this version"));
            }
        }
        warnings
    }
}

/// `blocks.3.attn.qkv.weight` -> `blocks.3`, `tok_emb.weight` -> `tok_emb`.
fn part_of(name: &str) -> &str {
    let mut dots = name.match_indices('.').map(|(at, _)| at);
    let (Some(first), second) = (dots.next(), dots.next()) else { return name };
    match second {
        Some(second) if name[first + 1..second].bytes().all(|b| b.is_ascii_digit()) => {
            &name[..second]
        }
        _ => &name[..first],
    }
}

/// The preset of this shape; dropout is no matter of shape.
fn preset_of(config: &ModelConfig) -> Option<String> {
    let model_of = |name: &str| -> Option<ModelConfig> {
        let table: toml::Table = presets::get(name)?.parse().ok()?;
        table.get("model")?.clone().try_into().ok()
    };
    let same = |name: &&str| {
        model_of(name).is_some_and(|preset| {
            preset.shape().without_dropout() == config.shape().without_dropout()
        })
    };
    presets::names().find(same).map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        TransformerConfig,
        checkpoint::{Dtype, WriteOptions, write},
        parameters::{NamedTensor, Parameters},
    };

    fn checkpoint(
        config: TransformerConfig,
        value: f32,
        facts: Option<&TrainingFacts>,
    ) -> Checkpoint {
        let config = ModelConfig::Transformer(config);
        let shapes = config.parameter_shapes().into_iter();
        let tensors: Parameters = shapes
            .map(|(name, shape)| {
                let data = vec![value; shape.iter().product()];
                (name, NamedTensor { shape, data })
            })
            .collect();
        let options = WriteOptions { dtype: Dtype::F16, rows: EmbeddingRows::Reachable };
        let file = write(&config, &tensors, facts, options).unwrap();
        Checkpoint::read_any_vocabulary(&file, None).unwrap()
    }

    #[test]
    fn the_papers_smallest_transformer_is_recognised() {
        let facts = TrainingFacts { steps: 5, ..Default::default() };
        let summary = checkpoint(TransformerConfig::new(128, 1, 2), 0.5, Some(&facts)).describe();
        assert_eq!(summary.preset.as_deref(), Some("transformer-d128"));
        assert_eq!(summary.parameters, 3_128_150);
        assert_eq!(summary.stored_parameters, 3_128_150 - 18_512 * 128);
        assert_eq!((summary.dtype.as_str(), summary.size.as_str()), ("f16", "d128/l1"));
        let parts: Vec<_> = summary.parts.iter().map(|p| (p.name.as_str(), p.tensors)).collect();
        assert_eq!(
            parts,
            [("tok_emb", 1), ("blocks.0", 10), ("final_norm", 1), ("output_head", 2)]
        );
        assert_eq!(summary.warnings, [""; 0]);
        let json = serde_json::to_string(&summary).unwrap();
        assert_eq!(serde_json::from_str::<Summary>(&json).unwrap(), summary);
    }

    #[test]
    fn odd_checkpoints_come_with_warnings() {
        let config = TransformerConfig {
            move_vocab: 33,
            start_move_id: 0,
            pad_move_id: 1,
            ..TransformerConfig::new(4, 2, 2)
        };
        let mut odd = checkpoint(config, 1.0, None);
        odd.info.metadata.remove(CONFIG_KEY);
        odd.info.metadata.insert("cwm.future".into(), String::new());
        let summary = odd.describe();
        assert_eq!(summary.preset, None);
        for part in ["33 tokens", "config.json", "how it was trained", "untrained", "cwm.future"] {
            assert!(summary.warnings.iter().any(|w| w.contains(part)), "{part}");
        }
        assert_eq!(summary.warnings.len(), 5);
    }
}
