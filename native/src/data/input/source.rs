//! Opens an input: a file or stdin, decompressed by what its first bytes say.

use std::{
    fs::File,
    io::{self, BufReader, Chain, Cursor, Read},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::Context;

use crate::exit::Failure;

/// A compression, recognised by its magic number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not compressed.
    Plain,
    /// gzip
    Gzip,
    /// bzip2
    Bzip2,
    /// Zstandard
    Zstd,
}

impl Compression {
    /// Recognises the compression by the first bytes of a file.
    pub fn of(head: &[u8]) -> Compression {
        match head {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Compression::Bzip2,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            // A skippable frame, as parallel compressors write first.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            _ => Compression::Plain,
        }
    }
}

/// Text that is being read, decompressed.
pub struct Source {
    /// What to call it in messages: the path, or `stdin`.
    pub name: String,
    /// The text.
    pub text: Box<dyn Read + Send>,
    /// How it is compressed.
    pub compression: Compression,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Source({}, {:?})", self.name, self.compression)
    }
}

impl Source {
    /// Opens a file, or stdin for `-`; `bytes_read` counts what is read of it before decompression.
    ///
    /// # Errors
    /// If it cannot be opened or its first bytes cannot be read.
    pub fn open(path: &Path, bytes_read: Arc<AtomicU64>) -> anyhow::Result<Source> {
        if path == Path::new("-") {
            return Source::new("stdin".into(), io::stdin(), bytes_read);
        }
        let name = path.display().to_string();
        let file = File::open(path)
            .map_err(|e| anyhow::Error::new(Failure::data(format!("cannot open `{name}`: {e}"))))?;
        Source::new(name, file, bytes_read)
    }

    /// Wraps any reader.
    ///
    /// # Errors
    /// If the first bytes cannot be read.
    pub fn new(
        name: String,
        raw: impl Read + Send + 'static,
        bytes_read: Arc<AtomicU64>,
    ) -> anyhow::Result<Source> {
        let mut raw = BufReader::with_capacity(1 << 18, Counting { inner: raw, bytes_read });
        let mut head = Vec::with_capacity(4);
        Read::by_ref(&mut raw)
            .take(4)
            .read_to_end(&mut head)
            .with_context(|| format!("reading `{name}`"))?;
        let compression = Compression::of(&head);
        let whole: Whole<_> = Cursor::new(head).chain(raw);
        let text: Box<dyn Read + Send> = match compression {
            Compression::Plain => Box::new(whole),
            Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(whole)),
            Compression::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(whole)),
            Compression::Zstd => Box::new(
                zstd::stream::read::Decoder::new(whole)
                    .with_context(|| format!("starting to decompress `{name}`"))?,
            ),
        };
        Ok(Source { name, text, compression })
    }
}

type Whole<R> = Chain<Cursor<Vec<u8>>, BufReader<Counting<R>>>;

struct Counting<R> {
    inner: R,
    bytes_read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.bytes_read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
