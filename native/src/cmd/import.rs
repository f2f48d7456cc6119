//! `cwm import`: a PyTorch checkpoint of the reference as a folder in Hugging Face layout, without running its code.

use std::path::PathBuf;

use cwm_core::report::grouped;
use cwm_models::checkpoint::FileKind;

use super::folder::{Storage, Target};
use crate::{
    checkpoint,
    exit::{Exit, Failure},
    progress::Progress,
};

const EXAMPLES: &str = "\
Examples:
  cwm import ckpts/transformer/latest.pt --out my-model
  cwm import latest.pt --out small --dtype f16 --prune --name 'Transformer, 10 million games'
  cwm evaluate latest.pt --random 100      without importing it first

The reference's checkpoints hold their weights and settings as a Python pickle. It is read as data: nothing in it is run, \
and a file that asks for any other class than PyTorch's tensors is refused. The optimiser's state is left out.";

/// Arguments of `cwm import`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A checkpoint that the reference's training wrote (latest.pt)
    #[arg(value_name = "FILE.pt")]
    source: PathBuf,

    #[command(flatten)]
    target: Target,

    #[command(flatten)]
    storage: Storage,
}

/// Runs `cwm import`.
///
/// # Errors
/// If the file is no checkpoint of the reference, or the folder cannot be made.
pub fn run(args: Args, progress: &Progress) -> anyhow::Result<Exit> {
    args.target.check()?;
    let source = checkpoint::load_any_vocabulary(&args.source)?;
    if source.info.kind != FileKind::Torch {
        let path = args.source.display();
        return Err(Failure::usage(format!(
            "`{path}` is no PyTorch file: there is nothing to import"
        ))
        .hint("use it as it is, or see `cwm export`")
        .into());
    }
    args.target.make(&source, args.storage.options(&source), None)?;
    let steps = source.info.training.as_ref().map_or(0, |facts| facts.steps);
    progress.note(&format!(
        "imported {} {}, trained for {} steps; grade it with `cwm evaluate {} --random 1000`",
        source.config.family(),
        source.config.size(),
        grouped(steps),
        args.target.out.display()
    ));
    Ok(Exit::Done)
}
