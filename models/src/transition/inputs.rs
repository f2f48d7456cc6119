//! What the network reads of a step: rows of two tables.
//!
//! Squares are counted as labels are: 0 is a8, 63 is h1.

use cwm_core::chess::{
    MoveToken,
    label::{CASTLING, EP_FILE, EP_RANK, HALFMOVE, LABELS, SIDE, logit_range},
};

use super::config::Clocks;

/// Stands for a square where a token names none (START).
pub(super) const NO_SQUARE: usize = 64;
/// Stands for the piece on it.
const NO_PIECE: usize = 13;

// Rows of the context network's table.
const FROM_PIECE: usize = 0;
const TO_PIECE: usize = 14;
const FROM_SQUARE: usize = 28;
const TO_SQUARE: usize = 93;
/// Shared by all promotions, so that what they have in common is learned from the frequent ones.
const PROMOTES: usize = 158;
/// Queen, rook, bishop, knight.
const PROMOTION: usize = 159;
const SIDES: usize = 163;
/// One row for each right that is held.
const RIGHTS: usize = 165;
const EP_FILES: usize = 169;
const EP_RANKS: usize = 178;
/// 256 rows for each byte of the clocks, where they are read.
const CLOCK_BYTES: usize = 181;

/// Rows of the context network's table.
pub(super) fn context_table_rows(clocks: Clocks) -> usize {
    match clocks {
        Clocks::Registers => CLOCK_BYTES,
        Clocks::Bytes => CLOCK_BYTES + 256 * (LABELS - HALFMOVE),
    }
}

// Rows of the cell network's table.
pub(super) const PIECE: usize = 0;
pub(super) const SQUARE: usize = 13;
/// File and rank relative to the first named cell, then to the second: -7..7, and one for none.
pub(super) const RELATIVE: [usize; 4] = [77, 93, 109, 125];
const NO_RELATION: usize = 15;

/// Rows of the cell network's table.
pub(super) fn cell_table_rows(relative_positions: bool) -> usize {
    if relative_positions { RELATIVE[3] + 16 } else { RELATIVE[0] }
}

/// The cells that a token names, and its promotion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Move {
    pub from: usize,
    pub to: usize,
    /// 0 none, 1 queen, 2 rook, 3 bishop, 4 knight.
    promotion: usize,
}

impl Move {
    /// Takes a token apart. PAD reads like START; nothing asks for the state after it.
    pub fn of(token: u16) -> Self {
        if token >= MoveToken::START.id() {
            return Move { from: NO_SQUARE, to: NO_SQUARE, promotion: 0 };
        }
        let (squares, promotion) = (usize::from(token / 5), usize::from(token % 5));
        Move { from: (squares / 64) ^ 56, to: (squares % 64) ^ 56, promotion }
    }
}

/// Calls `row` with each row of the context network's table that a step reads.
pub(super) fn context_rows(step: Move, before: &[u8], clocks: Clocks, mut row: impl FnMut(usize)) {
    let piece = |square: usize| before.get(square).map_or(NO_PIECE, |&class| usize::from(class));
    let named = |square: usize| if square == NO_SQUARE { NO_PIECE } else { piece(square) };
    row(FROM_PIECE + named(step.from));
    row(TO_PIECE + named(step.to));
    row(FROM_SQUARE + step.from);
    row(TO_SQUARE + step.to);
    if step.promotion > 0 {
        row(PROMOTES);
        row(PROMOTION + step.promotion - 1);
    }
    row(SIDES + usize::from(before[SIDE]));
    for right in 0..4 {
        if before[CASTLING + right] != 0 {
            row(RIGHTS + right);
        }
    }
    row(EP_FILES + usize::from(before[EP_FILE]));
    row(EP_RANKS + usize::from(before[EP_RANK]));
    if clocks == Clocks::Bytes {
        for (i, &byte) in before[HALFMOVE..LABELS].iter().enumerate() {
            row(CLOCK_BYTES + 256 * i + usize::from(byte));
        }
    }
}

