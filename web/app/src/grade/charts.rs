//! A report's charts with the table behind each.

use cwm_core::{
    chess::label::{LabelGroup, SQUARES, label_name},
    plot,
    report::{EvalReport, Evaluation, TrackerKind, percent},
};
use serde::Serialize;

/// A chart and its numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChartView {
    /// The name that its file gets.
    pub name: String,
    /// Its title.
    pub title: String,
    /// What it shows.
    pub about: String,
    /// The SVG document.
    pub svg: String,
    /// The table's head.
    pub header: Vec<String>,
    /// The table's rows.
    pub rows: Vec<Vec<String>>,
}

/// Draws a chart of a report, and sets its table beside it.
///
/// # Errors
/// Why it could not be drawn.
pub fn draw(report: &EvalReport, plan: &plot::Plan) -> Result<ChartView, String> {
    let chart = plan.draw(report).map_err(|error| error.to_string())?;
    Ok(with_table(report, chart))
}

fn with_table(report: &EvalReport, chart: plot::Chart) -> ChartView {
    let title = between(&chart.svg, "<title>", "</title>");
    let mut view = ChartView {
        title: unescape(title),
        name: chart.name,
        svg: chart.svg,
        about: String::new(),
        header: Vec::new(),
        rows: Vec::new(),
    };
    let of_title = |evaluation: &&Evaluation| {
        view.title.ends_with(&format!(": {}", evaluation.dataset))
            || view.title.ends_with(&format!("{} on {}", evaluation.tracker, evaluation.dataset))
    };
    let graded: Vec<&Evaluation> = report.evaluations.iter().filter(of_title).collect();
    let (about, header, rows) = if view.name.contains("-error-map-") {
        squares(
            graded.iter().find(|e| view.title.contains(&format!(" {} on ", e.tracker))).copied(),
        )
    } else if view.name.ends_with("-prefix-bins") {
        bins(&graded)
    } else if view.name.ends_with("-label-groups") {
        groups(&graded)
    } else if view.name == "training-games" {
        training(report)
    } else {
        mistakes(&graded)
    };
    (view.about, view.header, view.rows) = (about.to_string(), header, rows);
    view
}

