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

pub use bars::{first_mistakes, label_groups};
pub use board::error_map;
pub use curve::prefix_bins;

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

/// Every chart of a report: three for each dataset, and an error map for each model on it.
///
/// # Errors
/// [`PlotError`] for the first chart that cannot be drawn.
pub fn charts(report: &EvalReport) -> Result<Vec<Chart>, PlotError> {
    let mut charts: Vec<Chart> = Vec::new();
    for dataset in &report.datasets {
        let graded: Vec<&Evaluation> = report
            .trackers
            .iter()
            .filter_map(|tracker| report.evaluation(&tracker.name, &dataset.name))
            .collect();
        if graded.is_empty() {
            continue;
        }
        let name = |kind: &str| format!("{}-{kind}", slug(&dataset.name));
        let drawn = [
            (name("prefix-bins"), prefix_bins(&dataset.name, &graded)?),
            (name("label-groups"), label_groups(&dataset.name, &graded)?),
            (name("first-mistakes"), first_mistakes(&dataset.name, &graded)?),
        ];
        charts.extend(drawn.into_iter().map(|(name, svg)| Chart { name, svg }));
        for tracker in &report.trackers {
            if let TrackerKind::Model(_) = tracker.kind
                && let Some(evaluation) = report.evaluation(&tracker.name, &dataset.name)
            {
                let name = name(&format!("error-map-{}", slug(&tracker.name)));
                charts.push(Chart { name, svg: error_map(evaluation)? });
            }
        }
    }
    Ok(charts)
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
