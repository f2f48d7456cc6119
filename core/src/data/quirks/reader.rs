//! Reads PGN line by line, as python-chess does.

use std::borrow::Cow;

use super::{
    board::QuirkBoard,
    words::{move_length, result_at, written},
};
use crate::{
    chess::{MoveToken, replay::MoveFault},
    data::{GameResult, SkipReason, spec::MAX_PLIES},
};

/// Positions that one game may pass through, variations included; beyond lies nothing but malice.
const MAX_POSITIONS: usize = 200_000;

/// A game as the reference sees it.
#[derive(Debug, Clone)]
pub struct QuirkGame {
    /// The Site tag; `?` if it is missing.
    pub site: String,
    /// The result: the tag, or else what the movetext says.
    pub result: GameResult,
    /// What is kept of it, or why nothing is.
    pub played: Result<Played, SkipReason>,
}

/// The kept part of a game.
#[derive(Debug, Clone)]
pub struct Played {
    /// The moves, without START.
    pub moves: Vec<MoveToken>,
    /// The rules, by the names that [`super::replay`] knows.
    pub rules: &'static str,
    /// The starting position, if a FEN tag gives one.
    pub start_fen: Option<String>,
    /// Whether moves alone replay it: standard rules, standard start, no null move.
    pub plain: bool,
}

/// Iterates over the games of a text.
#[derive(Debug)]
pub struct QuirkReader<'a> {
    lines: Lines<'a>,
}

/// Lines with their ends; `\n`, `\r\n` and `\r` all end one.
#[derive(Debug)]
struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Lines<'a> {
    /// The next line; empty at the end of the text.
    fn next(&mut self) -> &'a [u8] {
        let end = match memchr::memchr2(b'\n', b'\r', self.rest) {
            Some(at) if self.rest[at..].starts_with(b"\r\n") => at + 2,
            Some(at) => at + 1,
            None => self.rest.len(),
        };
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest;
        line
    }
}

/// Python's `str.isspace`.
fn is_space(line: &[u8]) -> bool {
    let blank = |c: char| c.is_whitespace() || ('\x1c'..='\x1f').contains(&c);
    match line {
        [] => false,
        // Most lines are settled by their first byte.
        [b'!'..=b'~', ..] => false,
        line => std::str::from_utf8(line).is_ok_and(|text| text.chars().all(blank)),
    }
}

impl<'a> QuirkReader<'a> {
    /// Reads `text` from its beginning.
    pub fn new(text: &'a [u8]) -> Self {
        let rest = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        QuirkReader { lines: Lines { rest } }
    }

    /// Bytes of `text` (without a byte order mark) that have not been read yet.
    pub fn unread(&self) -> usize {
        self.lines.rest.len()
    }

    fn game(&mut self) -> Option<QuirkGame> {
        let is_remark = |line: &[u8]| matches!(line.first(), Some(b'%' | b';'));
        let mut line = self.lines.next();
        while is_space(line) || is_remark(line) {
            line = self.lines.next();
        }
        if line.is_empty() {
            return None;
        }
        let mut tags: Vec<(&[u8], &[u8])> = Vec::new();
        let mut blank_lines = 0;
        while !line.is_empty() {
            if is_remark(line) {
            } else if blank_lines < 1 && is_space(line) {
                blank_lines += 1;
            } else if line[0] != b'[' {
                break;
            } else {
                blank_lines = 0;
                tags.extend(read_tag(line));
            }
            line = self.lines.next();
        }
        let tag = |name: &str| -> Option<Cow<'_, str>> {
            tags.iter()
                .rev()
                .find(|(n, _)| *n == name.as_bytes())
                .map(|(_, v)| String::from_utf8_lossy(v))
        };
        let fen = tag("FEN");
        let board = QuirkBoard::new(tag("Variant").as_deref(), fen.as_deref());
        let mut movetext = Movetext::new(board);
        movetext.read(line, &mut self.lines);

        let result = match tag("Result") {
            Some(word) if word != "*" => word.parse().unwrap_or_default(),
            _ => movetext.result,
        };
        let played = movetext.finish(fen.as_deref());
        Some(QuirkGame {
            site: tag("Site").unwrap_or(Cow::Borrowed("?")).into_owned(),
            result,
            played,
        })
    }
}

impl Iterator for QuirkReader<'_> {
    type Item = QuirkGame;

    fn next(&mut self) -> Option<QuirkGame> {
        self.game()
    }
}

/// A tag line: `[Name "value"]` and blanks, the value reaching to the last quote.
fn read_tag(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii_end();
    let inner = line.strip_prefix(b"[")?.strip_suffix(b"\"]")?;
    let gap = inner.iter().position(u8::is_ascii_whitespace)?;
    let (name, rest) = inner.split_at(gap);
    let value = rest.trim_ascii_start().strip_prefix(b"\"")?;
    let named = name.first().is_some_and(u8::is_ascii_alphanumeric)
        && name.iter().all(|b| b.is_ascii_alphanumeric() || b"_+#=:-".contains(b));
    named.then_some((name, value))
}

/// A position in the tree of a game's moves.
#[derive(Debug)]
struct Node {
    board: QuirkBoard,
    parent: Option<usize>,
}

/// The state of reading one game's movetext.
struct Movetext {
    /// Every position reached, variations included; empty if the game cannot be set up.
    nodes: Vec<Node>,
    refused: Option<SkipReason>,
    /// The position of the main line and of each open variation.
    stack: Vec<usize>,
    /// How many variations are open for the tree of moves: less than `stack` once an error was in one of them.
    open: usize,
    skipping: u64,
    main: QuirkMain,
    result: GameResult,
}

