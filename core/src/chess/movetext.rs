//! Games written as text: PGN, or bare lists of moves in SAN or UCI.
//!
//! Tags, comments (`{..}`, `;` to the end of the line, lines that start with `%`), variations, `$` glyphs, move numbers
//! and results are understood and, tags apart, passed over; moves are read as [`super::san`] says and each must be
//! legal. For a handful of games that somebody wrote or pasted: the first fault is told with line, column and ply.

use super::{
    MoveToken,
    replay::{MoveFault, Replayer},
};

/// One game.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextGame {
    /// The tags in order, e.g. `("White", "Steinitz")`.
    pub tags: Vec<(String, String)>,
    /// The main line, without START.
    pub moves: Vec<MoveToken>,
}

impl TextGame {
    /// The value of a tag.
    pub fn tag(&self, name: &str) -> Option<&str> {
        self.tags.iter().find(|(tag, _)| tag == name).map(|(_, value)| value.as_str())
    }
}

/// Where and why a text cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {fault}")]
pub struct TextError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub fault: TextFault,
}

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextFault {
    /// A word that is no move, or no legal one.
    #[error("`{word}` at ply {ply}: {fault}")]
    Move {
        /// The word.
        word: String,
        /// The ply that it would be.
        ply: usize,
        /// Why it cannot be played.
        fault: MoveFault,
    },
    /// A comment or variation without an end.
    #[error("this {0} has no end")]
    Unclosed(&'static str),
    /// A closing bracket without an opening one.
    #[error("a closing bracket without an opening one")]
    Unopened,
    /// A tag that asks for another start or other rules.
    #[error(
        "the game has the tag `{0}`: only standard chess from the standard start can be tracked"
    )]
    NotStandard(String),
}

/// Reads the games of a text one after the other; ends after the first error.
#[derive(Debug, Clone)]
pub struct TextGames<'a> {
    text: &'a str,
    at: usize,
    failed: bool,
}

impl<'a> TextGames<'a> {
    /// The games in `text`.
    pub fn new(text: &'a str) -> Self {
        TextGames { text: text.trim_start_matches('\u{feff}'), at: 0, failed: false }
    }

