//! The colour swap: chess seen by the other player, an exact symmetry of the rules.
//!
//! The board is mirrored between the ranks, every piece, the side to move and every right change their colour, and the
//! en passant square moves to the mirrored rank of the same file. A legal move becomes a legal move. The halfmove clock
//! is the same; the fullmove number is not covered, because it counts Black's moves alone.

use super::{
    MoveToken, State,
    label::{CASTLING, EP_RANK, LABELS, SIDE, SQUARES},
};

/// The class of a piece in the other colour; empty stays empty.
const fn swapped_piece(class: u8) -> u8 {
    match class {
        0 => 0,
        1..7 => class + 6,
        _ => class - 6,
    }
}

impl State {
    /// The state with colours swapped, both clocks as they are.
    #[must_use]
    pub fn color_swapped(&self) -> Self {
        let old = self.labels();
        let mut new = *old;
        for (square, class) in new[..SQUARES].iter_mut().enumerate() {
            *class = swapped_piece(old[square ^ 56]);
        }
        new[SIDE] = 1 - old[SIDE];
        new[CASTLING..CASTLING + 2].copy_from_slice(&old[CASTLING + 2..CASTLING + 4]);
        new[CASTLING + 2..CASTLING + 4].copy_from_slice(&old[CASTLING..CASTLING + 2]);
        new[EP_RANK] = (3 - old[EP_RANK]) % 3;
        // Every class stays within its label's range.
        Self::new(new).unwrap_or(*self)
    }
}

impl MoveToken {
    /// The move with colours swapped; START and PAD stay.
    #[must_use]
    pub fn color_swapped(self) -> Self {
        if self.is_special() {
            return self;
        }
        let (squares, promotion) = (self.id() / 5, self.id() % 5);
        // Both squares change their rank: bits 3 to 5 of each.
        let mirrored = squares ^ (56 << 6 | 56);
        Self::new(u32::from(mirrored * 5 + promotion)).unwrap_or(self)
    }
}

const _: () = assert!(LABELS == 75, "the swap covers every label but the clocks");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::{EnPassant, label::FULLMOVE, random::RandomPlay};

    /// A state without the number that the swap does not cover.
    fn covered(state: &State) -> [u8; FULLMOVE] {
        state.labels()[..FULLMOVE].try_into().unwrap()
    }

    #[test]
    fn commutes_with_every_move_of_random_play() {
        for seed in 0..40 {
            let game = RandomPlay::new(seed, 0).play().unwrap();
            let mut state = State::start();
            for &token in &game.moves {
                let next = state.after(token);
                let swapped = state.color_swapped().after(token.color_swapped());
                assert_eq!(covered(&swapped), covered(&next.color_swapped()), "{token}");
                let legal = |state: State| state.with_en_passant(EnPassant::Legal);
                assert_eq!(
                    covered(&legal(next.color_swapped())),
                    covered(&legal(next).color_swapped())
                );
                state = next;
            }
        }
    }

    #[test]
    fn is_its_own_inverse_and_keeps_the_vocabulary() {
        assert_eq!(State::start().color_swapped().color_swapped(), State::start());
        assert_ne!(State::start().color_swapped(), State::start());
        let mut swapped: Vec<MoveToken> =
            MoveToken::reachable().iter().map(|token| token.color_swapped()).collect();
        assert!(MoveToken::reachable().iter().zip(&swapped).all(|(&a, b)| b.color_swapped() == a));
        swapped.sort_unstable();
        assert_eq!(swapped, MoveToken::reachable());
        assert_eq!(MoveToken::START.color_swapped(), MoveToken::START);
    }
}
