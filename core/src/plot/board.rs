//! Where on the board a tracker errs.

use std::fmt::Write as _;

use plotters::{
    element::{Rectangle, Text},
    style::{
        Color, RGBColor,
        text_anchor::{HPos, Pos, VPos},
    },
};

use super::{
    PlotError,
    svg::{INK, chart, font},
};
use crate::{
    chess::label::{SQUARES, label_name},
    report::Evaluation,
};

/// Pixels of a square's side.
const SIDE: i32 = 58;
/// Where the board begins.
const LEFT: i32 = 40;
const TOP: i32 = 60;

/// The share of steps at which each square is wrong, on a board seen from White.
///
/// # Errors
/// [`PlotError`] if the chart cannot be drawn.
pub fn error_map(evaluation: &Evaluation) -> Result<String, PlotError> {
    let title = format!("Wrong squares: {} on {}", evaluation.tracker, evaluation.dataset);
    let steps = evaluation.steps.max(1) as f64;
    let wrong: Vec<f64> = evaluation
        .labels_right
        .iter()
        .take(SQUARES)
        .map(|&right| evaluation.steps.saturating_sub(right) as f64 * 100.0 / steps)
        .collect();
    let most = wrong.iter().fold(0.0, |a: f64, &b| a.max(b));
    let mut description =
        String::from("Share of steps at which each square's content is wrong, in percent:");
    for (label, share) in wrong.iter().enumerate() {
        let _ = write!(description, " {} {share:.2};", label_name(label));
    }
    let size = (2 * LEFT + 8 * SIDE) as u32;
    chart((size, size + 44), &title, &description, |canvas, marks| {
        let centred = |size| font(size).pos(Pos::new(HPos::Center, VPos::Center));
        canvas.draw(&Text::new(title.clone(), (size as i32 / 2, 22), centred(17)))?;
        let note = "% of steps at which the square is wrong";
        canvas.draw(&Text::new(note, (size as i32 / 2, 44), centred(12)))?;
        for (label, &share) in wrong.iter().enumerate() {
            let (row, column) = ((label / 8) as i32, (label % 8) as i32);
            let (x, y) = (LEFT + column * SIDE, TOP + row * SIDE);
            let fill = shade(if most > 0.0 { share / most } else { 0.0 });
            let square = [(x, y), (x + SIDE, y + SIDE)];
            canvas.draw(&Rectangle::new(square, fill.filled()))?;
            canvas.draw(&Rectangle::new(square, INK.mix(0.35).stroke_width(1)))?;
            let at = (x + SIDE / 2, y + SIDE / 2);
            canvas.draw(&Text::new(format!("{share:.2}"), at, centred(14)))?;
            let value = format!("{}: wrong at {share:.4} % of the steps", label_name(label));
            marks.add([x, y, x + SIDE, y + SIDE], &value);
        }
        for i in 0..8 {
            let middle = i * SIDE + SIDE / 2;
            let rank = (b'8' - i as u8) as char;
            let file = (b'a' + i as u8) as char;
            canvas.draw(&Text::new(rank.to_string(), (LEFT / 2, TOP + middle), centred(14)))?;
            let below = (LEFT + middle, TOP + 8 * SIDE + 18);
            canvas.draw(&Text::new(file.to_string(), below, centred(14)))?;
        }
        Ok(())
    })
}

/// From white to Okabe and Ito's orange, on which the ink still reads well.
fn shade(part: f64) -> RGBColor {
    let mix = |to: u8| (255.0 + (f64::from(to) - 255.0) * part).round() as u8;
    RGBColor(mix(230), mix(159), mix(0))
}
