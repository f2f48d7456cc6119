//! The complete state after a prefix: 75 small integers (paper, sections 2.3 and A.1), and FEN there and back.

use std::{fmt, fmt::Write as _};

use shakmaty::{
    Board, CastlingMode, CastlingSide, Chess, Color, EnPassantMode, Piece, Position, Role, Square,
    fen::Fen,
};

use super::{
    label::{
        CASTLING, EP_FILE, EP_RANK, FULLMOVE, HALFMOVE, LABELS, PIECE_SYMBOLS, SIDE, class_count,
    },
    token::MoveToken,
};

/// When the en passant label is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnPassant {
    /// After every double push, as the reference's code does (the benchmark's labels).
    #[default]
    Always,
    /// Only where an en passant capture is legal, as the paper's prose says.
    Legal,
}

impl EnPassant {
    fn mode(self) -> EnPassantMode {
        match self {
            EnPassant::Always => EnPassantMode::Always,
            EnPassant::Legal => EnPassantMode::Legal,
        }
    }
}

/// The 75 labels of one position: squares a8..h1, side to move, castling rights, en passant, both clocks.
///
/// Any label vector whose classes are in range is a `State`, also one that no game reaches: a model may predict it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct State([u8; LABELS]);

/// A label whose class is out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("label {label} is {class}, but has only {} classes", class_count(*label))]
pub struct ClassOutOfRange {
    /// The label, 0..75.
    pub label: usize,
    /// The class found.
    pub class: u8,
}

/// A FEN that no state can be made of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a FEN: {0}")]
pub struct FenError(String);

/// Label of a square: 0 is a8, 63 is h1.
const fn label_of(square: Square) -> usize {
    (square as usize) ^ 56
}

fn class_of(piece: Piece) -> u8 {
    piece.role as u8 + if piece.color.is_white() { 0 } else { 6 }
}

impl State {
    /// The state of the standard initial position.
    pub fn start() -> Self {
        Self::from_position(&Chess::default(), EnPassant::Always)
    }

    /// Wraps 75 labels.
    ///
    /// # Errors
    /// [`ClassOutOfRange`] for the first label whose class does not exist.
    pub fn new(labels: [u8; LABELS]) -> Result<Self, ClassOutOfRange> {
        for (label, &class) in labels.iter().enumerate() {
            if usize::from(class) >= class_count(label) {
                return Err(ClassOutOfRange { label, class });
            }
        }
        Ok(State(labels))
    }

    /// The labels in the reference's order.
    pub const fn labels(&self) -> &[u8; LABELS] {
        &self.0
    }

    /// The labels of a position.
    pub fn from_position<P: Position>(position: &P, en_passant: EnPassant) -> Self {
        let mut labels = [0; LABELS];
        let board = position.board();
        for square in board.occupied() {
            if let Some(piece) = board.piece_at(square) {
                labels[label_of(square)] = class_of(piece);
            }
        }
        labels[SIDE] = u8::from(position.turn().is_black());
        for (i, (color, side)) in RIGHTS.iter().enumerate() {
            labels[CASTLING + i] = u8::from(position.castles().has(*color, *side));
        }
        if let Some(square) = position.ep_square(en_passant.mode()) {
            labels[EP_FILE] = square.file() as u8 + 1;
            labels[EP_RANK] = if square.rank() == shakmaty::Rank::Third { 1 } else { 2 };
        }
        let mut state = State(labels);
        state.set_halfmove_clock(position.halfmoves().min(0xffff) as u16);
        state.set_fullmove_number(position.fullmoves().get().min(0xffff) as u16);
        state
    }

