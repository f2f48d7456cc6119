//! Tables that become aligned text or Markdown.

/// Text, row by row; the first column is flush left, the others flush right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(header: &[&str]) -> Self {
        Table { header: header.iter().map(|h| h.to_string()).collect(), rows: Vec::new() }
    }

    pub fn push(&mut self, row: Vec<String>) {
        debug_assert_eq!(row.len(), self.header.len());
        self.rows.push(row);
    }

    fn widths(&self) -> Vec<usize> {
        let width = |column: usize| {
            let cells = std::iter::once(&self.header).chain(&self.rows);
            cells
                .map(|row| row.get(column).map_or(0, |cell| cell.chars().count()))
                .max()
                .unwrap_or(0)
        };
        (0..self.header.len()).map(width).collect()
    }

    /// Columns two spaces apart, indented by two.
    pub fn to_text(&self) -> String {
        let widths = self.widths();
        let mut text = String::new();
        for row in std::iter::once(&self.header).chain(&self.rows) {
            let mut line = format!("  {:<1$}", row[0], widths[0]);
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                line += &format!("  {cell:>width$}");
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }

    pub fn to_markdown(&self) -> String {
        let widths = self.widths();
        let line = |row: &[String]| {
            let cells = row.iter().zip(&widths).enumerate().map(|(i, (cell, &width))| {
                let cell = cell.replace('|', "\\|");
                if i == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
        };
        let rule = widths.iter().enumerate().map(|(i, &width)| {
            let dashes = "-".repeat(width.max(2) - usize::from(i > 0));
            if i == 0 { dashes } else { dashes + ":" }
        });
        let mut text = line(&self.header);
        text += &format!("| {} |\n", rule.collect::<Vec<_>>().join(" | "));
        self.rows.iter().for_each(|row| text += &line(row));
        text
    }
}
