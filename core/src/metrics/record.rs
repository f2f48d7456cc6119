//! What one graded game leaves behind: enough for every interval, in some hundred bytes.

use crate::{
    chess::{
        State, Trajectory,
        label::{LABELS, LabelGroup},
    },
    tracker::Prediction,
};

use super::counts::BIN_STEPS;

/// One game's grades.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct GameRecord {
    /// Steps in the game (plies + 1).
    pub steps: u32,
    /// Steps with all 75 labels right.
    pub exact_steps: u32,
    /// Labels right over all steps, by label group in the order of [`LabelGroup::ALL`].
    pub group_labels_right: [u32; LabelGroup::ALL.len()],
    /// Exact steps in each prefix bin, as many bins as the game reaches.
    pub bin_exact_steps: Vec<u8>,
    /// The smallest step whose state is not exact.
    pub first_mistake: Option<u32>,
    /// Cross-entropy summed over steps and labels, in nats, where the tracker gives one.
    pub loss_sum: Option<f64>,
}

impl GameRecord {
    /// Labels right over all steps.
    pub fn labels_right(&self) -> u64 {
        self.group_labels_right.iter().map(|&n| u64::from(n)).sum()
    }

    /// Whether every step is exact.
    pub const fn is_exact(&self) -> bool {
        self.first_mistake.is_none()
    }
}

/// Compares a game's prediction with the truth, step by step.
///
/// `on_step` gets the step and whether each label is right; missing and non-finite steps are wrong in all 75.
pub(super) fn compare(
    game: &Trajectory,
    prediction: &Prediction,
    mut on_step: impl FnMut(usize, &[bool; LABELS]),
) -> GameRecord {
    let steps = game.steps();
    let mut record = GameRecord {
        steps: steps as u32,
        exact_steps: 0,
        group_labels_right: [0; LabelGroup::ALL.len()],
        bin_exact_steps: vec![0; steps.div_ceil(BIN_STEPS)],
        first_mistake: None,
        loss_sum: prediction.loss_sum,
    };
    let mut non_finite = prediction.non_finite_steps.iter().copied().peekable();
    for (step, truth) in game.states().iter().enumerate() {
        while non_finite.next_if(|&bad| bad < step).is_some() {}
        let predicted = match non_finite.peek() {
            Some(&bad) if bad == step => None,
            _ => prediction.states.get(step),
        };
        let right = predicted.map_or([false; LABELS], |predicted| agreement(truth, predicted));
        for (count, group) in record.group_labels_right.iter_mut().zip(LabelGroup::ALL) {
            *count += right[group.labels()].iter().map(|&ok| u32::from(ok)).sum::<u32>();
        }
        if right == [true; LABELS] {
            record.exact_steps += 1;
            record.bin_exact_steps[step / BIN_STEPS] += 1;
        } else if record.first_mistake.is_none() {
            record.first_mistake = Some(step as u32);
        }
        on_step(step, &right);
    }
    record
}

fn agreement(truth: &State, predicted: &State) -> [bool; LABELS] {
    let (a, b) = (truth.labels(), predicted.labels());
    std::array::from_fn(|label| a[label] == b[label])
}
