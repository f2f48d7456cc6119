//! Why a game is left out of a dataset. Every game read is kept or counted under exactly one reason.

use std::{collections::BTreeMap, fmt};

use crate::chess::replay::MoveFault;

/// The reason a game was skipped.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Fewer plies than `2 * min_fullmoves`.
    Short,
    /// More plies than a dataset holds ([`super::spec::MAX_PLIES`]).
    TooLong,
    /// A FEN tag, or another sign of a start other than the standard one.
    NonStandardStart,
    /// A variant other than standard chess.
    Variant,
    /// A move that is not legal where it stands.
    IllegalMove,
    /// A move that names several legal moves.
    AmbiguousMove,
    /// A word in the main line that is no move.
    NotAMove,
    /// A null move (`--`), which is no chess move.
    NullMove,
    /// A FEN that describes no position.
    BadFen,
    /// Labels that its moves do not lead to.
    LabelsDiffer,
    /// A record that lacks fields, or a game whose text breaks off inside a comment, variation or tag.
    Malformed,
    /// A game whose text is longer than the reader keeps in memory.
    TooLarge,
    /// The id of an earlier game.
    Duplicate,
}

impl SkipReason {
    /// Every reason.
    pub const ALL: [SkipReason; 13] = [
        SkipReason::Short,
        SkipReason::TooLong,
        SkipReason::NonStandardStart,
        SkipReason::Variant,
        SkipReason::IllegalMove,
        SkipReason::AmbiguousMove,
        SkipReason::NotAMove,
        SkipReason::NullMove,
        SkipReason::BadFen,
        SkipReason::LabelsDiffer,
        SkipReason::Malformed,
        SkipReason::TooLarge,
        SkipReason::Duplicate,
    ];

    /// The reason in words.
    pub const fn describe(self) -> &'static str {
        match self {
            SkipReason::Short => "too few plies",
            SkipReason::TooLong => "too many plies",
            SkipReason::NonStandardStart => "starts from another position",
            SkipReason::Variant => "a chess variant",
            SkipReason::IllegalMove => "illegal move in the main line",
            SkipReason::AmbiguousMove => "ambiguous move in the main line",
            SkipReason::NotAMove => "no move where one is due",
            SkipReason::NullMove => "null move in the main line",
            SkipReason::BadFen => "unreadable FEN",
            SkipReason::LabelsDiffer => "labels that the moves do not lead to",
            SkipReason::Malformed => "malformed or cut off",
            SkipReason::TooLarge => "text too large",
            SkipReason::Duplicate => "id seen before",
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.describe())
    }
}

impl From<MoveFault> for SkipReason {
    fn from(fault: MoveFault) -> Self {
        match fault {
            MoveFault::NotAMove => SkipReason::NotAMove,
            MoveFault::Illegal => SkipReason::IllegalMove,
            MoveFault::Ambiguous => SkipReason::AmbiguousMove,
            MoveFault::Null => SkipReason::NullMove,
        }
    }
}

/// Skipped games by reason; merges exactly.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct SkipCounts(BTreeMap<SkipReason, u64>);

impl SkipCounts {
    /// Counts one game.
    pub fn add(&mut self, reason: SkipReason) {
        *self.0.entry(reason).or_default() += 1;
    }

    /// Adds the counts of another part of the same input.
    pub fn merge(&mut self, other: &SkipCounts) {
        for (&reason, &games) in &other.0 {
            *self.0.entry(reason).or_default() += games;
        }
    }

    /// Games skipped for one reason.
    pub fn get(&self, reason: SkipReason) -> u64 {
        self.0.get(&reason).copied().unwrap_or(0)
    }

    /// Games skipped for any reason.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// The reasons that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (SkipReason, u64)> + '_ {
        self.0.iter().map(|(&reason, &games)| (reason, games))
    }
}
