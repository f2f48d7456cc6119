//! Plays moves written as text, each tested for legality, and collects their tokens.

use shakmaty::{Chess, Move, Position, uci::UciMove};

use super::{MoveToken, san};

/// Why a written move cannot be played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum MoveFault {
    /// The word is no move at all.
    #[error("not a move")]
    NotAMove,
    /// No legal move fits.
    #[error("illegal move")]
    Illegal,
    /// Several legal moves fit.
    #[error("ambiguous move")]
    Ambiguous,
    /// A null move, which hands over the turn.
    #[error("null move")]
    Null,
}

/// A game of standard chess in the making: the position reached and the tokens that led there.
#[derive(Debug, Clone, Default)]
pub struct Replayer {
    position: Chess,
    moves: Vec<MoveToken>,
}

impl Replayer {
    /// Back to the standard start, keeping the buffer.
    pub fn reset(&mut self) {
        self.position = Chess::default();
        self.moves.clear();
    }

    /// The position reached.
    pub fn position(&self) -> &Chess {
        &self.position
    }

    /// The tokens of the moves played, without START.
    pub fn moves(&self) -> &[MoveToken] {
        &self.moves
    }

    /// Plays a move in UCI notation (castling as e1g1 or e1h1).
    ///
    /// # Errors
    /// [`MoveFault`]; the game is then as before.
    pub fn push_uci(&mut self, word: &[u8]) -> Result<MoveToken, MoveFault> {
        let uci = UciMove::from_ascii(word).map_err(|_| MoveFault::NotAMove)?;
        if matches!(uci, UciMove::Null) {
            return Err(MoveFault::Null);
        }
        let m = uci.to_move(&self.position).map_err(|_| MoveFault::Illegal)?;
        Ok(self.push_legal(m))
    }

    /// Plays a move as people write it (see [`san`]).
    ///
    /// # Errors
    /// [`MoveFault`]; the game is then as before.
    pub fn push_written(&mut self, word: &[u8]) -> Result<MoveToken, MoveFault> {
        let written = san::parse(word).ok_or(MoveFault::NotAMove)?;
        let m = written.find(&self.position)?;
        Ok(self.push_legal(m))
    }

    /// Plays a token.
    ///
    /// # Errors
    /// [`MoveFault::Illegal`] if it is no legal move here; the game is then as before.
    pub fn push_token(&mut self, token: MoveToken) -> Result<MoveToken, MoveFault> {
        let uci = token.to_uci().ok_or(MoveFault::NotAMove)?;
        let m = uci.to_move(&self.position).map_err(|_| MoveFault::Illegal)?;
        // Another spelling of castling (e1h1) is another token.
        if MoveToken::from_move(m) != token {
            return Err(MoveFault::Illegal);
        }
        Ok(self.push_legal(m))
    }

    fn push_legal(&mut self, m: Move) -> MoveToken {
        let token = MoveToken::from_move(m);
        self.position.play_unchecked(m);
        self.moves.push(token);
        token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uci_moves_are_checked() {
        let mut game = Replayer::default();
        for word in ["e2e4", "e7e5", "g1f3", "b8c6", "f1c4", "g8f6"] {
            game.push_uci(word.as_bytes()).unwrap();
        }
        assert_eq!(game.push_uci(b"e1e2x"), Err(MoveFault::NotAMove));
        assert_eq!(game.push_uci(b"e1c1"), Err(MoveFault::Illegal));
        assert_eq!(game.push_uci(b"0000"), Err(MoveFault::Null));
        assert_eq!(game.push_uci(b"e1h1").unwrap().to_string(), "e1g1");
        assert_eq!(game.moves().len(), 7);
    }
}
