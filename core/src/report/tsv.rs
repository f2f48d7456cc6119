//! Tab-separated tables: the summary in the reference's columns, and the prefix bins (with commas as well).

use super::{EvalReport, Share, TrackerKind};

/// The columns of the reference's `summary.tsv`, followed by ours.
pub const SUMMARY_COLUMNS: [&str; 22] = [
    "model",
    "arch",
    "d_model",
    "n_layers",
    "step",
    "dataset",
    "loss",
    "partial_exact",
    "full_exact",
    "game_exact",
    "game_num",
    "game_denom",
    "checkpoint",
    "steps",
    "full_exact_low",
    "full_exact_high",
    "game_exact_low",
    "game_exact_high",
    "parameters",
    "sha256",
    "preview",
    "structured",
];

/// One line a grade. Cells without a value are empty; shares run from 0 to 1.
pub fn summary(report: &EvalReport) -> String {
    let mut tsv = SUMMARY_COLUMNS.join("\t") + "\n";
    for evaluation in &report.evaluations {
        let model = report.trackers.iter().find_map(|tracker| match &tracker.kind {
            TrackerKind::Model(model) if tracker.name == evaluation.tracker => Some(model),
            _ => None,
        });
        let dataset = report.datasets.iter().find(|d| d.name == evaluation.dataset);
        let preview = !evaluation.complete || dataset.is_some_and(|d| d.limit.is_some());
        let game = &evaluation.trajectory_exactness;
        let low = |share: &Share| share.interval.map_or(String::new(), |i| i.low.to_string());
        let high = |share: &Share| share.interval.map_or(String::new(), |i| i.high.to_string());
        let cells = [
            evaluation.tracker.clone(),
            model.map_or("baseline".into(), |m| m.family.clone()),
            model.map_or(String::new(), |m| m.d_model.to_string()),
            model.map_or(String::new(), |m| m.n_layers.to_string()),
            model.and_then(|m| m.train_steps).map_or(String::new(), |s| s.to_string()),
            evaluation.dataset.clone(),
            evaluation.loss.and_then(|l| l.mean).map_or(String::new(), |mean| mean.to_string()),
            value(&evaluation.labelwise_accuracy),
            value(&evaluation.exact_state_accuracy),
            value(game),
            game.numerator.to_string(),
            game.denominator.to_string(),
            model.map_or(String::new(), |m| m.path.clone()),
            evaluation.steps.to_string(),
            low(&evaluation.exact_state_accuracy),
            high(&evaluation.exact_state_accuracy),
            low(game),
            high(game),
            model.map_or(String::new(), |m| m.parameters.to_string()),
            model.map_or(String::new(), |m| m.sha256.clone()),
            preview.to_string(),
            model.is_some_and(|m| m.structured).to_string(),
        ];
        tsv += &line(&cells);
    }
    tsv
}

/// One line a grade and prefix bin: steps, and the shares of exact steps and of right labels.
pub fn prefix_bins(report: &EvalReport) -> String {
    let header = ["model", "dataset", "bin", "n", "full_exact", "partial_exact"];
    let mut tsv = header.join("\t") + "\n";
    for evaluation in &report.evaluations {
        for bin in &evaluation.prefix_bins {
            tsv += &line(&[
                evaluation.tracker.clone(),
                evaluation.dataset.clone(),
                format!("{:03}-{:03}", bin.from_step, bin.to_step),
                bin.exact_state_accuracy.denominator.to_string(),
                value(&bin.exact_state_accuracy),
                value(&bin.labelwise_accuracy),
            ]);
        }
    }
    tsv
}

/// [`prefix_bins`] with commas between its cells.
pub fn prefix_bins_csv(report: &EvalReport) -> String {
    let quoted = |cell: &str| {
        if cell.contains([',', '"']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell.to_string()
        }
    };
    let line = |line: &str| line.split('\t').map(quoted).collect::<Vec<_>>().join(",") + "\n";
    prefix_bins(report).lines().map(line).collect()
}

fn value(share: &Share) -> String {
    share.value().map_or(String::new(), |value| value.to_string())
}

/// Tabs and line breaks inside a cell would break the table.
fn line(cells: &[String]) -> String {
    let clean = |cell: &String| cell.replace(['\t', '\n', '\r'], " ");
    cells.iter().map(clean).collect::<Vec<_>>().join("\t") + "\n"
}
