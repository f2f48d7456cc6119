//! A lexer for PGN: tags, then the words of the main line, game by game, over text in memory.
//!
//! It also reads what is almost PGN: move lists without tags, in SAN or UCI, with or without numbers. Comments,
//! variations, NAGs, assessment marks and escaped lines are passed over; whatever stands in the main line instead of a
//! move is handed out as a word, so that nothing vanishes silently.
//!
//! Where a game ends: at a tag line, behind its result, at the end of the text, or at a blank line before a new
//! `1.`; a single blank line inside a game does not end it. A blank line before an `[Event ` tag ends everything, also a
//! comment that was never closed, so that one damaged game cannot swallow the next.

mod border;
mod tag;

use std::ops::Range;

use memchr::memchr;

use self::{
    border::{find_game, is_blank, is_event},
    tag::read_tag,
};
pub use self::{
    border::{first_game, last_game},
    tag::Tag,
};
use crate::data::GameResult;

/// What the main line holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// A word where a move is due.
    Word(&'a [u8]),
    /// The result.
    Result(GameResult),
    /// The text is damaged here.
    Fault(Damage),
}

/// Damage that a reader of the main line cannot repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// A `{` without its `}`.
    #[error("comment without an end")]
    OpenComment,
    /// A `(` without its `)`.
    #[error("variation without an end")]
    OpenVariation,
    /// A `)` without its `(`.
    #[error("`)` without `(`")]
    StrayParenthesis,
    /// A `}` without its `{`.
    #[error("`}}` without `{{`")]
    StrayBrace,
}

/// Takes text apart. Call [`Lexer::next_game`], then [`Lexer::next_tag`] until `None`, then [`Lexer::next_token`] until
/// `None`; what is not asked for is passed over by the next call of `next_game`.
#[derive(Debug, Clone)]
pub struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    phase: Phase,
    depth: u32,
    words: u32,
    has_tags: bool,
    has_result: bool,
    last: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Between,
    Tags,
    Moves,
}

/// Bytes that end a word.
const DELIMITER: [bool; 256] = {
    let mut table = [false; 256];
    let delimiters = b" \t\r\n\x0b\x0c,{}();$!?*";
    let mut i = 0;
    while i < delimiters.len() {
        table[delimiters[i] as usize] = true;
        i += 1;
    }
    table
};

impl<'a> Lexer<'a> {
    /// A lexer at the beginning of `text`; a byte order mark is passed over.
    pub fn new(text: &'a [u8]) -> Self {
        let at = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        Lexer {
            text,
            at,
            phase: Phase::Between,
            depth: 0,
            words: 0,
            has_tags: false,
            has_result: false,
            last: at..at,
        }
    }

    /// Where in the text the last tag or token stands.
    pub fn last_range(&self) -> Range<usize> {
        self.last.clone()
    }

    /// How far the text has been read.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Goes to the next game; `false` at the end of the text.
    pub fn next_game(&mut self) -> bool {
        while self.next_tag().is_some() {}
        while self.next_token().is_some() {}
        self.skip_blank(true);
        if self.at == self.text.len() {
            return false;
        }
        self.phase = Phase::Tags;
        self.depth = 0;
        self.words = 0;
        self.has_tags = false;
        self.has_result = false;
        true
    }

