//! `environment.json`: what a run was asked for, and with what.

use std::fs;

use anyhow::Context;
use cwm_core::chess::EnPassant;
use serde::Deserialize;
use serde_json::json;

use super::{extend::Origin, run_dir::RunDir, settings::Settings};
use crate::{atomic, data::Dataset, exit::Failure, version};

const FILE: &str = "environment.json";

/// What a run is asked for besides its settings and data.
#[derive(Debug)]
pub struct Began<'a> {
    /// The command line.
    pub command: &'a [String],
    /// The device's name.
    pub device: String,
    /// Threads on the CPU.
    pub threads: usize,
    /// Optimisation steps in all.
    pub total_steps: u64,
    /// Where it begins, if not at the first step.
    pub extends: Option<&'a Origin>,
}

impl Began<'_> {
    /// Writes `config.toml` and `environment.json`.
    pub fn write(
        &self,
        dir: &RunDir,
        settings: &Settings,
        dataset: &Dataset,
    ) -> anyhow::Result<()> {
        let mut settings_with_path = settings.clone();
        settings_with_path.train.data = absolute(&settings.train.data);
        atomic::write(&dir.path().join("config.toml"), settings_with_path.to_toml()?.as_bytes())?;
        let environment = json!({
            "command": self.command,
            "cwm": *version::LONG,
            "device": self.device,
            "threads": self.threads,
            "seed": settings.train.seed,
            "parameters": settings.model.parameter_count(),
            "total_steps": self.total_steps,
            "extends": self.extends,
            "dataset": {
                "path": absolute(&settings.train.data),
                "sha256": dataset.manifest().data_sha256(),
                "en_passant": en_passant_name(dataset.spec().en_passant),
            },
        });
        let text = serde_json::to_string_pretty(&environment)?;
        atomic::write(&dir.path().join(FILE), text.as_bytes())
    }
}

/// What is read again.
#[derive(Debug, Deserialize)]
pub struct Environment {
    /// The data.
    pub dataset: DatasetSeen,
    /// Where the run began, if not at the first step.
    pub extends: Option<Origin>,
}

/// A run's data.
#[derive(Debug, Deserialize)]
pub struct DatasetSeen {
    /// Checksum of its games.
    pub sha256: String,
}

impl Environment {
    /// That of a run.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(run: &RunDir) -> anyhow::Result<Self> {
        let path = run.path().join(FILE);
        let text = fs::read_to_string(&path)
            .with_context(|| format!("cannot read `{}`", path.display()))?;
        serde_json::from_str(&text)
            .map_err(|e| Failure::data(format!("`{}`: {e}", path.display())).into())
    }
}

/// `always` or `legal`.
pub fn en_passant_name(en_passant: EnPassant) -> &'static str {
    match en_passant {
        EnPassant::Always => "always",
        EnPassant::Legal => "legal",
    }
}

fn absolute(path: &str) -> String {
    fs::canonicalize(path).map_or_else(|_| path.to_string(), |p| p.display().to_string())
}
