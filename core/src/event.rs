//! What a running evaluation tells whoever shows it: the command line and the page render the same messages.

use serde::{Deserialize, Serialize};

use crate::metrics::Counts;

/// One message of a running evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A tracker begins with a dataset.
    Started {
        /// The tracker's name.
        tracker: String,
        /// The dataset's name.
        dataset: String,
        /// Games to grade, if known beforehand.
        games_total: Option<u64>,
    },
    /// A batch was graded; the sums run over everything graded so far.
    Graded(Partial),
    /// The tracker is through with the dataset, or was stopped.
    Finished {
        /// The final sums.
        graded: Partial,
        /// Whether every game was graded.
        complete: bool,
    },
}

/// Sums over the games graded so far, in whatever order they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Partial {
    /// Games graded.
    pub games: u64,
    /// Games with every step exact.
    pub exact_games: u64,
    /// Steps graded.
    pub steps: u64,
    /// Steps with all 75 labels right.
    pub exact_steps: u64,
    /// Labels right.
    pub labels_right: u64,
}

impl Partial {
    /// Exact state accuracy so far; 0 before the first step.
    pub fn exact_state_accuracy(&self) -> f64 {
        self.exact_steps as f64 / self.steps.max(1) as f64
    }
}

impl From<&Counts> for Partial {
    fn from(counts: &Counts) -> Self {
        Partial {
            games: counts.games,
            exact_games: counts.exact_games,
            steps: counts.steps,
            exact_steps: counts.exact_steps,
            labels_right: counts.labels_right(),
        }
    }
}
