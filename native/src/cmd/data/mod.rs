//! `cwm data`: make, convert and describe datasets.

mod export;
mod info;
mod overlap;
mod prepare;
mod random;

use std::path::Path;

use clap::Subcommand;
use cwm_core::{chess::EnPassant, data::Split};

use crate::{data::Manifest, exit::Exit, progress::Progress};

/// Arguments of `cwm data`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Turn PGN or other lists of games into a dataset
    Prepare(prepare::Args),
    /// Play random legal games into a dataset: uniformly, or by a policy that seeks out a rule
    Random(random::Args),
    /// Write a dataset as the reference's JSON lines
    Export(export::Args),
    /// Say what a dataset holds and check it
    Info(info::Args),
    /// Tell whether test sets share games with a training set
    Overlap(overlap::Args),
}

/// Runs `cwm data`.
///
/// # Errors
/// As the subcommands.
pub fn run(args: Args, progress: &Progress) -> anyhow::Result<Exit> {
    match args.command {
        Command::Prepare(args) => prepare::run(args, progress),
        Command::Random(args) => random::run(args, progress),
        Command::Export(args) => export::run(args, progress),
        Command::Info(args) => info::run(args, progress),
        Command::Overlap(args) => overlap::run(args, progress),
    }
}

/// `--en-passant`.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum EnPassantArg {
    #[default]
    Always,
    Legal,
}

impl From<EnPassantArg> for EnPassant {
    fn from(arg: EnPassantArg) -> EnPassant {
        match arg {
            EnPassantArg::Always => EnPassant::Always,
            EnPassantArg::Legal => EnPassant::Legal,
        }
    }
}

/// `--split`.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum SplitArg {
    #[default]
    All,
    Train,
    Validation,
}

impl From<SplitArg> for Split {
    fn from(arg: SplitArg) -> Split {
        match arg {
            SplitArg::All => Split::All,
            SplitArg::Train => Split::Train,
            SplitArg::Validation => Split::Validation,
        }
    }
}

/// What was kept and skipped, for a reader.
fn summary(manifest: &Manifest, dir: &Path) -> String {
    let counts = &manifest.counts;
    let bytes: u64 = manifest.shards.iter().map(|shard| shard.bytes).sum();
    let shards = manifest.shards.len();
    let mut text = format!(
        "kept {} games of {} plies in `{}` ({shards} shard{}, {:.0} bytes a game)\n",
        counts.games,
        counts.plies,
        dir.display(),
        if shards == 1 { "" } else { "s" },
        bytes as f64 / counts.games.max(1) as f64,
    );
    text += &format!("train {}, validation {}\n", counts.train_games, counts.validation_games);
    if manifest.skipped.total() > 0 {
        text += &format!("skipped {} games\n", manifest.skipped.total());
    }
    for (reason, games) in manifest.skipped.iter() {
        text += &format!("  {games:>9}  {reason}\n");
    }
    text
}
