//! Games from text that somebody typed or pasted: PGN, a list of SAN, or a list of UCI moves, recognised by itself.

use shakmaty::{CastlingMode, Chess, fen::Fen};

use super::{
    MoveToken,
    pgn::{Lexer, Token},
    replay::Replayer,
};
use crate::data::{GameResult, spec::MAX_PLIES};

/// How a game was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Notation {
    /// PGN with tags.
    Pgn,
    /// Moves in algebraic notation.
    San,
    /// Moves as source and target squares.
    Uci,
}

/// A legal game of standard chess.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedGame {
    /// How it was written.
    pub notation: Notation,
    /// Its tags, in order.
    pub tags: Vec<(String, String)>,
    /// Its moves, without START.
    pub moves: Vec<MoveToken>,
    /// How it ended: the Result tag, or else what stands behind the moves.
    pub result: GameResult,
}

impl ParsedGame {
    /// The value of a tag.
    pub fn tag(&self, name: &str) -> Option<&str> {
        self.tags.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// Why a text could not be read, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ParseError {
    /// Line of the trouble, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The ply that was to be played, from 1; 0 if the trouble is not with a move.
    pub ply: usize,
    /// What is wrong.
    pub message: String,
    /// The game's legal moves up to there.
    pub prefix: Vec<MoveToken>,
}

/// Reads every game of a text.
///
/// # Errors
/// [`ParseError`] at the first word that is no legal move, at damage, at a start other than the standard one, at a
/// variant, or if there is no move at all.
pub fn parse_games(text: &str) -> Result<Vec<ParsedGame>, ParseError> {
    let games = read_games(text).collect::<Result<Vec<_>, _>>()?;
    if games.is_empty() {
        return Err(error_at(text, text.len(), 0, "no moves found".into(), &[]));
    }
    Ok(games)
}

/// The games of a text one by one; after a game that cannot be read comes the next.
pub fn read_games(text: &str) -> impl Iterator<Item = Result<ParsedGame, ParseError>> + '_ {
    let mut lexer = Lexer::new(text.as_bytes());
    std::iter::from_fn(move || lexer.next_game().then(|| parse_next(text, &mut lexer)))
}

fn parse_next(text: &str, lexer: &mut Lexer<'_>) -> Result<ParsedGame, ParseError> {
    let mut tags = Vec::new();
    while let Some(tag) = lexer.next_tag() {
        let name = String::from_utf8_lossy(tag.name).into_owned();
        let value = tag.value().into_owned();
        if let Some(message) = refusal(&name, &value) {
            return Err(error_at(text, lexer.last_range().start, 0, message, &[]));
        }
        tags.push((name, value));
    }
    let mut replayer = Replayer::default();
    let mut written = None;
    let mut notation = if tags.is_empty() { None } else { Some(Notation::Pgn) };
    while let Some(token) = lexer.next_token() {
        let ply = replayer.moves().len() + 1;
        let fail = |message: String, ply: usize, moves: &[MoveToken]| {
            Err(error_at(text, lexer.last_range().start, ply, message, moves))
        };
        match token {
            Token::Result(result) => written = Some(result),
            Token::Fault(damage) => return fail(damage.to_string(), 0, replayer.moves()),
            Token::Word(_) if ply > MAX_PLIES => {
                return fail(format!("more than {MAX_PLIES} plies"), ply, replayer.moves());
            }
            Token::Word(word) => {
                notation.get_or_insert(notation_of(word));
                if let Err(fault) = replayer.push_written(word) {
                    let shown = shorten(&String::from_utf8_lossy(word));
                    let turn = if ply % 2 == 1 { "White" } else { "Black" };
                    let number = ply.div_ceil(2);
                    let message = format!("{fault}: `{shown}` (move {number}, {turn})");
                    return fail(message, ply, replayer.moves());
                }
            }
        }
    }
    let tagged = tags.iter().find(|(name, _)| name == "Result").and_then(|(_, v)| v.parse().ok());
    let result = match tagged {
        None | Some(GameResult::Unknown) => written.unwrap_or_default(),
        Some(result) => result,
    };
    Ok(ParsedGame {
        notation: notation.unwrap_or(Notation::San),
        tags,
        moves: replayer.moves().to_vec(),
        result,
    })
}

/// Why a tag rules a game out.
fn refusal(name: &str, value: &str) -> Option<String> {
    match name {
        "FEN" if !is_standard_start(value) => Some(
            "the game starts from another position (FEN tag); only the standard start is read"
                .into(),
        ),
        "Variant" if !is_standard_variant(value) => Some(format!(
            "the game is of another variant (`{}`); only standard chess is read",
            shorten(value)
        )),
        _ => None,
    }
}

/// Whether a FEN is the standard start, with its clocks.
pub fn is_standard_start(fen: &str) -> bool {
    let Ok(fen) = fen.trim().parse::<Fen>() else { return false };
    let setup = fen.as_setup();
    (setup.halfmoves, setup.fullmoves.get()) == (0, 1)
        && fen
            .clone()
            .into_position::<Chess>(CastlingMode::Standard)
            .is_ok_and(|p| p == Chess::default())
}

/// Whether the value of a Variant tag means standard chess from the standard start.
pub fn is_standard_variant(value: &str) -> bool {
    ["", "?", "-", "standard", "chess", "normal"]
        .contains(&value.trim().to_ascii_lowercase().as_str())
}

fn notation_of(word: &[u8]) -> Notation {
    match word {
        [b'a'..=b'h', b'1'..=b'8', b'a'..=b'h', b'1'..=b'8', ..] => Notation::Uci,
        _ => Notation::San,
    }
}

