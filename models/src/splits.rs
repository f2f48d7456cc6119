//! Games that come with the crate.

/// Famous games as PGN, the built-in sample of human play (`models/splits/classics`).
pub const CLASSICS_PGN: &str = include_str!("../splits/classics/classics.pgn");
