//! Moves as people write them, read leniently: SAN, long algebraic and UCI, with or without decoration.
//!
//! What is accepted beyond SAN: `0-0` and `o-o`; a dash or colon as the mark of a move or capture, and captures marked
//! or not; promotions as `e8=Q`, `e8Q`, `e8(Q)`, `e8/Q` and `e8q`; check, mate and assessment marks in any number; `e.p.`
//! behind a capture; source and target square without a piece letter (`g1f3`) for any piece.

use shakmaty::{CastlingSide, File, Move, Position, Rank, Role, Square};

use super::replay::MoveFault;

/// A written move, before it is looked for among the legal ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenMove {
    /// A piece (or any piece), what is known of its source, its target, and a promotion.
    Normal {
        /// The piece that moves; `None` if only squares are written.
        role: Option<Role>,
        /// Its file, if written.
        file: Option<File>,
        /// Its rank, if written.
        rank: Option<Rank>,
        /// Where it goes.
        to: Square,
        /// What it becomes.
        promotion: Option<Role>,
    },
    /// Castling.
    Castle(CastlingSide),
    /// A null move.
    Null,
}

/// Reads a word as a move; `None` if it is none.
pub fn parse(word: &[u8]) -> Option<WrittenMove> {
    let word = trim_marks(word);
    match word {
        b"O-O" | b"0-0" | b"o-o" => return Some(WrittenMove::Castle(CastlingSide::KingSide)),
        b"O-O-O" | b"0-0-0" | b"o-o-o" => {
            return Some(WrittenMove::Castle(CastlingSide::QueenSide));
        }
        b"--" | b"Z0" | b"0000" | b"@@@@" | b"null" => return Some(WrittenMove::Null),
        _ => {}
    }
    let (role, rest) = match word.first()? {
        b'N' => (Some(Role::Knight), &word[1..]),
        b'B' => (Some(Role::Bishop), &word[1..]),
        b'R' => (Some(Role::Rook), &word[1..]),
        b'Q' => (Some(Role::Queen), &word[1..]),
        b'K' => (Some(Role::King), &word[1..]),
        b'P' => (Some(Role::Pawn), &word[1..]),
        _ => (None, word),
    };
    let (rest, promotion) = split_promotion(rest);
    // What is left is at most a square, a mark and a square.
    let [source @ .., to_file, to_rank] = rest else { return None };
    let to = Square::from_coords(file(*to_file)?, rank(*to_rank)?);
    let source = match source {
        [source @ .., b'x' | b'-' | b':'] => source,
        source => source,
    };
    let (from_file, from_rank) = match *source {
        [] => (None, None),
        [a] => match (file(a), rank(a)) {
            (None, None) => return None,
            parts => parts,
        },
        [a, b] => (Some(file(a)?), Some(rank(b)?)),
        _ => return None,
    };
    // Without a letter it is a pawn, unless both squares are written.
    let role = match (role, from_file, from_rank) {
        (None, Some(_), Some(_)) => None,
        (None, None, Some(_)) => return None,
        (None, ..) => Some(Role::Pawn),
        (role, ..) => role,
    };
    Some(WrittenMove::Normal { role, file: from_file, rank: from_rank, to, promotion })
}

fn file(byte: u8) -> Option<File> {
    byte.checked_sub(b'a').filter(|&f| f < 8).map(|f| File::new(f.into()))
}

fn rank(byte: u8) -> Option<Rank> {
    byte.checked_sub(b'1').filter(|&r| r < 8).map(|r| Rank::new(r.into()))
}

fn trim_marks(mut word: &[u8]) -> &[u8] {
    loop {
        word = match word {
            [rest @ .., b'+' | b'#' | b'!' | b'?'] => rest,
            [rest @ .., b'e', b'.', b'p', b'.'] | [rest @ .., b'e', b'p'] => rest,
            _ => return word,
        };
    }
}

/// Splits `=Q`, `Q`, `(Q)`, `/Q` or `q` from the end.
fn split_promotion(word: &[u8]) -> (&[u8], Option<Role>) {
    let role = |byte: u8| match byte {
        b'Q' | b'q' => Some(Role::Queen),
        b'R' | b'r' => Some(Role::Rook),
        b'B' | b'b' => Some(Role::Bishop),
        b'N' | b'n' => Some(Role::Knight),
        _ => None,
    };
    match word {
        [rest @ .., b'(', letter, b')'] => (rest, role(*letter)),
        [rest @ .., b'=' | b'/', letter] => (rest, role(*letter)),
        [rest @ .., letter] if role(*letter).is_some() => (rest, role(*letter)),
        _ => (word, None),
    }
}

