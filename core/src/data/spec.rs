//! What a dataset's integers mean: vocabulary, label layout, and when the en passant label is set.

use crate::chess::{
    EnPassant, MoveToken,
    label::{LABELS, PIECE_SYMBOLS},
};

/// The most plies a stored game has; its steps then still fit 16 bits.
pub const MAX_PLIES: usize = 65_534;

/// The squares' order in a state, in the reference's words.
pub const SQUARE_ORDER: &str = "a8..h8,a7..h7,...,a1..h1";

/// The encoding that a dataset was made for.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Spec {
    /// Move tokens, START and PAD included.
    pub move_vocab: u32,
    /// Id of START.
    pub start_move_id: u32,
    /// Id of PAD.
    pub pad_move_id: u32,
    /// Labels in a state.
    pub state_len: u32,
    /// Piece letters by class.
    pub piece_symbols: Vec<String>,
    /// Order of the square labels.
    pub square_order: String,
    /// When the en passant label is set.
    pub en_passant: EnPassant,
}

/// Two encodings that do not agree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {found}, but this version works with {expected}")]
pub struct SpecMismatch {
    /// The field of the spec.
    pub field: &'static str,
    /// What this version works with.
    pub expected: String,
    /// What the dataset says.
    pub found: String,
}

impl Spec {
    /// The encoding of this version.
    pub fn new(en_passant: EnPassant) -> Self {
        Spec {
            move_vocab: MoveToken::VOCAB as u32,
            start_move_id: u32::from(MoveToken::START.id()),
            pad_move_id: u32::from(MoveToken::PAD.id()),
            state_len: LABELS as u32,
            piece_symbols: PIECE_SYMBOLS.iter().map(char::to_string).collect(),
            square_order: SQUARE_ORDER.to_string(),
            en_passant,
        }
    }

    /// Checks that this version can read data of this spec. The en passant mode may be either.
    ///
    /// # Errors
    /// [`SpecMismatch`] with the first field that differs.
    pub fn check(&self) -> Result<(), SpecMismatch> {
        let ours = Spec::new(self.en_passant);
        let pairs = [
            ("move_vocab", ours.move_vocab.to_string(), self.move_vocab.to_string()),
            ("start_move_id", ours.start_move_id.to_string(), self.start_move_id.to_string()),
            ("pad_move_id", ours.pad_move_id.to_string(), self.pad_move_id.to_string()),
            ("state_len", ours.state_len.to_string(), self.state_len.to_string()),
            ("piece_symbols", ours.piece_symbols.concat(), self.piece_symbols.concat()),
            ("square_order", ours.square_order, self.square_order.clone()),
        ];
        for (field, expected, found) in pairs {
            if expected != found {
                return Err(SpecMismatch { field, expected, found });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_vocabulary_is_refused() {
        let mut spec = Spec::new(EnPassant::Legal);
        assert_eq!(spec.check(), Ok(()));
        spec.move_vocab = 4674;
        let error = spec.check().unwrap_err();
        assert_eq!(error.to_string(), "move_vocab is 4674, but this version works with 20482");
    }
}