    fn fail(&self, at: usize, fault: TextFault) -> TextError {
        let before = &self.text[..at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        TextError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            fault,
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn at_line_start(&self) -> bool {
        self.at == 0 || self.text.as_bytes()[self.at - 1] == b'\n'
    }

    fn skip_line(&mut self) {
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
    }

    fn skip_comment(&mut self) -> Result<(), TextError> {
        match self.rest().find('}') {
            Some(end) => self.at += end + 1,
            None => return Err(self.fail(self.at, TextFault::Unclosed("comment"))),
        }
        Ok(())
    }

    fn skip_variation(&mut self) -> Result<(), TextError> {
        let start = self.at;
        let mut depth = 0usize;
        while let Some(c) = self.rest().chars().next() {
            match c {
                '{' => {
                    self.skip_comment()?;
                    continue;
                }
                ';' => {
                    self.skip_line();
                    continue;
                }
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            self.at += c.len_utf8();
            if depth == 0 {
                return Ok(());
            }
        }
        Err(self.fail(start, TextFault::Unclosed("variation")))
    }

    /// The tag of a line such as `[White "Steinitz"]`; quotes inside the value are escaped by a backslash.
    fn read_tag(&mut self) -> Option<(String, String)> {
        let line = self.rest().lines().next().unwrap_or_default();
        let inner = line.trim_end().strip_prefix('[')?.strip_suffix(']')?;
        let (name, value) = inner.split_once('"')?;
        let value = value.trim_end().strip_suffix('"')?;
        self.skip_line();
        Some((name.trim().to_string(), value.replace("\\\"", "\"").replace("\\\\", "\\")))
    }

    fn read_game(&mut self) -> Result<Option<TextGame>, TextError> {
        let mut game = TextGame::default();
        let mut replayer = Replayer::default();
        let mut ended = false;
        while let Some(c) = self.rest().chars().next() {
            let start = self.at;
            match c {
                c if c.is_whitespace() => self.at += c.len_utf8(),
                '%' if self.at_line_start() => self.skip_line(),
                ';' => self.skip_line(),
                '{' => self.skip_comment()?,
                '(' => self.skip_variation()?,
                ')' | '}' => return Err(self.fail(start, TextFault::Unopened)),
                '[' if !replayer.moves().is_empty() => break,
                '[' => match self.read_tag() {
                    Some((name, value)) => {
                        let standard = match name.as_str() {
                            "FEN" => value.starts_with(START_FEN),
                            "Variant" => ["standard", "chess", ""]
                                .contains(&value.to_ascii_lowercase().as_str()),
                            _ => true,
                        };
                        if !standard {
                            let tag = format!("[{name} \"{value}\"]");
                            return Err(self.fail(start, TextFault::NotStandard(tag)));
                        }
                        game.tags.push((name, value));
                    }
                    None => return Err(self.fail(start, TextFault::Unclosed("tag"))),
                },
                _ => {
                    let word = self.word();
                    self.at += word.len();
                    if matches!(word, "1-0" | "0-1" | "1/2-1/2" | "1/2" | "*") {
                        ended = true;
                        break;
                    }
                    self.play(&mut replayer, word, start)?;
                }
            }
        }
        game.moves = replayer.moves().to_vec();
        let found = ended || !game.tags.is_empty() || !game.moves.is_empty();
        Ok(found.then_some(game))
    }

    /// The characters up to the next space, comma or bracket; at least one.
    fn word(&self) -> &'a str {
        let rest = self.rest();
        let is_end = |c: char| c.is_whitespace() || ",;{}()[]".contains(c);
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest[first..].find(is_end).map_or(rest.len(), |end| first + end);
        &rest[..end]
    }

    fn play(&self, replayer: &mut Replayer, word: &str, start: usize) -> Result<(), TextError> {
        // `12.`, `12...` and `12.Nf3`; castling with zeros keeps its digits.
        let digits = word.len() - word.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let numbered = word[digits..].starts_with(['.', '…']);
        let bare = if numbered { word[digits..].trim_start_matches(['.', '…']) } else { word };
        let is_number = digits == word.len() && !word.starts_with("0000");
        let is_decoration = bare.chars().all(|c| "!?,.+-=#".contains(c)) && bare != "--";
        if is_number || is_decoration || bare.starts_with('$') || bare == "e.p." {
            return Ok(());
        }
        let ply = replayer.moves().len() + 1;
        replayer.push_written(bare.as_bytes()).map_err(|fault| {
            let word = bare.chars().take(20).collect::<String>().escape_debug().to_string();
            self.fail(start, TextFault::Move { word, ply, fault })
        })?;
        Ok(())
    }
}

/// Placement, side and rights of the standard start; clocks may follow.
const START_FEN: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -";

impl Iterator for TextGames<'_> {
    type Item = Result<TextGame, TextError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let game = self.read_game().transpose();
        self.failed = matches!(game, Some(Err(_)));
        game
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn moves(text: &str) -> Vec<String> {
        let game = TextGames::new(text).next().unwrap().unwrap();
        game.moves.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lists_in_any_notation_are_read() {
        let expected = ["e2e4", "e7e5", "g1f3", "b8c6", "f1c4", "f8c5", "e1g1"];
        for text in [
            "e2e4 e7e5 g1f3 b8c6 f1c4 f8c5 e1g1",
            "e4 e5 Nf3 Nc6 Bc4 Bc5 O-O",
            "1. e4 e5 2. Nf3 Nc6 3.Bc4 Bc5 4.0-0",
            "1.e4! e5 2.Nf3 $1 Nc6?! 3. Bc4 (3. Bb5 a6 (3... Nf6 {;} 4. O-O)) 3... Bc5 {a ) b} 4. O-O *",
            "e4, e5, Nf3, Nc6; a comment ) }\n% another\nBc4 Bc5 O-O",
        ] {
            assert_eq!(moves(text), expected, "{text}");
        }
    }

    #[test]
    fn pgn_files_hold_several_games() {
        let text = "\u{feff}[White \"A \\\"x\\\"\"]\n[Result \"1-0\"]\n\n1. e4 1-0\n\n[White \"B\"]\n\n*\n\nd4 d5";
        let games: Vec<_> = TextGames::new(text).map(Result::unwrap).collect();
        assert_eq!(games.len(), 3);
        assert_eq!(games[0].tag("White"), Some("A \"x\""));
        assert_eq!(games.iter().map(|g| g.moves.len()).collect::<Vec<_>>(), [1, 0, 2]);
        assert_eq!(TextGames::new(" \n ").next(), None);
    }

    #[test]
    fn faults_have_a_place() {
        let fault = |text: &str| TextGames::new(text).find_map(Result::err).unwrap().to_string();
        assert_eq!(fault("1. e4 e5\n2. ä Nf3"), "line 2, column 4: `ä` at ply 3: not a move");
        assert_eq!(fault("e4 e4"), "line 1, column 4: `e4` at ply 2: illegal move");
        assert_eq!(fault("e4 {"), "line 1, column 4: this comment has no end");
        assert_eq!(fault("e4 (d4"), "line 1, column 4: this variation has no end");
        assert_eq!(fault("e4 )"), "line 1, column 4: a closing bracket without an opening one");
        assert!(fault("[FEN \"8/8/8/8/8/8/8/8 w - - 0 1\"]\n").contains("only standard chess"));
        assert!(fault("[Variant \"Atomic\"]\n").contains("Atomic"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[ \\n(){}\\[\\]\"%;$.*0-9a-hNBRQKOx=+#…é-]{0,80}") {
            for game in TextGames::new(&text) {
                if let Err(error) = game {
                    prop_assert!(error.line >= 1 && error.column >= 1);
                }
            }
        }
    }
}
