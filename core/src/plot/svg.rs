//! The frame of every chart: size, colours, fonts, title and description.

use std::fmt::Write as _;

use plotters::{
    coord::Shift,
    prelude::{DrawingArea, IntoDrawingArea, RGBColor, SVGBackend, TextStyle, WHITE},
    style::{Color, IntoFont},
};

use super::{PlotError, canvas::Svg};

/// A canvas of plotters on SVG.
pub(super) type Canvas<'a> = DrawingArea<Svg<'a>, Shift>;

/// What drawing yields; the error is told in words.
pub(super) type Drawn = Result<(), Box<dyn std::error::Error>>;

/// The colours of Okabe and Ito, those that stand out on white first.
pub(super) const COLORS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

/// Text colour: 4.5:1 on white and more.
pub(super) const INK: RGBColor = RGBColor(40, 40, 40);

/// Text of `size` pixels.
pub(super) fn font(size: i32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

/// Places in the chart, in pixels, and the exact value that each stands for.
#[derive(Debug, Default)]
pub(super) struct Marks(String);

impl Marks {
    /// Adds a place: left, top, right, bottom.
    pub(super) fn add(&mut self, [left, top, right, bottom]: [i32; 4], value: &str) {
        let (width, height) = ((right - left).max(3), (bottom - top).max(3));
        let value = escape(value);
        // Writing to a string cannot fail.
        let _ = writeln!(
            self.0,
            "<rect x=\"{left}\" y=\"{}\" width=\"{width}\" height=\"{height}\" data-value=\"{value}\"><title>{value}</title></rect>",
            top.min(bottom - height),
        );
    }
}

/// Draws on a white canvas and frames the result with its title, its description, and the values under the pointer.
pub(super) fn chart(
    (width, height): (u32, u32),
    title: &str,
    description: &str,
    draw: impl FnOnce(&Canvas<'_>, &mut Marks) -> Drawn,
) -> Result<String, PlotError> {
    let fail = |reason: String| PlotError { chart: title.to_string(), reason };
    let mut svg = String::new();
    let mut marks = Marks::default();
    {
        let canvas = Svg(SVGBackend::with_string(&mut svg, (width, height))).into_drawing_area();
        canvas.fill(&WHITE.to_rgba()).map_err(|e| fail(e.to_string()))?;
        draw(&canvas, &mut marks).map_err(|e| fail(e.to_string()))?;
        canvas.present().map_err(|e| fail(e.to_string()))?;
    }
    // The root element ends at the first `>`: neither its size nor its namespace holds one.
    let (root, body) = svg.split_once('>').ok_or_else(|| fail("no root element".into()))?;
    let body = body.trim_end().strip_suffix("</svg>").ok_or_else(|| fail("no end".into()))?;
    Ok(format!(
        "{root} role=\"img\" aria-label=\"{title}\" font-family=\"sans-serif\">\n<title>{title}</title>\n<desc>{description}</desc>{body}\
         <g fill=\"none\" pointer-events=\"all\">\n{marks}</g>\n</svg>\n",
        title = escape(title),
        description = escape(description),
        marks = marks.0,
    ))
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() && c != '\n' => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_escaped_text() {
        let svg = chart((100, 50), "a < \"b\"", "c & d\u{1}", |_, marks| {
            marks.add([1, 2, 3, 2], "x: \"5\"");
            Ok(())
        })
        .unwrap();
        assert!(svg.starts_with("<svg"), "{svg}");
        assert!(
            svg.contains("<title>a &lt; &quot;b&quot;</title>\n<desc>c &amp; d </desc>"),
            "{svg}"
        );
        assert!(svg.trim_end().ends_with("</svg>"), "{svg}");
        let mark = "<rect x=\"1\" y=\"-1\" width=\"3\" height=\"3\" data-value=\"x: &quot;5&quot;\"><title>x: &quot;5&quot;</title></rect>";
        assert!(svg.contains(mark), "{svg}");
    }
}
