//! Reads a dataset, trusting nothing in it: sizes, checksums, schema, vocabulary and lengths are checked.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use anyhow::Context;
use cwm_core::{
    chess::MoveToken,
    data::{Game, Games, Spec, Split, spec::MAX_PLIES},
};
use parquet::{
    arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder},
    file::metadata::ParquetMetaData,
};
use sha2::{Digest, Sha256};

use super::{
    Row,
    manifest::{Manifest, Shard},
    schema::{Batch, schema_fault},
    writer::hex,
};
use crate::exit::Failure;

const BATCH_ROWS: usize = 4096;

/// A dataset on disk.
#[derive(Debug, Clone)]
pub struct Dataset {
    dir: PathBuf,
    manifest: Manifest,
}

impl Dataset {
    /// Opens the dataset in `dir`: reads its manifest and finds every shard in its recorded size.
    /// Contents are checked when they are read.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 3 that says what is missing, damaged or of another spec.
    pub fn open(dir: impl AsRef<Path>) -> anyhow::Result<Dataset> {
        let dir = dir.as_ref().to_path_buf();
        let manifest = Manifest::read(&dir)?;
        for shard in &manifest.shards {
            let path = dir.join(&shard.file);
            let size = match path.metadata() {
                Ok(meta) if meta.is_file() => meta.len(),
                Ok(_) => {
                    return Err(Failure::data(format!("`{}` is no file", path.display())).into());
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    return Err(Failure::data(format!("shard `{}` is missing", path.display()))
                        .hint("restore the file or prepare the dataset again")
                        .into());
                }
                Err(e) => return Err(e).with_context(|| format!("reading `{}`", path.display())),
            };
            if size != shard.bytes {
                return Err(Failure::data(format!(
                    "shard `{}` has {size} bytes, but the manifest says {}",
                    path.display(),
                    shard.bytes
                ))
                .hint("the file was changed or cut off: restore it or prepare the dataset again")
                .into());
            }
        }
        Ok(Dataset { dir, manifest })
    }

    /// The dataset's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What the integers mean.
    pub fn spec(&self) -> &Spec {
        &self.manifest.spec
    }

    /// Everything that `dataset.json` says.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Compares the checksum of every shard, calling `read` with the bytes read as it goes.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 3 for the first shard that differs.
    pub fn verify(&self, read: impl Fn(u64)) -> anyhow::Result<()> {
        self.manifest.shards.iter().try_for_each(|shard| self.verify_shard(shard, &read))
    }

    fn verify_shard(&self, shard: &Shard, read: &impl Fn(u64)) -> anyhow::Result<()> {
        let path = self.dir.join(&shard.file);
        let mut file =
            File::open(&path).with_context(|| format!("opening `{}`", path.display()))?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 1 << 18];
        loop {
            let n =
                file.read(&mut buffer).with_context(|| format!("reading `{}`", path.display()))?;
            if n == 0 {
                break;
            }
            hash.update(&buffer[..n]);
            read(n as u64);
        }
        let found = hex(&hash.finalize());
        if found != shard.sha256 {
            return Err(Failure::data(format!(
                "shard `{}` is damaged: its SHA-256 is {found}, the manifest says {}",
                path.display(),
                shard.sha256
            ))
            .hint("restore the file or prepare the dataset again")
            .into());
        }
        Ok(())
    }

    /// The rows of a split, in stored order; each shard's checksum is compared before its first row.
    pub fn rows(&self, split: Split) -> Rows<'_> {
        Rows { dataset: self, split, next_shard: 0, open: None, failed: false }
    }

    /// The games of a split, in stored order, as [`Dataset::rows`].
    ///
    /// # Errors
    /// If the dataset holds games that moves alone do not replay (`--keep-reference-quirks`).
    pub fn games(
        &self,
        split: Split,
    ) -> anyhow::Result<impl Iterator<Item = anyhow::Result<Game>> + '_> {
        self.require_standard()?;
        Ok(self.rows(split).map(|row| row.map(|row| row.game)))
    }

    /// All games of a split in memory: two bytes a ply and about fifty bytes a game.
    ///
    /// # Errors
    /// As [`Dataset::games`].
    pub fn load(&self, split: Split) -> anyhow::Result<Games> {
        Ok(self.load_with_shards(split)?.0)
    }

    /// As [`Dataset::load`], with the number of the split's games in each shard.
    ///
    /// # Errors
    /// As [`Dataset::games`].
    pub fn load_with_shards(&self, split: Split) -> anyhow::Result<(Games, Vec<usize>)> {
        self.require_standard()?;
        let mut games = Games::new();
        let mut shard_games = Vec::with_capacity(self.manifest.shards.len());
        let mut moves: Vec<MoveToken> = Vec::new();
        for shard in &self.manifest.shards {
            let before = games.len();
            let mut open = OpenShard::new(self, shard)?;
            while let Some(batch) = open.next_batch()? {
                for row in 0..batch.rows() {
                    let id = batch.id(row);
                    if split.contains(id) {
                        batch.moves_into(row, &mut moves).map_err(|e| open.fault(row, &e))?;
                        games.push(id, &moves, batch.result(row).map_err(|e| open.fault(row, &e))?);
                    }
                }
            }
            shard_games.push(games.len() - before);
        }
        Ok((games, shard_games))
    }

    fn require_standard(&self) -> anyhow::Result<()> {
        match self.manifest.counts.nonstandard_games {
            0 => Ok(()),
            n => Err(Failure::data(format!(
                "`{}` holds {n} games of variants or from other starts, which only `cwm data export` can replay",
                self.dir.display()
            ))
            .hint("prepare the dataset without --keep-reference-quirks")
            .into()),
        }
    }
}

