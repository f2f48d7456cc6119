//! The 75 labels of a state: their order, groups, class counts and logit ranges (paper, Table 2).
//!
//! A model emits [`LOGITS`] numbers a step; label `j` owns the range [`logit_range`]`(j)` of them.

use std::ops::Range;

/// Labels in a state (J).
pub const LABELS: usize = 75;
/// Labels that name a square's content; label `i` is square a8, b8, .., h1.
pub const SQUARES: usize = 64;
/// Classes of a square label: empty, white P N B R Q K, black p n b r q k.
pub const PIECE_CLASSES: usize = 13;
/// Logits of the factorised state head: 64 x 13 + 2 + 4 x 2 + 9 + 3 + 4 x 256.
pub const LOGITS: usize = 1878;
/// The largest class count of any label (a counter byte).
pub const MAX_CLASSES: usize = 256;

/// Label of the side to move: 0 White, 1 Black.
pub const SIDE: usize = 64;
/// First of the four castling rights, in the order K Q k q; 0 gone, 1 held.
pub const CASTLING: usize = 65;
/// En passant file: 0 none, 1..8 a..h.
pub const EP_FILE: usize = 69;
/// En passant rank: 0 none, 1 the third, 2 the sixth.
pub const EP_RANK: usize = 70;
/// High byte of the halfmove clock; the low byte follows.
pub const HALFMOVE: usize = 71;
/// High byte of the fullmove number; the low byte follows.
pub const FULLMOVE: usize = 73;

/// Piece letters by class, as in the reference's spec.
pub const PIECE_SYMBOLS: [char; PIECE_CLASSES] =
    ['.', 'P', 'N', 'B', 'R', 'Q', 'K', 'p', 'n', 'b', 'r', 'q', 'k'];

/// Labels that belong together in a report.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum LabelGroup {
    /// The 64 squares.
    Pieces,
    /// Side to move.
    SideToMove,
    /// The four castling rights.
    CastlingRights,
    /// En passant file and rank.
    EnPassant,
    /// Both bytes of the halfmove clock.
    HalfmoveClock,
    /// Both bytes of the fullmove number.
    FullmoveNumber,
}

impl LabelGroup {
    /// Every group, in label order.
    pub const ALL: [LabelGroup; 6] = [
        LabelGroup::Pieces,
        LabelGroup::SideToMove,
        LabelGroup::CastlingRights,
        LabelGroup::EnPassant,
        LabelGroup::HalfmoveClock,
        LabelGroup::FullmoveNumber,
    ];

    /// The labels of the group.
    pub const fn labels(self) -> Range<usize> {
        match self {
            LabelGroup::Pieces => 0..SQUARES,
            LabelGroup::SideToMove => SIDE..CASTLING,
            LabelGroup::CastlingRights => CASTLING..EP_FILE,
            LabelGroup::EnPassant => EP_FILE..HALFMOVE,
            LabelGroup::HalfmoveClock => HALFMOVE..FULLMOVE,
            LabelGroup::FullmoveNumber => FULLMOVE..LABELS,
        }
    }

    /// The group that label `label` (0..75) belongs to.
    pub const fn of(label: usize) -> LabelGroup {
        match label {
            0..SQUARES => LabelGroup::Pieces,
            SIDE => LabelGroup::SideToMove,
            CASTLING..EP_FILE => LabelGroup::CastlingRights,
            EP_FILE..HALFMOVE => LabelGroup::EnPassant,
            HALFMOVE..FULLMOVE => LabelGroup::HalfmoveClock,
            _ => LabelGroup::FullmoveNumber,
        }
    }

    /// The group's name in prose.
    pub const fn name(self) -> &'static str {
        match self {
            LabelGroup::Pieces => "pieces",
            LabelGroup::SideToMove => "side to move",
            LabelGroup::CastlingRights => "castling rights",
            LabelGroup::EnPassant => "en passant",
            LabelGroup::HalfmoveClock => "halfmove clock",
            LabelGroup::FullmoveNumber => "fullmove number",
        }
    }
}

/// Classes of label `label` (0..75).
pub const fn class_count(label: usize) -> usize {
    match label {
        0..SQUARES => PIECE_CLASSES,
        SIDE..EP_FILE => 2,
        EP_FILE => 9,
        EP_RANK => 3,
        _ => MAX_CLASSES,
    }
}

/// First logit of each label, with [`LOGITS`] at the end.
pub const LOGIT_OFFSETS: [usize; LABELS + 1] = {
    let mut offsets = [0; LABELS + 1];
    let mut label = 0;
    while label < LABELS {
        offsets[label + 1] = offsets[label] + class_count(label);
        label += 1;
    }
    offsets
};

/// The logits of label `label` (0..75).
pub const fn logit_range(label: usize) -> Range<usize> {
    LOGIT_OFFSETS[label]..LOGIT_OFFSETS[label + 1]
}

/// A short name: `a8`..`h1`, `side`, `castle K`.., `ep file`, `ep rank`, `halfmove hi`, ...
pub fn label_name(label: usize) -> String {
    match label {
        0..SQUARES => {
            let file = (b'a' + (label % 8) as u8) as char;
            format!("{file}{}", 8 - label / 8)
        }
        SIDE => "side".into(),
        CASTLING..EP_FILE => format!("castle {}", ['K', 'Q', 'k', 'q'][label - CASTLING]),
        EP_FILE => "ep file".into(),
        EP_RANK => "ep rank".into(),
        71 => "halfmove hi".into(),
        72 => "halfmove lo".into(),
        73 => "fullmove hi".into(),
        _ => "fullmove lo".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logits_add_up_to_the_papers_head() {
        assert_eq!(LOGIT_OFFSETS[LABELS], LOGITS);
        assert_eq!(logit_range(SIDE), 832..834);
        assert_eq!(logit_range(HALFMOVE).start, 832 + 2 + 8 + 9 + 3);
    }

    #[test]
    fn groups_partition_the_labels() {
        let mut seen = Vec::new();
        for group in LabelGroup::ALL {
            for label in group.labels() {
                assert_eq!(LabelGroup::of(label), group);
                seen.push(label);
            }
        }
        assert_eq!(seen, (0..LABELS).collect::<Vec<_>>());
    }
}