    /// The state after a move, by the rules of chess as a map on labels.
    ///
    /// For a legal move this equals replaying it in shakmaty with [`EnPassant::Always`], some twenty times faster.
    /// It does not test legality: the labels after an illegal token are well-formed but mean nothing.
    /// START and PAD change nothing.
    #[inline]
    pub fn after(&self, token: MoveToken) -> Self {
        let mut next = *self;
        if token.is_special() {
            return next;
        }
        let packed = token.id();
        let (from, to) = (packed / 5 / 64, packed / 5 % 64);
        let promotion = packed % 5;
        let (f, t) = (usize::from(from) ^ 56, usize::from(to) ^ 56);
        let black = self.0[SIDE] != 0;
        let moved = self.0[f];
        let captured = self.0[t];
        let role = if moved > 6 { moved - 6 } else { moved };
        let color_offset = moved - role;

        next.0[f] = 0;
        // Promotion classes 1..4 are q r b n, roles count P N B R Q K from 1.
        next.0[t] = if promotion == 0 { moved } else { color_offset + 6 - promotion as u8 };
        next.0[EP_FILE] = 0;
        next.0[EP_RANK] = 0;
        match role {
            1 => {
                if from.abs_diff(to) == 16 {
                    next.0[EP_FILE] = (from % 8) as u8 + 1;
                    next.0[EP_RANK] = if black { 2 } else { 1 };
                } else if from % 8 != to % 8 && captured == 0 {
                    // En passant: the captured pawn stands on the source rank and the target file.
                    next.0[(f & 56) | (t & 7)] = 0;
                }
            }
            6 if from.abs_diff(to) == 2 && from % 8 == 4 => {
                let (rook_from, rook_to) = if to > from { (t + 1, t - 1) } else { (t - 2, t + 1) };
                next.0[rook_to] = next.0[rook_from];
                next.0[rook_from] = 0;
            }
            _ => {}
        }
        for square in [from, to] {
            match square {
                4 => (next.0[CASTLING], next.0[CASTLING + 1]) = (0, 0),
                7 => next.0[CASTLING] = 0,
                0 => next.0[CASTLING + 1] = 0,
                60 => (next.0[CASTLING + 2], next.0[CASTLING + 3]) = (0, 0),
                63 => next.0[CASTLING + 2] = 0,
                56 => next.0[CASTLING + 3] = 0,
                _ => {}
            }
        }
        let clock =
            if role == 1 || captured != 0 { 0 } else { self.halfmove_clock().saturating_add(1) };
        next.set_halfmove_clock(clock);
        if black {
            next.set_fullmove_number(self.fullmove_number().saturating_add(1));
        }
        next.0[SIDE] = u8::from(!black);
        next
    }

    /// The state with its en passant label kept as `mode` says.
    ///
    /// States carry the label after every double push; [`EnPassant::Legal`] takes it away where no capture is legal.
    /// States that no legal game reaches lose it as well.
    #[must_use]
    pub fn with_en_passant(&self, mode: EnPassant) -> Self {
        if mode == EnPassant::Always || self.0[EP_FILE] == 0 || self.en_passant_is_legal() {
            return *self;
        }
        let mut state = *self;
        (state.0[EP_FILE], state.0[EP_RANK]) = (0, 0);
        state
    }

    fn en_passant_is_legal(&self) -> bool {
        // The pushed pawn stands a rank beyond the en passant square; only a pawn beside it can capture.
        let (rank, capturer) = if self.0[EP_RANK] == 1 { (4, 7) } else { (3, 1) };
        let file = usize::from(self.0[EP_FILE]).saturating_sub(1);
        let row = &self.0[rank * 8..rank * 8 + 8];
        let beside = [file.checked_sub(1), Some(file + 1).filter(|&f| f < 8)];
        if !beside.into_iter().flatten().any(|f| row[f] == capturer) {
            return false;
        }
        // Pins and checks are shakmaty's business.
        let Ok(fen) = self.to_fen().parse::<Fen>() else { return false };
        fen.into_position::<Chess>(CastlingMode::Standard)
            .is_ok_and(|position| position.ep_square(EnPassantMode::Legal).is_some())
    }

    /// The piece on a square.
    pub fn piece_at(&self, square: Square) -> Option<Piece> {
        piece_of(self.0[label_of(square)])
    }

    /// The side to move.
    pub fn turn(&self) -> Color {
        Color::from_black(self.0[SIDE] != 0)
    }

