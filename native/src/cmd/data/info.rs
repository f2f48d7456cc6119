//! `cwm data info`.

use std::path::PathBuf;

use serde::Serialize;

use crate::{
    data::{
        Dataset, Manifest,
        info::{Survey, render, survey},
    },
    exit::Exit,
    output::{self, Format},
    progress::Progress,
};

/// Arguments of `cwm data info`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Directory of the dataset
    #[arg(value_name = "DIR")]
    dataset: PathBuf,

    /// Also replay every game and test its moves for legality
    #[arg(long)]
    verify: bool,

    /// How to say it
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
}

const EXAMPLES: &str = "\
Checksums are compared in any case.

Examples:
  cwm data info data/lichess-2025-03
  cwm data info data/random-uniform --verify --format json";

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    manifest: &'a Manifest,
    survey: &'a Survey,
}

/// Runs `cwm data info`.
///
/// # Errors
/// If the dataset is damaged.
pub fn run(args: Args, progress: &Progress) -> anyhow::Result<Exit> {
    let dataset = Dataset::open(&args.dataset)?;
    let survey = survey(&dataset, args.verify, progress)?;
    match args.format {
        Format::Text => output::print(render(&dataset, &survey))?,
        Format::Json => output::print_json(&Document {
            version: 1,
            manifest: dataset.manifest(),
            survey: &survey,
        })?,
    }
    Ok(Exit::Done)
}
