//! A position under any of the rules that the reference replays, and its moves as the reference packs them.

use shakmaty::{
    CastlingMode, Color, EnPassantMode, Move, Position, PositionError, Square,
    fen::Fen,
    variant::{Variant, VariantPosition},
};

use crate::{
    chess::{
        EnPassant, MoveToken, State,
        label::{EP_FILE, EP_RANK},
        replay::MoveFault,
        san::WrittenMove,
    },
    data::SkipReason,
};

/// A position, the rules it is played by, and whether castling is written as king takes rook.
#[derive(Debug, Clone)]
pub struct QuirkBoard {
    position: VariantPosition,
    chess960: bool,
}

/// The token of a null move.
fn null_token() -> MoveToken {
    MoveToken::from_parts(Square::A1, Square::A1, None)
}

/// The rules that a Variant tag names, and whether they are those of Chess960; `None` for none that is known.
fn variant_of(tag: &str) -> Option<(Variant, bool)> {
    let tag = tag.to_lowercase();
    let known = match tag.as_str() {
        "chess960" | "chess 960" | "fischerandom" | "fischerrandom" | "fischer random" => {
            return Some((Variant::Chess, true));
        }
        "standard" | "chess" | "classical" | "normal" | "illegal" | "from position" => {
            Variant::Chess
        }
        "wild/0" | "wild/1" | "wild/2" | "wild/3" | "wild/4" | "wild/5" | "wild/6" | "wild/7"
        | "wild/8" | "wild/8a" => Variant::Chess,
        "antichess" | "anti chess" | "anti" => Variant::Antichess,
        "atomic" | "atom" | "atomic chess" => Variant::Atomic,
        "king of the hill" | "koth" | "kingofthehill" => Variant::KingOfTheHill,
        "racing kings" | "racing" | "race" | "racingkings" => Variant::RacingKings,
        "horde" | "horde chess" => Variant::Horde,
        "three-check" | "three check" | "threecheck" | "three check chess" | "3-check"
        | "3 check" | "3check" => Variant::ThreeCheck,
        _ => return None,
    };
    Some((known, false))
}

impl QuirkBoard {
    /// The board that a game's Variant and FEN tags describe.
    ///
    /// # Errors
    /// [`SkipReason::Variant`] or [`SkipReason::BadFen`] if there is none.
    pub fn new(variant: Option<&str>, fen: Option<&str>) -> Result<QuirkBoard, SkipReason> {
        let (variant, tagged960) = match variant {
            Some(tag) => variant_of(tag).ok_or(SkipReason::Variant)?,
            None => (Variant::Chess, false),
        };
        let Some(fen) = fen else {
            return Ok(QuirkBoard { position: VariantPosition::new(variant), chess960: tagged960 });
        };
        let setup = fen.parse::<Fen>().map_err(|_| SkipReason::BadFen)?.into_setup();
        let chess960 = tagged960 || CastlingMode::detect(&setup) == CastlingMode::Chess960;
        let mode = CastlingMode::from_standard(!chess960);
        let position = VariantPosition::from_setup(variant, setup, mode)
            .or_else(PositionError::ignore_invalid_castling_rights)
            .or_else(PositionError::ignore_invalid_ep_square)
            .or_else(PositionError::ignore_too_much_material)
            .or_else(PositionError::ignore_impossible_check)
            .map_err(|_| SkipReason::BadFen)?;
        Ok(QuirkBoard { position, chess960 })
    }

