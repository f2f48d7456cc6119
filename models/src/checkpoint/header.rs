//! The safetensors header, checked before anything is believed: no tensor library, no allocation by what it claims.
//!
//! A file is eight bytes (little-endian length `n`), `n` bytes of JSON, then the tensors' bytes. Everything that the
//! header says is checked against the bytes that are there; what is kept is bounded by the header's own length, and
//! that by [`HEADER_LIMIT_BYTES`]. Stricter than the format: the JSON nests no deeper than the format needs, names
//! and keys occur once, dtypes are F32 and F16.

use std::{collections::BTreeMap, fmt, ops::Range};

use super::{
    error::{CheckpointError, quoted},
    header_json::{RawEntry, RawHeader, parse_json},
};

/// The longest header that is read.
pub const HEADER_LIMIT_BYTES: u64 = 1 << 20;
/// The most tensors that are read; the largest of the paper's networks has about a hundred.
pub const TENSOR_LIMIT: usize = 4096;
/// The most dimensions of a tensor.
pub(super) const RANK_LIMIT: usize = 8;
/// The longest name of a tensor.
pub(super) const NAME_LIMIT_BYTES: usize = 256;
/// Levels of JSON that the format has: the header, a tensor, its shape.
const DEPTH_LIMIT: usize = 3;
/// Bytes of the length in front of the header.
const LENGTH_BYTES: u64 = 8;

/// How a tensor's numbers are stored.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// 32-bit floating point.
    F32,
    /// 16-bit floating point (IEEE half).
    F16,
}

impl Dtype {
    /// Bytes of one number.
    pub const fn bytes(self) -> usize {
        match self {
            Dtype::F32 => 4,
            Dtype::F16 => 2,
        }
    }

    /// The name in a safetensors header.
    pub const fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "F32",
            Dtype::F16 => "F16",
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dtype::F32 => "f32",
            Dtype::F16 => "f16",
        })
    }
}

/// A tensor as the header describes it; checked against the file's length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Number format.
    pub dtype: Dtype,
    /// Dimensions, row-major.
    pub shape: Vec<u64>,
    /// Its bytes, counted from the start of the file.
    pub span_bytes: Range<u64>,
}

impl Entry {
    /// Numbers in the tensor.
    pub fn elements(&self) -> u64 {
        (self.span_bytes.end - self.span_bytes.start) / self.dtype.bytes() as u64
    }

    /// Its bytes in `file`; empty if `file` is not the file that was checked.
    pub fn bytes<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        let range = usize::try_from(self.span_bytes.start)
            .ok()
            .zip(usize::try_from(self.span_bytes.end).ok());
        range.and_then(|(start, end)| file.get(start..end)).unwrap_or_default()
    }
}

/// A checked header.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    /// Tensors by name.
    pub tensors: BTreeMap<String, Entry>,
    /// `__metadata__`.
    pub metadata: BTreeMap<String, String>,
}

impl Header {
    /// Checks the header of a file that is wholly in memory.
    ///
    /// # Errors
    /// The first fault found, see [`CheckpointError`].
    pub fn parse(file: &[u8]) -> Result<Self, CheckpointError> {
        Self::parse_head(file, file.len() as u64)
    }

    /// Checks the header at the start `head` of a file of `file_bytes` bytes; `head` must reach to the header's end
    /// ([`Header::head_bytes`] says how far that is).
    ///
    /// # Errors
    /// The first fault found, see [`CheckpointError`].
    pub fn parse_head(head: &[u8], file_bytes: u64) -> Result<Self, CheckpointError> {
        if let Some(kind) = other_kind(head) {
            return Err(CheckpointError::OtherKind { kind });
        }
        let end = Self::head_bytes(head, file_bytes)?;
        let json = usize::try_from(end).ok().and_then(|end| head.get(LENGTH_BYTES as usize..end));
        let Some(json) = json else {
            return Err(CheckpointError::Truncated {
                needed_bytes: end,
                file_bytes: head.len() as u64,
            });
        };
        check_depth(json)?;
        let json = std::str::from_utf8(json).map_err(|e| CheckpointError::HeaderUtf8 {
            at_byte: LENGTH_BYTES + e.valid_up_to() as u64,
        })?;
        let raw = parse_json(json)?;
        check_layout(raw, end, file_bytes)
    }

