//! Accuracy against the number of games that models were trained on.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use plotters::{
    element::{Circle, PathElement},
    prelude::{ChartBuilder, IntoLogRange, LineSeries, WHITE},
    style::{Color, RGBColor},
};

use super::{
    PlotError,
    legend::{KEY, legend},
    svg::{COLORS, INK, chart, font},
};
use crate::report::{EvalReport, Share, TrackerKind, grouped};

/// Numbers of games from which on there is a curve to draw.
const LEAST_COUNTS: usize = 3;

/// One line: a share of every model on one dataset.
struct Series {
    name: String,
    color: RGBColor,
    /// Exact games are drawn thinner than exact states.
    width: u32,
    /// Percent by games of training; several models may have as many.
    points: BTreeMap<u64, Vec<f64>>,
}

impl Series {
    /// The mean of each number of games.
    fn means(&self) -> Vec<(f64, f64)> {
        let mean = |values: &Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        self.points.iter().map(|(&games, values)| (games as f64, mean(values))).collect()
    }
}

/// Games of training of each model, where known.
fn trained(report: &EvalReport) -> BTreeMap<&str, u64> {
    let games = report.trackers.iter().filter_map(|tracker| match &tracker.kind {
        TrackerKind::Model(model) => Some((tracker.name.as_str(), model.train_games?)),
        TrackerKind::Baseline => None,
    });
    games.filter(|(_, games)| *games > 0).collect()
}

/// Whether models were trained on so many different numbers of games that there is a curve to draw.
pub(super) fn differ(report: &EvalReport) -> bool {
    let counts: BTreeSet<u64> = trained(report).into_values().collect();
    counts.len() >= LEAST_COUNTS
}

