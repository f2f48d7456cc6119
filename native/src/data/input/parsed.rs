//! The games of one block, ready to be stored.

use cwm_core::data::{Games, SkipCounts};

use crate::data::Replay;

/// Games of a block in order, and those left out.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The games kept.
    pub games: Games,
    /// Indices of the games that need more than their moves, ascending.
    pub replays: Vec<(usize, Replay)>,
    /// The games left out so far.
    pub skipped: SkipCounts,
    /// Why the whole run must stop behind these games.
    pub abort: Option<String>,
}