/// The main line as it is replayed from its start.
struct QuirkMain {
    board: Option<QuirkBoard>,
    moves: Vec<MoveToken>,
    null_moves: bool,
    plain_start: bool,
    rules: &'static str,
}

impl Movetext {
    fn new(board: Result<QuirkBoard, SkipReason>) -> Self {
        let refused = board.as_ref().err().copied();
        let board = board.ok();
        let main = QuirkMain {
            moves: Vec::new(),
            null_moves: false,
            plain_start: board.as_ref().is_some_and(QuirkBoard::is_standard_start),
            rules: board.as_ref().map_or("standard", QuirkBoard::rules),
            board: board.clone(),
        };
        Movetext {
            nodes: board.map(|board| Node { board, parent: None }).into_iter().collect(),
            refused,
            stack: vec![0],
            open: 0,
            skipping: 0,
            main,
            result: GameResult::Unknown,
        }
    }

    /// Reads lines from `line` on until the game ends.
    fn read<'a>(&mut self, mut line: &'a [u8], lines: &mut Lines<'a>) {
        let mut fresh = true;
        while !line.is_empty() {
            if fresh {
                if matches!(line[0], b'%' | b';') {
                    line = lines.next();
                    continue;
                }
                if is_space(line) {
                    return;
                }
            }
            match self.read_line(line) {
                Some(mut rest) => {
                    // Behind a comment goes on what follows its end, wherever that is.
                    let close = loop {
                        match memchr::memchr(b'}', rest) {
                            Some(at) => break Some(at),
                            None => rest = lines.next(),
                        }
                        if rest.is_empty() {
                            break None;
                        }
                    };
                    line = close.map_or(&b""[..], |at| &rest[at + 1..]);
                    fresh = false;
                }
                None => {
                    line = lines.next();
                    fresh = true;
                }
            }
        }
    }

    /// Reads a line up to its end (`None`) or to the inside of a comment (`Some`, the text behind the brace).
    fn read_line<'a>(&mut self, line: &'a [u8]) -> Option<&'a [u8]> {
        let mut at = 0;
        while at < line.len() {
            let rest = &line[at..];
            let length = move_length(rest);
            if length > 0 {
                if self.skipping == 0 {
                    self.play(&rest[..length]);
                }
                at += length;
                continue;
            }
            match rest[0] {
                b'{' => return Some(&rest[1..]),
                b';' => return None,
                b'$' => at += rest[1..].iter().take_while(|b| b.is_ascii_digit()).count(),
                b'(' => self.open_variation(),
                b')' => self.close_variation(),
                _ => {
                    if let Some((result, length)) = result_at(rest) {
                        if self.skipping == 0 && self.stack.len() == 1 && self.refused.is_none() {
                            if self.result == GameResult::Unknown {
                                self.result = result;
                            }
                        } else if self.skipping == 0 && self.refused.is_none() {
                            // In a variation it is taken for a move, and is none.
                            self.skipping = 1;
                        }
                        at += length;
                        continue;
                    }
                }
            }
            at += 1;
        }
        None
    }

    fn open_variation(&mut self) {
        if self.skipping > 0 {
            self.skipping += 1;
        } else if let Some(&top) = self.stack.last()
            && let Some(parent) = self.nodes.get(top).and_then(|node| node.parent)
        {
            self.stack.push(parent);
            self.open += 1;
        }
    }

    fn close_variation(&mut self) {
        match self.skipping {
            // Behind an error the tree of moves leaves the variation, but the board stays.
            1 => {
                self.skipping = 0;
                self.open = self.open.saturating_sub(1);
            }
            0 if self.stack.len() > 1 => {
                self.stack.pop();
                self.open = self.open.saturating_sub(1);
            }
            0 => {}
            _ => self.skipping -= 1,
        }
    }

    fn play(&mut self, word: &[u8]) {
        if self.refused.is_some() {
            return;
        }
        let Some(top) = self.stack.last_mut() else { return };
        let mut board = self.nodes[*top].board.clone();
        let pushed = written(word).ok_or(MoveFault::NotAMove).and_then(|w| board.push_written(w));
        let token = match pushed {
            Ok(token) => token,
            // The reference plays it all the same.
            Err(MoveFault::Null) => {
                self.refused = Some(SkipReason::NullMove);
                return;
            }
            Err(_) => {
                self.skipping = 1;
                return;
            }
        };
        if self.nodes.len() >= MAX_POSITIONS {
            self.refused = Some(SkipReason::TooLarge);
            return;
        }
        self.nodes.push(Node { board, parent: Some(*top) });
        *top = self.nodes.len() - 1;
        if self.open == 0 {
            self.refused = self.main.push(token).err();
        }
    }

    fn finish(self, fen: Option<&str>) -> Result<Played, SkipReason> {
        if let Some(reason) = self.refused {
            return Err(reason);
        }
        Ok(Played {
            plain: self.main.plain_start && !self.main.null_moves,
            moves: self.main.moves,
            rules: self.main.rules,
            start_fen: fen.map(str::to_string),
        })
    }
}

impl QuirkMain {
    fn push(&mut self, token: MoveToken) -> Result<(), SkipReason> {
        if self.moves.len() == MAX_PLIES {
            return Err(SkipReason::TooLong);
        }
        if let Some(board) = &mut self.board {
            board.push_token(token)?;
        }
        self.null_moves |= token.id() == 0;
        self.moves.push(token);
        Ok(())
    }
}
