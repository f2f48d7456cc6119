//! Where one game surely ends and the next begins, without reading what lies between.

use memchr::{memchr_iter, memrchr_iter};

pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c)
}

pub(super) fn is_event(text: &[u8]) -> bool {
    text.starts_with(b"[Event ")
}

/// The offset of an `[Event ` tag behind a blank line.
pub(super) fn find_game(text: &[u8]) -> Option<usize> {
    memchr_iter(b'\n', text)
        .map(|at| at + 1)
        .find(|&at| is_event(&text[at..]) && ends_with_blank_line(&text[..at]))
}

fn ends_with_blank_line(text: &[u8]) -> bool {
    let line = text.strip_suffix(b"\n").unwrap_or(text);
    let before = line.iter().rposition(|&b| b == b'\n').map_or(line, |at| &line[at + 1..]);
    before.iter().all(|&b| is_blank(b))
}

/// The offset of the last place where a new game surely begins: an `[Event ` tag behind a blank line, not at 0.
pub fn last_game(text: &[u8]) -> Option<usize> {
    memrchr_iter(b'\n', text)
        .map(|at| at + 1)
        .find(|&at| at < text.len() && is_event(&text[at..]) && ends_with_blank_line(&text[..at]))
}

/// As [`last_game`], the first.
pub fn first_game(text: &[u8]) -> Option<usize> {
    find_game(text)
}
