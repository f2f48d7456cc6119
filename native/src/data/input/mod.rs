//! Inputs of `cwm data prepare`: what a file is, by its content, and the games in it. Common PGN is read by
//! [`cwm_core::data::pgn`], which the page uses too.

pub mod files;
pub mod jsonl;
pub mod parsed;
pub mod quirks;
pub mod sniff;
pub mod source;
pub mod uci_lines;

pub use parsed::Parsed;
pub use sniff::Format;
