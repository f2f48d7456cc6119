//! `cwm inspect`: what a checkpoint, a run or a dataset is, without a tensor library.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use cwm_core::report::grouped;
use cwm_models::checkpoint::{
    EmbeddingRows, FileKind, ImportFacts, Summary, TrainingFacts, error::quoted,
};
use serde::Serialize;

use crate::{
    checkpoint,
    data::manifest::{self, Manifest},
    exit::Exit,
    output::{self, Format},
    train::run_dir::RunDir,
};

const EXAMPLES: &str = "\
Examples:
  cwm inspect models/checkpoints/transformer-d128
  cwm inspect model.safetensors --format json
  cwm inspect runs/20260131T120000Z-transformer-d128-0a1b2c3d";

/// Foreign metadata that the text shows.
const METADATA_LINES: usize = 10;

/// Arguments of `cwm inspect`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A safetensors file, a checkpoint's folder, a PyTorch checkpoint of the reference, a run directory or a dataset
    #[arg(value_name = "PATH")]
    path: PathBuf,

    /// How the description is printed
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Inspection {
    /// Version of this document's layout.
    version: u32,
    #[serde(flatten)]
    subject: Subject,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Subject {
    Checkpoint {
        file: PathBuf,
        #[serde(skip_serializing_if = "Option::is_none")]
        run: Option<RunState>,
        checkpoint: Box<Summary>,
    },
    Dataset {
        dataset: Box<Manifest>,
    },
}

/// How far a run is.
#[derive(Debug, Serialize)]
struct RunState {
    state: &'static str,
    /// Steps of the checkpoints that are kept.
    checkpoint_steps: Vec<u64>,
}

/// Runs `cwm inspect`.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    let subject = if args.path.join(manifest::FILE).is_file() {
        Subject::Dataset { dataset: Box::new(Manifest::read(&args.path)?) }
    } else {
        let found = checkpoint::find(&args.path)?;
        let summary = checkpoint::load_any_vocabulary(&args.path)?.describe();
        Subject::Checkpoint {
            file: found.weights,
            run: run_state(&args.path),
            checkpoint: Box::new(summary),
        }
    };
    match (args.format, &subject) {
        (Format::Json, _) => output::print_json(&Inspection { version: 1, subject })?,
        (Format::Text, Subject::Dataset { dataset }) => output::print(dataset_text(dataset))?,
        (Format::Text, Subject::Checkpoint { file, run, checkpoint }) => {
            output::print(checkpoint_text(file, run.as_ref(), checkpoint))?;
        }
    }
    Ok(Exit::Done)
}

fn run_state(path: &Path) -> Option<RunState> {
    let dir = RunDir::open(path).ok()?;
    let state = match (dir.is_done(), path.join("FAILED").exists()) {
        (true, _) => "done",
        (_, true) => "failed",
        _ => "unfinished",
    };
    let checkpoint_steps = dir.checkpoints().into_iter().map(|(step, _)| step).collect();
    Some(RunState { state, checkpoint_steps })
}

fn checkpoint_text(file: &Path, run: Option<&RunState>, summary: &Summary) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{label:<11} {value}");
    };
    line("checkpoint", file.display().to_string());
    if let Some(run) = run {
        let steps = run.checkpoint_steps.iter().map(|&step| grouped(step)).collect::<Vec<_>>();
        line("run", format!("{}, checkpoints at steps {}", run.state, steps.join(", ")));
    }
    line("family", summary.family.clone());
    let preset = match &summary.preset {
        Some(preset) => format!(" (the shape of preset {preset})"),
        None => " (no size of the paper's)".into(),
    };
    line("size", summary.size.clone() + &preset);
    line("config", config_text(summary));
    let stored = grouped(summary.stored_parameters);
    line("parameters", format!("{}, {stored} stored", grouped(summary.parameters)));
    if summary.file_kind == FileKind::Torch {
        line("format", "a PyTorch checkpoint of the reference; `cwm import` translates it".into());
    }
    line("dtype", summary.dtype.clone());
    line(
        "embedding",
        match summary.embedding_rows {
            _ if !summary.config.has_token_embedding() => "none: tokens are taken apart".into(),
            EmbeddingRows::Full => "full: a row for every token".into(),
            EmbeddingRows::Reachable => "pruned: rows of the reachable moves, START and PAD".into(),
        },
    );
    line("file", format!("{} bytes", grouped(summary.file_bytes)));
    line("sha256", summary.sha256.clone());
    if let Some(facts) = &summary.training {
        facts_lines(facts, &mut line);
    }
    for (key, value) in summary.other_metadata.iter().take(METADATA_LINES) {
        line("metadata", format!("{} = {}", quoted(key), quoted(value)));
    }
    if let Some(more @ 1..) = summary.other_metadata.len().checked_sub(METADATA_LINES) {
        line("metadata", format!("{} more keys", grouped(more as u64)));
    }

    let wide = summary.parts.iter().map(|p| p.name.len()).max().unwrap_or(0).max(4);
    let _ = writeln!(
        text,
        "\n{:<wide$} {:>8} {:>12} {:>12}",
        "part", "tensors", "parameters", "stored"
    );
    for part in &summary.parts {
        let (all, stored) = (grouped(part.parameters), grouped(part.stored_parameters));
        let _ = writeln!(text, "{:<wide$} {:>8} {all:>12} {stored:>12}", part.name, part.tensors);
    }
    for (i, warning) in summary.warnings.iter().enumerate() {
        let _ = writeln!(text, "{}warning: {warning}", if i == 0 { "\n" } else { "" });
    }
    text
}