/// Iterates over a dataset's rows; after an error it ends.
#[derive(Debug)]
pub struct Rows<'a> {
    dataset: &'a Dataset,
    split: Split,
    next_shard: usize,
    open: Option<(OpenShard, Batch, usize)>,
    failed: bool,
}

impl Rows<'_> {
    fn step(&mut self) -> anyhow::Result<Option<Row>> {
        loop {
            if let Some((shard, batch, at)) = &mut self.open {
                while *at < batch.rows() {
                    let row = *at;
                    *at += 1;
                    if self.split.contains(batch.id(row)) {
                        let found = batch.row(row).map_err(|e| shard.fault(row, &e))?;
                        let plain = self.dataset.manifest.counts.nonstandard_games == 0;
                        if plain && found.replay.is_some() {
                            return Err(shard
                                .fault(row, "is no plain game, but the manifest says that all are")
                                .into());
                        }
                        return Ok(Some(found));
                    }
                }
                match shard.next_batch()? {
                    Some(next) => (*batch, *at) = (next, 0),
                    None => self.open = None,
                }
                continue;
            }
            let Some(shard) = self.dataset.manifest.shards.get(self.next_shard) else {
                return Ok(None);
            };
            self.next_shard += 1;
            let mut shard = OpenShard::new(self.dataset, shard)?;
            if let Some(batch) = shard.next_batch()? {
                self.open = Some((shard, batch, 0));
            }
        }
    }
}

impl Iterator for Rows<'_> {
    type Item = anyhow::Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let item = self.step().transpose();
        self.failed = matches!(item, Some(Err(_)));
        item
    }
}

#[derive(Debug)]
struct OpenShard {
    path: PathBuf,
    reader: ParquetRecordBatchReader,
    rows_before: usize,
    rows_read: usize,
    rows_expected: u64,
}

impl OpenShard {
    fn new(dataset: &Dataset, shard: &Shard) -> anyhow::Result<OpenShard> {
        dataset.verify_shard(shard, &|_| {})?;
        let path = dataset.dir.join(&shard.file);
        let damaged = |what: String| Failure::data(format!("shard `{}` {what}", path.display()));
        let file = File::open(&path).with_context(|| format!("opening `{}`", path.display()))?;
        let file_bytes = file.metadata().map_or(0, |m| m.len());
        let builder = guarded(|| ParquetRecordBatchReaderBuilder::try_new(file))
            .map_err(|e| damaged(format!("is no readable Parquet file: {e}")))?;
        if !columns_lie_inside(builder.metadata(), file_bytes) {
            return Err(damaged("is no readable Parquet file: a column lies outside".into()).into());
        }
        if let Some(fault) = schema_fault(builder.schema()) {
            return Err(damaged(fault).hint("this is no shard of a cwm dataset").into());
        }
        let rows = builder.metadata().file_metadata().num_rows();
        if u64::try_from(rows) != Ok(shard.games) {
            return Err(damaged(format!(
                "holds {rows} rows, but the manifest says {}",
                shard.games
            ))
            .into());
        }
        let reader = guarded(|| builder.with_batch_size(BATCH_ROWS).build())
            .map_err(|e| damaged(format!("cannot be read: {e}")))?;
        Ok(OpenShard { path, reader, rows_before: 0, rows_read: 0, rows_expected: shard.games })
    }

    fn next_batch(&mut self) -> anyhow::Result<Option<Batch>> {
        self.rows_before = self.rows_read;
        match guarded(|| self.reader.next().transpose()).transpose() {
            None if self.rows_read as u64 != self.rows_expected => Err(self
                .damaged(&format!("ends after {} of {} rows", self.rows_read, self.rows_expected))
                .into()),
            None => Ok(None),
            Some(Err(e)) => Err(self.damaged(&format!("cannot be read: {e}")).into()),
            Some(Ok(batch)) => {
                self.rows_read += batch.num_rows();
                let batch = Batch::new(&batch).map_err(|e| self.damaged(&e))?;
                Ok(Some(batch))
            }
        }
    }

    fn damaged(&self, what: &str) -> Failure {
        Failure::data(format!("shard `{}` {what}", self.path.display()))
    }

    fn fault(&self, row: usize, what: &str) -> Failure {
        self.damaged(&format!("row {} {what}", self.rows_before + row))
    }
}

/// The Parquet library asserts some things of metadata that a damaged file need not keep; an assertion that fails is
/// the file's fault, not ours, and becomes an error.
fn guarded<T, E: std::fmt::Display>(read: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(|e| e.to_string()),
        Err(_) => Err("its structure contradicts itself".to_string()),
    }
}

/// Whether every column's bytes lie in the file: the assertion that random damage meets most often, tested beforehand
/// so that no panic message appears.
fn columns_lie_inside(metadata: &ParquetMetaData, file_bytes: u64) -> bool {
    metadata.row_groups().iter().flat_map(|group| group.columns()).all(|column| {
        let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
        let end = u64::try_from(start)
            .ok()
            .zip(u64::try_from(column.compressed_size()).ok())
            .and_then(|(start, bytes)| start.checked_add(bytes));
        end.is_some_and(|end| end <= file_bytes)
    })
}

const _: () = assert!(MAX_PLIES <= u16::MAX as usize);