type Table = (&'static str, Vec<String>, Vec<Vec<String>>);

fn head(first: &str, graded: &[&Evaluation]) -> Vec<String> {
    let names = graded.iter().map(|evaluation| evaluation.tracker.clone());
    [first.to_string()].into_iter().chain(names).collect()
}

fn bins(graded: &[&Evaluation]) -> Table {
    let about =
        "How often all 75 labels are right, in each bin of 20 steps along the game, in percent.";
    let longest = graded.iter().map(|e| e.prefix_bins.len()).max().unwrap_or(0);
    let row = |bin: usize| {
        let cells = graded.iter().map(|evaluation| {
            evaluation.prefix_bins.get(bin).map_or("-".into(), |bin| {
                let share = &bin.exact_state_accuracy;
                format!("{} (n = {})", percent(share), share.denominator)
            })
        });
        [format!("{}\u{2013}{}", bin * 20, bin * 20 + 19)].into_iter().chain(cells).collect()
    };
    (about, head("steps", graded), (0..longest).map(row).collect())
}

fn groups(graded: &[&Evaluation]) -> Table {
    let about = "How often the labels of each group are right, in percent; the bars show what is missing to 100.";
    let row = |(i, group): (usize, &LabelGroup)| {
        let cells = graded.iter().map(|evaluation| {
            evaluation.label_groups.get(i).map_or("-".into(), |group| percent(&group.accuracy))
        });
        [group.name().to_string()].into_iter().chain(cells).collect()
    };
    (about, head("label group", graded), LabelGroup::ALL.iter().enumerate().map(row).collect())
}

fn training(report: &EvalReport) -> Table {
    let about = "How often all 75 labels are right, and whole games, by the games that models were trained on, in percent.";
    let header = ["model", "games of training", "tested on", "states", "games"];
    let row = |evaluation: &Evaluation| {
        let tracker = report.trackers.iter().find(|t| t.name == evaluation.tracker)?;
        let TrackerKind::Model(model) = &tracker.kind else { return None };
        Some(vec![
            tracker.label(),
            model.train_games?.to_string(),
            evaluation.dataset.clone(),
            percent(&evaluation.exact_state_accuracy),
            percent(&evaluation.trajectory_exactness),
        ])
    };
    let mut rows: Vec<_> = report.evaluations.iter().filter_map(row).collect();
    rows.sort_by_key(|row| row[1].parse::<u64>().ok());
    (about, header.map(str::to_string).to_vec(), rows)
}

fn mistakes(graded: &[&Evaluation]) -> Table {
    let about = "How many games go wrong first in each bin of 20 steps.";
    let longest = graded.iter().map(|e| e.prefix_bins.len()).max().unwrap_or(0);
    let games = |evaluation: &Evaluation, bin: usize| -> u64 {
        let inside = |step: u64| step as usize / 20 == bin;
        evaluation.first_mistake_steps.iter().filter(|m| inside(m.step)).map(|m| m.games).sum()
    };
    let mut rows: Vec<Vec<String>> = (0..longest)
        .map(|bin| {
            let cells = graded.iter().map(|evaluation| games(evaluation, bin).to_string());
            [format!("{}\u{2013}{}", bin * 20, bin * 20 + 19)].into_iter().chain(cells).collect()
        })
        .collect();
    let none = graded.iter().map(|e| e.trajectory_exactness.numerator.to_string());
    rows.push(["no mistake".to_string()].into_iter().chain(none).collect());
    (about, head("first mistake at steps", graded), rows)
}

fn squares(evaluation: Option<&Evaluation>) -> Table {
    let about = "How often each square is wrong, in percent of all steps.";
    let header = vec!["square".to_string(), "wrong steps".into(), "of steps".into(), "%".into()];
    let Some(evaluation) = evaluation else { return (about, header, Vec::new()) };
    let row = |label: usize| {
        let right = evaluation.labels_right.get(label).copied().unwrap_or(0);
        let wrong = evaluation.steps.saturating_sub(right);
        let share = wrong as f64 * 100.0 / evaluation.steps.max(1) as f64;
        vec![
            label_name(label),
            wrong.to_string(),
            evaluation.steps.to_string(),
            format!("{share:.2}"),
        ]
    };
    (about, header, (0..SQUARES).map(row).collect())
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let rest = text.split_once(from).map_or("", |(_, rest)| rest);
    rest.split_once(to).map_or("", |(inner, _)| inner)
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_chart_has_a_table_of_its_own() {
        let json = include_str!("../../../../models/checkpoints/transformer-d128/eval.json");
        let mut report = EvalReport::from_json(json).unwrap();
        let TrackerKind::Model(model) = &mut report.trackers[0].kind else { panic!("a model") };
        (model.train_games, model.structured) = (Some(1000), true);
        let dataset = &report.evaluations[0].dataset;
        let mut told = Vec::new();
        for (name, title) in [
            ("x-error-map-y", format!("Errors of transformer-d128 on {dataset}")),
            ("x-prefix-bins", format!("Bins: {dataset}")),
            ("x-label-groups", format!("Groups: {dataset}")),
            ("x-first-mistakes", format!("First mistakes: {dataset}")),
            ("training-games", "Accuracy against games of training".into()),
        ] {
            let chart = plot::Chart { name: name.into(), svg: format!("<title>{title}</title>") };
            let view = with_table(&report, chart);
            let widths: Vec<usize> = view.rows.iter().map(Vec::len).collect();
            assert!(!widths.is_empty(), "{name}");
            assert!(widths.iter().all(|&width| width == view.header.len()), "{name}");
            told.push((view.about, view.header));
        }
        let kinds = told.len();
        told.sort();
        told.dedup();
        assert_eq!(told.len(), kinds, "{told:?}");
    }
}
