//! What each colour stands for, above the chart: nothing of it is hidden.

use plotters::{
    element::Text,
    style::text_anchor::{HPos, Pos, VPos},
};

use super::svg::{Canvas, Drawn, font};

/// Width of a key, in pixels.
pub(super) const KEY: i32 = 24;
/// Height of a row of entries, in pixels.
const ROW: i32 = 20;

/// Writes the title and, below it, an entry a series; returns the height taken. `draw_key` draws series `i` from the left
/// end of its key, [`KEY`] pixels wide.
pub(super) fn legend(
    canvas: &Canvas<'_>,
    title: &str,
    names: &[&str],
    draw_key: impl Fn(usize, (i32, i32)) -> Drawn,
) -> Result<i32, Box<dyn std::error::Error>> {
    let width = canvas.dim_in_pixel().0 as i32;
    let middle = Pos::new(HPos::Center, VPos::Center);
    canvas.draw(&Text::new(title.to_string(), (width / 2, 22), font(18).pos(middle)))?;
    let (mut x, mut y) = (24, 50);
    for (i, name) in names.iter().enumerate() {
        // Without fonts at hand the width of a name is an estimate.
        let needed = KEY + 6 + 7 * name.chars().count() as i32 + 14;
        if x + needed > width && x > 24 {
            (x, y) = (24, y + ROW);
        }
        draw_key(i, (x, y))?;
        let style = font(13).pos(Pos::new(HPos::Left, VPos::Center));
        canvas.draw(&Text::new(name.to_string(), (x + KEY + 6, y), style))?;
        x += needed;
    }
    Ok(y + ROW / 2)
}