    /// Passes over blanks and, at the start of lines, `%` escapes. Returns whether a blank line was among them.
    fn skip_blank(&mut self, mut line_start: bool) -> bool {
        let mut blank_line = false;
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'\n' => {
                    blank_line |= line_start;
                    line_start = true;
                    self.at += 1;
                }
                byte if is_blank(byte) => self.at += 1,
                b'%' if self.at == 0 || self.text[self.at - 1] == b'\n' => {
                    self.skip_line();
                    line_start = false;
                }
                _ => break,
            }
        }
        blank_line
    }

    /// Goes to the next line end (not past it).
    fn skip_line(&mut self) {
        let rest = &self.text[self.at..];
        self.at += memchr(b'\n', rest).unwrap_or(rest.len());
    }

    /// The next tag of the game's header. Malformed tag lines are passed over.
    pub fn next_tag(&mut self) -> Option<Tag<'a>> {
        if self.phase != Phase::Tags {
            return None;
        }
        loop {
            let line_start = self.at == 0 || self.text[self.at - 1] == b'\n';
            let blank_line = self.skip_blank(line_start);
            match self.text.get(self.at) {
                Some(b'[') => {}
                Some(b';') => {
                    self.skip_line();
                    continue;
                }
                _ => {
                    self.phase = Phase::Moves;
                    return None;
                }
            }
            let rest = &self.text[self.at..];
            if blank_line && self.has_tags && is_event(rest) {
                // A header without moves, and here the next one.
                self.phase = Phase::Between;
                return None;
            }
            match read_tag(rest) {
                Some((tag, length)) => {
                    self.last = self.at..self.at + length;
                    self.at += length;
                    self.has_tags = true;
                    return Some(tag);
                }
                None => self.skip_line(),
            }
        }
    }

    /// The next token of the game's main line.
    pub fn next_token(&mut self) -> Option<Token<'a>> {
        while self.next_tag().is_some() {}
        if self.phase != Phase::Moves {
            return None;
        }
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'\n' => {
                    self.at += 1;
                    let blank_line = self.skip_blank(true);
                    if self.ends_before(blank_line) {
                        return self.end();
                    }
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c | b',' | b'.' | b'!' | b'?' => self.at += 1,
                b'{' => {
                    if let Err(damage) = self.skip_comment() {
                        self.depth = 0;
                        self.phase = Phase::Between;
                        return Some(Token::Fault(damage));
                    }
                }
                b';' => self.skip_line(),
                b'$' => {
                    self.at += 1;
                    self.skip_digits();
                }
                b'(' => {
                    if self.has_result {
                        return self.end();
                    }
                    self.depth = self.depth.saturating_add(1);
                    self.at += 1;
                }
                b')' => {
                    self.last = self.at..self.at + 1;
                    self.at += 1;
                    match self.depth.checked_sub(1) {
                        Some(depth) => self.depth = depth,
                        None => return Some(Token::Fault(Damage::StrayParenthesis)),
                    }
                }
                b'}' => {
                    self.last = self.at..self.at + 1;
                    self.at += 1;
                    if self.depth == 0 {
                        return Some(Token::Fault(Damage::StrayBrace));
                    }
                }
                _ => {
                    // Behind the result whatever is no comment belongs to the next game.
                    if self.has_result {
                        return self.end();
                    }
                    if let Some(token) = self.word() {
                        return Some(token);
                    }
                }
            }
        }
        self.end()
    }

    /// Ends the game; a variation that is still open comes out first.
    fn end(&mut self) -> Option<Token<'a>> {
        self.phase = Phase::Between;
        if self.depth > 0 {
            self.depth = 0;
            self.last = self.at..self.at;
            return Some(Token::Fault(Damage::OpenVariation));
        }
        None
    }

    /// Whether the line that begins here belongs to another game.
    fn ends_before(&self, blank_line: bool) -> bool {
        let rest = &self.text[self.at..];
        match rest {
            [b'[', ..] => read_tag(rest).is_some(),
            [b'1', b'.', next, ..] => blank_line && self.words > 0 && *next != b'.',
            _ => false,
        }
    }

    /// Passes over a comment, from its `{` to its `}`.
    fn skip_comment(&mut self) -> Result<(), Damage> {
        let rest = &self.text[self.at..];
        let length = memchr(b'}', rest);
        let body = &rest[..length.unwrap_or(rest.len())];
        self.last = self.at..self.at + 1;
        if let Some(next_game) = find_game(body) {
            self.at += next_game;
            return Err(Damage::OpenComment);
        }
        self.at += body.len();
        match length {
            Some(_) => {
                self.at += 1;
                Ok(())
            }
            None => Err(Damage::OpenComment),
        }
    }

    fn skip_digits(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    /// Reads a word: a move number (passed over), a result, or what should be a move.
    fn word(&mut self) -> Option<Token<'a>> {
        let start = self.at;
        let rest = &self.text[start..];
        if let Some((result, length)) = read_result(rest) {
            self.at += length;
            if self.depth > 0 {
                return None;
            }
            self.last = start..self.at;
            self.has_result = true;
            return Some(Token::Result(result));
        }
        if rest[0].is_ascii_digit() && !rest.starts_with(b"0-0") && !rest.starts_with(b"0000") {
            self.skip_digits();
            return None;
        }
        let mut length = rest.iter().position(|&b| DELIMITER[b as usize]).unwrap_or(rest.len());
        // `e8(Q)` is one word.
        if let [b'(', b'Q' | b'R' | b'B' | b'N', b')', ..] = rest[length..] {
            length += 3;
        }
        // Every delimiter has an arm of its own in `next_token`, but `*`, which is a result.
        let length = length.max(1);
        self.at += length;
        let word = &rest[..length];
        let passed_over = self.depth > 0
            || word == b"e.p."
            || word == b"ep"
            || (word != b"--" && word.iter().all(|b| b"+-=#/~^".contains(b)));
        if passed_over {
            return None;
        }
        self.last = start..self.at;
        self.words += 1;
        Some(Token::Word(word))
    }
}