    /// The name of the rules, which [`replay`] understands.
    pub fn rules(&self) -> &'static str {
        match self.position.variant() {
            Variant::Chess if self.chess960 => "chess960",
            Variant::Chess => "standard",
            other => other.uci(),
        }
    }

    /// Whether this is the standard start under standard rules.
    pub fn is_standard_start(&self) -> bool {
        self.rules() == "standard"
            && State::from_position(&self.position, EnPassant::Always) == State::start()
    }

    /// The labels of the position; `fen` gives the en passant square of a position just read from it, which the
    /// reference takes as it is written.
    pub fn state(&self, fen: Option<&str>) -> State {
        let state = State::from_position(&self.position, EnPassant::Always);
        let Some(square) = fen
            .and_then(|fen| fen.split_ascii_whitespace().nth(3))
            .and_then(|field| field.parse::<Square>().ok())
        else {
            return state;
        };
        let mut labels = *state.labels();
        labels[EP_FILE] = square.file() as u8 + 1;
        labels[EP_RANK] = match square.rank() {
            shakmaty::Rank::Third => 1,
            shakmaty::Rank::Sixth => 2,
            _ => 0,
        };
        State::new(labels).unwrap_or(state)
    }

    fn token(&self, m: Move) -> MoveToken {
        match m {
            Move::Castle { king, rook } if self.chess960 => MoveToken::from_parts(king, rook, None),
            m => MoveToken::from_move(m),
        }
    }

    /// Plays a written move and returns its token.
    ///
    /// # Errors
    /// [`MoveFault`] if it is not legal here.
    pub fn push_written(&mut self, written: WrittenMove) -> Result<MoveToken, MoveFault> {
        if written == WrittenMove::Null {
            self.push_null()?;
            return Ok(null_token());
        }
        let m = self.find(written)?;
        let token = self.token(m);
        self.position.play_unchecked(m);
        Ok(token)
    }

    fn find(&self, written: WrittenMove) -> Result<Move, MoveFault> {
        if self.position.is_variant_end() {
            return Err(MoveFault::Illegal);
        }
        match (written, written.find(&self.position)) {
            // Both squares written: in Chess960 castling is king takes rook and nothing else.
            (WrittenMove::Normal { role: None, to, .. }, Ok(Move::Castle { rook, .. }))
                if self.chess960 && to != rook =>
            {
                Err(MoveFault::Illegal)
            }
            (_, found) => found,
        }
    }

    /// Hands over the turn.
    fn push_null(&mut self) -> Result<(), MoveFault> {
        let mode = self.position.castles().mode();
        let mut setup = self.position.to_setup(EnPassantMode::Always);
        if setup.turn == Color::Black {
            setup.fullmoves = setup.fullmoves.saturating_add(1);
        }
        setup.halfmoves = setup.halfmoves.saturating_add(1);
        setup.swap_turn();
        self.position = VariantPosition::from_setup(self.position.variant(), setup, mode)
            .or_else(PositionError::ignore_too_much_material)
            .or_else(PositionError::ignore_impossible_check)
            .map_err(|_| MoveFault::Null)?;
        Ok(())
    }

    /// Plays the move that a token means here.
    ///
    /// # Errors
    /// [`MoveFault`] if no legal move has this token.
    pub fn push_token(&mut self, token: MoveToken) -> Result<(), MoveFault> {
        if token == null_token() {
            return self.push_null();
        }
        let moves = self.position.legal_moves();
        let m = moves.iter().find(|&&m| self.token(m) == token).ok_or(MoveFault::Illegal)?;
        self.position.play_unchecked(*m);
        Ok(())
    }
}

/// A stored game that its rules do not replay.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The rules are unknown.
    #[error("unknown rules `{0}`")]
    Rules(String),
    /// The starting position cannot be read.
    #[error("unreadable starting position")]
    Start,
    /// A move is not legal.
    #[error("{fault} at ply {ply}")]
    Move {
        /// The ply, from 1.
        ply: usize,
        /// What is wrong with it.
        fault: MoveFault,
    },
}

/// The states of a game from its rules, its start and its moves (without START): one more than moves.
///
/// # Errors
/// [`ReplayError`] if that is no game.
pub fn replay(
    rules: &str,
    start_fen: Option<&str>,
    moves: &[MoveToken],
) -> Result<Vec<State>, ReplayError> {
    let variant = match rules {
        "3check" | "kingofthehill" | "racingkings" | "standard" | "chess960" | "atomic"
        | "antichess" | "horde" => rules,
        _ => return Err(ReplayError::Rules(rules.chars().take(40).collect())),
    };
    let mut board = QuirkBoard::new(Some(variant), start_fen).map_err(|_| ReplayError::Start)?;
    let mut states = Vec::with_capacity(moves.len() + 1);
    states.push(board.state(start_fen));
    for (index, &token) in moves.iter().enumerate() {
        board.push_token(token).map_err(|fault| ReplayError::Move { ply: index + 1, fault })?;
        states.push(board.state(None));
    }
    Ok(states)
}
