//! Text from files in messages.

/// The most characters of a file's own text that a message repeats.
const QUOTED_CHARS: usize = 80;

/// Text from a file, fit to be shown: control characters escaped, cut where it is too long to repeat.
pub fn quoted(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    for c in chars.by_ref().take(QUOTED_CHARS) {
        out.extend(c.escape_debug());
    }
    if chars.next().is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_files_is_escaped_and_cut() {
        assert_eq!(quoted("a\u{1b}[31m\n"), "a\\u{1b}[31m\\n");
        assert_eq!(quoted(&"x".repeat(81)), "x".repeat(80) + "…");
        assert_eq!(quoted(&"x".repeat(80)), "x".repeat(80));
    }
}
