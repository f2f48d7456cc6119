//! The folder that `cwm export` and `cwm import` make: weights, config, model card and evaluation report.

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
    exit::Failure,
    output,
};

/// Where the folder goes and what it is called.
#[derive(Debug, clap::Args)]
pub(super) struct Target {
    /// The folder to make
    #[arg(long, value_name = "DIR")]
    pub(super) out: PathBuf,

    /// The name in the model card [default: the name of DIR]
    #[arg(long)]
    name: Option<String>,

    /// Replace DIR if it is a checkpoint's folder
    #[arg(long, alias = "replace")]
    force: bool,
}

/// How the weights are stored.
#[derive(Debug, clap::Args)]
pub(super) struct Storage {
    /// Number format of the weights [default: as in the source]
    #[arg(long, value_enum, value_name = "DTYPE")]
    pub(super) dtype: Option<DtypeArg>,

    /// Store the embedding rows of the reachable moves, START and PAD alone
    #[arg(long, conflicts_with = "full")]
    pub(super) prune: bool,

    /// Store an embedding row for every token; rows that the source lacks become zero
    #[arg(long)]
    pub(super) full: bool,
}

/// Number formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum DtypeArg {
    /// 32 bits, exact.
    F32,
    /// 16 bits, half the size.
    F16,
}

impl Storage {
    /// The options for weights from this source.
    pub(super) fn options(&self, source: &Checkpoint) -> WriteOptions {
        let dtype = match self.dtype {
            Some(DtypeArg::F32) => Dtype::F32,
            Some(DtypeArg::F16) => Dtype::F16,
            // A mixed file keeps everything that it has.
            None if source.info.dtypes.contains_key(&Dtype::F32) => Dtype::F32,
            None => Dtype::F16,
        };
        let rows = match (self.prune, self.full) {
            (true, _) => EmbeddingRows::Reachable,
            (_, true) => EmbeddingRows::Full,
            _ => source.info.rows,
        };
        WriteOptions { dtype, rows }
    }
}

impl Target {
    /// Makes the folder and says on stdout what it holds.
    pub(super) fn make(
        &self,
        source: &Checkpoint,
        options: WriteOptions,
        report: Option<&EvalReport>,
    ) -> anyhow::Result<()> {
        let name = match &self.name {
            Some(name) => name.clone(),
            None => folder_name(&self.out)?,
        };
        let fill = |dir: &Path| -> anyhow::Result<()> {
            let training = source.info.training.as_ref();
            checkpoint::write_files(dir, &source.config, &source.tensors, training, options)?;
            // What is described is what was written.
            let summary = checkpoint::load_any_vocabulary(dir)?.describe();
            let card = Card { name: &name, summary: &summary, report }.render();
            atomic::write(&dir.join(CARD_FILE), card.as_bytes())?;
            if let Some(report) = report {
                atomic::write(&dir.join(EVAL_FILE), report.to_json().as_bytes())?;
            }
            Ok(())
        };
        if self.out.exists() {
            replace(&self.out, fill)?;
        } else {
            atomic::directory(&self.out, fill)?;
        }
        let summary = checkpoint::load_any_vocabulary(&self.out)?.describe();
        output::print(format!(
            "{}: {}, {} bytes, sha256 {}\n",
            self.out.join(WEIGHTS_FILE).display(),
            summary.dtype,
            grouped(summary.file_bytes),
            summary.sha256
        ))
    }

    /// Refuses to touch what is there, unless asked to and sure that it is a checkpoint's folder.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let out = &self.out;
        if !out.exists() {
            return Ok(());
        }
        if !self.force {
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

fn folder_name(out: &Path) -> anyhow::Result<String> {
    let name = out.file_name().map(|n| n.to_string_lossy().into_owned());
    name.ok_or_else(|| {
        Failure::usage(format!("`{}` has no name for the model card", out.display()))
            .hint("pass `--name NAME`")
            .into()
    })
}
