//! One report for every grading: the same document from the command line, the page and a checkpoint's `eval.json`.
//!
//! [`EvalReport`] is the data (JSON, versioned); [`text`], [`markdown`] and [`tsv`] are its other faces. Every share
//! carries its numerator and denominator. Real numbers are kept to 12 significant digits, so that a report read back
//! from JSON is the report that was written.

mod blocks;
mod close_up;
mod details;
mod evaluation;
mod numbers;
mod share;
mod table;
#[cfg(test)]
mod tests;
pub mod tsv;

use serde::{Deserialize, Serialize};

pub use blocks::{Detail, markdown, percent, text};
pub use details::{Aftermath, GroupErrors, Lag, WorstGame};
pub use evaluation::{Evaluation, FirstMistakeGroup, FirstMistakeStep, GroupShare, PrefixBin};
pub use numbers::{grouped, short_loss};
pub use share::{LossMean, Share};

use crate::{
    chess::{EnPassant, Policy},
    data,
    metrics::Resampling,
    paper::Split,
};

/// The value of `schema` in every report.
pub const SCHEMA: &str = "cwm-eval-report";
/// The version that is written, and the newest that is read. Version 2 added the worst games, what follows a policy's
/// moves, and games from files.
pub const VERSION: u32 = 2;

/// The grades of some trackers on some datasets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvalReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// [`VERSION`]; older documents are read as this one.
    pub version: u32,
    /// What made the report, e.g. `cwm 0.1.0`.
    pub tool: String,
    /// How the intervals were drawn.
    pub resampling: Resampling,
    /// The datasets, in the order of the tables.
    pub datasets: Vec<DatasetInfo>,
    /// The trackers, in the order of the tables.
    pub trackers: Vec<TrackerInfo>,
    /// Grades: at most one for each tracker and dataset.
    pub evaluations: Vec<Evaluation>,
}

/// Where a dataset's games come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// Uniformly random legal play, from a seed.
    RandomUniform {
        /// The generator's seed.
        seed: u64,
        /// Games below this many full moves are left out.
        min_fullmoves: u32,
    },
    /// Random play by a policy that seeks out a rule, from a seed.
    RuleStratum {
        /// What the mover wants.
        policy: Policy,
        /// The generator's seed.
        seed: u64,
        /// Games below this many full moves are left out.
        min_fullmoves: u32,
    },
    /// A dataset on disk.
    Stored {
        /// Where it lay.
        path: String,
        /// The part that was graded, by hash of the games' ids.
        part: data::Split,
        /// SHA-256 that names its data, in hex, as its manifest gives it.
        data_sha256: Option<String>,
    },
    /// A file of games.
    File {
        /// Where it lay.
        path: String,
        /// Games that were left out: not legal, not standard chess, or not from the standard start.
        skipped: u64,
    },
    /// Games that ship with the tool.
    BuiltIn,
}

/// A dataset as it was graded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetInfo {
    /// Its name in tables.
    pub name: String,
    /// Where its games come from.
    pub source: Source,
    /// When the en passant label is set in its states.
    pub en_passant: EnPassant,
    /// The paper's split that it resembles.
    pub split: Option<Split>,
    /// If only the first games were taken: how many at most. Such grades are a preview.
    pub limit: Option<u64>,
}

impl DatasetInfo {
    /// The famous games that ship with the tool.
    pub fn classics() -> Self {
        Self::new("classics".to_string(), Source::BuiltIn, Some(Split::HeldOutReal))
    }

    /// Random legal play. The paper's figures are of uniform play alone: no other policy stands beside them.
    pub fn random(policy: Policy, seed: u64, min_fullmoves: u32) -> Self {
        let (source, split) = match policy {
            Policy::Uniform => {
                (Source::RandomUniform { seed, min_fullmoves }, Some(Split::RandomUniform))
            }
            _ => (Source::RuleStratum { policy, seed, min_fullmoves }, None),
        };
        Self::new(policy.dataset_name(), source, split)
    }

    /// Games with the benchmark's labels, all of them.
    pub fn new(name: String, source: Source, split: Option<Split>) -> Self {
        DatasetInfo { name, source, en_passant: EnPassant::Always, split, limit: None }
    }
}

/// What was graded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TrackerKind {
    /// No network.
    Baseline,
    /// A trained network.
    Model(ModelInfo),
}

/// A checkpoint's identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// The family, as in presets.
    pub family: String,
    /// Width and depth, e.g. `d128/l1`.
    pub size: String,
    /// Width (D).
    pub d_model: u64,
    /// Blocks.
    pub n_layers: u64,
    /// Parameters, counted with the whole vocabulary.
    pub parameters: u64,
    /// SHA-256 of the weights file, in hex.
    pub sha256: String,
    /// Where it lay.
    pub path: String,
    /// Optimiser steps behind it, if known.
    pub train_steps: Option<u64>,
    /// Games that it was trained on, each counted once, if known.
    #[serde(default)]
    pub train_games: Option<u64>,
    /// Games that it read in training, counted with repetition, if known.
    #[serde(default)]
    pub games_read: Option<u64>,
    /// Whether the state that it carries from step to step has the form of the answer: its scores do not compare with
    /// those of sequence mixers, and every table says so.
    #[serde(default)]
    pub structured: bool,
}

