//! The model card of a checkpoint: README.md in Hugging Face style, from what the files themselves say.

use std::fmt::{self, Write};

use cwm_core::report::{self, Detail, EvalReport, Evaluation, TrackerKind, grouped};

use super::{
    config::EmbeddingRows,
    facts::{ImportFacts, TrainingFacts},
    summary::Summary,
};
use crate::config::ModelConfig;

/// What must be said wherever a transition machine is shown.
const STRUCTURED: &str = "\
## What it is given, and what it learns

This is no sequence mixer, and its scores do not compare with those of one: it is *structured*. Its only memory is the state that it has
named itself, and its network maps that state and a move to the next state.

Given: a move token names two of the 64 cells; cells share weights and see their own label, their square, and their file and rank relative to
the two named cells; the clocks are registers on which the network chooses keep, +1 or reset. In training, the true state before each move,
rare kinds of move more often than they occur, and steps with the colours swapped.

Learned from games: everything else. The initial position, what a move does to the cells, castling rooks, en passant, promotions, whose turn
it is, when rights fall and when clocks run. It is told nothing of legality or of how pieces move.
";

/// What a card is made of.
#[derive(Debug, Clone, Copy)]
pub struct Card<'a> {
    /// The checkpoint's name.
    pub name: &'a str,
    /// The checkpoint.
    pub summary: &'a Summary,
    /// Its grades, where it was graded.
    pub report: Option<&'a EvalReport>,
}

impl Card<'_> {
    /// The card as Markdown with a YAML front matter.
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let Summary { size, parameters, .. } = self.summary;
        self.front_matter(out)?;
        writeln!(out, "\n# {}\n", one_line(self.name))?;
        writeln!(
            out,
            "A {} of size {size} ({} parameters) that reads a chess game one move at a time and names the complete \
             state after every move:\nthe 64 squares, side to move, castling rights, en passant, halfmove clock and \
             fullmove number.\nIt is a checkpoint of Chess-World-Model, a benchmark for exact state tracking.\n",
            title(&self.summary.config),
            grouped(*parameters)
        )?;
        writeln!(
            out,
            "## Use\n\n```sh\ncwm inspect DIR                         # this folder, or model.safetensors alone\n\
             cwm predict DIR --uci \"e2e4 e7e5 g1f3\"\ncwm evaluate DIR --random 1000 --seed 0\n```\n"
        )?;
        if let ModelConfig::Transition(_) = self.summary.config {
            writeln!(out, "{STRUCTURED}")?;
        }
        self.weights(out)?;
        match &self.summary.training {
            Some(facts) => training(out, facts)?,
            None => {
                writeln!(out, "## Training\n\nThe checkpoint does not say how it was trained.\n")?
            }
        }
        self.scores(out)?;
        writeln!(
            out,
            "## Limits\n\nThe network knows games from the standard start only, and legal moves only. It names states; it \
             does not choose moves.\nScores on human games and on random play differ: look at both."
        )
    }

    fn front_matter(&self, out: &mut String) -> fmt::Result {
        let family = &self.summary.family;
        writeln!(out, "---\nlicense: gpl-3.0\nlibrary_name: cwm\npipeline_tag: other")?;
        writeln!(out, "tags:\n- chess\n- state-tracking\n- world-model\n- {family}")?;
        let own = self.own_evaluations();
        if !own.is_empty() {
            writeln!(out, "model-index:\n- name: {}\n  results:", quoted(self.name))?;
        }
        for evaluation in own {
            writeln!(out, "  - task:\n      type: state-tracking")?;
            let dataset = quoted(&evaluation.dataset);
            writeln!(out, "    dataset:\n      type: chess\n      name: {dataset}\n    metrics:")?;
            for (name, share) in [
                ("exact state accuracy", &evaluation.exact_state_accuracy),
                ("labelwise accuracy", &evaluation.labelwise_accuracy),
                ("trajectory exactness", &evaluation.trajectory_exactness),
            ] {
                if let Some(value) = share.value() {
                    let kind = name.replace(' ', "_");
                    writeln!(
                        out,
                        "    - type: {kind}\n      name: {name}\n      value: {value:.6}"
                    )?;
                }
            }
        }
        writeln!(out, "---")
    }

    fn weights(&self, out: &mut String) -> fmt::Result {
        let summary = self.summary;
        let rows = match summary.embedding_rows {
            _ if !summary.config.has_token_embedding() => "none: move tokens are taken apart",
            EmbeddingRows::Full => "one row for every token of the vocabulary",
            EmbeddingRows::Reachable => {
                "1,970 rows: the moves that some legal game holds, START and PAD; `cwm export --full` adds the rest as zeros"
            }
        };
        writeln!(out, "## Weights\n\n| | |\n|---|---|")?;
        writeln!(out, "| family, size | {}, {} |", summary.family, summary.size)?;
        if let Some(preset) = &summary.preset {
            writeln!(out, "| preset | {preset} |")?;
        }
        writeln!(out, "| parameters | {} |", grouped(summary.parameters))?;
        writeln!(out, "| stored | {} as {} |", grouped(summary.stored_parameters), summary.dtype)?;
        writeln!(out, "| embedding | {rows} |")?;
        writeln!(
            out,
            "| file | {} bytes, SHA-256 `{}` |",
            grouped(summary.file_bytes),
            summary.sha256
        )?;
        writeln!(
            out,
            "\n{}; the config is in the file's metadata too.\n",
            match summary.config {
                ModelConfig::Transition(_) =>
                    "Matrices are [out, in], tables of inputs [rows, width]",
                _ => "Tensors have the reference's names and PyTorch's layout",
            }
        )
    }

    fn scores(&self, out: &mut String) -> fmt::Result {
        let Some(report) = self.report else {
            return writeln!(
                out,
                "## Scores\n\nNot graded yet: `cwm evaluate DIR --random 1000 --seed 0`.\n"
            );
        };
        writeln!(out, "## Scores")?;
        let detail = Detail { breakdown: true, ..Detail::default() };
        let markdown = report::markdown(report, detail);
        // Its own title goes, its headings become ours.
        for line in markdown.lines().skip(1) {
            writeln!(out, "{}{line}", if line.starts_with('#') { "#" } else { "" })?;
        }
        if self.own_evaluations().is_empty() {
            writeln!(
                out,
                "\nThese grades are of other weights than this file's (another SHA-256), for example before a change of number format."
            )?;
        }
        writeln!(out, "\nMeasured by {}; `eval.json` has every count.\n", report.tool)
    }

    /// The grades of exactly this file.
    fn own_evaluations(&self) -> Vec<&Evaluation> {
        let Some(report) = self.report else { return Vec::new() };
        let own = report.trackers.iter().filter(
            |t| matches!(&t.kind, TrackerKind::Model(m) if m.sha256 == self.summary.sha256),
        );
        own.flat_map(|t| report.evaluations.iter().filter(|e| e.tracker == t.name)).collect()
    }
}

