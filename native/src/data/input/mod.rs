//! Inputs of `cwm data prepare`: what a file is, by its content, and how it comes apart into blocks of whole games.

pub mod blocks;
pub mod parsed;
pub mod source;
pub mod uci_lines;

pub use parsed::Parsed;

/// What the text of an input holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines of UCI moves.
    UciLines,
}
