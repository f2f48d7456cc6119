//! What somebody typed, pasted or opened: a move, a game, or many games.

use cwm_core::chess::{
    MoveToken,
    parse::{Notation, ParseError, ParsedGame, read_games},
    replay::Replayer,
};
use serde::Serialize;

use crate::line::Line;

/// Games that the picker shows; more go to Grade.
pub const GAMES_MAX: usize = 1000;
/// Bytes that are read here at most: parsing must not hold up the page. Longer files go to Grade.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// What a text is.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// Nothing but blanks.
    Nothing,
    /// Moves that go on from the position on the board.
    Moves(Vec<MoveToken>),
    /// One game.
    Game(Box<ParsedGame>),
    /// Several games, some of which may be damaged.
    Games(Vec<Result<ParsedGame, ParseError>>),
    /// One game with an error in it.
    Broken(Trouble),
    /// Too much to be read here.
    TooMany {
        /// Why it goes to Grade instead.
        reason: String,
    },
}

/// Where a text cannot be read, and what of it can.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The ply that was to be played, from 1; 0 if the trouble is not with a move.
    pub ply: usize,
    /// What is wrong.
    pub message: String,
    /// The legal moves up to there.
    #[serde(skip)]
    pub prefix: Vec<MoveToken>,
    /// Plies of the legal part, which is offered.
    pub legal_plies: usize,
}

impl From<ParseError> for Trouble {
    fn from(error: ParseError) -> Self {
        Trouble {
            line: error.line,
            column: error.column,
            ply: error.ply,
            message: error.message,
            legal_plies: error.prefix.len(),
            prefix: error.prefix,
        }
    }
}

/// Reads a text. `line` and `ply` are what stands on the board: a text may go on from there.
pub fn read(text: &str, line: &Line, ply: usize) -> Found {
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return Found::Nothing;
    }
    if text.len() > TEXT_BYTES_MAX {
        let megabytes = text.len() as f64 / 1e6;
        return Found::TooMany { reason: format!("the text is long ({megabytes:.1} MB)") };
    }
    if let Some(moves) = continuation(text, line, ply) {
        return Found::Moves(moves);
    }
    let mut games = Vec::new();
    for game in read_games(text) {
        if games.len() == GAMES_MAX {
            return Found::TooMany { reason: format!("there are more than {GAMES_MAX} games") };
        }
        games.push(game);
    }
    if games.len() > 1 {
        return Found::Games(games);
    }
    match games.pop() {
        Some(Ok(game)) => Found::Game(Box::new(game)),
        Some(Err(error)) => Found::Broken(error.into()),
        None => Found::Broken(Trouble {
            line: 1,
            column: 1,
            ply: 0,
            message: "no moves found".into(),
            prefix: Vec::new(),
            legal_plies: 0,
        }),
    }
}

/// The moves of a text of bare words, if all of them are legal one after the other from the position on the board. At
/// the start position a text is a game, not a continuation, unless it is a single move.
fn continuation(text: &str, line: &Line, ply: usize) -> Option<Vec<MoveToken>> {
    // A game has numbers, tags, comments; only a short list of words can be meant to go on.
    let words: Vec<&str> = text.split_whitespace().take(17).collect();
    if words.is_empty() || words.len() > 16 || (ply == 0 && words.len() > 1) {
        return None;
    }
    let from_start = line.moves().get(..ply)?;
    let mut replayer = Replayer::default();
    for &token in from_start {
        replayer.push_token(token).ok()?;
    }
    for word in words {
        replayer.push_written(word.as_bytes()).ok()?;
    }
    Some(replayer.moves()[ply..].to_vec())
}

impl Found {
    /// What was found, in words for the line under the box.
    pub fn describe(&self) -> String {
        let plies = |n: usize| if n == 1 { "1 ply".to_string() } else { format!("{n} plies") };
        match self {
            Found::Nothing => String::new(),
            Found::Moves(moves) if moves.len() == 1 => "a move from this position".into(),
            Found::Moves(moves) => format!("{} moves from this position", moves.len()),
            Found::Game(game) => format!("{}, {}", kind(game.notation), plies(game.moves.len())),
            Found::Games(games) => {
                let broken = games.iter().filter(|game| game.is_err()).count();
                let damaged =
                    if broken > 0 { format!(", {broken} of them damaged") } else { String::new() };
                format!("PGN, {} games{damaged}", games.len())
            }
            Found::Broken(trouble) => trouble.to_string(),
            Found::TooMany { reason } => format!("{reason}: grade them instead"),
        }
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)?;
        if self.ply > 0 {
            write!(f, ", ply {}", self.ply)?;
        }
        write!(f, ": {}", self.message)
    }
}