impl WrittenMove {
    /// The one legal move that is meant.
    ///
    /// # Errors
    /// [`MoveFault::Illegal`] if none fits, [`MoveFault::Ambiguous`] if several do, [`MoveFault::Null`] for a null move.
    pub fn find<P: Position>(self, position: &P) -> Result<Move, MoveFault> {
        match self {
            WrittenMove::Null => Err(MoveFault::Null),
            WrittenMove::Castle(side) => {
                position.castling_moves(side).first().copied().ok_or(MoveFault::Illegal)
            }
            WrittenMove::Normal { role: None, file, rank, to, promotion } => {
                let (Some(file), Some(rank)) = (file, rank) else {
                    return Err(MoveFault::NotAMove);
                };
                let from = Square::from_coords(file, rank);
                let uci = shakmaty::uci::UciMove::Normal { from, to, promotion };
                uci.to_move(position).map_err(|_| MoveFault::Illegal)
            }
            WrittenMove::Normal { role: Some(role), file, rank, to, promotion } => {
                // A pawn move without a file is no capture.
                let file = match (role, file) {
                    (Role::Pawn, None) => Some(to.file()),
                    (_, file) => file,
                };
                let mut found = None;
                for &m in &position.san_candidates(role, to) {
                    let (from, promoted) = match m {
                        Move::Normal { from, promotion, .. } => (from, promotion),
                        Move::EnPassant { from, .. } => (from, None),
                        Move::Castle { .. } | Move::Put { .. } => continue,
                    };
                    let fits = file.is_none_or(|f| f == from.file())
                        && rank.is_none_or(|r| r == from.rank())
                        && promoted == promotion;
                    if fits && found.replace(m).is_some() {
                        return Err(MoveFault::Ambiguous);
                    }
                }
                found.ok_or(MoveFault::Illegal)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shakmaty::{Chess, fen::Fen, san::SanPlus};

    use super::*;
    use crate::chess::{MoveToken, random::RandomPlay};

    fn at(fen: &str) -> Chess {
        fen.parse::<Fen>().unwrap().into_position(shakmaty::CastlingMode::Standard).unwrap()
    }

    fn uci(position: &Chess, word: &str) -> Result<String, MoveFault> {
        let written = parse(word.as_bytes()).ok_or(MoveFault::NotAMove)?;
        written.find(position).map(|m| MoveToken::from_move(m).to_string())
    }

    #[test]
    fn many_spellings_of_one_move() {
        let start = Chess::default();
        for word in ["Nf3", "Ng1f3", "Ng1-f3", "Ngf3", "N1f3", "g1f3", "Nf3!?", "Nf3+", "Nxf3"] {
            assert_eq!(uci(&start, word).as_deref(), Ok("g1f3"), "{word}");
        }
        for word in ["e4", "e2e4", "e2-e4", "Pe4", "e4!!"] {
            assert_eq!(uci(&start, word).as_deref(), Ok("e2e4"), "{word}");
        }
        let promoting = at("1n5k/P7/8/8/8/8/8/K7 w - - 0 1");
        for word in ["axb8=Q", "axb8Q", "axb8(Q)", "axb8/Q", "a7b8q", "ab8=Q#", "a:b8=Q"] {
            assert_eq!(uci(&promoting, word).as_deref(), Ok("a7b8q"), "{word}");
        }
        assert_eq!(uci(&promoting, "a8=N").as_deref(), Ok("a7a8n"));
        assert_eq!(uci(&promoting, "a8"), Err(MoveFault::Illegal), "the piece is missing");
        let castling = at("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1");
        for word in ["O-O", "0-0", "o-o", "e1g1", "e1h1", "O-O+"] {
            assert_eq!(uci(&castling, word).as_deref(), Ok("e1g1"), "{word}");
        }
        let passing = at("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1");
        for word in ["exd6", "exd6e.p.", "exd6ep", "ed6", "e5d6"] {
            assert_eq!(uci(&passing, word).as_deref(), Ok("e5d6"), "{word}");
        }
    }

    #[test]
    fn what_is_no_move_and_what_is_not_legal() {
        let start = Chess::default();
        for word in ["", "x", "e", "e9", "Bb9", "hello", "Ke1e2e3", "4", "=", "1-0", "(", "é4"] {
            assert_eq!(uci(&start, word), Err(MoveFault::NotAMove), "{word}");
        }
        assert_eq!(uci(&start, "e5"), Err(MoveFault::Illegal));
        assert_eq!(uci(&start, "--"), Err(MoveFault::Null));
        let two = at("4k3/8/8/8/8/5N2/8/1N2K3 w - - 0 1");
        assert_eq!(uci(&two, "Nd2"), Err(MoveFault::Ambiguous));
        assert_eq!(uci(&two, "Nbd2").as_deref(), Ok("b1d2"));
    }

    #[test]
    fn every_legal_move_survives_being_written_as_san() {
        for game in RandomPlay::new(4, 0).take(25) {
            let mut position = Chess::default();
            for token in &game.moves {
                let m = token.to_uci().unwrap().to_move(&position).unwrap();
                let san = SanPlus::from_move(position.clone(), m).to_string();
                assert_eq!(
                    uci(&position, &san).as_deref(),
                    Ok(token.to_string().as_str()),
                    "{san}"
                );
                position.play_unchecked(m);
            }
        }
    }

    proptest! {
        #[test]
        fn words_of_any_bytes_do_no_harm(word in proptest::collection::vec(any::<u8>(), 0..12)) {
            if let Some(written) = parse(&word) {
                let _ = written.find(&Chess::default());
            }
        }
    }
}