/// The rows of a state of probabilities `[1878]`, each with its weight.
pub(super) fn soft_context_rows(
    step: Move,
    before: &[f32],
    clocks: Clocks,
    mut row: impl FnMut(usize, f32),
) {
    let mut spread = |first: usize, label: usize| {
        let classes = before[logit_range(label)].iter().enumerate();
        classes.for_each(|(class, &weight)| row(first + class, weight));
    };
    for (first, square) in [(FROM_PIECE, step.from), (TO_PIECE, step.to)] {
        if square != NO_SQUARE {
            spread(first, square);
        }
    }
    spread(SIDES, SIDE);
    spread(EP_FILES, EP_FILE);
    spread(EP_RANKS, EP_RANK);
    if clocks == Clocks::Bytes {
        for label in HALFMOVE..LABELS {
            spread(CLOCK_BYTES + 256 * (label - HALFMOVE), label);
        }
    }
    for right in 0..4 {
        row(RIGHTS + right, before[logit_range(CASTLING + right).start + 1]);
    }
    for (first, square) in [(FROM_PIECE, step.from), (TO_PIECE, step.to)] {
        if square == NO_SQUARE {
            row(first + NO_PIECE, 1.0);
        }
    }
    row(FROM_SQUARE + step.from, 1.0);
    row(TO_SQUARE + step.to, 1.0);
    if step.promotion > 0 {
        row(PROMOTES, 1.0);
        row(PROMOTION + step.promotion - 1, 1.0);
    }
}

/// Rows of the cell network's table for the file and the rank of `cell` relative to `named`.
pub(super) fn relative_rows(cell: usize, named: usize, which: usize) -> [usize; 2] {
    let [file, rank] = if named == NO_SQUARE {
        [NO_RELATION; 2]
    } else {
        [cell % 8 + 7 - named % 8, cell / 8 + 7 - named / 8]
    };
    [RELATIVE[2 * which] + file, RELATIVE[2 * which + 1] + rank]
}

#[cfg(test)]
mod tests {
    use super::*;
    use cwm_core::chess::{State, label::LOGITS};

    #[test]
    fn rows_stay_in_their_tables() {
        let state = *State::start().labels();
        let (mut least, mut most) = (usize::MAX, 0);
        for token in 0..=MoveToken::PAD.id() {
            let step = Move::of(token);
            for clocks in [Clocks::Registers, Clocks::Bytes] {
                let mut rows = Vec::new();
                context_rows(step, &state, clocks, |row| rows.push(row));
                assert!(rows.windows(2).all(|pair| pair[0] < pair[1]), "{rows:?}");
                assert!(rows.iter().all(|&row| row < context_table_rows(clocks)));
            }
            for cell in 0..64 {
                for (which, named) in [step.from, step.to].into_iter().enumerate() {
                    let [file, rank] = relative_rows(cell, named, which);
                    assert!((0..16).contains(&(file - RELATIVE[2 * which])));
                    assert!((0..16).contains(&(rank - RELATIVE[2 * which + 1])));
                    (least, most) = (least.min(file), most.max(rank));
                }
            }
        }
        assert_eq!((least, most), (RELATIVE[0], cell_table_rows(true) - 1));
        assert_eq!(cell_table_rows(false), SQUARE + 64);
    }

    #[test]
    fn a_sure_state_of_probabilities_weighs_the_rows_of_its_labels() {
        let state = *State::start().labels();
        let mut sure = vec![0.0; LOGITS];
        for (label, &class) in state.iter().enumerate() {
            sure[logit_range(label).start + usize::from(class)] = 1.0;
        }
        for token in [MoveToken::START.id(), 3980, 3981, 17_000] {
            for clocks in [Clocks::Registers, Clocks::Bytes] {
                let mut hard = vec![0.0; context_table_rows(clocks)];
                context_rows(Move::of(token), &state, clocks, |row| hard[row] += 1.0);
                let mut soft = vec![0.0; context_table_rows(clocks)];
                soft_context_rows(Move::of(token), &sure, clocks, |row, w| soft[row] += w);
                assert_eq!(hard, soft, "token {token}");
            }
        }
    }

    #[test]
    fn e2e4_is_read_as_such() {
        let step = Move::of(3980);
        assert_eq!((step.from, step.to, step.promotion), (52, 36, 0));
        assert_eq!(relative_rows(36, step.from, 0), [77 + 7, 93 + 5]);
    }
}