/// A result at the beginning of a text, and its length.
fn read_result(text: &[u8]) -> Option<(GameResult, usize)> {
    const SPELLINGS: [(&str, GameResult); 10] = [
        ("1/2-1/2", GameResult::Draw),
        ("1/2", GameResult::Draw),
        ("1-0", GameResult::WhiteWins),
        ("0-1", GameResult::BlackWins),
        ("*", GameResult::Unknown),
        ("1\u{2013}0", GameResult::WhiteWins),
        ("0\u{2013}1", GameResult::BlackWins),
        ("\u{bd}-\u{bd}", GameResult::Draw),
        ("\u{bd}\u{2013}\u{bd}", GameResult::Draw),
        ("1/2\u{2013}1/2", GameResult::Draw),
    ];
    if !matches!(text.first(), Some(b'0' | b'1' | b'*' | 0xc2)) {
        return None;
    }
    // The longest spelling that fits.
    SPELLINGS
        .iter()
        .filter(|(spelling, _)| text.starts_with(spelling.as_bytes()))
        .max_by_key(|(spelling, _)| spelling.len())
        .map(|(spelling, result)| (*result, spelling.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Tags as `Name=value`, words as they are, results in angle brackets; games apart.
    fn lex(text: &str) -> Vec<Vec<String>> {
        let mut lexer = Lexer::new(text.as_bytes());
        let mut games = Vec::new();
        while lexer.next_game() {
            let mut game = Vec::new();
            while let Some(tag) = lexer.next_tag() {
                game.push(format!("{}={}", String::from_utf8_lossy(tag.name), tag.value()));
            }
            while let Some(token) = lexer.next_token() {
                game.push(match token {
                    Token::Word(word) => String::from_utf8_lossy(word).into_owned(),
                    Token::Result(result) => format!("<{result}>"),
                    Token::Fault(damage) => format!("! {damage}"),
                });
            }
            games.push(game);
        }
        games
    }

    #[test]
    fn tags_and_main_line() {
        let text = "\u{feff}[White \"a \\\"b\\\" \\\\\"] [Black \"c\"]\r\n[Odd \"say \"hi\" now\"]\r\n\r\n\
            1.e4! {x (} e5 $14 (1... c5 2. Nf3 (2. c3 {)})) 2.Nf3 Nc6?! ; rest e4\r\n%escaped e5\r\n3. Bb5 1-0\r\n";
        assert_eq!(
            lex(text),
            [[
                "White=a \"b\" \\",
                "Black=c",
                "Odd=say \"hi\" now",
                "e4",
                "e5",
                "Nf3",
                "Nc6",
                "Bb5",
                "<1-0>"
            ]]
        );
    }

    #[test]
    fn where_games_end() {
        assert_eq!(
            lex("e4 e5 1-0 {nice} d4 d5 0-1"),
            [["e4", "e5", "<1-0>"], ["d4", "d5", "<0-1>"]]
        );
        assert_eq!(lex("1. e4 e5\n\n1. d4 d5\n"), [["e4", "e5"], ["d4", "d5"]]);
        assert_eq!(lex("1. e4\n\n1... e5\n\n2. d4"), [["e4", "e5", "d4"]], "blank lines inside");
        assert_eq!(lex("[A \"1\"]\n1. e4\n[B \"2\"]\n*"), [vec!["A=1", "e4"], vec!["B=2", "<*>"]]);
        let headers = "[Event \"1\"]\n\n[Event \"2\"]\n[Site \"x\"]\n\n[Round \"3\"]\n\ne4";
        assert_eq!(lex(headers), [vec!["Event=1"], vec!["Event=2", "Site=x", "Round=3", "e4"]]);
        assert_eq!(lex("  \n%only\n\n"), Vec::<Vec<String>>::new());
        assert_eq!(lex("1/2-1/2 * 1\u{2013}0 \u{bd}-\u{bd}").len(), 4);
    }

    #[test]
    fn words_are_kept_and_decoration_is_not() {
        assert_eq!(
            lex("1.e2e4, e7e5 0-0 O-O-O+ -- e8(Q) exd6 e.p. +- Bb9 12 13... 0000 = \u{e9}"),
            [["e2e4", "e7e5", "0-0", "O-O-O+", "--", "e8(Q)", "exd6", "Bb9", "0000", "\u{e9}"]]
        );
    }

    #[test]
    fn damage_is_told_and_does_not_spread() {
        let next = "\n\n[Event \"next\"]\n\ne4 *\n";
        let good = vec!["Event=next", "e4", "<*>"];
        assert_eq!(
            lex(&format!("d4 {{ open{next}")),
            [vec!["d4", "! comment without an end"], good.clone()]
        );
        assert_eq!(
            lex(&format!("d4 (c4{next}")),
            [vec!["d4", "! variation without an end"], good.clone()]
        );
        assert_eq!(
            lex(&format!("d4 ) }} d5{next}")),
            [vec!["d4", "! `)` without `(`", "! `}` without `{`", "d5"], good]
        );
        assert_eq!(lex("d4 { open"), [["d4", "! comment without an end"]]);
        assert_eq!(lex("e4 { a comment with\n\na blank line } e5"), [["e4", "e5"]]);
    }

    #[test]
    fn places_to_cut_at() {
        let text =
            b"[Event \"a\"]\n\ne4 *\n\n[Event \"b\"]\n\nd4 *\n \r\n[Event \"c\"]\n[Event \"d\"]\n";
        let c = text.windows(10).position(|w| w == b"[Event \"c\"").unwrap();
        let b = text.windows(10).position(|w| w == b"[Event \"b\"").unwrap();
        assert_eq!((last_game(text), first_game(text)), (Some(c), Some(b)));
        assert_eq!(last_game(b"[Event \"a\"]\n\ne4 *\n"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_come_to_an_end(text in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut lexer = Lexer::new(&text);
            let mut games = 0;
            while lexer.next_game() {
                games += 1;
                prop_assert!(games <= text.len());
            }
            prop_assert_eq!(lexer.offset(), text.len());
        }

        #[test]
        fn any_soup_of_pgn_comes_to_an_end(
            parts in proptest::collection::vec(prop_oneof![
                Just("[Event \"x\"]"), Just("[A \"\\\""), Just("\n"), Just("\n\n"), Just("{"), Just("}"), Just("("),
                Just(")"), Just("1."), Just("e4"), Just("Nf3"), Just("*"), Just("1-0"), Just(";"), Just("%"),
                Just("$1"), Just(" "), Just("["), Just("]"), Just("\""), Just("\r\n"), Just("0-0"), Just("\u{2013}"),
            ], 0..80)
        ) {
            let text = parts.concat();
            let mut lexer = Lexer::new(text.as_bytes());
            let mut games = 0;
            while lexer.next_game() {
                games += 1;
                prop_assert!(games <= text.len());
            }
            prop_assert_eq!(lexer.offset(), text.len());
        }
    }
}
