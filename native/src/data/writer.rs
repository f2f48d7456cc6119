//! Writes a dataset: shards into a hidden sibling directory, which takes the target's name when it is complete.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use cwm_core::{
    chess::MoveToken,
    data::{GameResult, SkipCounts, Spec, split},
};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::{EnabledStatistics, WriterProperties},
    schema::types::ColumnPath,
};
use sha2::{Digest, Sha256};

use super::{
    Replay,
    manifest::{self, Counts, Manifest, Origin, Shard},
    schema::{Columns, schema},
};
use crate::exit::Failure;

/// Games in a shard unless told otherwise.
pub const SHARD_GAMES: u64 = 1_000_000;
const BATCH_ROWS: usize = 4096;
const ROW_GROUP_ROWS: usize = 65_536;
/// Measured on human games: moves as dictionary indices take 107 bytes a game at level 6, 111 at 1 and 107 at 15, against
/// 131 as plain integers at level 9, which also take twice as long.
const ZSTD_LEVEL: i32 = 6;

/// Where a dataset goes, checked before any work is done.
#[derive(Debug, Clone)]
pub struct Target {
    dir: PathBuf,
    force: bool,
}

impl Target {
    /// The directory `dir`, which must be absent or empty unless `force` allows to replace a dataset.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2 if something is in the way.
    pub fn new(dir: &Path, force: bool) -> anyhow::Result<Target> {
        let target = Target { dir: dir.to_path_buf(), force };
        target.check()?;
        Ok(target)
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn check(&self) -> anyhow::Result<()> {
        let shown = self.dir.display();
        if self.dir.file_name().is_none() {
            return Err(Failure::usage(format!("`{shown}` cannot be a dataset's directory")).into());
        }
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => {
                return Err(Failure::usage(format!("`{shown}` exists and is no directory")).into());
            }
            Err(e) => return Err(e).with_context(|| format!("looking into `{shown}`")),
        };
        if entries.count() == 0 {
            return Ok(());
        }
        let is_dataset = self.dir.join(manifest::FILE).is_file();
        match (self.force, is_dataset) {
            (true, true) => Ok(()),
            (true, false) => Err(Failure::usage(format!(
                "`{shown}` holds files that are no dataset; --force replaces only datasets"
            ))
            .into()),
            (false, _) => Err(Failure::usage(format!("`{shown}` exists and is not empty"))
                .hint(if is_dataset {
                    "give --force to replace it"
                } else {
                    "choose another --out"
                })
                .into()),
        }
    }
}

/// Writes games into shards. Nothing is visible at the target before [`DatasetWriter::finish`].
#[derive(Debug)]
pub struct DatasetWriter {
    target: Target,
    scratch: tempfile::TempDir,
    spec: Spec,
    quirks: bool,
    shard_games: u64,
    columns: Columns,
    open: Option<OpenShard>,
    shards: Vec<Shard>,
    counts: Counts,
}

#[derive(Debug)]
struct OpenShard {
    writer: ArrowWriter<HashingFile>,
    file: String,
    games: u64,
    plies: u64,
}

impl DatasetWriter {
    /// A writer into `target`; `quirks` adds the columns that [`Replay`] needs.
    ///
    /// # Errors
    /// If the scratch directory cannot be made beside the target.
    pub fn new(
        target: Target,
        spec: Spec,
        quirks: bool,
        shard_games: u64,
    ) -> anyhow::Result<DatasetWriter> {
        let parent = match target.dir.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        fs::create_dir_all(parent).with_context(|| format!("creating `{}`", parent.display()))?;
        let name = target.dir.file_name().unwrap_or_default().to_string_lossy();
        let scratch = tempfile::Builder::new()
            .prefix(&format!(".{name}.tmp-"))
            .tempdir_in(parent)
            .with_context(|| format!("creating a directory in `{}`", parent.display()))?;
        Ok(DatasetWriter {
            target,
            scratch,
            spec,
            quirks,
            shard_games: shard_games.max(1),
            columns: Columns::new(quirks),
            open: None,
            shards: Vec::new(),
            counts: Counts::default(),
        })
    }

    /// Totals so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Adds a game (`moves` without START, at most [`cwm_core::data::spec::MAX_PLIES`]).
    ///
    /// # Errors
    /// If the shard cannot be written.
    pub fn push(
        &mut self,
        id: &str,
        moves: &[MoveToken],
        result: GameResult,
        replay: Option<&Replay>,
    ) -> anyhow::Result<()> {
        self.columns.push(id, moves, result, replay);
        let plies = moves.len() as u64;
        self.counts.games += 1;
        self.counts.plies += plies;
        if split::is_validation(id) {
            self.counts.validation_games += 1;
        } else {
            self.counts.train_games += 1;
        }
        self.counts.nonstandard_games += u64::from(replay.is_some());
        *self.counts.results.entry(result.as_str().to_string()).or_default() += 1;

        let shard = match &mut self.open {
            Some(shard) => shard,
            None => self.open.insert(self.scratch_shard()?),
        };
        shard.games += 1;
        shard.plies += plies;
        let full = shard.games == self.shard_games;
        if full || self.columns.rows() == BATCH_ROWS {
            self.flush()?;
        }
        if full {
            self.close_shard()?;
        }
        Ok(())
    }