/// Exact states and exact games of all models on all datasets, a dot a model, lines through the means; `None` if the
/// models were trained on fewer than three different numbers of games.
///
/// # Errors
/// [`PlotError`] if the chart cannot be drawn.
pub fn training_games(report: &EvalReport) -> Result<Option<String>, PlotError> {
    let trained = trained(report);
    let counts: BTreeSet<u64> = trained.values().copied().collect();
    let (Some(&least), Some(&most)) = (counts.first(), counts.last()) else { return Ok(None) };
    if counts.len() < LEAST_COUNTS {
        return Ok(None);
    }
    let (least, most) = (least as f64, most as f64);
    let series = series(report, &trained);
    let title = "Accuracy against games of training";
    let mut description = String::from("Percent by number of games trained on, means of models.");
    for series in &series {
        let _ = write!(description, " {}:", series.name);
        for (games, percent) in series.means() {
            let _ = write!(description, " {} {percent:.2};", grouped(games as u64));
        }
    }
    let svg = chart((860, 480), title, &description, |canvas, marks| {
        let names: Vec<&str> = series.iter().map(|line| line.name.as_str()).collect();
        let legend_height = legend(canvas, title, &names, |i, (x, y)| {
            let Series { color, width, .. } = series[i];
            canvas.draw(&PathElement::new([(x, y), (x + KEY, y)], color.stroke_width(width)))?;
            canvas.draw(&Circle::new((x + KEY / 2, y), 2 + width as i32, color.filled()))?;
            Ok(())
        })?;
        let (_, below) = canvas.split_vertically(legend_height);
        let mut plot = ChartBuilder::on(&below)
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(56)
            .build_cartesian_2d((least * 0.8..most * 1.25).log_scale(), 0.0..101.0)?;
        plot.configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(INK.mix(0.12))
            .x_desc("games of training")
            .y_desc("exact, %")
            .x_labels(8)
            .x_label_formatter(&|x| grouped(x.round() as u64))
            .y_label_formatter(&|y| format!("{y:.0}"))
            .label_style(font(13))
            .axis_desc_style(font(14))
            .draw()?;
        for line in &series {
            let means = line.means();
            let Series { name, color, width, points } = line;
            let (color, width) = (*color, *width);
            let stroke = color.stroke_width(width);
            plot.draw_series(LineSeries::new(means, stroke))?;
            for (&games, values) in points {
                for &percent in values {
                    let (x, y) = plot.backend_coord(&(games as f64, percent));
                    let value = format!("{name}, {} games: {percent:.4} %", grouped(games));
                    marks.add([x - 6, y - 6, x + 6, y + 6], &value);
                }
            }
            let dots = points.iter().flat_map(|(&games, values)| {
                values.iter().map(move |&percent| (games as f64, percent))
            });
            plot.draw_series(dots.map(|at| Circle::new(at, 2 + width as i32, color.filled())))?;
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

fn series(report: &EvalReport, trained: &BTreeMap<&str, u64>) -> Vec<Series> {
    let mut all = Vec::new();
    for (i, dataset) in report.datasets.iter().enumerate() {
        let color = COLORS[i % COLORS.len()];
        let graded = || report.evaluations.iter().filter(|e| e.dataset == dataset.name);
        let mut push = |what: &str, width, share: &dyn Fn(&crate::report::Evaluation) -> Share| {
            let mut points: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
            for evaluation in graded() {
                let games = trained.get(evaluation.tracker.as_str());
                if let (Some(&games), Some(value)) = (games, share(evaluation).value()) {
                    points.entry(games).or_default().push(value * 100.0);
                }
            }
            all.push(Series { name: format!("{}, {what}", dataset.name), color, width, points });
        };
        push("states", 2, &|e| e.exact_state_accuracy);
        push("games", 1, &|e| e.trajectory_exactness);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        chess::EnPassant,
        metrics::Resampling,
        report::{DatasetInfo, Evaluation, ModelInfo, Source, TrackerInfo},
    };

    fn report(train_games: &[u64]) -> EvalReport {
        let mut report = EvalReport::new("cwm test", Resampling::default());
        report.datasets.push(DatasetInfo {
            name: "d".into(),
            source: Source::BuiltIn,
            en_passant: EnPassant::Always,
            split: None,
            limit: None,
        });
        for (i, &games) in train_games.iter().enumerate() {
            let share = |n| Share::new(n, 10, None);
            let info = ModelInfo {
                family: "transition".into(),
                size: "c1/d1/h1".into(),
                d_model: 1,
                n_layers: 1,
                parameters: 1,
                sha256: String::new(),
                path: String::new(),
                train_steps: None,
                train_games: Some(games),
                games_read: Some(games),
                structured: true,
            };
            let (name, kind) = (format!("m{i}"), TrackerKind::Model(info));
            report.evaluations.push(Evaluation {
                tracker: name.clone(),
                dataset: "d".into(),
                games: 10,
                steps: 10,
                complete: true,
                moves_sha256: String::new(),
                exact_state_accuracy: share(i as u64),
                labelwise_accuracy: share(0),
                trajectory_exactness: share(0),
                loss: None,
                non_finite_steps: 0,
                prefix_bins: Vec::new(),
                label_groups: Vec::new(),
                labels_right: Vec::new(),
                first_mistake_steps: Vec::new(),
                first_mistake_groups: Vec::new(),
                worst_games: Vec::new(),
                aftermath: None,
            });
            report.trackers.push(TrackerInfo { name, kind });
        }
        report
    }

    #[test]
    fn models_of_three_sizes_of_data_make_a_curve() {
        assert_eq!(training_games(&report(&[100, 100, 1000])).unwrap(), None);
        let svg = training_games(&report(&[100, 1000, 100, 10_000])).unwrap().unwrap();
        // 0 and 2 of 10 at 100 games, 1 of 10 at 1,000, 3 of 10 at 10,000.
        let said = "d, states: 100 10.00; 1,000 10.00; 10,000 30.00; d, games: 100 0.00;";
        assert!(svg.contains(said), "{svg}");
    }
}
