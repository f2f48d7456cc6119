//! Bars: error by label group, and where games go wrong first.

use std::fmt::Write as _;

use plotters::{
    coord::ranged1d::{IntoSegmentedCoord, SegmentValue},
    element::{Rectangle, Text},
    prelude::{ChartBuilder, WHITE},
    style::{
        Color,
        text_anchor::{HPos, Pos, VPos},
    },
};

use super::{
    PlotError,
    legend::legend,
    svg::{COLORS, Canvas, Drawn, INK, Marks, chart, font},
};
use crate::{chess::label::LabelGroup, metrics::BIN_STEPS, report::Evaluation};

/// Bars in groups: for each category one value a tracker.
struct Bars<'a> {
    title: &'a str,
    x_desc: &'a str,
    y_desc: &'a str,
    categories: Vec<String>,
    /// Name and value in each category.
    series: Vec<(String, Vec<f64>)>,
    /// Whether the values are written over their bars.
    write_values: bool,
}

/// Share of labels that are wrong in each label group.
///
/// # Errors
/// [`PlotError`] if the chart cannot be drawn.
pub fn label_groups(dataset: &str, graded: &[&Evaluation]) -> Result<String, PlotError> {
    let title = format!("Wrong labels by label group: {dataset}");
    let wrong = |evaluation: &&Evaluation| {
        let of_group = |group: &crate::report::GroupShare| {
            group.accuracy.value().map_or(0.0, |right| (1.0 - right) * 100.0)
        };
        (evaluation.tracker.clone(), evaluation.label_groups.iter().map(of_group).collect())
    };
    let bars = Bars {
        title: &title,
        x_desc: "label group",
        y_desc: "wrong labels, %",
        categories: LabelGroup::ALL.map(|group| group.name().to_string()).to_vec(),
        series: graded.iter().map(wrong).collect(),
        write_values: graded.len() <= 3,
    };
    let description = bars.describe("Share of labels that are wrong, in percent.");
    chart((860, 440), &title, &description, |canvas, marks| bars.draw(canvas, marks))
}

/// Games by the prefix bin of their first mistake; games without a mistake stand apart at the right.
///
/// # Errors
/// [`PlotError`] if the chart cannot be drawn.
pub fn first_mistakes(dataset: &str, graded: &[&Evaluation]) -> Result<String, PlotError> {
    let title = format!("First mistakes: {dataset}");
    let bins = graded.iter().map(|e| e.prefix_bins.len()).max().unwrap_or(0);
    let mut categories: Vec<String> = (0..bins).map(|bin| (bin * BIN_STEPS).to_string()).collect();
    categories.push("none".into());
    let share = |evaluation: &&Evaluation| {
        let mut games = vec![0; bins + 1];
        for entry in &evaluation.first_mistake_steps {
            if let Some(bin) = games.get_mut(entry.step as usize / BIN_STEPS) {
                *bin += entry.games;
            }
        }
        games[bins] = evaluation.trajectory_exactness.numerator;
        let percent = |games: u64| games as f64 * 100.0 / evaluation.games.max(1) as f64;
        (evaluation.tracker.clone(), games.into_iter().map(percent).collect())
    };
    let bars = Bars {
        title: &title,
        x_desc: "first step of the 20-step bin in which the first mistake falls",
        y_desc: "games, %",
        categories,
        series: graded.iter().map(share).collect(),
        write_values: false,
    };
    let description = bars.describe("Share of games, in percent, by where their first mistake is.");
    chart((860, 440), &title, &description, |canvas, marks| bars.draw(canvas, marks))
}

impl Bars<'_> {
    fn describe(&self, what: &str) -> String {
        let mut text = what.to_string();
        for (name, values) in &self.series {
            let _ = write!(text, " {name}:");
            for (category, value) in self.categories.iter().zip(values) {
                let _ = write!(text, " {category} {value:.2};");
            }
        }
        text
    }

    fn draw(&self, canvas: &Canvas<'_>, marks: &mut Marks) -> Drawn {
        let largest =
            self.series.iter().flat_map(|(_, values)| values).fold(0.0, |a: f64, &b| a.max(b));
        let top = if largest > 0.0 { largest * 1.12 } else { 1.0 };
        let categories = self.categories.len();
        let names: Vec<&str> = self.series.iter().map(|(name, _)| name.as_str()).collect();
        let legend_height = legend(canvas, self.title, &names, |i, (x, y)| {
            let swatch = [(x + 6, y - 6), (x + 18, y + 6)];
            canvas.draw(&Rectangle::new(swatch, COLORS[i % COLORS.len()].filled()))?;
            Ok(())
        })?;
        let (_, below) = canvas.split_vertically(legend_height);
        let mut plot = ChartBuilder::on(&below)
            .margin(16)
            .x_label_area_size(48)
            .y_label_area_size(60)
            .build_cartesian_2d((0..categories.saturating_sub(1)).into_segmented(), 0.0..top)?;
        plot.configure_mesh()
            .disable_x_mesh()
            .light_line_style(WHITE)
            .bold_line_style(INK.mix(0.12))
            .x_desc(self.x_desc)
            .y_desc(self.y_desc)
            .x_labels(categories.min(17))
            .y_label_formatter(&|y| if top > 10.0 { format!("{y:.0}") } else { format!("{y:.2}") })
            .x_label_formatter(&|x| match x {
                SegmentValue::CenterOf(i) => self.categories.get(*i).cloned().unwrap_or_default(),
                _ => String::new(),
            })
            .label_style(font(13))
            .axis_desc_style(font(14))
            .draw()?;
        // Bars are placed in pixels: segments have no fractions.
        let segment = |i: usize| plot.backend_coord(&(SegmentValue::Exact(i), 0.0));
        let width = if categories > 1 { segment(1).0 - segment(0).0 } else { 200 };
        let bar = (f64::from(width) * 0.84 / self.series.len().max(1) as f64).max(1.0);
        let area = canvas.strip_coord_spec();
        for (i, (name, values)) in self.series.iter().enumerate() {
            let color = COLORS[i % COLORS.len()];
            for (category, &value) in values.iter().enumerate() {
                let (x0, base) = segment(category);
                let (_, y) = plot.backend_coord(&(SegmentValue::Exact(category), value));
                let left = f64::from(x0) + f64::from(width) * 0.08 + bar * i as f64;
                let corners = [(left as i32, y), ((left + bar) as i32, base)];
                area.draw(&Rectangle::new(corners, color.filled()))?;
                let value_text = format!("{name}, {}: {value:.4} %", self.categories[category]);
                marks.add([left as i32, y, (left + bar) as i32, base], &value_text);
                if self.write_values && value > 0.0 {
                    let style = font(11).pos(Pos::new(HPos::Center, VPos::Bottom));
                    let at = ((left + bar / 2.0) as i32, y - 2);
                    area.draw(&Text::new(format!("{value:.2}"), at, style))?;
                }
            }
        }
        Ok(())
    }
}
