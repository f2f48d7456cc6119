//! A batch as a network takes it: PAD-filled tokens, and the labels of valid steps without padding.

use crate::chess::{EnPassant, MoveToken, State, label::LABELS};

/// B games of up to T steps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// Games (B).
    pub games: usize,
    /// Steps of the longest game (T).
    pub steps: usize,
    /// Move tokens `[B, T]`, START first, filled with PAD.
    pub tokens: Vec<u16>,
    /// Valid steps of each game `[B]`.
    pub lengths: Vec<u32>,
    /// Labels `[valid steps, 75]`, game after game, without padding.
    pub labels: Vec<u8>,
}

impl Batch {
    /// Replays games (moves without START) and lines them up.
    pub fn new(games: &[&[MoveToken]], en_passant: EnPassant) -> Self {
        let steps = games.iter().map(|moves| moves.len() + 1).max().unwrap_or(0);
        let valid: usize = games.iter().map(|moves| moves.len() + 1).sum();
        let mut tokens = vec![MoveToken::PAD.id(); games.len() * steps];
        let mut labels = Vec::with_capacity(valid * LABELS);
        for (row, moves) in tokens.chunks_mut(steps.max(1)).zip(games) {
            row[0] = MoveToken::START.id();
            for (slot, token) in row[1..].iter_mut().zip(*moves) {
                *slot = token.id();
            }
            push_states(moves, en_passant, &mut labels);
        }
        debug_assert_eq!(labels.len(), valid * LABELS);
        let lengths = games.iter().map(|moves| moves.len() as u32 + 1).collect();
        Batch { games: games.len(), steps, tokens, lengths, labels }
    }

    /// Steps that carry a state.
    pub fn valid_steps(&self) -> usize {
        self.lengths.iter().map(|&length| length as usize).sum()
    }

    /// Steps a network without packing computes: B x T.
    pub fn padded_steps(&self) -> usize {
        self.games * self.steps
    }
}

/// Appends the labels of every prefix of a game, the start's first.
fn push_states(moves: &[MoveToken], en_passant: EnPassant, labels: &mut Vec<u8>) {
    let mut state = State::start();
    labels.extend_from_slice(state.labels());
    for &token in moves {
        state = state.after(token);
        labels.extend_from_slice(state.with_en_passant(en_passant).labels());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pads_tokens_and_packs_labels() {
        let e4 = MoveToken::new(3980).unwrap();
        let games: [&[MoveToken]; 2] = [&[e4], &[]];
        let batch = Batch::new(&games, EnPassant::Always);
        assert_eq!((batch.games, batch.steps), (2, 2));
        assert_eq!(batch.tokens, [20480, 3980, 20480, 20481]);
        assert_eq!(batch.lengths, [2, 1]);
        assert_eq!(batch.labels.len(), 3 * LABELS);
        assert_eq!(batch.labels[2 * LABELS..], State::start().labels()[..]);
        assert_eq!((batch.valid_steps(), batch.padded_steps()), (3, 4));
        let legal = Batch::new(&games, EnPassant::Legal);
        assert_ne!(legal.labels[LABELS..2 * LABELS], batch.labels[LABELS..2 * LABELS]);
    }
}