    /// Bytes from the start of a file to the end of its header, by the length in its first eight bytes.
    ///
    /// # Errors
    /// [`CheckpointError::Truncated`] and [`CheckpointError::HeaderTooLong`].
    pub fn head_bytes(head: &[u8], file_bytes: u64) -> Result<u64, CheckpointError> {
        let Some(length) = head.first_chunk::<{ LENGTH_BYTES as usize }>() else {
            return Err(CheckpointError::Truncated { needed_bytes: LENGTH_BYTES, file_bytes });
        };
        let claimed_bytes = u64::from_le_bytes(*length);
        if claimed_bytes > HEADER_LIMIT_BYTES {
            return Err(CheckpointError::HeaderTooLong {
                claimed_bytes,
                limit_bytes: HEADER_LIMIT_BYTES,
            });
        }
        let needed_bytes = LENGTH_BYTES + claimed_bytes;
        if needed_bytes > file_bytes {
            return Err(CheckpointError::Truncated { needed_bytes, file_bytes });
        }
        Ok(needed_bytes)
    }
}

/// Names the kinds of file that people give by mistake.
fn other_kind(head: &[u8]) -> Option<&'static str> {
    const KINDS: [(&[u8], &str); 8] = [
        (b"PK\x03\x04", "a zip archive, perhaps a PyTorch checkpoint (.pt)"),
        (b"\x80\x02", "a Python pickle, perhaps an old PyTorch checkpoint"),
        (b"\x1f\x8b", "a gzip file"),
        (b"\x28\xb5\x2f\xfd", "a zstd file"),
        (b"version https://git-lfs", "a Git LFS pointer, whose file was not downloaded"),
        (b"<!DOCTYPE", "a web page"),
        (b"<html", "a web page"),
        (b"PAR1", "a Parquet file, perhaps a dataset"),
    ];
    // A header of 640 bytes begins like a pickle; the brace behind its length tells them apart.
    if head.get(LENGTH_BYTES as usize) == Some(&b'{') {
        return None;
    }
    KINDS.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, kind)| *kind)
}

/// The parser behind recurses: no input may decide how deep.
fn check_depth(json: &[u8]) -> Result<(), CheckpointError> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, &byte) in json.iter().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_LIMIT {
            let at_byte = LENGTH_BYTES + at as u64;
            return Err(CheckpointError::HeaderTooDeep { at_byte, limit: DEPTH_LIMIT });
        }
    }
    Ok(())
}

