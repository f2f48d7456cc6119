//! What the main thread asks for.

use cwm_core::chess::Policy;
use serde::{Deserialize, Serialize};

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Chosen by the main thread, from 1, never twice.
    pub id: u32,
    /// What is asked for.
    #[serde(flatten)]
    pub ask: Ask,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// Opens a checkpoint, checks it, and builds its network.
    Open {
        /// The name in tables; that of a shipped checkpoint or of the file.
        name: String,
        /// Where it comes from.
        source: CheckpointSource,
    },
    /// Answers along a line of play: a `step` for every step from `from_step` to the line's last, then `predicted`.
    /// The worker remembers the lines it has read, so asking for one step more costs one step.
    Predict {
        /// Ids of the line's move tokens, without START: a line of `n` plies has the steps `0..=n`.
        tokens: Vec<u16>,
        /// The first step that is wanted; 0 is the start position.
        from_step: u32,
    },
    /// Grades the open checkpoint, baselines or both on games.
    Grade(GradeJob),
    /// Ends a `grade` (it answers with what is graded by then) or a `predict`.
    Cancel {
        /// The id of the request that is to end.
        request: u32,
    },
}

/// Where a checkpoint comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum CheckpointSource {
    /// The page's own folder `models/NAME/`, which the worker fetches.
    Shipped,
    /// The request's files: the weights, then config.json if there is one.
    Files,
}

/// What is to be graded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GradeJob {
    /// Whether the open checkpoint is graded.
    pub model: bool,
    /// Baselines to grade as well, by name ([`cwm_core::baseline::Baseline::from_name`]).
    pub baselines: Vec<String>,
    /// The sets of games; every tracker is graded on every one.
    pub sets: Vec<GameSet>,
    /// The first games of each set only: marks the report as a preview.
    pub limit: Option<u64>,
    /// How many of the worst games of each evaluation come with the report.
    pub worst: u32,
}

/// A set of games.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "set", rename_all = "snake_case")]
pub enum GameSet {
    /// The famous games that ship with cwm.
    Classics,
    /// Random legal play, the same as `cwm evaluate --random GAMES --policy POLICY --seed SEED`.
    Random {
        /// What the moves are picked from.
        policy: Policy,
        /// The generator's seed.
        seed: u64,
        /// How many games.
        games: u64,
        /// Games of fewer full moves are left out (10 on the command line).
        min_fullmoves: u32,
    },
    /// A PGN, the request's next file. Games that cannot be kept are counted by reason.
    Pgn {
        /// The set's name in tables.
        name: String,
        /// Games of fewer full moves are left out.
        min_fullmoves: u32,
    },
}
