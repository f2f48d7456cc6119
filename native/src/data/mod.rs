//! Datasets on disk: Parquet shards of moves beside a `dataset.json` that says what they hold.
//!
//! A dataset directory appears complete or not at all, and its readers trust nothing in it.

pub mod export;
pub mod info;
pub mod input;
pub mod interrupt;
pub mod manifest;
pub mod pipeline;
pub mod prepare;
pub mod random;
pub mod reader;
pub mod schema;
pub mod writer;

pub use manifest::Manifest;
pub use reader::Dataset;
pub use writer::{DatasetWriter, Target};

use cwm_core::data::Game;

/// How to replay a game that [`cwm_core::chess::State::after`] cannot: made only under the reference's quirks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// `standard`, `chess960`, or a variant's name in lower case.
    pub rules: String,
    /// The starting position, if it is not that of the rules.
    pub start_fen: Option<String>,
}

/// One row of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The game.
    pub game: Game,
    /// How to replay it; `None` for a legal game of standard chess from the standard start.
    pub replay: Option<Replay>,
}

impl From<Game> for Row {
    fn from(game: Game) -> Self {
        Row { game, replay: None }
    }
}