/// Every tensor has the bytes it needs, and every byte behind the header exactly one owner.
fn check_layout(
    raw: RawHeader,
    data_start: u64,
    file_bytes: u64,
) -> Result<Header, CheckpointError> {
    let data_bytes = file_bytes - data_start;
    if raw.tensors.is_empty() {
        return Err(CheckpointError::NoTensors);
    }
    for (name, RawEntry { dtype, shape, offsets: [begin, end] }) in &raw.tensors {
        let (begin, end) = (*begin, *end);
        if begin > end {
            return Err(CheckpointError::ReversedOffsets { name: quoted(name), begin, end });
        }
        let expected_bytes =
            shape.iter().try_fold(dtype.bytes() as u64, |bytes, &d| bytes.checked_mul(d));
        let Some(expected_bytes) = expected_bytes else {
            return Err(CheckpointError::ShapeOverflow { name: quoted(name) });
        };
        let found_bytes = end - begin;
        if found_bytes != expected_bytes {
            return Err(CheckpointError::WrongLength {
                name: quoted(name),
                expected_bytes,
                found_bytes,
            });
        }
        if end > data_bytes {
            return Err(CheckpointError::OutOfRange { name: quoted(name), end, data_bytes });
        }
    }

    let mut order: Vec<_> = raw.tensors.iter().map(|(name, e)| (e.offsets, name)).collect();
    order.sort_unstable();
    let (mut covered, mut previous) = (0, "");
    for ([begin, end], name) in order {
        if begin < covered {
            let (first, second) = (quoted(previous), quoted(name));
            return Err(CheckpointError::Overlap { first, second, at: begin });
        }
        if begin > covered {
            return Err(CheckpointError::Gap { name: quoted(name), bytes: begin - covered });
        }
        (covered, previous) = (end, name);
    }
    if covered < data_bytes {
        return Err(CheckpointError::TrailingBytes { bytes: data_bytes - covered });
    }

    let tensors = raw
        .tensors
        .into_iter()
        .map(|(name, RawEntry { dtype, shape, offsets: [begin, end] })| {
            let span_bytes = data_start + begin..data_start + end;
            (name, Entry { dtype, shape, span_bytes })
        })
        .collect();
    Ok(Header { tensors, metadata: raw.metadata })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with this header and `data_bytes` zeros behind it.
    fn file(json: &str, data_bytes: usize) -> Vec<u8> {
        let mut file = (json.len() as u64).to_le_bytes().to_vec();
        file.extend(json.as_bytes());
        file.resize(file.len() + data_bytes, 0);
        file
    }

    /// The code of the fault in a file with this header.
    fn code(json: &str, data_bytes: usize) -> &'static str {
        Header::parse(&file(json, data_bytes)).map_or_else(|e| e.code(), |_| "fine")
    }

    fn entry(name: &str, shape: &str, begin: u64, end: u64) -> String {
        format!(r#""{name}":{{"dtype":"F32","shape":{shape},"data_offsets":[{begin},{end}]}}"#)
    }

    #[test]
    fn a_sound_header_is_read() {
        let json = format!(
            r#"{{"__metadata__":{{"format":"pt","a \" b":"}}]"}},{},"h":{{"data_offsets":[8,14],"shape":[3],"dtype":"F16"}},{}}}   "#,
            entry("b", "[2,1]", 0, 8),
            entry("empty", "[0]", 14, 14),
        );
        let header = Header::parse(&file(&json, 14)).unwrap();
        assert_eq!(header.metadata["a \" b"], "}]");
        let start = 8 + json.len() as u64;
        let b = &header.tensors["b"];
        assert_eq!((b.dtype, &b.shape[..], b.elements()), (Dtype::F32, &[2, 1][..], 2));
        let h = &header.tensors["h"];
        assert_eq!((h.span_bytes.clone(), h.elements()), (start + 8..start + 14, 3));
        assert_eq!(header.tensors["empty"].elements(), 0);
    }

    #[test]
    fn the_head_alone_is_enough() {
        let json = format!("{{{}}}", entry("a", "[4]", 0, 16));
        let whole = file(&json, 16);
        let head = Header::head_bytes(&whole[..8], whole.len() as u64).unwrap();
        let from_head = Header::parse_head(&whole[..head as usize], whole.len() as u64);
        assert_eq!(from_head, Header::parse(&whole));
    }

    #[test]
    fn each_malformed_header_has_its_own_code() {
        let two = |a: String, b: String| format!("{{{a},{b}}}");
        let huge = u64::MAX / 2;
        let cases: Vec<(String, usize, &str)> = vec![
            (String::new(), 0, "CKPT-HEADER-JSON"),
            ("{".into(), 0, "CKPT-HEADER-JSON"),
            ("[]".into(), 0, "CKPT-HEADER-JSON"),
            ("null".into(), 0, "CKPT-HEADER-JSON"),
            (format!("{{{}}} x", entry("a", "[1]", 0, 4)), 4, "CKPT-HEADER-JSON"),
            (
                format!("{{{}}}", entry("a", "[99999999999999999999999]", 0, 4)),
                4,
                "CKPT-HEADER-ENTRY",
            ),
            ("{}".into(), 0, "CKPT-EMPTY"),
            (r#"{"__metadata__":{}}"#.into(), 0, "CKPT-EMPTY"),
            (r#"{"__metadata__":{"a":1}}"#.into(), 0, "CKPT-HEADER-ENTRY"),
            (r#"{"__metadata__":[]}"#.into(), 0, "CKPT-HEADER-ENTRY"),
            (r#"{"__metadata__":{"a":"b","a":"c"}}"#.into(), 0, "CKPT-DUPLICATE"),
            (r#"{"__metadata__":{},"__metadata__":{}}"#.into(), 0, "CKPT-DUPLICATE"),
            (r#"{"a":3}"#.into(), 0, "CKPT-HEADER-ENTRY"),
            (r#"{"a":{}}"#.into(), 0, "CKPT-HEADER-ENTRY"),
            (r#"{"a":{"dtype":"F32","shape":[1]}}"#.into(), 4, "CKPT-HEADER-ENTRY"),
            (
                r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}}"#.into(),
                4,
                "CKPT-HEADER-ENTRY",
            ),
            (
                r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,2,4]}}"#.into(),
                4,
                "CKPT-HEADER-ENTRY",
            ),
            (
                r#"{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#.into(),
                4,
                "CKPT-DUPLICATE",
            ),
            (
                r#"{"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}}"#.into(),
                4,
                "CKPT-HEADER-ENTRY",
            ),
            (r#"{"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}"#.into(), 8, "CKPT-DTYPE"),
            (r#"{"a":{"dtype":"f32","shape":[1],"data_offsets":[0,4]}}"#.into(), 4, "CKPT-DTYPE"),
            (format!("{{{}}}", entry("a", "[-1]", 0, 4)), 4, "CKPT-HEADER-ENTRY"),
            (format!("{{{}}}", entry("a", "[1.5]", 0, 4)), 4, "CKPT-HEADER-ENTRY"),
            (format!("{{{}}}", entry("a", "[1,1,1,1,1,1,1,1,1]", 0, 4)), 4, "CKPT-HEADER-ENTRY"),
            (format!("{{{}}}", entry("", "[1]", 0, 4)), 4, "CKPT-HEADER-ENTRY"),
            (format!("{{{}}}", entry(&"n".repeat(257), "[1]", 0, 4)), 4, "CKPT-HEADER-ENTRY"),
            (format!("{{{}}}", entry("a", "[[[1]]]", 0, 4)), 4, "CKPT-HEADER-DEPTH"),
            ("[".repeat(100_000), 0, "CKPT-HEADER-DEPTH"),
            (r#"{"a":"#.repeat(100_000), 0, "CKPT-HEADER-DEPTH"),
            (two(entry("a", "[1]", 0, 4), entry("a", "[1]", 4, 8)), 8, "CKPT-DUPLICATE"),
            (format!("{{{}}}", entry("a", "[1]", 4, 0)), 4, "CKPT-OFFSETS"),
            (
                format!("{{{}}}", entry("a", &format!("[{huge},{huge}]"), 0, 4)),
                4,
                "CKPT-SHAPE-OVERFLOW",
            ),
            (
                format!("{{{}}}", entry("a", &format!("[{}]", u64::MAX), 0, 4)),
                4,
                "CKPT-SHAPE-OVERFLOW",
            ),
            (format!("{{{}}}", entry("a", "[2]", 0, 4)), 4, "CKPT-LENGTH"),
            (format!("{{{}}}", entry("a", "[]", 0, 8)), 8, "CKPT-LENGTH"),
            (format!("{{{}}}", entry("a", "[2]", 0, 8)), 4, "CKPT-RANGE"),
            (format!("{{{}}}", entry("a", "[0]", u64::MAX, u64::MAX)), 4, "CKPT-RANGE"),
            (two(entry("a", "[2]", 0, 8), entry("b", "[1]", 4, 8)), 8, "CKPT-OVERLAP"),
            (two(entry("a", "[1]", 0, 4), entry("b", "[1]", 0, 4)), 4, "CKPT-OVERLAP"),
            (two(entry("a", "[1]", 0, 4), entry("b", "[1]", 8, 12)), 12, "CKPT-GAP"),
            (format!("{{{}}}", entry("a", "[1]", 4, 8)), 8, "CKPT-GAP"),
            (format!("{{{}}}", entry("a", "[1]", 0, 4)), 5, "CKPT-TRAILING"),
        ];
        for (json, data_bytes, expected) in cases {
            let shown: String = json.chars().take(120).collect();
            assert_eq!(code(&json, data_bytes), expected, "{shown}");
        }
    }

    #[test]
    fn the_frame_is_checked_before_the_json() {
        let code = |bytes: &[u8]| Header::parse(bytes).unwrap_err().code();
        assert_eq!(code(b""), "CKPT-TRUNCATED");
        assert_eq!(code(&[3, 0, 0, 0, 0, 0, 0]), "CKPT-TRUNCATED");
        assert_eq!(code(&[3, 0, 0, 0, 0, 0, 0, 0, b'{', b'}']), "CKPT-TRUNCATED");
        assert_eq!(code(&[0xff; 64]), "CKPT-HEADER-LENGTH");
        assert_eq!(code(&(HEADER_LIMIT_BYTES + 1).to_le_bytes()), "CKPT-HEADER-LENGTH");
        assert_eq!(code(&[3, 0, 0, 0, 0, 0, 0, 0, b'{', 0xff, b'}']), "CKPT-HEADER-UTF8");
        assert_eq!(code(b"PK\x03\x04 and the rest of a zip"), "CKPT-KIND");
        assert_eq!(code(b"version https://git-lfs.github.com/spec/v1\n"), "CKPT-KIND");
    }

    #[test]
    fn too_many_tensors_are_refused() {
        let entries: Vec<_> =
            (0..=TENSOR_LIMIT as u64).map(|i| entry(&format!("t{i}"), "[0]", 0, 0)).collect();
        assert_eq!(code(&format!("{{{}}}", entries[1..].join(",")), 0), "fine");
        assert_eq!(code(&format!("{{{}}}", entries.join(",")), 0), "CKPT-TENSOR-COUNT");
    }

    #[test]
    fn a_header_of_640_bytes_is_no_pickle() {
        let json = format!("{{{}}}", entry("a", "[1]", 0, 4));
        assert_eq!(code(&format!("{json:640}"), 4), "fine");
    }
}
