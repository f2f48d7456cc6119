//! `cwm data prepare`: game texts in, a dataset out.

use std::{
    collections::{BTreeMap, HashSet},
    io::Read,
    ops::ControlFlow,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use anyhow::Context;
use cwm_core::{
    chess::EnPassant,
    data::{
        IdKey, SkipCounts, SkipReason, Spec,
        blocks::{AtLines, Block, Blocks},
        ids::fingerprint,
        pgn::{self, AtGames, Keep},
    },
};

use super::{
    DatasetWriter, Manifest, Target,
    input::{
        Format, Parsed,
        files::{expand, is_stdin},
        jsonl,
        quirks::{self, AtQuirkGames},
        sniff::{HEAD_BYTES, sniff},
        source::Source,
        uci_lines,
    },
    interrupt::Interrupt,
    manifest::Origin,
    pipeline::{self, Shape},
};
use crate::{
    exit::Failure,
    progress::{Progress, Task},
};

/// Which games are kept, and how.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Games below twice as many plies are skipped.
    pub min_fullmoves: u32,
    /// When the en passant label is set.
    pub en_passant: EnPassant,
    /// Derives the example ids.
    pub id_key: IdKey,
    /// Whether PGN is read as the reference reads it.
    pub quirks: bool,
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
    /// Files and directories; `-` is stdin.
    pub inputs: Vec<PathBuf>,
    /// Which games are kept, and how.
    pub rules: Rules,
    /// Stop once this many games are kept; `None` reads everything.
    pub max_games: Option<u64>,
    /// Games in a shard.
    pub shard_games: u64,
    /// Parsing threads; `None` for as many as cores.
    pub threads: Option<usize>,
}

/// Runs the job into `target`.
///
/// # Errors
/// If an input cannot be read, holds no game that can be kept, or the dataset cannot be written; nothing is left at the
/// target then.
pub fn prepare(job: &Job, target: Target, progress: &Progress) -> anyhow::Result<Manifest> {
    let interrupt = Interrupt::listen()?;
    let files = expand(&job.inputs)?;
    let quirks = job.rules.quirks;
    let spec = Spec::new(job.rules.en_passant);
    let mut intake = Intake {
        writer: DatasetWriter::new(target, spec, quirks, job.shard_games)?,
        skipped: SkipCounts::default(),
        seen: (!quirks).then(HashSet::new),
        max_games: job.max_games.unwrap_or(u64::MAX),
        meter: Meter::new(&files, progress),
    };
    for file in &files {
        let source = Source::open(file, intake.meter.bytes_read.clone())?;
        let name = source.name.clone();
        let Some((format, blocks)) = blocks_of(source, quirks)? else {
            progress.note(&format!("`{name}` is empty"));
            continue;
        };
        let rules = job.rules.clone();
        let work = move |block: Block| parse_block(&block, format, &rules);
        pipeline::run(Shape::new(job.threads), blocks, work, &interrupt, |parsed| {
            intake.take(parsed)
        })
        .with_context(|| format!("preparing `{name}`"))?;
        if intake.is_full() {
            break;
        }
    }
    drop(intake.meter);
    let names =
        || job.inputs.iter().map(|p| format!("`{}`", p.display())).collect::<Vec<_>>().join(", ");
    if intake.writer.counts().games == 0 {
        return Err(nothing_kept(&names(), &intake.skipped).into());
    }
    intake.writer.finish(origin(job, &files), intake.skipped)
}

fn nothing_kept(names: &str, skipped: &SkipCounts) -> Failure {
    if skipped.total() == 0 {
        return Failure::data(format!("no games found in {names}"));
    }
    let reasons: Vec<String> =
        skipped.iter().map(|(reason, games)| format!("{games} {reason}")).collect();
    Failure::data(format!("none of the {} games in {names} was kept", skipped.total()))
        .hint(format!("reasons: {}", reasons.join("; ")))
}

fn origin(job: &Job, files: &[PathBuf]) -> Origin {
    let inputs = files.iter().map(|path| {
        let name = path.file_name().unwrap_or(path.as_os_str());
        if is_stdin(path) { "stdin".into() } else { name.to_string_lossy().into_owned() }
    });
    let mut settings = BTreeMap::from([
        ("min-fullmoves".to_string(), job.rules.min_fullmoves.into()),
        ("keep-reference-quirks".to_string(), job.rules.quirks.into()),
    ]);
    if let Some(games) = job.max_games {
        settings.insert("max-games".to_string(), games.into());
    }
    Origin {
        command: "prepare".into(),
        inputs: inputs.collect(),
        settings,
        id_key: job.rules.id_key.kind(),
    }
}

/// Blocks of whole games.
pub type BoxedBlocks = Box<dyn Iterator<Item = anyhow::Result<Block>> + Send>;