fn config_text(summary: &Summary) -> String {
    let Ok(serde_json::Value::Object(config)) = serde_json::to_value(&summary.config) else {
        return String::new();
    };
    let pairs = config.iter().filter(|(key, _)| *key != "family");
    pairs.map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>().join(", ")
}

fn facts_lines(facts: &TrainingFacts, line: &mut impl FnMut(&str, String)) {
    let mut trained = format!("{} steps", grouped(facts.steps));
    if let Some(games) = facts.games_seen {
        trained += &format!(", {} games read", grouped(games));
    }
    if let Some(positions) = facts.positions_seen {
        trained += &format!(", {} positions read", grouped(positions));
    }
    if let Some(time) = facts.time_text() {
        trained += &format!(", {time}");
    }
    line("trained", trained);
    if let Some(origin) = facts.settings.get("train.extends") {
        line("extends", quoted(origin));
    }
    if let Some(imported) = &facts.imported {
        line("imported", imported_text(imported));
        let told = facts.settings.iter().filter_map(|(key, value)| {
            Some(format!("{} {}", quoted(key.strip_prefix("args.")?), quoted(value)))
        });
        line("args", told.collect::<Vec<_>>().join(", "));
    }
    if let Some(data) = &facts.dataset {
        let games = data.games.map_or(String::new(), |g| format!(", {} games", grouped(g)));
        line("data", quoted(&data.name) + &games);
    }
    for (label, value) in [("device", &facts.device), ("tool", &facts.tool)] {
        if let Some(value) = value {
            line(label, quoted(value));
        }
    }
    let last = facts.curve.iter().rev().find(|p| p.validation_loss.is_some());
    if let Some(point) = last {
        let exact = point.exact_state_accuracy;
        line(
            "validation",
            format!(
                "loss {:.5}{} at step {}",
                point.validation_loss.unwrap_or(f64::NAN),
                exact.map_or(String::new(), |e| format!(", exact states {:.2} %", 100.0 * e)),
                grouped(point.step)
            ),
        );
    }
}

fn imported_text(imported: &ImportFacts) -> String {
    let mut text =
        format!("from {}", imported.file.as_deref().map_or("a PyTorch file".into(), quoted));
    if let Some(epoch) = imported.epoch {
        text += &format!(", epoch {}", grouped(epoch));
    }
    if let Some(version) = &imported.torch_version {
        text += &format!(", PyTorch {}", quoted(version));
    }
    text + &format!(", sha256 {}", quoted(&imported.sha256))
}

fn dataset_text(manifest: &Manifest) -> String {
    let counts = &manifest.counts;
    let mut text = format!(
        "dataset, made by {} ({})\n",
        quoted(&manifest.tool),
        quoted(&manifest.origin.command)
    );
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "{label:<11} {value}");
    };
    line(
        "games",
        format!(
            "{}: {} to train, {} to validate",
            grouped(counts.games),
            grouped(counts.train_games),
            grouped(counts.validation_games)
        ),
    );
    line("plies", grouped(counts.plies));
    line("en passant", format!("{:?}", manifest.spec.en_passant).to_lowercase());
    line("shards", grouped(manifest.shards.len() as u64));
    text += "\n`cwm data info` counts more and verifies the checksums\n";
    text
}
