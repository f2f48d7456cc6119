//! Move tokens: the packed vocabulary of 20,480 move geometries plus START and PAD (paper, sections 2.3 and A.2).

use std::{fmt, sync::LazyLock};

use shakmaty::{Move, Role, Square, attacks, uci::UciMove};

/// A move as one categorical token: `(from * 64 + to) * 5 + promotion`, squares a1 = 0 .. h8 = 63,
/// promotion 0 none, 1 queen, 2 rook, 3 bishop, 4 knight. Castling is the king's two-square move.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(try_from = "u16", into = "u16")]
pub struct MoveToken(u16);

/// An integer outside the vocabulary of [`MoveToken::VOCAB`] tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("move token {0} is outside the vocabulary (0..=20481)")]
pub struct TokenOutOfRange(pub u32);

const PROMOTIONS: [Option<Role>; 5] =
    [None, Some(Role::Queen), Some(Role::Rook), Some(Role::Bishop), Some(Role::Knight)];

impl MoveToken {
    /// Tokens in the vocabulary, START and PAD included.
    pub const VOCAB: usize = 20_482;
    /// Tokens that name a move geometry.
    pub const GEOMETRIES: usize = 64 * 64 * 5;
    /// Aligned with the initial state; the first token of every game.
    pub const START: MoveToken = MoveToken(20_480);
    /// Fills the steps behind the end of a game in a batch.
    pub const PAD: MoveToken = MoveToken(20_481);

    /// The token with this id.
    ///
    /// # Errors
    /// [`TokenOutOfRange`] if `id` is not in `0..=20481`.
    pub fn new(id: u32) -> Result<Self, TokenOutOfRange> {
        if (id as usize) < Self::VOCAB {
            Ok(MoveToken(id as u16))
        } else {
            Err(TokenOutOfRange(id))
        }
    }

    /// Packs a geometry; roles that no pawn promotes to count as no promotion.
    pub fn from_parts(from: Square, to: Square, promotion: Option<Role>) -> Self {
        let promotion = PROMOTIONS.iter().position(|&p| p == promotion).unwrap_or(0);
        MoveToken(((u16::from(from) * 64 + u16::from(to)) * 5) + promotion as u16)
    }

    /// The token of a standard-chess move (castling as e1g1, not king-takes-rook).
    pub fn from_move(m: Move) -> Self {
        match m {
            Move::Castle { king, rook } => {
                let file = if rook > king { shakmaty::File::G } else { shakmaty::File::C };
                Self::from_parts(king, Square::from_coords(file, king.rank()), None)
            }
            _ => Self::from_parts(m.from().unwrap_or(m.to()), m.to(), m.promotion()),
        }
    }

    /// The packed id, 0..=20481.
    pub const fn id(self) -> u16 {
        self.0
    }

    /// Whether this is START or PAD.
    pub const fn is_special(self) -> bool {
        self.0 >= Self::START.0
    }

    /// Source square, target square and promotion; `None` for START and PAD.
    pub fn parts(self) -> Option<(Square, Square, Option<Role>)> {
        if self.is_special() {
            return None;
        }
        let squares = u32::from(self.0 / 5);
        Some((
            Square::new(squares / 64),
            Square::new(squares % 64),
            PROMOTIONS[usize::from(self.0 % 5)],
        ))
    }

    /// The move in UCI notation; `None` for START and PAD.
    pub fn to_uci(self) -> Option<UciMove> {
        let (from, to, promotion) = self.parts()?;
        Some(UciMove::Normal { from, to, promotion })
    }

    /// The 1,968 geometries that some legal game of standard chess can hold, ascending:
    /// queen and knight lines from every square, and the promotions.
    pub fn reachable() -> &'static [MoveToken] {
        &REACHABLE
    }
}

static REACHABLE: LazyLock<Vec<MoveToken>> = LazyLock::new(|| {
    let mut tokens = Vec::with_capacity(1968);
    for from in Square::ALL {
        for to in
            attacks::queen_attacks(from, shakmaty::Bitboard::EMPTY) | attacks::knight_attacks(from)
        {
            tokens.push(MoveToken::from_parts(from, to, None));
            let (a, b) = (u32::from(from.rank()), u32::from(to.rank()));
            let pawn_line = from.file().distance(to.file()) <= 1;
            if pawn_line && ((a, b) == (6, 7) || (a, b) == (1, 0)) {
                for promotion in &PROMOTIONS[1..] {
                    tokens.push(MoveToken::from_parts(from, to, *promotion));
                }
            }
        }
    }
    tokens.sort_unstable();
    tokens
});

impl TryFrom<u16> for MoveToken {
    type Error = TokenOutOfRange;
    fn try_from(id: u16) -> Result<Self, TokenOutOfRange> {
        MoveToken::new(u32::from(id))
    }
}

impl From<MoveToken> for u16 {
    fn from(token: MoveToken) -> u16 {
        token.0
    }
}

impl fmt::Display for MoveToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_uci() {
            Some(uci) => uci.fmt(f),
            None if *self == Self::START => f.write_str("<START>"),
            None => f.write_str("<PAD>"),
        }
    }
}

impl fmt::Debug for MoveToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MoveToken({} {self})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_as_the_reference_does() {
        // fixtures data/real_process: 1. e4 is 3980, START 20480.
        let e4 = MoveToken::from_parts(Square::E2, Square::E4, None);
        assert_eq!(e4.id(), 3980);
        assert_eq!(e4.to_string(), "e2e4");
        assert_eq!(MoveToken::START.to_string(), "<START>");
    }

    #[test]
    fn every_geometry_round_trips() {
        for id in 0..MoveToken::GEOMETRIES as u32 {
            let token = MoveToken::new(id).unwrap();
            let (from, to, promotion) = token.parts().unwrap();
            assert_eq!(MoveToken::from_parts(from, to, promotion), token);
        }
        assert!(MoveToken::new(20_482).is_err());
    }

    #[test]
    fn reachable_geometries_are_the_known_1968() {
        assert_eq!(MoveToken::reachable().len(), 1968);
        assert!(MoveToken::reachable().windows(2).all(|w| w[0] < w[1]));
    }
}