fn training(out: &mut String, facts: &TrainingFacts) -> fmt::Result {
    writeln!(out, "## Training\n\n| | |\n|---|---|")?;
    let mut row = |what: &str, value: Option<String>| match value {
        Some(value) => writeln!(out, "| {what} | {} |", cell(&value)),
        None => Ok(()),
    };
    if let Some(data) = &facts.dataset {
        let about = data.description.as_ref().map_or(String::new(), |d| format!(": {d}"));
        row("data", Some(format!("{}{about}", data.name)))?;
        row("training games", data.games.map(grouped))?;
        row("en passant labels", data.en_passant.clone())?;
        row("dataset.json", data.sha256.as_ref().map(|s| format!("SHA-256 {s}")))?;
    }
    row("optimiser steps", Some(grouped(facts.steps)))?;
    row("games read", facts.games_seen.map(grouped))?;
    row("positions read", facts.positions_seen.map(grouped))?;
    row("time", facts.time_text())?;
    row("device", facts.device.clone())?;
    row("seed", facts.seed.map(|s| s.to_string()))?;
    row("tool", facts.tool.clone())?;
    row("imported from", facts.imported.as_ref().map(imported))?;
    // The network's shape stands in config.json.
    let mut settings =
        facts.settings.iter().filter(|(key, _)| !key.starts_with("model.")).peekable();
    if settings.peek().is_some() {
        writeln!(out, "\n| setting | value |\n|---|---|")?;
        for (key, value) in settings {
            writeln!(out, "| `{}` | {} |", cell(key), cell(value))?;
        }
    }
    if !facts.curve.is_empty() {
        writeln!(
            out,
            "\n| step | training loss | validation loss | exact state accuracy |\n|---|---|---|---|"
        )?;
        let number = |value: Option<f64>| value.map_or("-".into(), |v| format!("{v:.5}"));
        for point in &facts.curve {
            writeln!(
                out,
                "| {} | {} | {} | {} |",
                grouped(point.step),
                number(point.train_loss),
                number(point.validation_loss),
                number(point.exact_state_accuracy)
            )?;
        }
    }
    writeln!(out)
}

fn imported(facts: &ImportFacts) -> String {
    let epoch = facts.epoch.map(|epoch| format!("epoch {}", grouped(epoch)));
    let torch = facts.torch_version.as_ref().map(|version| format!("PyTorch {version}"));
    let details: Vec<String> = epoch.into_iter().chain(torch).collect();
    let details =
        if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
    let file = facts.file.as_deref().unwrap_or("a file");
    format!("{file}, a PyTorch checkpoint of the reference{details}, SHA-256 {}", facts.sha256)
}

