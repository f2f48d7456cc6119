//! What a worker has to say.

use cwm_core::{data::SkipCounts, event::Event, report::EvalReport};
use serde::{Deserialize, Serialize};

/// One reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The request that is answered; 0 for none.
    pub id: u32,
    /// What is said.
    #[serde(flatten)]
    pub say: Say,
}

/// What is said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum Say {
    /// The worker is up.
    Ready {
        /// What it computes with.
        backend: Backend,
        /// The version of cwm that it was built from.
        version: String,
    },
    /// Something takes a while.
    Phase {
        /// What.
        phase: Phase,
        /// How much is done, in the phase's units (bytes or games).
        done: u64,
        /// How much there is to do, if known.
        total: Option<u64>,
    },
    /// The checkpoint is open.
    Opened {
        /// What it is.
        facts: Box<ModelFacts>,
    },
    /// The answer after one step.
    Step {
        /// The answer.
        answer: Box<StepAnswer>,
    },
    /// The line is answered to its end.
    Predicted {
        /// Steps that were told.
        steps: u32,
        /// Time in the worker, in milliseconds.
        millis: f64,
    },
    /// A later `predict` took this one's place, or it was cancelled.
    Superseded,
    /// A running evaluation.
    Grading {
        /// What the command line renders too.
        event: Event,
        /// Time since this evaluation began, in milliseconds.
        millis: f64,
    },
    /// Something the user should know, once.
    Notice {
        /// What happened, and what it means.
        fault: Fault,
        /// What the worker computes with from now on.
        backend: Backend,
    },
    /// Everything is graded, or what was by the time of a `cancel`.
    Graded {
        /// The report that `cwm evaluate --format json` prints.
        report: Box<EvalReport>,
        /// The worst games of each evaluation, worst first.
        worst: Vec<WorstGame>,
        /// Games of a PGN that were left out, by reason.
        skipped: SkipCounts,
        /// Where the time went.
        timings: Vec<Timing>,
        /// Whether everything was graded.
        complete: bool,
    },
    /// The `cancel` was heard.
    Cancelled,
    /// The request could not be met.
    Failed {
        /// Why.
        fault: Fault,
    },
}

impl Say {
    /// Whether nothing more is said about the request.
    pub fn is_last(&self) -> bool {
        !matches!(
            self,
            Self::Phase { .. } | Self::Step { .. } | Self::Grading { .. } | Self::Notice { .. }
        )
    }
}

/// Something that takes a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Fetching a checkpoint, in bytes.
    Fetching,
    /// Checking the file and building the network.
    Building,
    /// Asking the browser for the GPU.
    OpeningGpu,
    /// Comparing the GPU's answers with known ones.
    SelfTest,
    /// First run on the GPU: shaders are compiled.
    WarmingUp,
    /// Reading games, in games.
    ReadingGames,
    /// Drawing the intervals.
    Intervals,
}

/// What a worker computes with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backend {
    /// Which.
    pub kind: BackendKind,
    /// The GPU, where one is used or was refused.
    pub adapter: Option<Adapter>,
    /// Why this one, in words for the user: `forced by ?backend=cpu`, `no WebGPU in this browser`, ...
    pub why: Option<String>,
}

/// A kind of backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackendKind {
    /// One thread with SIMD.
    Cpu,
    /// The GPU through the browser.
    Webgpu,
}

/// A GPU as the browser describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Adapter {
    /// The vendor, e.g. `nvidia`.
    pub vendor: String,
    /// The architecture, e.g. `hopper`.
    pub architecture: String,
    /// What else the browser tells, mostly nothing.
    pub description: String,
}

/// An open checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelFacts {
    /// Its name in tables.
    pub name: String,
    /// The family, e.g. `transformer`.
    pub family: String,
    /// Width and depth, e.g. `d128/l1`.
    pub size: String,
    /// The preset of this shape.
    pub preset: Option<String>,
    /// Parameters of the network, with an embedding row for every token.
    pub parameters: u64,
    /// Parameters in the file.
    pub stored_parameters: u64,
    /// Number formats, e.g. `f16`.
    pub dtype: String,
    /// Labels that it names after every step: 75.
    pub labels: u32,
    /// The weights file's length.
    pub file_bytes: u64,
    /// The weights file's SHA-256, in hex.
    pub sha256: String,
    /// Steps that this worker grades in a second, roughly.
    pub steps_per_sec: f64,
    /// Optimiser steps behind it, if known.
    pub train_steps: Option<u64>,
    /// What a user should know before trusting it.
    pub warnings: Vec<String>,
    /// Time to fetch the file, in milliseconds; 0 for a file at hand.
    pub fetch_millis: f64,
    /// Time to check the file and build the network, in milliseconds.
    pub build_millis: f64,
}