/// A tracker as it was graded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackerInfo {
    /// Its name in tables.
    pub name: String,
    /// What it is.
    #[serde(flatten)]
    pub kind: TrackerKind,
}

impl TrackerInfo {
    /// Whether it is a model whose state has the form of the answer.
    pub fn is_structured(&self) -> bool {
        matches!(&self.kind, TrackerKind::Model(model) if model.structured)
    }

    /// Its name as tables and charts show it: structured models are marked wherever their scores stand.
    pub fn label(&self) -> String {
        if self.is_structured() { format!("{} (structured)", self.name) } else { self.name.clone() }
    }
}

/// A document that is no report we can read.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Not JSON, or not of the report's shape.
    #[error("not a valid evaluation report")]
    Json(#[from] serde_json::Error),
    /// JSON, but something else.
    #[error("not an evaluation report: `schema` is {found}, expected \"{SCHEMA}\"")]
    Schema {
        /// What stands there.
        found: String,
    },
    /// A report of another version.
    #[error(
        "evaluation report of version {found}; this version of the tool reads versions 1 to {VERSION}"
    )]
    Version {
        /// The version found.
        found: u64,
    },
    /// Parts that contradict each other.
    #[error("inconsistent evaluation report: {0}")]
    Inconsistent(String),
}

impl EvalReport {
    /// A report without grades.
    pub fn new(tool: impl Into<String>, resampling: Resampling) -> Self {
        EvalReport {
            schema: SCHEMA.to_string(),
            version: VERSION,
            tool: tool.into(),
            resampling,
            datasets: Vec::new(),
            trackers: Vec::new(),
            evaluations: Vec::new(),
        }
    }

    /// The document, indented, with a final newline.
    pub fn to_json(&self) -> String {
        // Serialising to a string fails only for maps with other keys than strings; there are none.
        let mut json = serde_json::to_string_pretty(self).unwrap_or_default();
        json.push('\n');
        json
    }

    /// Reads a document.
    ///
    /// # Errors
    /// [`ReportError`], naming another schema or version before anything else is looked at.
    pub fn from_json(json: &str) -> Result<Self, ReportError> {
        let document: serde_json::Value = serde_json::from_str(json)?;
        match document.get("schema") {
            Some(serde_json::Value::String(schema)) if schema == SCHEMA => {}
            other => {
                let found = other.map_or("missing".to_string(), serde_json::Value::to_string);
                return Err(ReportError::Schema { found });
            }
        }
        if let Some(found) = document.get("version").and_then(serde_json::Value::as_u64)
            && !(1..=u64::from(VERSION)).contains(&found)
        {
            return Err(ReportError::Version { found });
        }
        let mut report: EvalReport = serde_json::from_value(document)?;
        report.version = VERSION;
        report.check()?;
        Ok(report)
    }

    /// The grade of a tracker on a dataset.
    pub fn evaluation(&self, tracker: &str, dataset: &str) -> Option<&Evaluation> {
        self.evaluations.iter().find(|e| e.tracker == tracker && e.dataset == dataset)
    }

    /// The grades on a dataset as tables and charts show them: in the order of the trackers, and under their labels.
    pub fn shown(&self, dataset: &str) -> Vec<Evaluation> {
        let grade = |tracker: &TrackerInfo| {
            let evaluation = self.evaluation(&tracker.name, dataset)?;
            Some(Evaluation { tracker: tracker.label(), ..evaluation.clone() })
        };
        self.trackers.iter().filter_map(grade).collect()
    }

    fn check(&self) -> Result<(), ReportError> {
        let fail = |message: String| Err(ReportError::Inconsistent(message));
        for (i, evaluation) in self.evaluations.iter().enumerate() {
            let Evaluation { tracker, dataset, .. } = evaluation;
            if !self.trackers.iter().any(|t| t.name == *tracker) {
                return fail(format!("grades of `{tracker}`, which is not listed"));
            }
            if !self.datasets.iter().any(|d| d.name == *dataset) {
                return fail(format!("grades on `{dataset}`, which is not listed"));
            }
            if self.evaluations[..i].iter().any(|e| e.tracker == *tracker && e.dataset == *dataset)
            {
                return fail(format!("two grades of `{tracker}` on `{dataset}`"));
            }
            evaluation
                .check()
                .or_else(|what| fail(format!("{what} of `{tracker}` on `{dataset}`")))?;
        }
        Ok(())
    }
}

/// A real number to 12 significant digits: few enough for JSON to give the same number back.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // What was just printed always parses.
    format!("{value:.11e}").parse().unwrap_or(value)
}
