//! `cwm export`: any checkpoint, or a run's best, as a folder in Hugging Face layout with a model card.

use std::path::{Path, PathBuf};

use cwm_core::report::EvalReport;
use cwm_models::checkpoint::WriteOptions;

use super::folder::{Storage, Target};
use crate::{
    checkpoint::{self, EVAL_FILE},
    exit::{Exit, Failure},
    progress::Progress,
};

const EXAMPLES: &str = "\
Examples:
  cwm export runs/20260131T120000Z-transformer-d128-0a1b2c3d --out my-model --dtype f16 --prune
  cwm export my-model --out for-the-reference --format torch-names
  cwm export my-model --out my-model --force --eval eval.json

The folder holds config.json, model.safetensors (complete in itself: the config is in its metadata), \
README.md (the model card) and, where there is an evaluation report, eval.json.";

/// Arguments of `cwm export`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A safetensors file, a checkpoint's folder, a run directory (its best checkpoint, else the latest), or a PyTorch
    /// checkpoint of the reference
    #[arg(value_name = "CKPT|RUN")]
    source: PathBuf,

    #[command(flatten)]
    target: Target,

    /// For whom the weights are written
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,

    #[command(flatten)]
    storage: Storage,

    /// An evaluation report (`cwm evaluate --format json`) to put beside the weights and into the card
    /// [default: the eval.json beside the source, if there is one]
    #[arg(long, value_name = "FILE")]
    eval: Option<PathBuf>,
}

/// Whom the weights are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum Format {
    /// For cwm, and others that read safetensors
    #[default]
    Cwm,
    /// For the reference: f32, an embedding row for every token, and exactly the tensors of its `state_dict`
    TorchNames,
}

/// Runs `cwm export`.
///
/// # Errors
/// If the source cannot be read, has no form for the reference, or the folder cannot be made.
pub fn run(args: Args, progress: &Progress) -> anyhow::Result<Exit> {
    args.target.check()?;
    let found = checkpoint::find(&args.source)?;
    let source = checkpoint::load_any_vocabulary(&args.source)?;
    let options = match args.format {
        Format::Cwm => args.storage.options(&source),
        Format::TorchNames => {
            if args.storage.dtype.is_some() || args.storage.prune {
                return Err(Failure::usage("the reference takes f32 and all rows alone")
                    .hint("leave out --dtype and --prune, or --format torch-names")
                    .into());
            }
            if !source.config.in_reference() {
                let family = source.config.family();
                return Err(Failure::usage(format!(
                    "the reference has no network of family `{family}`"
                ))
                .hint("leave out --format torch-names")
                .into());
            }
            WriteOptions::REFERENCE
        }
    };
    let eval_path = args.eval.clone().or_else(|| {
        let beside = found.weights.with_file_name(EVAL_FILE);
        beside.is_file().then_some(beside)
    });
    let report = eval_path.as_deref().map(read_report).transpose()?;
    args.target.make(&source, options, report.as_ref())?;
    if args.format == Format::TorchNames {
        progress.note(
            "in Python: model.load_state_dict(safetensors.torch.load_file(\"model.safetensors\"))",
        );
    }
    Ok(Exit::Done)
}

fn read_report(path: &Path) -> anyhow::Result<EvalReport> {
    let text = checkpoint::read_text(path)?;
    EvalReport::from_json(&text)
        .map_err(|e| Failure::data(format!("`{}`: {:#}", path.display(), anyhow::Error::from(e))))
        .map_err(|f| f.hint("write one with `cwm evaluate DIR --format json`").into())
}
