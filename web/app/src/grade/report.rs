//! A report's headline rows, with the paper's beside them.

use cwm_core::{
    paper::{self, Split, Variant},
    report::{EvalReport, Evaluation, Share, TrackerKind, grouped, percent, short_loss},
};
use serde::Serialize;

/// A row of the headline table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeadRow {
    /// The tracker, or the paper's model.
    pub name: String,
    /// `model`, `baseline` or `paper`.
    pub kind: &'static str,
    /// Exact state accuracy.
    pub exact: Metric,
    /// Trajectory exactness.
    pub games: Metric,
    /// Labelwise accuracy.
    pub labelwise: Metric,
    /// Mean loss.
    pub loss: Metric,
}

/// A number with what stands behind it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Metric {
    /// In percent, or nats.
    pub value: String,
    /// Its 95 % interval, clustered by game.
    pub interval: String,
    /// Numerator and denominator.
    pub count: String,
}

/// One dataset's rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeadTable {
    /// The dataset's name.
    pub dataset: String,
    /// Games and steps.
    pub size: String,
    /// Whether only the first games were taken.
    pub preview: bool,
    /// The rows.
    pub rows: Vec<HeadRow>,
    /// What must be said about them.
    pub notes: Vec<String>,
}

/// The headline tables of a report.
pub fn tables(report: &EvalReport, all_paper_rows: bool) -> Vec<HeadTable> {
    let table = |dataset: &cwm_core::report::DatasetInfo| {
        let mut rows = Vec::new();
        let mut notes = Vec::new();
        let (mut games, mut steps) = (0, 0);
        for tracker in &report.trackers {
            let Some(evaluation) = report.evaluation(&tracker.name, &dataset.name) else {
                continue;
            };
            let kind = match tracker.kind {
                TrackerKind::Baseline => "baseline",
                TrackerKind::Model(_) => "model",
            };
            rows.push(row(evaluation, kind));
            (games, steps) = (games.max(evaluation.games), steps.max(evaluation.steps));
            if !evaluation.complete {
                let done = grouped(evaluation.games);
                notes.push(format!("partial: {} was stopped after {done} games", tracker.name));
            }
            if evaluation.non_finite_steps > 0 {
                let steps = grouped(evaluation.non_finite_steps);
                notes.push(format!(
                    "{} gave numbers that are not finite at {steps} steps; they count as wrong",
                    tracker.name
                ));
            }
        }
        if let Some(limit) = dataset.limit {
            notes.push(format!(
                "preview, not comparable: at most the first {} games",
                grouped(limit)
            ));
        }
        notes.push(format!(
            "in brackets the 95 % interval over {} resamples of whole games",
            grouped(report.resampling.resamples.into())
        ));
        if let Some(split) = dataset.split {
            rows.extend(paper_rows(report, split, all_paper_rows));
            notes.push(paper::NOTE.into());
        } else {
            notes.push("the paper has no figures for games of this kind".into());
        }
        HeadTable {
            dataset: dataset.name.clone(),
            size: format!("{} games, {} steps", grouped(games), grouped(steps)),
            preview: dataset.limit.is_some(),
            rows,
            notes,
        }
    };
    report.datasets.iter().map(table).collect()
}

fn row(evaluation: &Evaluation, kind: &'static str) -> HeadRow {
    let metric = |share: &Share, of: &str| Metric {
        value: percent(share),
        interval: share
            .interval
            .map_or(String::new(), |i| format!("{:.2}, {:.2}", i.low * 100.0, i.high * 100.0)),
        count: format!("{} of {} {of}", grouped(share.numerator), grouped(share.denominator)),
    };
    let loss = evaluation.loss.as_ref();
    HeadRow {
        name: evaluation.tracker.clone(),
        kind,
        exact: metric(&evaluation.exact_state_accuracy, "steps"),
        games: metric(&evaluation.trajectory_exactness, "games"),
        labelwise: metric(&evaluation.labelwise_accuracy, "labels"),
        loss: Metric {
            value: loss
                .map_or("-".into(), |loss| loss.mean.map_or("not finite".into(), short_loss)),
            interval: loss.and_then(|loss| loss.interval).map_or(String::new(), |i| {
                format!("{}, {}", short_loss(i.low), short_loss(i.high))
            }),
            count: String::new(),
        },
    }
}

/// The graded models' own rows, the best of the smallest, and the best; or all.
fn paper_rows(report: &EvalReport, split: Split, all: bool) -> Vec<HeadRow> {
    let own = |row: &paper::Row| {
        report.trackers.iter().any(|tracker| match &tracker.kind {
            TrackerKind::Model(model) => {
                paper::row_of(&model.family, &model.size).is_some_and(|known| known == row)
            }
            TrackerKind::Baseline => false,
        })
    };
    let small = paper::ROWS
        .iter()
        .filter(|row| row.size == "d128/l1" && row.variant == Variant::Main)
        .max_by(|a, b| a.scores(split).exact_percent.total_cmp(&b.scores(split).exact_percent));
    let wanted =
        |row: &&paper::Row| all || own(row) || small == Some(*row) || paper::best(split) == *row;
    let plain = |value: String| Metric { value, ..Metric::default() };
    let shown = |row: &paper::Row| {
        let scores = row.scores(split);
        HeadRow {
            name: row.name(),
            kind: "paper",
            exact: plain(format!("{:.2}", scores.exact_percent)),
            games: plain(format!("{:.2}", scores.trajectory_percent)),
            labelwise: plain(format!("{:.2}", scores.labelwise_percent)),
            loss: plain(short_loss(scores.loss)),
        }
    };
    paper::ROWS.iter().filter(wanted).map(shown).collect()
}