/// Recognises a source and cuts it into blocks; `None` if it is empty.
///
/// # Errors
/// If its beginning cannot be read, or is of no known format; later errors come from the iterator.
pub fn blocks_of(source: Source, quirks: bool) -> anyhow::Result<Option<(Format, BoxedBlocks)>> {
    let Source { name, mut text, .. } = source;
    let mut head = Vec::new();
    let reading = |name: &str| format!("reading `{name}`");
    Read::by_ref(&mut text)
        .take(HEAD_BYTES as u64)
        .read_to_end(&mut head)
        .with_context(|| reading(&name))?;
    let Some(format) = sniff(&name, &head)? else { return Ok(None) };
    let blocks: Box<dyn Iterator<Item = std::io::Result<Block>> + Send> = match format {
        Format::Pgn if quirks => Box::new(Blocks::new(text, AtQuirkGames, head)),
        Format::Pgn => Box::new(Blocks::new(text, AtGames, head)),
        Format::UciLines | Format::Jsonl => Box::new(Blocks::new(text, AtLines, head)),
    };
    let blocks = blocks.map(move |block| block.with_context(|| reading(&name)));
    Ok(Some((format, Box::new(blocks))))
}

/// Reads the games of one block.
pub fn parse_block(block: &Block, format: Format, rules: &Rules) -> Parsed {
    match (block, format) {
        (Block::TooLarge, _) => {
            let mut parsed = Parsed::default();
            parsed.skipped.add(SkipReason::TooLarge);
            parsed
        }
        (Block::Text(text), Format::Pgn) if rules.quirks => quirks::parse(text, rules),
        (Block::Text(text), Format::Pgn) => {
            let keep = Keep { min_plies: rules.min_plies(), id_key: &rules.id_key };
            let (games, skipped) = pgn::parse(text, &keep);
            Parsed { games, skipped, ..Parsed::default() }
        }
        (Block::Text(text), Format::UciLines) => uci_lines::parse(text, rules),
        (Block::Text(text), Format::Jsonl) => jsonl::parse(text, rules),
    }
}

/// Takes parsed games in order into the dataset.
struct Intake {
    writer: DatasetWriter,
    skipped: SkipCounts,
    /// Ids so far; the reference does not care.
    seen: Option<HashSet<u64>>,
    max_games: u64,
    meter: Meter,
}

impl Intake {
    /// Takes one block's games and stops the reading at the limit. Skipped games are counted to the end of the block in
    /// which the last game was kept.
    fn take(&mut self, parsed: Parsed) -> anyhow::Result<ControlFlow<()>> {
        self.skipped.merge(&parsed.skipped);
        let mut replays = parsed.replays.iter().peekable();
        for (index, (id, moves)) in parsed.games.iter().enumerate() {
            if self.is_full() {
                break;
            }
            let replay = replays.next_if(|(at, _)| *at == index).map(|(_, replay)| replay);
            if self.seen.as_mut().is_none_or(|seen| seen.insert(fingerprint(id))) {
                self.writer.push(id, moves, parsed.games.result(index), replay)?;
            } else {
                self.skipped.add(SkipReason::Duplicate);
            }
        }
        if let Some(why) = parsed.abort {
            return Err(Failure::data(why)
                .hint("leave --keep-reference-quirks away to keep such games")
                .into());
        }
        self.meter.show(self.writer.counts().games, self.skipped.total());
        Ok(if self.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn is_full(&self) -> bool {
        self.writer.counts().games >= self.max_games
    }
}

/// Shows progress by bytes read, or by games where the size of the input is unknown.
struct Meter {
    task: Task,
    bytes_read: Arc<AtomicU64>,
    by_bytes: bool,
    shown: u64,
    started: Instant,
}

impl Meter {
    fn new(files: &[PathBuf], progress: &Progress) -> Meter {
        let by_bytes = files.iter().all(|path| path.is_file());
        let bytes = files.iter().map(|path| path.metadata().map_or(0, |meta| meta.len())).sum();
        let task = if by_bytes {
            progress.task("preparing", bytes, "bytes")
        } else {
            progress.task("preparing", 0, "games")
        };
        Meter { task, bytes_read: Arc::default(), by_bytes, shown: 0, started: Instant::now() }
    }

    fn show(&mut self, kept: u64, skipped: u64) {
        let games = kept + skipped;
        let done = if self.by_bytes { self.bytes_read.load(Ordering::Relaxed) } else { games };
        self.task.advance(done.saturating_sub(self.shown));
        self.shown = done;
        let rate = games as f64 / self.started.elapsed().as_secs_f64().max(1e-3);
        self.task.message(format!("{rate:.0} games/s, {kept} kept, {skipped} skipped"));
    }
}
