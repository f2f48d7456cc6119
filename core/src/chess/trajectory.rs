//! A game as aligned move tokens and states (paper, section 2.2).

use super::{EnPassant, State, token::MoveToken};

/// A game's move tokens, START first, and the state after each: `steps` of both, `steps = plies + 1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trajectory {
    tokens: Vec<MoveToken>,
    states: Vec<State>,
}

impl Trajectory {
    /// Replays `moves` (without START) from the standard start by [`State::after`], trusting them to be legal.
    pub fn replay(moves: &[MoveToken]) -> Self {
        Self::replay_with(moves, EnPassant::Always)
    }

    /// [`Trajectory::replay`] with the en passant label set as `en_passant` says.
    pub fn replay_with(moves: &[MoveToken], en_passant: EnPassant) -> Self {
        let mut tokens = Vec::with_capacity(moves.len() + 1);
        let mut states = Vec::with_capacity(moves.len() + 1);
        let mut state = State::start();
        tokens.push(MoveToken::START);
        states.push(state);
        for &token in moves {
            state = state.after(token);
            tokens.push(token);
            states.push(state.with_en_passant(en_passant));
        }
        Trajectory { tokens, states }
    }

    /// Joins tokens (START first) and states that were made elsewhere.
    ///
    /// Returns `None` unless both have the same length and the first token is START.
    pub fn from_aligned(tokens: Vec<MoveToken>, states: Vec<State>) -> Option<Self> {
        (tokens.len() == states.len() && tokens.first() == Some(&MoveToken::START))
            .then_some(Trajectory { tokens, states })
    }

    /// The tokens, START first.
    pub fn tokens(&self) -> &[MoveToken] {
        &self.tokens
    }

    /// The state after each token.
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// Positions in the model's sequence: plies + 1.
    pub fn steps(&self) -> usize {
        self.tokens.len()
    }

    /// Half-moves played.
    pub fn plies(&self) -> usize {
        self.tokens.len() - 1
    }
}
