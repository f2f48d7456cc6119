//! A line of play as far as the network has read it.
//!
//! Playing on costs one step. Going back and branching off costs the steps since the last snapshot: copies of the
//! network's memory are kept at intervals that grow with the line, so that few suffice.

use cwm_core::{
    chess::{
        MoveToken,
        label::{LABELS, logit_range},
    },
    tracker::{TrackError, Tracker},
};
use cwm_models::{Answers, ModelMemory, ModelTracker};
use cwm_protocol::StepAnswer;

/// Steps between snapshots of a short line.
const FIRST_INTERVAL: usize = 16;
/// Snapshots that are kept at most.
const SNAPSHOTS_MAX: usize = 16;

/// What the network remembers of a line.
pub(crate) struct Line {
    /// The tokens that `memory` has read, START first.
    tokens: Vec<MoveToken>,
    memory: ModelMemory,
    /// Steps read and the memory then, ascending.
    snapshots: Vec<(usize, ModelMemory)>,
    interval: usize,
}

impl Line {
    /// Before START.
    pub(crate) fn new(tracker: &ModelTracker) -> Self {
        let memory = tracker.start(1);
        Line { tokens: Vec::new(), memory, snapshots: Vec::new(), interval: FIRST_INTERVAL }
    }

    /// Goes back to the longest remembered part of `line` that has at most `steps` steps; gives its length.
    pub(crate) fn rewind(
        &mut self,
        tracker: &ModelTracker,
        line: &[MoveToken],
        steps: usize,
    ) -> usize {
        let common = self.tokens.iter().zip(line).take_while(|(a, b)| a == b).count();
        let wanted = common.min(steps);
        if self.tokens.len() > wanted {
            self.snapshots.retain(|(read, _)| *read <= wanted);
            match self.snapshots.last() {
                Some((read, memory)) => {
                    self.tokens.truncate(*read);
                    self.memory = memory.clone();
                }
                None => *self = Line::new(tracker),
            }
        }
        self.tokens.len()
    }

    /// Reads one token more.
    pub(crate) async fn push(
        &mut self,
        tracker: &ModelTracker,
        token: MoveToken,
    ) -> Result<StepAnswer, TrackError> {
        let answers = tracker.answer(&mut self.memory, &[token]).await?;
        self.tokens.push(token);
        let read = self.tokens.len();
        if read.is_multiple_of(self.interval) {
            self.snapshots.push((read, self.memory.clone()));
            if self.snapshots.len() > SNAPSHOTS_MAX {
                self.interval *= 2;
                let interval = self.interval;
                self.snapshots.retain(|(read, _)| read.is_multiple_of(interval));
            }
        }
        Ok(step_answer(read as u32 - 1, &answers))
    }
}

/// Classes that are told of each label.
const TOP: usize = 3;

fn step_answer(step: u32, answers: &Answers) -> StepAnswer {
    let (Some(state), Some(true)) = (answers.states.first(), answers.finite.first()) else {
        return StepAnswer { step, ..StepAnswer::default() };
    };
    let short = |p: f32| (p * 1e5).round() / 1e5;
    let probabilities = |label: usize| &answers.probabilities[logit_range(label)];
    let top = |label: usize| {
        let mut classes: Vec<(u8, f32)> =
            (0_u8..=255).zip(probabilities(label).iter().copied()).collect();
        let most_probable_first =
            |a: &(u8, f32), b: &(u8, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if classes.len() > TOP {
            classes.select_nth_unstable_by(TOP, most_probable_first);
            classes.truncate(TOP);
        }
        classes.sort_unstable_by(most_probable_first);
        classes.into_iter().map(|(class, p)| (class, short(p))).collect()
    };
    let classes = state.labels().to_vec();
    let named = |(label, &class): (usize, &u8)| short(probabilities(label)[usize::from(class)]);
    StepAnswer {
        step,
        finite: true,
        probabilities: classes.iter().enumerate().map(named).collect(),
        top: (0..LABELS).map(top).collect(),
        classes,
    }
}
