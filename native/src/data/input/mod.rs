//! Inputs of `cwm data prepare`: what a file is, by its content, and how it comes apart into blocks of whole games.

pub mod blocks;
pub mod files;
pub mod jsonl;
pub mod parsed;
pub mod pgn;
pub mod quirks;
pub mod sniff;
pub mod source;
pub mod uci_lines;

pub use parsed::Parsed;
pub use sniff::Format;
