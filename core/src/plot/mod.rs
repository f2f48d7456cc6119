//! Charts as SVG text, drawn from a report: the command line writes them, the page shows them.
//!
//! Colours are those of Okabe and Ito; series differ by marker as well, and squares carry their number, so that colour
//! is never alone. Each chart holds a `title` and a `desc` for readers that see no picture.

mod bars;
mod board;
mod canvas;
mod curve;
mod legend;
mod svg;
mod training;

pub use bars::{first_mistakes, label_groups};
pub use board::error_map;
pub use curve::prefix_bins;
pub use training::training_games;

use crate::report::{EvalReport, Evaluation, TrackerKind};

/// A chart could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw the chart `{chart}`: {reason}")]
pub struct PlotError {
    /// Its title.
    pub chart: String,
    /// Why.
    pub reason: String,
}

/// A chart under the name that its file gets, without ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart {
    /// Lower-case letters, digits and dashes.
    pub name: String,
    /// The SVG document.
    pub svg: String,
}

/// A chart that a report has, not drawn yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The name that its file gets, without ending.
    pub name: String,
    dataset: String,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    PrefixBins,
    LabelGroups,
    FirstMistakes,
    /// Of a tracker.
    ErrorMap(String),
    /// Of the whole report.
    TrainingGames,
}

/// The charts of a report: three for each dataset, and an error map for each model on it; and accuracy against games of
/// training, if the models differ in it.
pub fn plan(report: &EvalReport) -> Vec<Plan> {
    let mut plans = Vec::new();
    for dataset in &report.datasets {
        let graded = |name: &str| report.evaluation(name, &dataset.name).is_some();
        if !report.trackers.iter().any(|tracker| graded(&tracker.name)) {
            continue;
        }
        let mut add = |name: &str, kind: Kind| {
            let name = format!("{}-{name}", slug(&dataset.name));
            plans.push(Plan { name, dataset: dataset.name.clone(), kind });
        };
        add("prefix-bins", Kind::PrefixBins);
        add("label-groups", Kind::LabelGroups);
        add("first-mistakes", Kind::FirstMistakes);
        for tracker in &report.trackers {
            if matches!(tracker.kind, TrackerKind::Model(_)) && graded(&tracker.name) {
                let name = format!("error-map-{}", slug(&tracker.name));
                add(&name, Kind::ErrorMap(tracker.name.clone()));
            }
        }
    }
    if training::differ(report) {
        let (name, dataset) = ("training-games".to_string(), String::new());
        plans.push(Plan { name, dataset, kind: Kind::TrainingGames });
    }
    plans
}

impl Plan {
    /// Draws the chart of the report that it was planned for.
    ///
    /// # Errors
    /// [`PlotError`] if the chart cannot be drawn, or the report holds no such grades.
    pub fn draw(&self, report: &EvalReport) -> Result<Chart, PlotError> {
        let shown = report.shown(&self.dataset);
        let graded: Vec<&Evaluation> = shown.iter().collect();
        let missing = || PlotError { chart: self.name.clone(), reason: "no grades".into() };
        let svg = match &self.kind {
            Kind::PrefixBins => prefix_bins(&self.dataset, &graded),
            Kind::LabelGroups => label_groups(&self.dataset, &graded),
            Kind::FirstMistakes => first_mistakes(&self.dataset, &graded),
            Kind::ErrorMap(tracker) => {
                error_map(report.evaluation(tracker, &self.dataset).ok_or_else(missing)?)
            }
            Kind::TrainingGames => training_games(report)?.ok_or_else(missing),
        }?;
        Ok(Chart { name: self.name.clone(), svg })
    }
}

/// Every chart of a report, in the order of [`plan`].
///
/// # Errors
/// [`PlotError`] for the first chart that cannot be drawn.
pub fn charts(report: &EvalReport) -> Result<Vec<Chart>, PlotError> {
    plan(report).iter().map(|plan| plan.draw(report)).collect()
}

/// A name as part of a file name.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_end_matches('-').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_safe_file_names() {
        assert_eq!(slug("naive-mover+rights+ep"), "naive-mover-rights-ep");
        assert_eq!(slug("../Ärger/x y"), "rger-x-y");
    }
}
