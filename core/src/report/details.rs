//! Parts of an evaluation that name single games or moves: the worst games, and what follows the moves that a policy seeks.

use serde::{Deserialize, Serialize};

use super::Share;
use crate::{
    chess::label::{LABELS, LabelGroup},
    metrics::{self, LAGS},
};

/// A game that went wrong, with what it takes to look at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorstGame {
    /// The game's place in its set, from 0.
    pub game: u64,
    /// Its id in the dataset, or who played it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its steps (plies + 1).
    pub steps: u64,
    /// Steps with all 75 labels right.
    pub exact_steps: u64,
    /// The smallest step whose state is not exact.
    pub first_mistake: u64,
    /// Labels wrong over all steps.
    pub labels_wrong: u64,
    /// Its moves in UCI notation, divided by blanks.
    pub moves: String,
}

impl WorstGame {
    /// A kept game, without its name.
    pub(super) fn new(worst: &metrics::WorstGame) -> Self {
        let moves = worst.moves.iter().map(|token| token.to_string()).collect::<Vec<_>>();
        WorstGame {
            game: worst.game,
            name: None,
            steps: worst.record.steps.into(),
            exact_steps: worst.record.exact_steps.into(),
            first_mistake: worst.record.first_mistake.unwrap_or(0).into(),
            labels_wrong: worst.labels_wrong,
            moves: moves.join(" "),
        }
    }

    /// Whether its numbers can be those of one game.
    pub(super) fn is_consistent(&self) -> bool {
        self.exact_steps < self.steps
            && self.first_mistake < self.steps
            && u128::from(self.labels_wrong) <= u128::from(self.steps) * LABELS as u128
            && self.moves.split(' ').filter(|word| !word.is_empty()).count() as u64 + 1
                == self.steps
    }
}

/// What follows the moves that a policy seeks, and how long errors last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Aftermath {
    /// Moves that the policy is about.
    pub events: u64,
    /// Games with such a move.
    pub games: u64,
    /// Exact states at the event's step and some steps behind it.
    pub lags: Vec<Lag>,
    /// Errors by label group.
    pub errors: Vec<GroupErrors>,
}

/// States at one distance from events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lag {
    /// Steps behind the event.
    pub after_steps: u64,
    /// States with all 75 labels right.
    pub exact_state_accuracy: Share,
}

/// The errors of one label group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupErrors {
    /// The group.
    pub group: LabelGroup,
    /// Times that the group went from all right to wrong.
    pub errors: u64,
    /// Errors that ended before their game did.
    pub corrected: u64,
    /// Steps after which half of the errors are over (Kaplan-Meier); missing if half of them never are.
    pub half_life_steps: Option<u64>,
}

impl Aftermath {
    /// The shares of what was counted.
    pub(super) fn new(counts: &metrics::Aftermath) -> Self {
        let lags = LAGS.iter().zip(&counts.lags).map(|(&lag, counts)| Lag {
            after_steps: lag as u64,
            exact_state_accuracy: Share::new(counts.exact_steps, counts.steps, None),
        });
        let errors = LabelGroup::ALL.into_iter().zip(&counts.errors);
        let errors = errors.map(|(group, errors)| GroupErrors {
            group,
            errors: errors.made(),
            corrected: errors.corrected(),
            half_life_steps: errors.half_life_steps(),
        });
        Aftermath {
            events: counts.events,
            games: counts.games,
            lags: lags.collect(),
            errors: errors.collect(),
        }
    }

    /// Whether its numbers can be those of one set of games.
    pub(super) fn is_consistent(&self) -> bool {
        self.games <= self.events
            && self.lags.iter().all(|lag| lag.exact_state_accuracy.denominator <= self.events)
            && self.errors.iter().all(|group| group.corrected <= group.errors)
    }
}