    /// The halfmove clock: plies since the last capture or pawn move.
    pub const fn halfmove_clock(&self) -> u16 {
        u16::from_be_bytes([self.0[HALFMOVE], self.0[HALFMOVE + 1]])
    }

    /// The fullmove number, 1 at the start.
    pub const fn fullmove_number(&self) -> u16 {
        u16::from_be_bytes([self.0[FULLMOVE], self.0[FULLMOVE + 1]])
    }

    fn set_halfmove_clock(&mut self, clock: u16) {
        [self.0[HALFMOVE], self.0[HALFMOVE + 1]] = clock.to_be_bytes();
    }

    fn set_fullmove_number(&mut self, number: u16) {
        [self.0[FULLMOVE], self.0[FULLMOVE + 1]] = number.to_be_bytes();
    }

    /// The labels on which two states differ, ascending.
    pub fn differing_labels(&self, other: &State) -> impl Iterator<Item = usize> {
        let (a, b) = (self.0, other.0);
        (0..LABELS).filter(move |&label| a[label] != b[label])
    }

    /// The state as a FEN. States that no game reaches are written too; an en passant square needs both file and rank.
    pub fn to_fen(&self) -> String {
        let mut fen = String::with_capacity(80);
        for rank in 0..8 {
            let mut empty = 0;
            for file in 0..8 {
                let class = usize::from(self.0[rank * 8 + file]);
                if class == 0 {
                    empty += 1;
                    continue;
                }
                if empty > 0 {
                    fen.push((b'0' + empty) as char);
                    empty = 0;
                }
                fen.push(PIECE_SYMBOLS[class]);
            }
            if empty > 0 {
                fen.push((b'0' + empty) as char);
            }
            if rank < 7 {
                fen.push('/');
            }
        }
        fen.push_str(if self.0[SIDE] == 0 { " w " } else { " b " });
        let rights = &self.0[CASTLING..CASTLING + 4];
        if rights.iter().all(|&held| held == 0) {
            fen.push('-');
        }
        for (symbol, _) in "KQkq".chars().zip(rights).filter(|(_, held)| **held != 0) {
            fen.push(symbol);
        }
        fen.push(' ');
        match (self.0[EP_FILE], self.0[EP_RANK]) {
            (0, _) | (_, 0) => fen.push('-'),
            (file, rank) => {
                fen.push((b'a' + file - 1) as char);
                fen.push(if rank == 1 { '3' } else { '6' });
            }
        }
        let _ = write!(fen, " {} {}", self.halfmove_clock(), self.fullmove_number());
        fen
    }

    /// The labels of a FEN, taken as they are written (no test that the position is legal).
    ///
    /// # Errors
    /// [`FenError`] naming the field that cannot be read; all six fields are needed.
    pub fn from_fen(fen: &str) -> Result<Self, FenError> {
        let fail = |what: &str| FenError(format!("{what} in `{}`", fen.escape_debug()));
        let fields: Vec<&str> = fen.split_ascii_whitespace().collect();
        let [placement, side, rights, ep, halfmoves, fullmoves] = fields[..] else {
            return Err(fail("expected six fields"));
        };
        let board: Board = placement.parse().map_err(|_| fail("bad piece placement"))?;
        let mut state = State([0; LABELS]);
        for square in board.occupied() {
            if let Some(piece) = board.piece_at(square) {
                state.0[label_of(square)] = class_of(piece);
            }
        }
        state.0[SIDE] = match side {
            "w" => 0,
            "b" => 1,
            _ => return Err(fail("bad side to move")),
        };
        if rights != "-" {
            for symbol in rights.chars() {
                let i = "KQkq".find(symbol).ok_or_else(|| fail("bad castling rights"))?;
                state.0[CASTLING + i] = 1;
            }
        }
        if ep != "-" {
            let square: Square = ep.parse().map_err(|_| fail("bad en passant square"))?;
            state.0[EP_FILE] = square.file() as u8 + 1;
            state.0[EP_RANK] = match square.rank() {
                shakmaty::Rank::Third => 1,
                shakmaty::Rank::Sixth => 2,
                _ => return Err(fail("bad en passant square")),
            };
        }
        state.set_halfmove_clock(halfmoves.parse().map_err(|_| fail("bad halfmove clock"))?);
        state.set_fullmove_number(fullmoves.parse().map_err(|_| fail("bad fullmove number"))?);
        Ok(state)
    }
}

