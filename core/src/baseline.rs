//! Trackers that need no network: what a score means is seen beside them.
//!
//! | name | it knows |
//! |---|---|
//! | `start-board` | the start position, whatever is played |
//! | `naive-mover` | a piece goes from its source to its target square (promoted if the token says so), sides alternate, the clocks count; no castling rook moves, no en passant pawn falls, castling rights stay, the en passant label stays empty |
//! | `naive-mover+rights` | also that a right falls when its king's or rook's home square is touched |
//! | `naive-mover+rights+ep` | also that a double push sets the en passant label |
//! | `oracle` | the rules of chess |
//!
//! The naive movers judge what is a pawn move or a capture on the board that they believe in. None gives a loss.

use crate::{
    chess::{
        EnPassant, MoveToken, State, Trajectory,
        label::{CASTLING, EP_FILE, EP_RANK, FULLMOVE, HALFMOVE, SIDE},
    },
    tracker::{Prediction, TrackError, Tracker},
};

/// A tracker without a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Baseline {
    /// Always the start position.
    StartBoard,
    /// Moves pieces and counts.
    NaiveMover,
    /// Moves pieces, counts, and keeps castling rights.
    NaiveMoverRights,
    /// Moves pieces, counts, keeps castling rights and the en passant label.
    NaiveMoverRightsEp,
    /// Knows the rules: right at every step, for games labelled with this en passant mode.
    Oracle(EnPassant),
}

impl Baseline {
    /// Every baseline, from the one that knows least; the oracle for the benchmark's own labels.
    pub const ALL: [Baseline; 5] = [
        Baseline::StartBoard,
        Baseline::NaiveMover,
        Baseline::NaiveMoverRights,
        Baseline::NaiveMoverRightsEp,
        Baseline::Oracle(EnPassant::Always),
    ];

    /// The name in tables and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Baseline::StartBoard => "start-board",
            Baseline::NaiveMover => "naive-mover",
            Baseline::NaiveMoverRights => "naive-mover+rights",
            Baseline::NaiveMoverRightsEp => "naive-mover+rights+ep",
            Baseline::Oracle(_) => "oracle",
        }
    }

    /// The baseline of that name.
    pub fn from_name(name: &str) -> Option<Baseline> {
        Self::ALL.into_iter().find(|baseline| baseline.name() == name)
    }

    /// The state that the baseline believes in after `token`, if it believed in `state` before.
    fn after(self, state: &State, token: MoveToken) -> State {
        match self {
            Baseline::StartBoard => *state,
            Baseline::NaiveMover => naive_after(state, token, false, false),
            Baseline::NaiveMoverRights => naive_after(state, token, true, false),
            Baseline::NaiveMoverRightsEp => naive_after(state, token, true, true),
            Baseline::Oracle(_) => state.after(token),
        }
    }
}
