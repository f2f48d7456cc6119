//! `cwm data`: make, convert and describe datasets.

mod prepare;

use clap::Subcommand;

use crate::{exit::Exit, progress::Progress};

/// Arguments of `cwm data`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Turn games into a dataset
    Prepare(prepare::Args),
}

/// Runs `cwm data`.
///
/// # Errors
/// As the subcommands.
pub fn run(args: Args, progress: &Progress) -> anyhow::Result<Exit> {
    match args.command {
        Command::Prepare(args) => prepare::run(args, progress),
    }
}
