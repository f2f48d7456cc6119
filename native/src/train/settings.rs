//! What a training job is: model, optimiser, schedule and the job itself, merged from all layers.

use std::{collections::BTreeMap, path::Path};

use cwm_core::data::{plan::Batching, transition::Sampling};
use cwm_models::{
    config::ModelConfig,
    presets,
    train::{OptimizerConfig, ScheduleConfig},
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toml::Table;

use super::{
    extend::Origin,
    layers::{Layers, Source},
};
use crate::exit::Failure;

/// A whole training job. Written to the run directory as `config.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The network.
    pub model: ModelConfig,
    /// AdamW and clipping.
    pub optimizer: OptimizerConfig,
    /// Learning rate over steps.
    pub schedule: ScheduleConfig,
    /// How single steps are drawn; the transition machine alone is trained on these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// The job.
    pub train: TrainSettings,
}

/// Data, length and rhythm of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainSettings {
    /// Dataset directory.
    pub data: String,
    /// Name of the run; empty: the preset's or the config file's.
    pub name: String,
    /// Seed of initial weights, order of games and dropout.
    pub seed: u64,
    /// Games in a batch; of the transition machine, single steps.
    pub batch_size: usize,
    /// Training games to use, drawn with the seed; 0: all.
    pub max_games: usize,
    /// Passes over the training games.
    pub epochs: u64,
    /// Optimisation steps; 0: as many as the epochs have.
    pub max_steps: u64,
    /// `bucketed` or `reference`.
    pub batching: Batching,
    /// Steps between validations; 0: only at the end.
    pub validate_every: u64,
    /// Validation games each time; 0: all. At the end all are used.
    pub validate_games: usize,
    /// Steps between checkpoints; 0: only at the end.
    pub save_every: u64,
    /// Newest checkpoints to keep.
    pub keep_last: usize,
    /// Also keep every checkpoint whose step is a multiple of this; 0: none.
    pub keep_every: u64,
    /// Steps between step lines.
    pub log_every: u64,
    /// Steps between snapshots that a divergence rolls back to.
    pub snapshot_every: u64,
    /// Non-finite batches in a row before rolling back.
    pub rollback_after: u64,
    /// Non-finite batches in a row before giving up (exit code 5).
    pub stop_after: u64,
}

impl Default for TrainSettings {
    fn default() -> Self {
        TrainSettings {
            data: String::new(),
            name: String::new(),
            seed: 0,
            batch_size: 128,
            max_games: 0,
            epochs: 4,
            max_steps: 0,
            batching: Batching::Bucketed,
            validate_every: 5_000,
            validate_games: 1_280,
            save_every: 1_000,
            keep_last: 3,
            keep_every: 0,
            log_every: 50,
            snapshot_every: 500,
            rollback_after: 5,
            stop_after: 20,
        }
    }
}

/// Where settings come from, before merging.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// A preset's name or a config file's path.
    pub base: String,
    /// The `CWM_*` environment.
    pub env: BTreeMap<String, String>,
    /// `--set` assignments.
    pub assignments: Vec<String>,
    /// Keys that have flags of their own: key, value, flag.
    pub flags: Vec<(&'static str, toml::Value, &'static str)>,
}

/// Merged settings with the source of each value.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The settings.
    pub settings: Settings,
    /// Every value with its source.
    pub layers: Layers,
}

impl Sources {
    /// Merges every layer and checks the result.
    pub fn resolve(&self) -> anyhow::Result<Resolved> {
        let base = Base::find(&self.base)?;
        let mut layers = Layers::new(&defaults(&base)?);
        if let Some((name, text)) = &base.preset {
            layers.apply_text(text, name, |_| Source::Preset(name.clone()))?;
        }
        if let Some((path, text)) = &base.file {
            layers.apply_text(text, path, |line| Source::File(path.clone(), line))?;
        }
        layers.apply_env(&self.env)?;
        for assignment in &self.assignments {
            layers.apply_assignment(assignment)?;
        }
        for (key, value, flag) in &self.flags {
            layers.set(key, value.clone(), Source::Flag(flag))?;
        }
        let mut settings: Settings = layers
            .table()
            .try_into()
            .map_err(|e: toml::de::Error| Failure::usage(format!("config: {}", e.message())))?;
        settings.model.validate().map_err(Failure::usage)?;
        settings.optimizer.validate().map_err(Failure::usage)?;
        settings.schedule.validate().map_err(Failure::usage)?;
        if let Some(sampling) = &settings.sampling {
            sampling.validate().map_err(Failure::usage)?;
        }
        settings.train.validate()?;
        if settings.train.name.is_empty() {
            settings.train.name = base.name;
        }
        Ok(Resolved { settings, layers })
    }
}

/// The preset or file that the command line names.
struct Base {
    name: String,
    preset: Option<(String, String)>,
    file: Option<(String, String)>,
}

impl Base {
    /// A preset by name, else a file; a file may start from a preset by its top-level key `preset`.
    fn find(base: &str) -> anyhow::Result<Base> {
        if let Some(text) = presets::get(base) {
            let preset = Some((base.to_string(), text.to_string()));
            return Ok(Base { name: base.to_string(), preset, file: None });
        }
        let path = Path::new(base);
        if !path.is_file() {
            let failure = Failure::usage(format!("`{base}` is neither a preset nor a config file"));
            let names: Vec<&str> = presets::names().collect();
            let list = format!("presets: {}", names.join(", "));
            let nearest = failure.nearest(base, names.iter().copied());
            return Err(if nearest.hint.is_some() { nearest } else { nearest.hint(list) }.into());
        }
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::usage(format!("cannot read `{base}`: {e}")))?;
        let (preset, text) = split_preset(base, &text)?;
        let name = path.file_stem().map_or("run".into(), |s| s.to_string_lossy().into_owned());
        Ok(Base { name, preset, file: Some((base.to_string(), text)) })
    }
}

