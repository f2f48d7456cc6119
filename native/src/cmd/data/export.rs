//! `cwm data export`.

use std::{fs::OpenOptions, io::BufWriter, path::PathBuf};

use anyhow::Context;
use cwm_core::data::Split;

use super::SplitArg;
use crate::{
    atomic,
    data::{Dataset, export},
    exit::{Exit, Failure},
    progress::Progress,
};

/// Arguments of `cwm data export`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Directory of the dataset
    #[arg(value_name = "DIR")]
    dataset: PathBuf,

    /// What to write
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,

    /// File to write, or `-` for stdout
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,

    /// Which games
    #[arg(long, value_enum, value_name = "SPLIT", default_value_t)]
    split: SplitArg,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Format {
    /// The reference's JSON lines: moves and states, about 18,600 bytes a human game
    #[default]
    Jsonl,
}

const EXAMPLES: &str = "\
Examples:
  cwm data export data/lichess-2025-03 --out lichess-2025-03.jsonl
  cwm data export data/random-uniform --split validation --out - | head -n 1";

/// Runs `cwm data export`.
///
/// # Errors
/// If the dataset is damaged or the file cannot be written; an existing file is then as it was.
pub fn run(args: Args, progress: &Progress) -> anyhow::Result<Exit> {
    let dataset = Dataset::open(&args.dataset)?;
    let split: Split = args.split.into();
    let Format::Jsonl = args.format;
    if args.out.as_os_str() == "-" {
        export::jsonl(&dataset, split, &mut export::stdout(), progress)?;
        return Ok(Exit::Done);
    }
    if args.out.exists() && !args.out.is_file() {
        // A pipe or a device is written to; renaming a file over it would replace it.
        let context = || format!("cannot write `{}`", args.out.display());
        let file = OpenOptions::new().write(true).open(&args.out).with_context(context)?;
        let mut out = BufWriter::with_capacity(1 << 18, file);
        export::jsonl(&dataset, split, &mut out, progress).with_context(context)?;
        return Ok(Exit::Done);
    }
    if args.out.exists() && !args.force {
        return Err(Failure::usage(format!("`{}` exists", args.out.display()))
            .hint("give --force to replace it")
            .into());
    }
    let mut games = 0;
    let mut failed = None;
    let written = atomic::write_with(&args.out, |file| {
        let mut out = BufWriter::with_capacity(1 << 18, file);
        match export::jsonl(&dataset, split, &mut out, progress) {
            Ok(n) => games = n,
            Err(e) => failed = Some(e),
        }
        // The cause goes its own way, this one only keeps the file from appearing.
        if failed.is_some() { Err(std::io::Error::other("export failed")) } else { Ok(()) }
    });
    if let Some(cause) = failed {
        return Err(cause.context(format!("cannot write `{}`", args.out.display())));
    }
    written?;
    progress.note(&format!("wrote {games} games to `{}`", args.out.display()));
    Ok(Exit::Done)
}
