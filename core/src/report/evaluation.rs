//! One tracker's grades on one dataset.

use serde::{Deserialize, Serialize};

use super::{Aftermath, LossMean, Share, WorstGame};
use crate::{
    chess::label::{LABELS, LabelGroup},
    evaluate::Grading,
    metrics::{BIN_STEPS, Intervals, Resampling},
};

/// One tracker's grades on one dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The tracker's name.
    pub tracker: String,
    /// The dataset's name.
    pub dataset: String,
    /// Games graded.
    pub games: u64,
    /// Steps graded (plies + 1 a game).
    pub steps: u64,
    /// Whether every game was graded; `false` after a cancellation.
    pub complete: bool,
    /// SHA-256 over the games' tokens (see `docs/formats`): equal hashes mean equal games.
    pub moves_sha256: String,
    /// Steps with all 75 labels right (paper: ExactState; reference: `full_exact`).
    pub exact_state_accuracy: Share,
    /// Labels right (reference: `partial_exact`).
    pub labelwise_accuracy: Share,
    /// Games with every step exact (reference: `game_exact`).
    pub trajectory_exactness: Share,
    /// Mean cross-entropy; missing for trackers that give no probabilities.
    pub loss: Option<LossMean>,
    /// Steps at which some logit was not finite; wrong in all labels.
    pub non_finite_steps: u64,
    /// The prefix bins that games reach.
    pub prefix_bins: Vec<PrefixBin>,
    /// The six label groups.
    pub label_groups: Vec<GroupShare>,
    /// Steps at which each of the 75 labels is right, out of `steps`; the first 64 are the squares a8, b8, .., h1.
    pub labels_right: Vec<u64>,
    /// Games by the step of their first mistake, ascending; exact games are in none.
    pub first_mistake_steps: Vec<FirstMistakeStep>,
    /// Games by the label groups that their first mistake touches; a game may count in several.
    pub first_mistake_groups: Vec<FirstMistakeGroup>,
    /// The games that went worst, the worst first: by share of exact states, then by first mistake.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worst_games: Vec<WorstGame>,
    /// What follows the moves that the games' policy seeks; missing where no policy played.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aftermath: Option<Aftermath>,
}

/// Grades within one prefix bin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PrefixBin {
    /// The bin's first step.
    pub from_step: u64,
    /// The step behind its last.
    pub to_step: u64,
    /// Steps with all 75 labels right.
    pub exact_state_accuracy: Share,
    /// Labels right.
    pub labelwise_accuracy: Share,
}

/// Grades within one label group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupShare {
    /// The group.
    pub group: LabelGroup,
    /// Labels right.
    pub accuracy: Share,
}

/// Games whose first mistake is at one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstMistakeStep {
    /// The step.
    pub step: u64,
    /// Games.
    pub games: u64,
}

/// Games whose first mistake touches one label group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstMistakeGroup {
    /// The group.
    pub group: LabelGroup,
    /// Games.
    pub games: u64,
}

impl Evaluation {
    /// Works out every share and interval of a grading.
    pub fn new(tracker: &str, dataset: &str, grading: &Grading, resampling: Resampling) -> Self {
        let counts = &grading.counts;
        let intervals = Intervals::over(&grading.games, resampling);
        let bins = counts.bins.iter().enumerate().map(|(i, bin)| PrefixBin {
            from_step: (i * BIN_STEPS) as u64,
            to_step: ((i + 1) * BIN_STEPS) as u64,
            exact_state_accuracy: Share::new(
                bin.exact_steps,
                bin.steps,
                intervals.bins.get(i).copied().flatten(),
            ),
            labelwise_accuracy: Share::new(bin.labels_right, bin.steps * LABELS as u64, None),
        });
        let groups = LabelGroup::ALL.into_iter().zip(intervals.groups).map(|(group, interval)| {
            let (right, labels) = counts.group(group);
            GroupShare { group, accuracy: Share::new(right, labels, interval) }
        });
        let mistakes = &counts.first_mistakes;
        let steps = mistakes.by_step.iter().enumerate().filter(|(_, games)| **games > 0);
        Evaluation {
            tracker: tracker.to_string(),
            dataset: dataset.to_string(),
            games: counts.games,
            steps: counts.steps,
            complete: grading.complete,
            moves_sha256: grading.moves_sha256.clone(),
            exact_state_accuracy: Share::new(
                counts.exact_steps,
                counts.steps,
                intervals.exact_state,
            ),
            labelwise_accuracy: Share::new(
                counts.labels_right(),
                counts.labels(),
                intervals.labelwise,
            ),
            trajectory_exactness: Share::new(
                counts.exact_games,
                counts.games,
                intervals.trajectory,
            ),
            loss: LossMean::new(&counts.loss, intervals.loss),
            non_finite_steps: counts.non_finite_steps,
            prefix_bins: bins.collect(),
            label_groups: groups.collect(),
            labels_right: counts.label_right.to_vec(),
            first_mistake_steps: steps
                .map(|(step, &games)| FirstMistakeStep { step: step as u64, games })
                .collect(),
            first_mistake_groups: LabelGroup::ALL
                .into_iter()
                .zip(mistakes.by_group)
                .map(|(group, games)| FirstMistakeGroup { group, games })
                .collect(),
            worst_games: grading.worst.games().iter().map(WorstGame::new).collect(),
            aftermath: grading.aftermath.as_ref().map(Aftermath::new),
        }
    }

    /// The step by which half of the games have gone wrong, if half of them have.
    pub fn median_first_mistake(&self) -> Option<u64> {
        let mut wrong = 0;
        self.first_mistake_steps.iter().find_map(|entry| {
            wrong += u128::from(entry.games);
            (wrong * 2 >= u128::from(self.games)).then_some(entry.step)
        })
    }

    /// What contradicts itself, if anything does.
    pub(super) fn check(&self) -> Result<(), String> {
        let exact = self.exact_state_accuracy;
        // A foreign document may hold any numbers: sums are wider than what is summed.
        let bins = |f: fn(&PrefixBin) -> u64| sum(self.prefix_bins.iter().map(f));
        let steps = u128::from(self.steps);
        let checks = [
            (exact.denominator == self.steps, "the steps"),
            (
                u128::from(self.labelwise_accuracy.denominator) == steps * LABELS as u128,
                "the labels",
            ),
            (self.trajectory_exactness.denominator == self.games, "the games"),
            (bins(|b| b.exact_state_accuracy.denominator) == steps, "the prefix bins"),
            (
                bins(|b| b.exact_state_accuracy.numerator) == u128::from(exact.numerator),
                "the prefix bins",
            ),
            (self.labels_right.len() == LABELS, "the 75 labels"),
            (self.labels_right.iter().all(|&right| right <= self.steps), "the 75 labels"),
            (
                sum(self.labels_right.iter().copied())
                    == u128::from(self.labelwise_accuracy.numerator),
                "the 75 labels",
            ),
            (self.worst_games.iter().all(WorstGame::is_consistent), "the worst games"),
            (self.aftermath.as_ref().is_none_or(Aftermath::is_consistent), "the aftermath"),
        ];
        match checks.iter().find(|(holds, _)| !holds) {
            Some((_, what)) => Err(format!("{what} do not add up in the grades")),
            None => Ok(()),
        }
    }
}

fn sum(numbers: impl Iterator<Item = u64>) -> u128 {
    numbers.map(u128::from).sum()
}
