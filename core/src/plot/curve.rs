//! Exact state accuracy along the game (paper, section F).

use std::fmt::Write as _;

use plotters::{
    element::{Circle, Cross, IntoDynElement, PathElement, TriangleMarker},
    prelude::{ChartBuilder, IntoLinspace, LineSeries, Polygon, WHITE},
    style::{Color, RGBColor},
};

use super::{
    PlotError,
    legend::{KEY, legend},
    svg::{COLORS, INK, chart, font},
};
use crate::{
    metrics::{Interval, IntervalMethod},
    report::{Evaluation, PrefixBin},
};

/// Exact state accuracy by prefix bin, a line a tracker, with the 95 % intervals as bands.
///
/// # Errors
/// [`PlotError`] if the chart cannot be drawn.
pub fn prefix_bins(dataset: &str, graded: &[&Evaluation]) -> Result<String, PlotError> {
    let title = format!("Exact state accuracy by prefix bin: {dataset}");
    let mut description = String::from(
        "Share of steps with all 75 labels right in each bin of 20 steps, in percent.",
    );
    let last_step = graded
        .iter()
        .filter_map(|e| e.prefix_bins.last())
        .map(|bin| bin.to_step)
        .max()
        .unwrap_or(20) as f64;
    for evaluation in graded {
        let _ = write!(description, " {}:", evaluation.tracker);
        for (x, y) in points(evaluation) {
            let _ = write!(description, " {}-{} {y:.2};", x - 10.0, x + 10.0);
        }
    }
    chart((860, 480), &title, &description, |canvas, marks| {
        let names: Vec<&str> = graded.iter().map(|e| e.tracker.as_str()).collect();
        let legend_height = legend(canvas, &title, &names, |i, (x, y)| {
            let color = COLORS[i % COLORS.len()];
            canvas.draw(&PathElement::new([(x, y), (x + KEY, y)], color.stroke_width(2)))?;
            canvas.draw(&marker(i, (x + KEY / 2, y), color))?;
            Ok(())
        })?;
        let (_, below) = canvas.split_vertically(legend_height);
        let mut plot = ChartBuilder::on(&below)
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(56)
            .build_cartesian_2d((0.0..last_step).step(20.0), 0.0..100.0)?;
        plot.configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(INK.mix(0.12))
            .x_desc("step")
            .y_desc("exact states, %")
            .x_labels(12)
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| format!("{y:.0}"))
            .label_style(font(13))
            .axis_desc_style(font(14))
            .draw()?;
        for (i, evaluation) in graded.iter().enumerate() {
            let color = COLORS[i % COLORS.len()];
            for band in bands(evaluation) {
                plot.draw_series([Polygon::new(band, color.mix(0.15).filled())])?;
            }
            let points = points(evaluation);
            plot.draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2)))?;
            for (&(x, y), bin) in points.iter().zip(&evaluation.prefix_bins) {
                let (left, top) = plot.backend_coord(&(x, y));
                let share = &bin.exact_state_accuracy;
                let value = format!(
                    "{}, steps {}-{}: {y:.4} % exact ({} of {})",
                    evaluation.tracker,
                    bin.from_step,
                    bin.to_step - 1,
                    share.numerator,
                    share.denominator
                );
                marks.add([left - 6, top - 6, left + 6, top + 6], &value);
            }
            plot.draw_series(points.into_iter().map(|at| marker(i, at, color)))?;
        }
        Ok(())
    })
}

/// Centre of each bin, and its exact state accuracy in percent.
fn points(evaluation: &Evaluation) -> Vec<(f64, f64)> {
    let point = |bin: &PrefixBin| {
        let value = bin.exact_state_accuracy.value()?;
        Some((centre(bin), value * 100.0))
    };
    evaluation.prefix_bins.iter().filter_map(point).collect()
}

fn centre(bin: &PrefixBin) -> f64 {
    (bin.from_step + bin.to_step) as f64 / 2.0
}

/// Outlines of the intervals over each run of bins whose share is neither 0 nor 1: upper ends from left to right, then
/// the lower ends back. Shares of 0 and 1 have wide Wilson intervals where games are few, which would hide the rest.
fn bands(evaluation: &Evaluation) -> Vec<Vec<(f64, f64)>> {
    let runs = evaluation.prefix_bins.split(|bin| bootstrapped(bin).is_none());
    let outline = |run: &[PrefixBin]| {
        let ends: Vec<(f64, Interval)> =
            run.iter().filter_map(|bin| Some((centre(bin), bootstrapped(bin)?))).collect();
        let upper = ends.iter().map(|&(x, interval)| (x, interval.high * 100.0));
        upper.chain(ends.iter().rev().map(|&(x, interval)| (x, interval.low * 100.0))).collect()
    };
    runs.filter(|run| run.len() > 1).map(outline).collect()
}

fn bootstrapped(bin: &PrefixBin) -> Option<Interval> {
    bin.exact_state_accuracy.interval.filter(|i| i.method == IntervalMethod::Bootstrap)
}

/// One of three marks, so that lines of one colour family stay apart in print.
fn marker<DB, P>(
    series: usize,
    at: P,
    color: RGBColor,
) -> plotters::element::DynElement<'static, DB, P>
where
    DB: plotters::prelude::DrawingBackend,
    P: Clone + Send + Sync + 'static,
    for<'b> &'b Circle<P, i32>: plotters::element::PointCollection<'b, P>,
    for<'b> &'b TriangleMarker<P, i32>: plotters::element::PointCollection<'b, P>,
    for<'b> &'b Cross<P, i32>: plotters::element::PointCollection<'b, P>,
{
    match series % 3 {
        0 => Circle::new(at, 3, color.filled()).into_dyn(),
        1 => TriangleMarker::new(at, 5, color.filled()).into_dyn(),
        _ => Cross::new(at, 3, color.stroke_width(2)).into_dyn(),
    }
}