/// A network's name in prose.
fn title(config: &ModelConfig) -> String {
    match config {
        ModelConfig::Transformer(transformer) if transformer.label_feedback => {
            "Transformer that reads the labels before".into()
        }
        ModelConfig::Transformer(_) => "Transformer".into(),
        ModelConfig::Slice(slice) if slice.block_size == 1 => "diagonal SLiCE".into(),
        ModelConfig::Slice(_) => "SLiCE".into(),
        ModelConfig::GatedDeltaNet(net) if net.allow_neg_eigval => "Gated DeltaNet".into(),
        ModelConfig::GatedDeltaNet(_) => "Gated DeltaNet without negative eigenvalues".into(),
        ModelConfig::Mamba2(_) => "Mamba-2".into(),
        ModelConfig::Mamba3(mamba) => mamba
            .mimo_rank
            .map_or_else(|| "Mamba-3".into(), |rank| format!("Mamba-3 with MIMO of rank {rank}")),
        ModelConfig::Transition(_) => "transition machine".into(),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cell(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}

/// A YAML string; JSON's are.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cwm_core::{
        metrics::Resampling,
        report::{DatasetInfo, ModelInfo, Share, Source, TrackerInfo},
    };

    use super::*;
    use crate::{
        checkpoint::{CurvePoint, DatasetFacts, FileKind, summary::SUMMARY_VERSION},
        config::{ModelConfig, TransformerConfig},
    };

    fn summary(training: Option<TrainingFacts>) -> Summary {
        Summary {
            version: SUMMARY_VERSION,
            family: "transformer".into(),
            size: "d128/l1".into(),
            preset: Some("transformer-d128".into()),
            config: ModelConfig::Transformer(TransformerConfig::new(128, 1, 2)),
            parameters: 3_128_150,
            stored_parameters: 758_614,
            parts: Vec::new(),
            dtype: "f16".into(),
            file_kind: FileKind::Safetensors,
            embedding_rows: EmbeddingRows::Reachable,
            file_bytes: 1_518_900,
            sha256: "ab".repeat(32),
            training,
            other_metadata: BTreeMap::new(),
            warnings: Vec::new(),
        }
    }

    /// A report of one model, right at 3 of 4 steps, with this hash.
    fn graded(sha256: &str) -> EvalReport {
        let share = |n, d| Share::new(n, d, None);
        let mut report = EvalReport::new("cwm test", Resampling::default());
        report.datasets.push(DatasetInfo {
            name: "random: 1".into(),
            source: Source::RandomUniform { seed: 0, min_fullmoves: 1 },
            en_passant: cwm_core::chess::EnPassant::Always,
            split: None,
            limit: None,
        });
        report.trackers.push(TrackerInfo {
            name: "m".into(),
            kind: TrackerKind::Model(ModelInfo {
                family: "transformer".into(),
                size: "d128/l1".into(),
                d_model: 128,
                n_layers: 1,
                parameters: 3_128_150,
                sha256: sha256.into(),
                path: "m".into(),
                train_steps: None,
                train_games: None,
                games_read: None,
                structured: false,
            }),
        });
        report.evaluations.push(Evaluation {
            tracker: "m".into(),
            dataset: "random: 1".into(),
            games: 1,
            steps: 4,
            complete: true,
            moves_sha256: String::new(),
            exact_state_accuracy: share(3, 4),
            labelwise_accuracy: share(299, 300),
            trajectory_exactness: share(0, 1),
            loss: None,
            non_finite_steps: 0,
            prefix_bins: Vec::new(),
            label_groups: Vec::new(),
            labels_right: vec![4; 75],
            first_mistake_steps: Vec::new(),
            first_mistake_groups: Vec::new(),
            worst_games: Vec::new(),
            aftermath: None,
        });
        report
    }

    #[test]
    fn a_card_tells_what_the_files_tell() {
        let facts = TrainingFacts {
            steps: 12_345,
            wall_secs: Some(7200.0),
            dataset: Some(DatasetFacts {
                name: "human | games".into(),
                games: Some(400_000),
                ..Default::default()
            }),
            settings: BTreeMap::from([("optimizer.lr".into(), "0.001".into())]),
            curve: vec![CurvePoint { step: 1000, train_loss: Some(0.5), ..Default::default() }],
            ..Default::default()
        };
        let summary = summary(Some(facts));
        let report = graded(&summary.sha256);
        let card =
            Card { name: "tiny: \"one\"", summary: &summary, report: Some(&report) }.render();
        for part in [
            "---\nlicense: gpl-3.0\n",
            "- name: \"tiny: \\\"one\\\"\"\n",
            "      value: 0.750000\n",
            "# tiny: \"one\"\n",
            "A Transformer of size d128/l1 (3,128,150 parameters)",
            "| data | human \\| games |",
            "| optimiser steps | 12,345 |",
            "| time | 2.00 h |",
            "| `optimizer.lr` | 0.001 |",
            "| 1,000 | 0.50000 | - | - |",
            "## Scores\n\n### random: 1",
        ] {
            assert!(card.contains(part), "{part:?} is not in\n{card}");
        }
    }

    #[test]
    fn grades_of_other_weights_are_marked() {
        let summary = summary(None);
        let report = graded("other");
        let card = Card { name: "a", summary: &summary, report: Some(&report) }.render();
        assert!(card.contains("grades are of other weights"), "{card}");
        assert!(!card.contains("model-index"), "{card}");
        let card = Card { name: "a", summary: &summary, report: None }.render();
        assert!(card.contains("Not graded yet") && card.contains("does not say how"), "{card}");
    }
}