/// At most 20 characters, control characters escaped.
fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(20).flat_map(char::escape_debug).collect();
    if text.chars().nth(20).is_some() {
        short.push_str("...");
    }
    short
}

fn error_at(
    text: &str,
    offset: usize,
    ply: usize,
    message: String,
    moves: &[MoveToken],
) -> ParseError {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
    let column = String::from_utf8_lossy(&before[line_start..])
        .trim_start_matches('\u{feff}')
        .chars()
        .count()
        + 1;
    ParseError { line, column, ply, message, prefix: moves.to_vec() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chess::random::RandomPlay;

    fn one(text: &str) -> ParsedGame {
        let mut games = parse_games(text).unwrap();
        assert_eq!(games.len(), 1);
        games.remove(0)
    }

    #[test]
    fn three_notations_of_one_game() {
        let pgn = one(
            "[White \"A\"]\n[Result \"1-0\"]\n\n1. e4 {best} e5 2. Nf3 (2. f4 exf4) Nc6 3. Bb5 $1 *",
        );
        let san = one("e4 e5 Nf3 Nc6 Bb5");
        let uci = one("e2e4, e7e5, g1f3, b8c6, f1b5");
        assert_eq!(pgn.moves, san.moves);
        assert_eq!(pgn.moves, uci.moves);
        assert_eq!(pgn.moves.len(), 5);
        assert_eq!(
            [pgn.notation, san.notation, uci.notation],
            [Notation::Pgn, Notation::San, Notation::Uci]
        );
        assert_eq!(
            (pgn.result, pgn.tag("White"), pgn.tag("Black")),
            (GameResult::WhiteWins, Some("A"), None)
        );
    }

    #[test]
    fn errors_say_where_and_keep_the_legal_prefix() {
        let error = parse_games("1. e4 e5\n2. Nf3 Ké9 3. d4").unwrap_err();
        assert_eq!((error.line, error.column, error.ply, error.prefix.len()), (2, 8, 4, 3));
        assert_eq!(error.to_string(), "line 2, column 8: not a move: `Ké9` (move 2, Black)");
        let error = parse_games("e2e4 e7e5 e1e3").unwrap_err();
        assert_eq!(error.message, "illegal move: `e1e3` (move 2, White)");
        assert_eq!(parse_games(" \n").unwrap_err().message, "no moves found");
        assert_eq!(parse_games("e4 -- d4").unwrap_err().message, "null move: `--` (move 1, Black)");
        assert_eq!(parse_games("e4 (d4").unwrap_err().message, "variation without an end");
        let long = "x".repeat(1000);
        assert!(parse_games(&long).unwrap_err().message.len() < 80);
    }

    #[test]
    fn other_starts_and_variants_are_refused_with_the_reason() {
        let fen = "[FEN \"4k3/8/8/8/8/8/8/4K2R w K - 0 1\"]\n\nO-O";
        assert!(parse_games(fen).unwrap_err().message.contains("another position"));
        let variant = "[Event \"x\"]\n[Variant \"Atomic\"]\n\ne4";
        let error = parse_games(variant).unwrap_err();
        assert_eq!((error.line, error.ply), (2, 0));
        assert!(error.message.contains("`Atomic`"));
        let start = "[SetUp \"1\"]\n[FEN \"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\"]\n\
            [Variant \"Standard\"]\n\ne4";
        assert_eq!(one(start).moves.len(), 1);
        assert!(!is_standard_start("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 2"));
        assert!(!is_standard_start("no fen"));
    }

    #[test]
    fn games_behind_a_bad_one_are_read() {
        let text = "[Event \"a\"]\n\n1. e4 e5 *\n\n[Event \"b\"]\n\n1. e4 Ke5 2. d4 *\n\n[Event \"c\"]\n\n1. d4 *\n";
        let games: Vec<_> = read_games(text).collect();
        assert_eq!(games.len(), 3);
        assert_eq!(games[1].as_ref().unwrap_err().prefix.len(), 1);
        assert_eq!(games[2].as_ref().unwrap().tag("Event"), Some("c"));
    }

    #[test]
    fn several_games_and_a_legal_game_in_uci() {
        let texts: Vec<String> = RandomPlay::new(8, 0)
            .take(10)
            .map(|g| {
                g.moves.iter().map(|m| format!("{m} ")).collect::<String>() + g.result.as_str()
            })
            .collect();
        let games = parse_games(&texts.join("\n")).unwrap();
        for (game, expected) in games.iter().zip(RandomPlay::new(8, 0)) {
            assert_eq!((&game.moves, game.result), (&expected.moves, expected.result));
        }
        assert_eq!(games.len(), 10);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
            let _ = parse_games(&text);
        }

        #[test]
        fn damaged_games_do_no_harm(
            cut in 0_usize..400, insert in "[ -~]{0,3}", at in 0_usize..400,
        ) {
            let game = "[Event \"x\"]\n[Site \"y\"]\n\n1. e4 { [%clk 0:01:00] } e5 2. Nf3 (2. f4 exf4 3. Nf3) Nc6 3. Bb5 \
                a6 4. Ba4 Nf6 5. O-O Be7 6. Re1 b5 7. Bb3 d6 8. c3 O-O 9. h3 Nb8 10. d4 Nbd7 1/2-1/2\n";
            let mut text = game.to_string();
            text.insert_str(at.min(text.len()), &insert);
            text.truncate(cut.min(text.len()));
            match parse_games(&text) {
                Ok(games) => prop_assert!(!games.is_empty()),
                Err(error) => {
                    prop_assert!(error.line >= 1 && error.column >= 1);
                    prop_assert!(error.prefix.len() <= 20);
                }
            }
        }
    }
}
