//! SVG as plotters draws it, but with text measured by our own rule: the same in a terminal's process and in a browser,
//! where plotters would ask the document, and need leave to style it.

use plotters::prelude::{DrawingBackend, SVGBackend};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingErrorKind,
};

/// Width of a character in parts of the font's size.
const CHARACTER_WIDTH: f64 = 0.455;
/// Height of a line in parts of the font's size.
const LINE_HEIGHT: f64 = 0.81;

/// An SVG document in the making.
pub struct Svg<'a>(pub(super) SVGBackend<'a>);

type Drawn<'a> = Result<(), DrawingErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

impl<'a> DrawingBackend for Svg<'a> {
    type ErrorType = <SVGBackend<'a> as DrawingBackend>::ErrorType;

    fn get_size(&self) -> (u32, u32) {
        self.0.get_size()
    }

    fn ensure_prepared(&mut self) -> Drawn<'a> {
        self.0.ensure_prepared()
    }

    fn present(&mut self) -> Drawn<'a> {
        self.0.present()
    }

    fn draw_pixel(&mut self, point: BackendCoord, color: BackendColor) -> Drawn<'a> {
        self.0.draw_pixel(point, color)
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Drawn<'a> {
        self.0.draw_line(from, to, style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        upper_left: BackendCoord,
        bottom_right: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn<'a> {
        self.0.draw_rect(upper_left, bottom_right, style, fill)
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn<'a> {
        self.0.draw_path(path, style)
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        center: BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Drawn<'a> {
        self.0.draw_circle(center, radius, style, fill)
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        outline: I,
        style: &S,
    ) -> Drawn<'a> {
        self.0.fill_polygon(outline, style)
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        at: BackendCoord,
    ) -> Drawn<'a> {
        self.0.draw_text(text, style, at)
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Self::ErrorType>> {
        let width = style.size() * CHARACTER_WIDTH * text.chars().count() as f64;
        Ok((width.round() as u32, (style.size() * LINE_HEIGHT).round() as u32))
    }
}

#[cfg(test)]
mod tests {
    use plotters::prelude::IntoDrawingArea;

    use super::{super::svg::font, *};

    #[test]
    fn text_is_measured_without_a_document() {
        let mut text = String::new();
        let area = Svg(SVGBackend::with_string(&mut text, (100, 50))).into_drawing_area();
        assert_eq!(area.estimate_text_size("é0 %", &font(20)).unwrap(), (36, 16));
    }
}
