//! Tags: `[Name "value"]` lines of a game's header.

use std::borrow::Cow;

use memchr::memchr;

/// A tag of a game's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag<'a> {
    /// The name.
    pub name: &'a [u8],
    /// The value as written, escapes included.
    pub raw: &'a [u8],
}

impl<'a> Tag<'a> {
    /// The value without escapes; what is no UTF-8 is replaced.
    pub fn value(&self) -> Cow<'a, str> {
        let text = String::from_utf8_lossy(self.raw);
        if !text.contains('\\') {
            return text;
        }
        let mut plain = String::with_capacity(text.len());
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match (c, chars.clone().next()) {
                ('\\', Some(next @ ('"' | '\\'))) => {
                    plain.push(next);
                    chars.next();
                }
                _ => plain.push(c),
            }
        }
        Cow::Owned(plain)
    }
}

/// Reads `[Name "value"]`; also its length.
pub(super) fn read_tag(text: &[u8]) -> Option<(Tag<'_>, usize)> {
    let inner = text.strip_prefix(b"[")?;
    let name_length =
        inner.iter().position(|b| !(b.is_ascii_alphanumeric() || b"_+#=:-".contains(b)))?;
    if name_length == 0 {
        return None;
    }
    let gap = inner[name_length..].iter().position(|b| !matches!(b, b' ' | b'\t'))?;
    let quote = name_length + gap;
    if gap == 0 || inner[quote] != b'"' {
        return None;
    }
    let value = &inner[quote + 1..];
    let line = &value[..memchr(b'\n', value).unwrap_or(value.len())];
    let (mut end, mut close) = (line.len(), line.len());
    let mut i = 0;
    while i < line.len() {
        match line[i] {
            b'\\' => i += 1,
            b'"' => {
                // A quote inside the value is one that no bracket follows.
                let blanks = line[i + 1..].iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
                if line.get(i + 1 + blanks) == Some(&b']') {
                    (end, close) = (i, i + 2 + blanks);
                    break;
                }
            }
            _ => {}
        }
        i += 1;
    }
    if close == line.len() && end == line.len() {
        // No end on this line: up to the last quote, or the whole line.
        end = line.iter().rposition(|&b| b == b'"').unwrap_or(line.len());
    }
    let tag = Tag { name: &inner[..name_length], raw: &line[..end] };
    Some((tag, 1 + quote + 1 + close))
}