const fn kind(notation: Notation) -> &'static str {
    match notation {
        Notation::Pgn => "PGN",
        Notation::San => "moves in SAN",
        Notation::Uci => "moves in UCI",
    }
}

/// A game's name for lists: players, event, or its first moves.
pub fn game_title(game: &ParsedGame) -> String {
    let known = |name: &str| game.tag(name).filter(|value| !matches!(value.trim(), "" | "?"));
    match (known("White"), known("Black")) {
        (None, None) => match known("Event") {
            Some(event) => event.to_string(),
            None => {
                let head =
                    cwm_core::chess::write::san_words(&game.moves[..game.moves.len().min(4)]);
                format!("Game: {} \u{2026}", head.join(" "))
            }
        },
        (white, black) => format!("{} \u{2013} {}", white.unwrap_or("?"), black.unwrap_or("?")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::line::Origin;

    fn board(text: &str) -> Line {
        let game = cwm_core::chess::parse::parse_games(text).unwrap().remove(0);
        Line::parsed(&game, Origin::Board)
    }

    #[test]
    fn single_moves_go_on_from_the_board() {
        let line = board("e4 e5");
        for word in ["Nf3", "g1f3", " Nf3 "] {
            assert!(
                matches!(read(word, &line, 2), Found::Moves(moves) if moves.len() == 1),
                "{word}"
            );
        }
        let Found::Moves(moves) = read("Nf3 Nc6 Bb5", &line, 2) else { panic!() };
        assert_eq!(moves.len(), 3);
        assert!(matches!(read("e4", &Line::default(), 0), Found::Moves(_)));
        assert!(matches!(read("e4 e5", &Line::default(), 0), Found::Game(_)));
        assert!(matches!(read("d4", &line, 1), Found::Game(_)), "Black cannot play it, a game can");
    }

    #[test]
    fn kinds_are_named() {
        let start = Line::default();
        let said = |text: &str| read(text, &start, 0).describe();
        assert_eq!(said("1. e4 e5 2. Nf3"), "moves in SAN, 3 plies");
        assert_eq!(said("e2e4 e7e5"), "moves in UCI, 2 plies");
        assert_eq!(said("[White \"x\"]\n\n1. e4 *"), "PGN, 1 ply");
        assert_eq!(
            said("[White \"x\"]\n\n1. e4 *\n\n[White \"y\"]\n\n1. e5 *"),
            "PGN, 2 games, 1 of them damaged"
        );
        assert_eq!(said("  \n"), "");
    }

    #[test]
    fn trouble_names_line_column_and_ply_and_keeps_the_legal_part() {
        let found = read("1. e4 e5\n2. Ke3 Nf6", &Line::default(), 0);
        assert_eq!(
            found.describe(),
            "line 2, column 4, ply 3: illegal move: `Ke3` (move 2, White)"
        );
        let Found::Broken(trouble) = found else { panic!() };
        assert_eq!((trouble.legal_plies, trouble.prefix.len()), (2, 2));
        let fen = "[FEN \"4k3/8/8/8/8/8/8/4K2R w K - 0 1\"]\n\nO-O";
        assert!(
            read(fen, &Line::default(), 0).describe().contains("only the standard start is read")
        );
        assert!(
            read("1. zz", &Line::default(), 0).describe().starts_with("line 1, column 4, ply 1")
        );
    }

    #[test]
    fn much_goes_to_grade() {
        let many = "1. e4 *\n\n".repeat(GAMES_MAX + 1);
        assert!(matches!(read(&many, &Line::default(), 0), Found::TooMany { .. }));
        let exactly = "1. e4 *\n\n".repeat(GAMES_MAX);
        assert!(
            matches!(read(&exactly, &Line::default(), 0), Found::Games(games) if games.len() == GAMES_MAX)
        );
        let long = " ".repeat(TEXT_BYTES_MAX) + "e4";
        assert!(matches!(read(&long, &Line::default(), 0), Found::TooMany { .. }));
    }

    #[test]
    fn games_have_names() {
        let name = |text: &str| game_title(&cwm_core::chess::parse::parse_games(text).unwrap()[0]);
        assert_eq!(name("[White \"A\"]\n[Black \"B\"]\n\ne4"), "A \u{2013} B");
        assert_eq!(name("[Event \"Cup\"]\n[White \"?\"]\n\ne4"), "Cup");
        assert_eq!(name("e4 e5 Nf3 Nc6 Bb5"), "Game: e4 e5 Nf3 Nc6 \u{2026}");
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,60}") {
            let _ = read(&text, &board("e4 e5"), 2).describe();
        }
    }
}
