//! `cwm data`: make, convert and describe datasets.

use crate::{exit::Exit, progress::Progress};

/// Arguments of `cwm data`.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Runs `cwm data`.
pub fn run(_args: Args, _progress: &Progress) -> anyhow::Result<Exit> {
    Ok(Exit::Done)
}
