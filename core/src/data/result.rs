//! How a game ended, in PGN's four words.

use std::{fmt, str::FromStr};

/// The result of a game. The benchmark stores it as bookkeeping; no model sees it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
pub enum GameResult {
    /// `1-0`
    #[serde(rename = "1-0")]
    WhiteWins,
    /// `0-1`
    #[serde(rename = "0-1")]
    BlackWins,
    /// `1/2-1/2`
    #[serde(rename = "1/2-1/2")]
    Draw,
    /// `*`: unfinished or unknown
    #[default]
    #[serde(rename = "*")]
    Unknown,
}

/// A word that is none of the four results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a result (expected 1-0, 0-1, 1/2-1/2 or *)")]
pub struct NotAResult;

impl GameResult {
    /// Every result.
    pub const ALL: [GameResult; 4] =
        [GameResult::WhiteWins, GameResult::BlackWins, GameResult::Draw, GameResult::Unknown];

    /// The result as PGN writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            GameResult::WhiteWins => "1-0",
            GameResult::BlackWins => "0-1",
            GameResult::Draw => "1/2-1/2",
            GameResult::Unknown => "*",
        }
    }

    /// The result in PGN's spelling, from bytes that need not be text.
    pub fn from_bytes(word: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|result| result.as_str().as_bytes() == word)
    }
}

impl FromStr for GameResult {
    type Err = NotAResult;
    fn from_str(word: &str) -> Result<Self, NotAResult> {
        Self::from_bytes(word.as_bytes()).ok_or(NotAResult)
    }
}

impl fmt::Display for GameResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