/// Takes the line `preset = "..."` out of a file's text, keeping its line count.
#[allow(clippy::type_complexity)]
fn split_preset(path: &str, text: &str) -> anyhow::Result<(Option<(String, String)>, String)> {
    let table: Table = text
        .parse()
        .map_err(|e: toml::de::Error| Failure::usage(format!("`{path}` is not valid TOML: {e}")))?;
    let Some(preset) = table.get("preset") else {
        return Ok((None, text.to_string()));
    };
    let name = preset
        .as_str()
        .ok_or_else(|| Failure::usage(format!("`preset` in `{path}` must be a string")))?;
    let preset_text = presets::get(name).ok_or_else(|| {
        Failure::usage(format!("unknown preset `{name}` in `{path}`"))
            .nearest(name, presets::names())
    })?;
    let without = |line: &str| {
        let key = line.split('=').next().unwrap_or_default().trim();
        if key == "preset" { String::new() } else { line.to_string() }
    };
    let rest: Vec<String> = text.lines().map(without).collect();
    Ok((Some((name.to_string(), preset_text.to_string())), rest.join("\n")))
}

/// The complete table of defaults for the family that preset or file name: it decides which keys exist.
fn defaults(base: &Base) -> anyhow::Result<Table> {
    let texts = [&base.preset, &base.file];
    let mut model = Table::new();
    for (name, text) in texts.into_iter().flatten() {
        let table: Table = text.parse().map_err(|e: toml::de::Error| {
            Failure::usage(format!("`{name}` is not valid TOML: {e}"))
        })?;
        if let Some(toml::Value::Table(part)) = table.get("model") {
            model.extend(part.clone());
        }
    }
    let config: ModelConfig =
        toml::Value::Table(model).try_into().map_err(|e: toml::de::Error| {
            Failure::usage(format!("config section [model]: {}", e.message()))
                .hint("start from a preset with a line `preset = \"transformer-d128\"` at the top")
        })?;
    let sampling = matches!(config, ModelConfig::Transition(_)).then(Sampling::default);
    let settings = Settings {
        model: config,
        sampling,
        optimizer: OptimizerConfig::default(),
        schedule: ScheduleConfig::default(),
        train: TrainSettings::default(),
    };
    Ok(Table::try_from(settings)?)
}

impl TrainSettings {
    fn validate(&self) -> Result<(), Failure> {
        let at_least_one = [
            ("batch_size", self.batch_size as u64),
            ("epochs", self.epochs),
            ("keep_last", self.keep_last as u64),
            ("log_every", self.log_every),
            ("snapshot_every", self.snapshot_every),
            ("rollback_after", self.rollback_after),
            ("stop_after", self.stop_after),
        ];
        for (key, value) in at_least_one {
            if value == 0 {
                return Err(Failure::usage(format!("config key `train.{key}` must be at least 1")));
            }
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
        if !self.name.chars().all(plain) || self.name.starts_with('.') {
            return Err(Failure::usage(format!("run name `{}` is no file name", self.name))
                .hint("use letters, digits, `-`, `_` and `.`"));
        }
        Ok(())
    }
}

impl Settings {
    /// The settings as TOML.
    pub fn to_toml(&self) -> anyhow::Result<String> {
        Ok(toml::to_string_pretty(self)?)
    }

    /// The first key on which another job differs in its network or in what each batch holds: what a run cannot change on its
    /// way.
    pub fn first_other_course(&self, other: &Settings) -> anyhow::Result<Option<String>> {
        let course = |settings: &Settings| -> anyhow::Result<Table> {
            let mut table = Table::try_from(settings)?;
            table.retain(|section, _| ["model", "sampling", "train"].contains(&section));
            if let Some(toml::Value::Table(train)) = table.get_mut("train") {
                train.retain(|key, _| {
                    ["seed", "batch_size", "max_games", "batching"].contains(&key)
                });
            }
            Ok(table)
        };
        let (a, b) = (course(self)?, course(other)?);
        let empty = toml::Value::Table(Table::new());
        for section in ["model", "sampling", "train"] {
            let of = |table: &Table| table.get(section).unwrap_or(&empty).clone();
            let (toml::Value::Table(a), toml::Value::Table(b)) = (of(&a), of(&b)) else { continue };
            let differs = a.keys().chain(b.keys()).find(|key| a.get(*key) != b.get(*key));
            if let Some(key) = differs {
                return Ok(Some(format!("{section}.{key}")));
            }
        }
        Ok(None)
    }

    /// Eight hex digits over all that decides the outcome: not the data's path, the run's name or how often is logged. A
    /// run that extends another is another than one from the start.
    pub fn hash(&self, data_sha256: &str, origin: Option<&Origin>) -> anyhow::Result<String> {
        let mut settings = self.clone();
        let rhythm = TrainSettings::default();
        settings.train = TrainSettings {
            data: data_sha256.to_string(),
            name: String::new(),
            save_every: rhythm.save_every,
            keep_last: rhythm.keep_last,
            keep_every: rhythm.keep_every,
            log_every: rhythm.log_every,
            ..settings.train
        };
        let origin = origin.map(Origin::text).unwrap_or_default();
        let digest = Sha256::digest(settings.to_toml()? + &origin);
        Ok(digest.iter().take(4).map(|b| format!("{b:02x}")).collect())
    }
}
