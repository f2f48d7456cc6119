//! `dataset.json`: what a dataset holds, how it was made, and the checksums of its shards.

use std::{collections::BTreeMap, path::Path};

use anyhow::Context;
use cwm_core::data::{SkipCounts, Spec, ids::KeyKind};

use sha2::{Digest, Sha256};

use super::writer::hex;
use crate::exit::Failure;

/// The manifest's file name.
pub const FILE: &str = "dataset.json";
/// The value of `format`.
pub const FORMAT: &str = "cwm-dataset";
/// The version of the format that this code writes and reads.
pub const VERSION: u32 = 1;
/// No manifest is larger; a million shards would fit.
const MAX_BYTES: u64 = 256 << 20;

/// The contents of `dataset.json`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// The program and version that wrote the dataset.
    pub tool: String,
    /// What the integers mean.
    pub spec: Spec,
    /// How the games were come by.
    pub origin: Origin,
    /// Totals over all shards.
    pub counts: Counts,
    /// Games read but left out, by reason.
    pub skipped: SkipCounts,
    /// The shards, in order.
    pub shards: Vec<Shard>,
}

/// How the games of a dataset were come by.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Origin {
    /// The command, `prepare` or `random`.
    pub command: String,
    /// Its inputs: file names without directories.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// Its settings, by the names of the flags.
    #[serde(default)]
    pub settings: BTreeMap<String, serde_json::Value>,
    /// The key that ids were derived with.
    pub id_key: KeyKind,
}

/// Totals of a dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// Games stored.
    pub games: u64,
    /// Their plies.
    pub plies: u64,
    /// Games of the training split.
    pub train_games: u64,
    /// Games of the validation split.
    pub validation_games: u64,
    /// Games that need more than the moves to be replayed; only under `--keep-reference-quirks`.
    #[serde(default)]
    pub nonstandard_games: u64,
    /// Games by result.
    pub results: BTreeMap<String, u64>,
}

/// One shard file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Shard {
    /// File name inside the dataset's directory.
    pub file: String,
    /// Games in it.
    pub games: u64,
    /// Their plies.
    pub plies: u64,
    /// Size of the file.
    pub bytes: u64,
    /// SHA-256 of the file, hexadecimal.
    pub sha256: String,
}

impl Manifest {
    /// SHA-256 over the shards' checksums: equal for equal games in equal order, hexadecimal.
    pub fn data_sha256(&self) -> String {
        let mut hash = Sha256::new();
        for shard in &self.shards {
            hash.update(shard.sha256.as_bytes());
        }
        hex(&hash.finalize())
    }

    /// Reads and checks the manifest of the dataset in `dir`.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 3 if there is none, or it is damaged, of another version or of another spec.
    pub fn read(dir: &Path) -> anyhow::Result<Manifest> {
        let path = dir.join(FILE);
        if !dir.is_dir() {
            let what =
                if dir.exists() { "is a file, not a dataset directory" } else { "does not exist" };
            return Err(Failure::data(format!("`{}` {what}", dir.display()))
                .hint(
                    "a dataset is the directory that `cwm data prepare` or `cwm data random` wrote",
                )
                .into());
        }
        if !path.is_file() {
            return Err(Failure::data(format!(
                "`{}` is no dataset: it has no {FILE}",
                dir.display()
            ))
            .hint("make one with `cwm data prepare INPUT... --out DIR`")
            .into());
        }
        let size = path.metadata().with_context(|| format!("reading `{}`", path.display()))?.len();
        if size > MAX_BYTES {
            return Err(Failure::data(format!(
                "`{}` is absurdly large ({size} bytes)",
                path.display()
            ))
            .into());
        }
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("reading `{}`", path.display()))?;
        let manifest = Self::parse(&text).map_err(|f| Failure {
            message: format!("`{}`: {}", path.display(), f.message),
            ..f
        })?;
        Ok(manifest)
    }

    fn parse(text: &str) -> Result<Manifest, Failure> {
        // The head first: another version may have other fields.
        #[derive(serde::Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let head: Head = serde_json::from_str(text)
            .map_err(|e| Failure::data(format!("not the manifest of a dataset ({e})")))?;
        if head.format != FORMAT {
            return Err(Failure::data(format!("format is `{}`, expected `{FORMAT}`", head.format)));
        }
        if head.version != VERSION {
            return Err(Failure::data(format!(
                "format version {} cannot be read by this version, which reads {VERSION}",
                head.version
            ))
            .hint("prepare the dataset again with this version"));
        }
        let manifest: Manifest = serde_json::from_str(text)
            .map_err(|e| Failure::data(format!("damaged manifest ({e})")))?;
        manifest.spec.check().map_err(|e| {
            Failure::data(format!("dataset of another spec: {e}"))
                .hint("prepare the dataset again with this version")
        })?;
        manifest.check()?;
        Ok(manifest)
    }

    /// Whether the numbers agree with one another and the shard names stay inside the directory.
    fn check(&self) -> Result<(), Failure> {
        if self.shards.is_empty() {
            return Err(Failure::data("the dataset has no shards"));
        }
        let mut games = 0_u64;
        let mut plies = 0_u64;
        for shard in &self.shards {
            let plain = !shard.file.is_empty()
                && shard.file != ".."
                && !shard.file.contains(['/', '\\', '\0']);
            if !plain {
                return Err(Failure::data(format!(
                    "shard name {:?} is no plain file name",
                    shard.file
                )));
            }
            games = games.saturating_add(shard.games);
            plies = plies.saturating_add(shard.plies);
        }
        if games != self.counts.games || plies != self.counts.plies {
            return Err(Failure::data(format!(
                "the shards hold {games} games of {plies} plies, but the totals say {} and {}",
                self.counts.games, self.counts.plies
            )));
        }
        Ok(())
    }
}
