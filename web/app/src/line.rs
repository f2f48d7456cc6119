//! The game on the board: moves with every position and state along them, and where it came from.

use cwm_core::{
    chess::{
        MoveToken, Policy, State, Trajectory,
        explain::{Illegal, illegal},
        parse::{Notation, ParsedGame},
        random::{RandomGame, Termination},
        write::{pgn, san_words},
    },
    data::GameResult,
};
use serde::Serialize;
use shakmaty::{Chess, EnPassantMode, Move, Position, Role, Square, fen::Fen};

/// Where a game came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// Played on the board.
    Board,
    /// Typed or pasted.
    Text {
        /// How it was written.
        notation: Notation,
    },
    /// Random legal play.
    Random {
        /// What the moves were picked from.
        policy: Policy,
        /// The generator's seed, in decimal: scripts round large integers.
        seed: String,
        /// Why it ended.
        termination: Termination,
    },
    /// One of the gallery's games.
    Gallery,
    /// A link.
    Link,
    /// Graded, and among the worst.
    Graded,
}

/// A move that is not played, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is not legal.
    #[error("{0}")]
    Illegal(#[from] Illegal),
    /// A pawn reaches the last rank, and it was not said what it becomes.
    #[error("the pawn is promoted: choose a piece")]
    Promotion,
    /// A pawn that does not reach the last rank, or no pawn at all, was to be promoted.
    #[error("this move is no promotion")]
    NoPromotion,
}

/// A legal game of standard chess, as a line of play.
#[derive(Debug, Clone)]
pub struct Line {
    moves: Vec<MoveToken>,
    sans: Vec<String>,
    positions: Vec<Chess>,
    states: Vec<State>,
    /// Its tags, in order.
    pub tags: Vec<(String, String)>,
    /// How it ended.
    pub result: GameResult,
    /// Where it came from.
    pub origin: Origin,
}

impl Default for Line {
    fn default() -> Self {
        Line::new(&[], Origin::Board)
    }
}

impl Line {
    /// The line of these moves, up to the first that is not legal.
    pub fn new(moves: &[MoveToken], origin: Origin) -> Self {
        let mut line = Line {
            moves: Vec::with_capacity(moves.len()),
            sans: Vec::new(),
            positions: vec![Chess::default()],
            states: vec![State::start()],
            tags: Vec::new(),
            result: GameResult::Unknown,
            origin,
        };
        for &token in moves {
            let Some(m) = line.legal(line.plies(), token) else { break };
            line.push(token, m);
        }
        line.sans = san_words(&line.moves);
        line
    }

    /// A game that was read.
    pub fn parsed(game: &ParsedGame, origin: Origin) -> Self {
        let mut line = Line::new(&game.moves, origin);
        line.tags.clone_from(&game.tags);
        line.result = game.result;
        line
    }

    /// A random game of a policy and seed.
    pub fn random(game: &RandomGame, policy: Policy, seed: u64) -> Self {
        let seed = seed.to_string();
        let mut line = Line::new(
            &game.moves,
            Origin::Random { policy, seed: seed.clone(), termination: game.termination },
        );
        line.result = game.result;
        line.tags = vec![("Event".into(), format!("{}, seed {seed}", policy.about()))];
        line
    }

    /// Half-moves played.
    pub fn plies(&self) -> usize {
        self.moves.len()
    }

    /// The moves, without START.
    pub fn moves(&self) -> &[MoveToken] {
        &self.moves
    }

    /// The moves in algebraic notation.
    pub fn sans(&self) -> &[String] {
        &self.sans
    }

    /// The states: that of the start, then one a ply.
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// The position after `ply` plies, or the last.
    pub fn position(&self, ply: usize) -> &Chess {
        &self.positions[ply.min(self.plies())]
    }

    /// Tokens and states, aligned.
    pub fn trajectory(&self) -> Trajectory {
        Trajectory::replay(&self.moves)
    }

