//! `cwm export`: any checkpoint, or a run's best, as a folder in Hugging Face layout with a model card.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use cwm_core::report::{EvalReport, grouped};
use cwm_models::checkpoint::{Card, Checkpoint, Dtype, EmbeddingRows, WriteOptions};

use crate::{
    atomic,
    checkpoint::{self, CARD_FILE, CONFIG_FILE, EVAL_FILE, WEIGHTS_FILE},
    exit::{Exit, Failure},
    output,
};

const EXAMPLES: &str = "\
Examples:
  cwm export runs/20260131T120000Z-transformer-d128-0a1b2c3d --out my-model --dtype f16 --prune
  cwm export my-model --out for-the-reference --dtype f32 --full
  cwm export my-model --out my-model --force --eval eval.json

The folder holds config.json, model.safetensors (complete in itself: the config is in its metadata), \
README.md (the model card) and, where there is an evaluation report, eval.json.";

/// Arguments of `cwm export`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A safetensors file, a checkpoint's folder, or a run directory (its best checkpoint, else the latest)
    #[arg(value_name = "CKPT|RUN")]
    source: PathBuf,

    /// The folder to make
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Number format of the weights [default: as in the source]
    #[arg(long, value_enum, value_name = "DTYPE")]
    dtype: Option<DtypeArg>,

    /// Store the embedding rows of the reachable moves, START and PAD alone
    #[arg(long, conflicts_with = "full")]
    prune: bool,

    /// Store an embedding row for every token; rows that the source lacks become zero
    #[arg(long)]
    full: bool,

    /// The name in the model card [default: the name of DIR]
    #[arg(long)]
    name: Option<String>,

    /// An evaluation report (`cwm evaluate --format json`) to put beside the weights and into the card
    /// [default: the eval.json beside the source, if there is one]
    #[arg(long, value_name = "FILE")]
    eval: Option<PathBuf>,

    /// Replace DIR if it is a checkpoint's folder
    #[arg(long, alias = "replace")]
    force: bool,
}

/// Number formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum DtypeArg {
    /// 32 bits, exact.
    F32,
    /// 16 bits, half the size.
    F16,
}

/// Runs `cwm export`.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    check_out(&args)?;
    let found = checkpoint::find(&args.source)?;
    let source = checkpoint::load_any_vocabulary(&args.source)?;
    let eval_path = args.eval.clone().or_else(|| {
        let beside = found.weights.with_file_name(EVAL_FILE);
        beside.is_file().then_some(beside)
    });
    let report = eval_path.as_deref().map(read_report).transpose()?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => folder_name(&args.out)?,
    };

    let fill = |dir: &Path| -> anyhow::Result<()> {
        let training = source.info.training.as_ref();
        let options = options(&args, &source);
        checkpoint::write_files(dir, &source.config, &source.tensors, training, options)?;
        // What is described is what was written.
        let summary = checkpoint::load_any_vocabulary(dir)?.describe();
        let card = Card { name: &name, summary: &summary, report: report.as_ref() }.render();
        atomic::write(&dir.join(CARD_FILE), card.as_bytes())?;
        if let Some(report) = &report {
            atomic::write(&dir.join(EVAL_FILE), report.to_json().as_bytes())?;
        }
        Ok(())
    };
    if args.out.exists() {
        replace(&args.out, fill)?;
    } else {
        atomic::directory(&args.out, fill)?;
    }
    let summary = checkpoint::load_any_vocabulary(&args.out)?.describe();
    output::print(format!(
        "{}: {}, {} bytes, sha256 {}\n",
        args.out.join(WEIGHTS_FILE).display(),
        summary.dtype,
        grouped(summary.file_bytes),
        summary.sha256
    ))?;
    Ok(Exit::Done)
}

fn options(args: &Args, source: &Checkpoint) -> WriteOptions {
    let dtype = match args.dtype {
        Some(DtypeArg::F32) => Dtype::F32,
        Some(DtypeArg::F16) => Dtype::F16,
        // A mixed file keeps everything that it has.
        None if source.info.dtypes.contains_key(&Dtype::F32) => Dtype::F32,
        None => Dtype::F16,
    };
    let rows = match (args.prune, args.full) {
        (true, _) => EmbeddingRows::Reachable,
        (_, true) => EmbeddingRows::Full,
        _ => source.info.rows,
    };
    WriteOptions { dtype, rows }
}

/// Refuses to touch what is there, unless asked to and sure that it is a checkpoint's folder.
fn check_out(args: &Args) -> anyhow::Result<()> {
    let out = &args.out;
    if !out.exists() {
        return Ok(());
    }
    if !args.force {
        return Err(Failure::usage(format!("`{}` exists already", out.display()))
            .hint("choose another folder, or pass `--force`")
            .into());
    }
    let ours = [WEIGHTS_FILE, CONFIG_FILE, CARD_FILE, EVAL_FILE];
    let foreign = fs::read_dir(out)
        .with_context(|| format!("cannot read `{}`", out.display()))?
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .find(|name| !ours.iter().any(|ours| name == ours));
    match foreign {
        Some(name) => Err(Failure::usage(format!(
            "`{}` holds `{}`, which no export wrote",
            out.display(),
            name.display()
        ))
        .hint("`--force` replaces checkpoints' folders only: choose another one")
        .into()),
        None => Ok(()),
    }
}

/// Makes the new folder beside the old one, then swaps them: at no moment is there half a folder.
fn replace(out: &Path, fill: impl FnOnce(&Path) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let out = out.canonicalize().with_context(|| format!("cannot find `{}`", out.display()))?;
    let context = || format!("cannot replace `{}`", out.display());
    let parent = out.parent().with_context(context)?;
    let scratch =
        tempfile::Builder::new().prefix(".cwm-").tempdir_in(parent).with_context(context)?;
    let (new, old) = (scratch.path().join("new"), scratch.path().join("old"));
    atomic::directory(&new, fill)?;
    fs::rename(&out, &old).with_context(context)?;
    fs::rename(&new, &out)
        .inspect_err(|_| {
            // Better the old folder than none.
            let _ = fs::rename(&old, &out);
        })
        .with_context(context)?;
    Ok(())
}

fn read_report(path: &Path) -> anyhow::Result<EvalReport> {
    let text = checkpoint::read_text(path)?;
    EvalReport::from_json(&text)
        .map_err(|e| Failure::data(format!("`{}`: {:#}", path.display(), anyhow::Error::from(e))))
        .map_err(|f| f.hint("write one with `cwm evaluate DIR --format json`").into())
}

fn folder_name(out: &Path) -> anyhow::Result<String> {
    let name = out.file_name().map(|n| n.to_string_lossy().into_owned());
    name.ok_or_else(|| {
        Failure::usage(format!("`{}` has no name for the model card", out.display()))
            .hint("pass `--name NAME`")
            .into()
    })
}
