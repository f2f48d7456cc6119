//! `cwm data prepare`: game texts in, a dataset out.

use std::{
    collections::{BTreeMap, HashSet},
    io::Read,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::Context;
use cwm_core::{
    chess::EnPassant,
    data::{IdKey, SkipCounts, SkipReason, Spec},
};

use super::{
    DatasetWriter, Manifest, Target,
    input::{
        Format, Parsed,
        blocks::{AtLines, Block, Blocks},
        source::Source,
        uci_lines,
    },
    manifest::Origin,
    pipeline::{self, Shape},
};
use crate::progress::Progress;

/// Which games are kept, and how.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Games below twice as many plies are skipped.
    pub min_fullmoves: u32,
    /// When the en passant label is set.
    pub en_passant: EnPassant,
    /// Derives the example ids.
    pub id_key: IdKey,
}

impl Rules {
    /// The fewest plies that a game needs.
    pub fn min_plies(&self) -> usize {
        2 * self.min_fullmoves as usize
    }
}

/// One run of `cwm data prepare`.
#[derive(Debug, Clone)]
pub struct Job {
    /// Files; `-` is stdin.
    pub inputs: Vec<PathBuf>,
    /// Which games are kept, and how.
    pub rules: Rules,
    /// Games in a shard.
    pub shard_games: u64,
    /// Parsing threads; `None` for as many as cores.
    pub threads: Option<usize>,
}

/// Runs the job into `target`.
///
/// # Errors
/// If an input cannot be read or the dataset cannot be written; nothing is left at the target then.
pub fn prepare(job: &Job, target: Target, progress: &Progress) -> anyhow::Result<Manifest> {
    let spec = Spec::new(job.rules.en_passant);
    let mut writer = DatasetWriter::new(target, spec, false, job.shard_games)?;
    let mut skipped = SkipCounts::default();
    let mut seen = HashSet::new();
    let total_bytes = total_bytes(&job.inputs);
    let task = progress.task("preparing", total_bytes, "bytes");
    let bytes_read = Arc::new(AtomicU64::new(0));
    let mut bytes_shown = 0;

    for input in &job.inputs {
        let source = Source::open(input, bytes_read.clone())?;
        let name = source.name.clone();
        let format = Format::UciLines;
        let blocks = blocks_of(source, Vec::new(), format);
        let rules = job.rules.clone();
        let work = move |block: Block| match block {
            Block::Text(text) => uci_lines::parse(&text, &rules),
            Block::TooLarge => {
                let mut parsed = Parsed::default();
                parsed.skipped.add(SkipReason::TooLarge);
                parsed
            }
        };
        let mut sink = |parsed: Parsed| -> anyhow::Result<()> {
            skipped.merge(&parsed.skipped);
            for (index, (id, moves)) in parsed.games.iter().enumerate() {
                if seen.insert(fingerprint(id)) {
                    writer.push(id, moves, parsed.games.result(index), None)?;
                } else {
                    skipped.add(SkipReason::Duplicate);
                }
            }
            let read = bytes_read.load(Ordering::Relaxed);
            task.advance(read - bytes_shown);
            bytes_shown = read;
            let games = writer.counts().games;
            task.message(format!("{games} games kept, {} skipped", skipped.total()));
            Ok(())
        };
        pipeline::run(Shape::new(job.threads), blocks, work, &mut sink)
            .with_context(|| format!("preparing `{name}`"))?;
    }
    let settings = BTreeMap::from([("min-fullmoves".to_string(), job.rules.min_fullmoves.into())]);
    let inputs = job
        .inputs
        .iter()
        .map(|p| p.file_name().unwrap_or(p.as_os_str()).to_string_lossy().into_owned());
    let origin = Origin {
        command: "prepare".into(),
        inputs: inputs.collect(),
        settings,
        id_key: job.rules.id_key.kind(),
    };
    writer.finish(origin, skipped)
}

fn blocks_of(
    source: Source,
    head: Vec<u8>,
    _format: Format,
) -> impl Iterator<Item = anyhow::Result<Block>> + Send + 'static {
    let name = source.name;
    let text: Box<dyn Read + Send> = source.text;
    Blocks::new(text, AtLines, head)
        .map(move |block| block.with_context(|| format!("reading `{name}`")))
}

fn total_bytes(inputs: &[PathBuf]) -> u64 {
    inputs.iter().map(|path| path.metadata().map_or(0, |meta| meta.len())).sum()
}

/// Eight bytes that stand for an id: ten million ids then collide by chance once in 370,000 runs.
fn fingerprint(id: &str) -> u64 {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(id.as_bytes());
    let mut head = [0; 8];
    head.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(head)
}