    /// The value of a tag.
    pub fn tag(&self, name: &str) -> Option<&str> {
        self.tags.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// How a ply is written with its number: `12. Nf3` or `12... Nf6`; `start` for ply 0.
    pub fn numbered(&self, ply: usize) -> String {
        match ply.checked_sub(1).and_then(|at| self.sans.get(at)) {
            Some(san) => {
                format!("{}{} {san}", ply.div_ceil(2), if ply % 2 == 1 { "." } else { "\u{2026}" })
            }
            None => "start".to_string(),
        }
    }

    /// The position as FEN, its en passant square where a capture is legal, as PGN readers expect.
    pub fn fen(&self, ply: usize) -> String {
        Fen::from_position(self.position(ply), EnPassantMode::Legal).to_string()
    }

    /// The game as PGN.
    pub fn pgn(&self) -> String {
        pgn(&self.tags, &self.moves, self.result)
    }

    /// The game in UCI notation.
    pub fn uci(&self) -> String {
        self.moves.iter().map(MoveToken::to_string).collect::<Vec<_>>().join(" ")
    }

    /// Legal moves after `ply` plies: each source square with its target squares.
    pub fn destinations(&self, ply: usize) -> Vec<(String, Vec<String>)> {
        let mut all: Vec<(String, Vec<String>)> = Vec::new();
        for m in self.position(ply).legal_moves() {
            let Some((from, to, _)) = MoveToken::from_move(m).parts() else { continue };
            let (from, to) = (from.to_string(), to.to_string());
            match all.iter_mut().find(|(square, _)| *square == from) {
                Some((_, targets)) if targets.contains(&to) => {}
                Some((_, targets)) => targets.push(to),
                None => all.push((from, vec![to])),
            }
        }
        all
    }

    /// The token of a move between two squares after `ply` plies.
    ///
    /// # Errors
    /// [`Refusal`] if it is not legal, or the promotion is missing or out of place.
    pub fn token(
        &self,
        ply: usize,
        from: Square,
        to: Square,
        promotion: Option<Role>,
    ) -> Result<MoveToken, Refusal> {
        let position = self.position(ply);
        if let Some(reason) = illegal(position, from, to) {
            return Err(reason.into());
        }
        let token = MoveToken::from_parts(from, to, promotion);
        match self.legal(ply, token) {
            Some(_) => Ok(token),
            None if promotion.is_none() => Err(Refusal::Promotion),
            None => Err(Refusal::NoPromotion),
        }
    }

    /// Plays a legal token after `ply` plies. What was played from there on is dropped, unless it began with this move.
    /// Returns whether the line changed.
    pub fn play(&mut self, ply: usize, token: MoveToken) -> bool {
        let ply = ply.min(self.plies());
        if self.moves.get(ply) == Some(&token) {
            return false;
        }
        let Some(m) = self.legal(ply, token) else { return false };
        if ply < self.plies() {
            self.moves.truncate(ply);
            self.sans.truncate(ply);
            self.positions.truncate(ply + 1);
            self.states.truncate(ply + 1);
        }
        let san = shakmaty::san::SanPlus::from_move(self.position(ply).clone(), m);
        self.sans.push(san.to_string());
        self.push(token, m);
        self.result = GameResult::Unknown;
        true
    }

    fn legal(&self, ply: usize, token: MoveToken) -> Option<Move> {
        let m = token.to_uci()?.to_move(self.position(ply)).ok()?;
        (MoveToken::from_move(m) == token).then_some(m)
    }

    fn push(&mut self, token: MoveToken, m: Move) {
        let mut position = self.position(self.plies()).clone();
        position.play_unchecked(m);
        self.states.push(self.states[self.plies()].after(token));
        self.positions.push(position);
        self.moves.push(token);
    }
}

#[cfg(test)]
mod tests {
    use cwm_core::chess::{parse::parse_games, random::RandomPlay};

    use super::*;

    fn line(text: &str) -> Line {
        let game = parse_games(text).unwrap().remove(0);
        Line::parsed(&game, Origin::Text { notation: game.notation })
    }

    #[test]
    fn states_follow_the_moves_of_random_play() {
        for game in RandomPlay::new(3, 10).take(4) {
            let line = Line::random(&game, Policy::Uniform, 3);
            assert_eq!(line.moves(), game.moves);
            assert_eq!(line.states(), Trajectory::replay(&game.moves).states());
            assert_eq!(line.sans().len(), line.plies());
        }
    }

    #[test]
    fn playing_inside_a_line_drops_the_rest_unless_the_move_is_the_same() {
        let mut game = line("e4 e5 Nf3 Nc6 Bb5 1/2-1/2");
        let nf3 = game.token(2, Square::G1, Square::F3, None).unwrap();
        assert!(!game.play(2, nf3));
        assert_eq!(game.plies(), 5);
        let f4 = game.token(2, Square::F2, Square::F4, None).unwrap();
        assert!(game.play(2, f4));
        assert_eq!((game.uci().as_str(), game.result), ("e2e4 e7e5 f2f4", GameResult::Unknown));
        assert_eq!(game.sans(), ["e4", "e5", "f4"]);
        assert_eq!(game.states().len(), 4);
        assert_eq!(
            [0, 1, 2, 9].map(|ply| game.numbered(ply)),
            ["start", "1. e4", "1\u{2026} e5", "start"]
        );
    }

    #[test]
    fn promotions_ask_and_refusals_say_why() {
        let game = line("e4 d5 exd5 c6 dxc6 Nf6 cxb7 Nbd7");
        let ply = game.plies();
        let token = |from, to, role| game.token(ply, from, to, role);
        assert_eq!(token(Square::B7, Square::A8, None), Err(Refusal::Promotion));
        assert_eq!(token(Square::B7, Square::A8, Some(Role::Knight)).unwrap().to_string(), "b7a8n");
        assert_eq!(token(Square::D2, Square::D4, Some(Role::Queen)), Err(Refusal::NoPromotion));
        let blocked = token(Square::A1, Square::A3, None).unwrap_err();
        assert_eq!(blocked.to_string(), "the way from a1 to a3 is blocked");
        let to_b8 = game.destinations(ply).into_iter().find(|(from, _)| from == "b7").unwrap().1;
        assert_eq!(to_b8.len(), 3, "a8, b8 and c8, each once: {to_b8:?}");
    }

    #[test]
    fn what_is_copied_reads_back() {
        let game = line("[White \"A\"]\n[Result \"0-1\"]\n\n1. f3 e5 2. g4 Qh4#");
        assert_eq!(line(&game.pgn()).moves(), game.moves());
        assert_eq!(line(&game.uci()).moves(), game.moves());
        assert_eq!(game.fen(1), "rnbqkbnr/pppppppp/8/8/8/5P2/PPPPP1PP/RNBQKBNR b KQkq - 0 1");
        assert_eq!(game.fen(2), "rnbqkbnr/pppp1ppp/8/4p3/8/5P2/PPPPP1PP/RNBQKBNR w KQkq - 0 2");
    }
}
