//! What a text holds, by its beginning; names of files decide nothing.

use crate::exit::Failure;

/// What the text of an input holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// PGN, or something that the PGN lexer reads.
    Pgn,
    /// Lines of UCI moves.
    UciLines,
    /// Lines of JSON as the reference writes them.
    Jsonl,
}

/// Bytes that [`sniff`] wants to see.
pub const HEAD_BYTES: usize = 1 << 16;

/// Recognises a text by its first bytes; `None` if there is nothing in it.
///
/// # Errors
/// A [`Failure`] that says what the bytes are, if they are no text.
pub fn sniff(name: &str, head: &[u8]) -> Result<Option<Format>, Failure> {
    let refuse = |what: &str, hint: &str| Err(Failure::data(format!("`{name}` {what}")).hint(hint));
    match head {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            return refuse("is UTF-16, not UTF-8", "convert it with `iconv -f UTF-16 -t UTF-8`");
        }
        [b'P', b'A', b'R', b'1', ..] => {
            return refuse(
                "is a Parquet file",
                "a dataset needs no preparation; see `cwm data info DIR`",
            );
        }
        [b'P', b'K', 3, 4, ..] => return refuse("is a zip archive", "unpack it first"),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => {
            return refuse(
                "is compressed with xz",
                "pipe it: `xz -dc FILE | cwm data prepare - ...`",
            );
        }
        [b'7', b'z', 0xbc, 0xaf, ..] => return refuse("is a 7z archive", "unpack it first"),
        _ => {}
    }
    if head.contains(&0) {
        return refuse("is binary, not text", "expected PGN, lines of UCI moves, or JSON lines");
    }
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut lines = text.split(|&b| b == b'\n').map(<[u8]>::trim_ascii);
    let Some(line) = lines.find(|line| !line.is_empty() && !line.starts_with(b"#")) else {
        // A head full of blanks may still be followed by something: the PGN lexer passes over them.
        return Ok((head.len() >= HEAD_BYTES).then_some(Format::Pgn));
    };
    if line.starts_with(b"{\"") {
        return Ok(Some(Format::Jsonl));
    }
    let tabs = line.iter().filter(|&&b| b == b'\t').count();
    let moves_alone = || {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        words.by_ref().take(2).all(is_uci)
    };
    if (4..=5).contains(&tabs) || moves_alone() {
        return Ok(Some(Format::UciLines));
    }
    Ok(Some(Format::Pgn))
}

fn is_uci(word: &[u8]) -> bool {
    let square =
        |file: u8, rank: u8| (b'a'..=b'h').contains(&file) && (b'1'..=b'8').contains(&rank);
    match *word {
        [a, b, c, d] | [a, b, c, d, b'q' | b'r' | b'b' | b'n'] => square(a, b) && square(c, d),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_apart_by_content() {
        let format = |text: &str| sniff("x", text.as_bytes()).unwrap();
        assert_eq!(format("\u{feff}\n[Event \"x\"]\n"), Some(Format::Pgn));
        assert_eq!(format("{ a comment } 1. e4"), Some(Format::Pgn));
        assert_eq!(format("1. e4 e5"), Some(Format::Pgn));
        assert_eq!(format("# note\ng1\tlichess\t1-0\t-\t-\te2e4 e7e5\n"), Some(Format::UciLines));
        assert_eq!(format("e2e4 e7e5 g1f3\n"), Some(Format::UciLines));
        assert_eq!(format("{\"example_id\": \"x\"}"), Some(Format::Jsonl));
        assert_eq!(format(" \n\n"), None);
    }

    #[test]
    fn what_is_no_text_is_named() {
        for (head, word) in [
            (&b"\x7fELF\0\0"[..], "binary"),
            (b"PK\x03\x04", "zip"),
            (b"PAR1....", "Parquet"),
            (b"\xff\xfee\0", "UTF-16"),
            (b"\xfd7zXZ\0", "xz"),
        ] {
            let failure = sniff("x", head).unwrap_err();
            assert!(failure.message.contains(word), "{}", failure.message);
        }
    }
}