/// What the checkpoint says after one step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StepAnswer {
    /// The step; 0 is the start position.
    pub step: u32,
    /// Whether all logits were finite. If not, the step counts as wrong in all labels and the lists are empty.
    pub finite: bool,
    /// The class named for each of the 75 labels.
    pub classes: Vec<u8>,
    /// The probability of each label's named class, to five decimals.
    pub probabilities: Vec<f32>,
    /// For each label its three most probable classes, most probable first (two for labels of two classes).
    pub top: Vec<Vec<(u8, f32)>>,
}

/// A game on which a tracker did badly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorstGame {
    /// The tracker's name.
    pub tracker: String,
    /// The set's name.
    pub dataset: String,
    /// The game's place in the set, from 0.
    pub game: u64,
    /// What the game is called, where it has a name.
    pub title: Option<String>,
    /// Ids of its move tokens, without START.
    pub tokens: Vec<u16>,
    /// The step of the first mistake.
    pub first_mistake: u32,
    /// Steps with all 75 labels right.
    pub exact_steps: u32,
    /// Labels wrong over all steps.
    pub wrong_labels: u64,
}

/// A part of the work and the time it took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// What was done, e.g. `transformer-d128 on classics`.
    pub what: String,
    /// Steps it was done for; 0 where steps are no measure.
    pub steps: u64,
    /// How long it took, in milliseconds.
    pub millis: f64,
}

/// Something that went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// A stable code: one of [`code`], or a checkpoint's (`CKPT-...`).
    pub code: String,
    /// What is wrong, and where.
    pub message: String,
    /// What to do next.
    pub hint: String,
}

impl Fault {
    /// A fault.
    pub fn new(code: &str, message: impl ToString, hint: impl ToString) -> Self {
        Fault { code: code.to_string(), message: message.to_string(), hint: hint.to_string() }
    }
}

/// The codes of faults that are not a checkpoint's own.
pub mod code {
    /// The request is not one that this worker knows: the page's files are of different versions.
    pub const REQUEST: &str = "PAGE-REQUEST";
    /// A shipped file could not be fetched.
    pub const FETCH: &str = "PAGE-FETCH";
    /// A file could not be read.
    pub const READ: &str = "PAGE-READ";
    /// The file is larger than the page can hold.
    pub const TOO_LARGE: &str = "PAGE-TOO-LARGE";
    /// No checkpoint is open.
    pub const NO_MODEL: &str = "PAGE-NO-MODEL";
    /// The network cannot be built from the checkpoint.
    pub const MODEL: &str = "PAGE-MODEL";
    /// A token that is no move.
    pub const TOKEN: &str = "PAGE-TOKEN";
    /// The game is too long.
    pub const TOO_LONG: &str = "PAGE-TOO-LONG";
    /// The games cannot be read, or none can be kept.
    pub const GAMES: &str = "PAGE-GAMES";
    /// A baseline of this name does not exist.
    pub const BASELINE: &str = "PAGE-BASELINE";
    /// Another evaluation is running.
    pub const BUSY: &str = "PAGE-BUSY";
    /// The device failed.
    pub const DEVICE: &str = "PAGE-DEVICE";
    /// The GPU was lost.
    pub const GPU_LOST: &str = "GPU-LOST";
    /// The GPU has too little memory.
    pub const GPU_MEMORY: &str = "GPU-MEMORY";
    /// The GPU refused a shader or a command.
    pub const GPU_SHADER: &str = "GPU-SHADER";
    /// The GPU computes wrong.
    pub const GPU_WRONG: &str = "GPU-WRONG";
    /// The GPU could not be opened.
    pub const GPU_REFUSED: &str = "GPU-REFUSED";
    /// The worker crashed.
    pub const PANIC: &str = "PAGE-PANIC";
}