    fn scratch_shard(&self) -> anyhow::Result<OpenShard> {
        let file = format!("shard-{:05}.parquet", self.shards.len());
        let path = self.scratch.path().join(&file);
        let out =
            HashingFile::create(&path).with_context(|| format!("creating `{}`", path.display()))?;
        let writer = ArrowWriter::try_new(out, schema(self.quirks), Some(properties()?))?;
        Ok(OpenShard { writer, file, games: 0, plies: 0 })
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        if let Some(shard) = &mut self.open
            && self.columns.rows() > 0
        {
            shard.writer.write(&self.columns.take()?).map_err(|e| write_error(e, &self.target))?;
        }
        Ok(())
    }

    fn close_shard(&mut self) -> anyhow::Result<()> {
        let Some(mut shard) = self.open.take() else { return Ok(()) };
        shard.writer.finish().map_err(|e| write_error(e, &self.target))?;
        let (bytes, sha256) = shard
            .writer
            .inner_mut()
            .close()
            .with_context(|| format!("writing a shard of `{}`", self.target.dir.display()))?;
        self.shards.push(Shard {
            file: shard.file,
            games: shard.games,
            plies: shard.plies,
            bytes,
            sha256,
        });
        Ok(())
    }

    /// Completes the dataset and gives it its name.
    ///
    /// # Errors
    /// If something cannot be written; the target is then as it was.
    pub fn finish(mut self, origin: Origin, skipped: SkipCounts) -> anyhow::Result<Manifest> {
        self.flush()?;
        self.close_shard()?;
        let manifest = Manifest {
            format: manifest::FORMAT.to_string(),
            version: manifest::VERSION,
            tool: concat!("cwm ", env!("CARGO_PKG_VERSION")).to_string(),
            spec: self.spec,
            origin,
            counts: self.counts,
            skipped,
            shards: self.shards,
        };
        let mut text = serde_json::to_string_pretty(&manifest)?;
        text.push('\n');
        let shown = self.target.dir.display().to_string();
        let write = || -> io::Result<()> {
            let mut file = File::create(self.scratch.path().join(manifest::FILE))?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            File::open(self.scratch.path())?.sync_all()
        };
        write().with_context(|| format!("writing the manifest of `{shown}`"))?;
        // Something may have appeared at the target meanwhile.
        self.target.check()?;
        install(self.scratch, &self.target.dir)
            .with_context(|| format!("moving the dataset to `{shown}`"))?;
        Ok(manifest)
    }
}

/// Renames a finished scratch directory to `dir`, replacing what is there.
fn install(scratch: tempfile::TempDir, dir: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        // `tempfile` makes private directories; a dataset is as readable as any other output.
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755))?;
    }
    let old = scratch.path().with_extension("old");
    let replaces = dir.is_dir() && fs::read_dir(dir)?.next().is_some();
    if replaces {
        fs::rename(dir, &old)?;
    } else if dir.is_dir() {
        fs::remove_dir(dir)?;
    }
    if let Err(e) = fs::rename(scratch.path(), dir) {
        if replaces {
            fs::rename(&old, dir)?;
        }
        return Err(e);
    }
    let _gone = scratch.keep();
    if replaces {
        fs::remove_dir_all(&old)?;
    }
    let parent = match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(parent)?.sync_all()
}

/// Keeps an I/O error recognisable (full disk, closed pipe) behind Parquet's own error type.
fn write_error(error: parquet::errors::ParquetError, target: &Target) -> anyhow::Error {
    anyhow::Error::new(error).context(format!("writing a shard of `{}`", target.dir.display()))
}

fn properties() -> anyhow::Result<WriterProperties> {
    let id = ColumnPath::from("id");
    Ok(WriterProperties::builder()
        .set_created_by(concat!("cwm version ", env!("CARGO_PKG_VERSION")).to_string())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // Ids never repeat; moves and results do, and keep Parquet's dictionaries.
        .set_column_dictionary_enabled(id, false)
        .build())
}

/// A file that hashes what is written to it.
#[derive(Debug)]
struct HashingFile {
    out: BufWriter<File>,
    hash: Sha256,
    bytes: u64,
}

impl HashingFile {
    fn create(path: &Path) -> io::Result<Self> {
        let out = BufWriter::with_capacity(1 << 18, File::create(path)?);
        Ok(HashingFile { out, hash: Sha256::new(), bytes: 0 })
    }

    fn close(&mut self) -> io::Result<(u64, String)> {
        self.out.flush()?;
        self.out.get_ref().sync_all()?;
        Ok((self.bytes, hex(&std::mem::take(&mut self.hash).finalize())))
    }
}

impl Write for HashingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