const RIGHTS: [(Color, CastlingSide); 4] = [
    (Color::White, CastlingSide::KingSide),
    (Color::White, CastlingSide::QueenSide),
    (Color::Black, CastlingSide::KingSide),
    (Color::Black, CastlingSide::QueenSide),
];

fn piece_of(class: u8) -> Option<Piece> {
    let color = Color::from_white(class <= 6);
    let role = Role::ALL.get(usize::from(class.checked_sub(1)? % 6))?;
    Some(Piece { color, role: *role })
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_fen())
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "State({})", self.to_fen())
    }
}

impl serde::Serialize for State {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_slice().serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for State {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let labels = Vec::<u8>::deserialize(deserializer)?;
        let labels: [u8; LABELS] = labels.try_into().map_err(|v: Vec<u8>| {
            D::Error::custom(format!("expected {LABELS} labels, found {}", v.len()))
        })?;
        State::new(labels).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_is_the_standard_position() {
        let start = State::start();
        assert_eq!(start.to_fen(), "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
        assert_eq!(start.labels()[..8], [10, 8, 9, 11, 12, 9, 8, 10]);
        assert_eq!(State::from_fen(&start.to_fen()), Ok(start));
    }

    #[test]
    fn out_of_range_classes_are_refused() {
        let mut labels = *State::start().labels();
        labels[SIDE] = 2;
        assert_eq!(State::new(labels), Err(ClassOutOfRange { label: SIDE, class: 2 }));
    }

    #[test]
    fn a_pinned_pawn_takes_the_legal_en_passant_label_away() {
        // Black's pawn on e4 could take on d3, but its king on a4 and White's rook on h4 share the emptied rank.
        let pinned = State::from_fen("8/8/8/8/k2Pp2R/8/8/4K3 b - d3 0 1").unwrap();
        assert_eq!(pinned.with_en_passant(EnPassant::Always), pinned);
        assert_eq!(
            pinned.with_en_passant(EnPassant::Legal).to_fen(),
            "8/8/8/8/k2Pp2R/8/8/4K3 b - - 0 1"
        );
        let free = State::from_fen("8/8/8/8/3Pp2R/k7/8/4K3 b - d3 0 1").unwrap();
        assert_eq!(free.with_en_passant(EnPassant::Legal), free);
    }

    #[test]
    fn after_equals_shakmaty_on_seeded_games() {
        use rand::{RngExt, SeedableRng};
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(7);
        for _ in 0..60 {
            let mut position = Chess::default();
            let mut state = State::start();
            for _ in 0..400 {
                let moves = position.legal_moves();
                if moves.is_empty() {
                    break;
                }
                // Special moves are rare in random play: prefer them where they exist.
                let special: Vec<_> = moves
                    .iter()
                    .copied()
                    .filter(|m| m.is_castle() || m.is_en_passant() || m.is_promotion())
                    .collect();
                let pool = if special.is_empty() { &moves[..] } else { &special[..] };
                let m = pool[rng.random_range(0..pool.len())];
                state = state.after(MoveToken::from_move(m));
                position = position.play(m).unwrap();
                assert_eq!(state, State::from_position(&position, EnPassant::Always), "after {m}");
                assert_eq!(
                    state.with_en_passant(EnPassant::Legal),
                    State::from_position(&position, EnPassant::Legal),
                    "after {m}"
                );
                assert_eq!(State::from_fen(&state.to_fen()), Ok(state));
                assert_eq!(State::new(*state.labels()), Ok(state));
            }
        }
    }
}
