//! Results on stdout.
//!
//! `print!` panics when the reader has gone (`cwm ... | head`); these functions give an error instead, which ends the
//! process quietly (see [`crate::exit::is_closed_pipe`]).

use std::io::{self, Write};

use anyhow::Context;
use serde::Serialize;

/// How a command prints what it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// Lines for reading.
    #[default]
    Text,
    /// One JSON document.
    Json,
}

/// Writes a result, exactly as given.
pub fn print(text: impl AsRef<str>) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_ref().as_bytes())
        .and_then(|()| stdout.flush())
        .context("cannot write to stdout")
}

/// Writes one JSON document, indented, with a newline at its end.
pub fn print_json(document: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(document).context("cannot write JSON")?;
    text.push('\n');
    print(text)
}
