//! Why a move from one square to another is not legal, in words for the player.

use shakmaty::{Bitboard, Chess, Color, Piece, Position, Role, Square, attacks};

/// A move between two squares that cannot be played, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Illegal {
    /// Nothing stands there.
    #[error("there is no piece on {0}")]
    NoPiece(Square),
    /// The piece belongs to the other side.
    #[error("it is {}'s turn, and {square} holds a piece of {}", name(*.turn), name(!*.turn))]
    OtherSide {
        /// Where the piece stands.
        square: Square,
        /// Who is to move.
        turn: Color,
    },
    /// The target holds a piece of the same side.
    #[error("{0} holds a piece of the same side")]
    OwnPiece(Square),
    /// No such piece moves so.
    #[error("a {} does not move from {from} to {to}", role_name(*.role))]
    Geometry {
        /// What stands there.
        role: Role,
        /// Source square.
        from: Square,
        /// Target square.
        to: Square,
    },
    /// Something stands between.
    #[error("the way from {from} to {to} is blocked")]
    Blocked {
        /// Source square.
        from: Square,
        /// Target square.
        to: Square,
    },
    /// A diagonal pawn move without anything to capture.
    #[error("a pawn moves to {0} only to capture, and there is nothing to capture")]
    NothingToCapture(Square),
    /// The king castles when it may not.
    #[error("castling is not possible now")]
    Castling,
    /// The king would stand in check, or stay there.
    #[error("the king would be in check")]
    Check,
    /// The game is over.
    #[error("the game is over: {0}")]
    Over(&'static str),
}

/// Why no legal move leads from `from` to `to`; `None` if one does (of whatever promotion).
pub fn illegal(position: &Chess, from: Square, to: Square) -> Option<Illegal> {
    let legal = position.legal_moves();
    let fits = legal.iter().any(|m| {
        let token = super::MoveToken::from_move(*m);
        token.parts().is_some_and(|(f, t, _)| (f, t) == (from, to))
    });
    if fits {
        return None;
    }
    if legal.is_empty() {
        return Some(Illegal::Over(if position.is_check() { "checkmate" } else { "stalemate" }));
    }
    let board = position.board();
    let turn = position.turn();
    let Some(piece) = board.piece_at(from) else { return Some(Illegal::NoPiece(from)) };
    Some(if piece.color != turn {
        Illegal::OtherSide { square: from, turn }
    } else if board.color_at(to) == Some(turn) {
        Illegal::OwnPiece(to)
    } else {
        by_geometry(position, piece, from, to)
    })
}

fn by_geometry(position: &Chess, piece: Piece, from: Square, to: Square) -> Illegal {
    let occupied = position.board().occupied();
    let role = piece.role;
    let wrong = Illegal::Geometry { role, from, to };
    if role == Role::Pawn {
        return by_pawn(position, piece.color, from, to).unwrap_or(Illegal::Check);
    }
    if role == Role::King && from.rank() == to.rank() && from.distance(to) == 2 {
        let home = piece.color.fold_wb(Square::E1, Square::E8);
        return if from == home { Illegal::Castling } else { wrong };
    }
    let reaches = |occupied| attacks::attacks(from, piece, occupied).contains(to);
    if !reaches(Bitboard::EMPTY) {
        wrong
    } else if !reaches(occupied) {
        Illegal::Blocked { from, to }
    } else {
        Illegal::Check
    }
}

/// What is wrong with a pawn's move apart from check.
fn by_pawn(position: &Chess, color: Color, from: Square, to: Square) -> Option<Illegal> {
    let occupied = position.board().occupied();
    if attacks::pawn_attacks(color, from).contains(to) {
        let en_passant = position.ep_square(shakmaty::EnPassantMode::Always) == Some(to);
        return (!occupied.contains(to) && !en_passant).then_some(Illegal::NothingToCapture(to));
    }
    let steps = (to.rank() as i32 - from.rank() as i32) * color.fold_wb(1, -1);
    let home = color.fold_wb(shakmaty::Rank::Second, shakmaty::Rank::Seventh);
    let straight = from.file() == to.file();
    if !straight || !(steps == 1 || (steps == 2 && from.rank() == home)) {
        return Some(Illegal::Geometry { role: Role::Pawn, from, to });
    }
    let way = attacks::between(from, to) | Bitboard::from_square(to);
    (!(way & occupied).is_empty()).then_some(Illegal::Blocked { from, to })
}

/// A side's name.
pub const fn name(color: Color) -> &'static str {
    match color {
        Color::White => "White",
        Color::Black => "Black",
    }
}

/// A piece's name in prose.
pub const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Pawn => "pawn",
        Role::Knight => "knight",
        Role::Bishop => "bishop",
        Role::Rook => "rook",
        Role::Queen => "queen",
        Role::King => "king",
    }
}

#[cfg(test)]
mod tests {
    use shakmaty::{CastlingMode, fen::Fen};

    use super::*;
    use crate::chess::{MoveToken, random::RandomPlay};

    fn reason(fen: &str, uci: &str) -> String {
        let position: Chess =
            fen.parse::<Fen>().unwrap().into_position(CastlingMode::Standard).unwrap();
        let (from, to) = (uci[..2].parse().unwrap(), uci[2..4].parse().unwrap());
        illegal(&position, from, to).map_or("legal".to_string(), |illegal| illegal.to_string())
    }

    #[test]
    fn each_reason_is_told() {
        let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
        for (uci, expected) in [
            ("e2e4", "legal"),
            ("e4e5", "there is no piece on e4"),
            ("e7e5", "it is White's turn, and e7 holds a piece of Black"),
            ("a1a2", "a2 holds a piece of the same side"),
            ("a1a5", "the way from a1 to a5 is blocked"),
            ("g1g3", "a knight does not move from g1 to g3"),
            ("e2e5", "a pawn does not move from e2 to e5"),
            ("e2d3", "a pawn moves to d3 only to capture, and there is nothing to capture"),
            ("e1g1", "g1 holds a piece of the same side"),
        ] {
            assert_eq!(reason(start, uci), expected, "{uci}");
        }
        let pinned = "4r1k1/8/8/8/8/8/4N3/R3K2R w KQ - 0 1";
        assert_eq!(reason(pinned, "e2c3"), "the king would be in check");
        assert_eq!(reason(pinned, "e1g1"), "legal");
        assert_eq!(
            reason("5rk1/8/8/8/8/8/8/R3K2R w KQ - 0 1", "e1g1"),
            "castling is not possible now"
        );
        assert_eq!(
            reason("4k3/4p3/4P3/8/8/8/8/4K3 b - - 0 1", "e7e5"),
            "the way from e7 to e5 is blocked"
        );
        assert_eq!(reason("7k/5QQ1/8/8/8/8/8/K7 b - - 0 1", "h8g8"), "the game is over: checkmate");
    }

    #[test]
    fn legal_moves_have_no_reason_and_all_others_have_one() {
        for game in RandomPlay::new(2, 10).take(3) {
            let mut position = Chess::default();
            for token in game.moves.iter().take(60) {
                for from in Square::ALL {
                    for to in Square::ALL {
                        let is_legal = position.legal_moves().iter().any(|m| {
                            MoveToken::from_move(*m)
                                .parts()
                                .is_some_and(|(f, t, _)| (f, t) == (from, to))
                        });
                        assert_eq!(illegal(&position, from, to).is_none(), is_legal);
                    }
                }
                position.play_unchecked(token.to_uci().unwrap().to_move(&position).unwrap());
            }
        }
    }
}
