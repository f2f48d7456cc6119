//! What a model says along the game on the board, step by step, beside the truth.

use cwm_core::chess::{State, label::LABELS};
use cwm_protocol::StepAnswer;

use crate::labels::{self, Likely};

/// One step's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The named state; `None` if the numbers were not finite.
    named: Option<State>,
    /// For each label its most probable classes, most probable first; empty where the tracker gives no probabilities.
    top: Vec<Vec<(u8, f32)>>,
}

impl Answer {
    /// A state without probabilities.
    pub fn certain(named: State) -> Self {
        Answer { named: Some(named), top: Vec::new() }
    }

    /// What a worker says. Classes that do not exist count as numbers that are not finite.
    pub fn of(step: &StepAnswer) -> Self {
        let labels = <[u8; LABELS]>::try_from(&step.classes[..]).ok();
        let named = labels.filter(|_| step.finite).and_then(|labels| State::new(labels).ok());
        Answer { named, top: step.top.clone() }
    }

    /// The named state.
    pub fn named(&self) -> Option<&State> {
        self.named.as_ref()
    }

    /// Whether a label is right.
    pub fn is_right(&self, truth: &State, label: usize) -> bool {
        self.named.is_some_and(|named| named.labels()[label] == truth.labels()[label])
    }

    /// Labels that are wrong: all of them if the numbers are not finite.
    pub fn wrong(&self, truth: &State) -> usize {
        self.named.map_or(LABELS, |named| truth.differing_labels(&named).count())
    }

    /// The probability of the class that is named for a label.
    pub fn probability(&self, label: usize) -> Option<f32> {
        self.top.get(label)?.first().map(|(_, probability)| *probability)
    }

    /// The most probable classes of a label; the named one alone where there are no probabilities.
    pub fn likely(&self, truth: &State, label: usize) -> Vec<Likely> {
        let entry = |class: u8, probability: Option<f32>| Likely {
            words: labels::words(label, class),
            probability,
            percent: probability.map_or_else(String::new, labels::percent),
            true_class: truth.labels()[label] == class,
        };
        match (self.top.get(label), &self.named) {
            (Some(top), _) if !top.is_empty() => {
                top.iter().map(|&(class, probability)| entry(class, Some(probability))).collect()
            }
            (_, Some(named)) => vec![entry(named.labels()[label], None)],
            _ => Vec::new(),
        }
    }
}

/// The answers along a line, from its first step on; the later ones may still be missing.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    steps: Vec<Answer>,
    wrong: Vec<u8>,
}

impl Answers {
    /// How many steps are answered.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Forgets all from `step` on.
    pub fn truncate(&mut self, step: usize) {
        self.steps.truncate(step);
        self.wrong.truncate(step);
    }

    /// Adds the answer of the next step.
    pub fn push(&mut self, answer: Answer, truth: &State) {
        self.wrong.push(answer.wrong(truth) as u8);
        self.steps.push(answer);
    }

    /// The answer of a step.
    pub fn get(&self, step: usize) -> Option<&Answer> {
        self.steps.get(step)
    }

    /// Wrong labels at each answered step.
    pub fn wrong(&self) -> &[u8] {
        &self.wrong
    }

    /// Steps that are exact.
    pub fn exact(&self) -> usize {
        self.wrong.iter().filter(|&&wrong| wrong == 0).count()
    }

    /// The first step that is not exact.
    pub fn first_mistake(&self) -> Option<usize> {
        self.wrong.iter().position(|&wrong| wrong > 0)
    }

    /// The next step behind `step` that is not exact.
    pub fn mistake_after(&self, step: usize) -> Option<usize> {
        (step + 1..self.wrong.len()).find(|&at| self.wrong[at] > 0)
    }

    /// The last step before `step` that is not exact.
    pub fn mistake_before(&self, step: usize) -> Option<usize> {
        (0..step.min(self.wrong.len())).rev().find(|&at| self.wrong[at] > 0)
    }

    /// Steps at which a label is wrong.
    pub fn wrong_steps(&self, label: usize, truth: &[State]) -> Vec<u32> {
        let steps = self.steps.iter().zip(truth).enumerate();
        steps
            .filter(|(_, (answer, truth))| !answer.is_right(truth, label))
            .map(|(step, _)| step as u32)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use cwm_core::{baseline::Baseline, chess::Trajectory, evaluate::predict, tracker::ready};

    use super::*;

    fn castling() -> Trajectory {
        let text = "Nf3 Nf6 g3 g6 Bg2 Bg7 O-O O-O";
        let game = cwm_core::chess::parse::parse_games(text).unwrap().remove(0);
        Trajectory::replay(&game.moves)
    }

    fn naive() -> Answers {
        let game = castling();
        let prediction = ready(predict(&Baseline::NaiveMoverRights, &game)).unwrap().unwrap();
        let mut answers = Answers::default();
        for (state, truth) in prediction.states.iter().zip(game.states()) {
            answers.push(Answer::certain(*state), truth);
        }
        answers
    }

    #[test]
    fn mistakes_are_found_in_both_directions() {
        let answers = naive();
        assert_eq!(answers.wrong(), [0, 0, 0, 0, 0, 0, 0, 2, 4]);
        assert_eq!((answers.first_mistake(), answers.exact()), (Some(7), 7));
        assert_eq!((answers.mistake_after(7), answers.mistake_after(8)), (Some(8), None));
        assert_eq!((answers.mistake_before(8), answers.mistake_before(7)), (Some(7), None));
        assert_eq!(answers.wrong_steps(61, castling().states()), [7, 8], "f1");
    }

    #[test]
    fn answers_that_are_no_states_are_wrong_in_all_labels() {
        let truth = State::start();
        let mut step =
            StepAnswer { finite: true, classes: truth.labels().to_vec(), ..Default::default() };
        assert_eq!(Answer::of(&step).wrong(&truth), 0);
        step.classes[64] = 9;
        assert_eq!(Answer::of(&step).wrong(&truth), LABELS);
        step.classes.clear();
        assert_eq!(Answer::of(&step).wrong(&truth), LABELS);
        assert!(Answer::of(&step).likely(&truth, 3).is_empty());
    }

    #[test]
    fn the_likely_classes_are_named_with_the_truth_among_them() {
        let truth = State::start();
        let top = vec![vec![(10, 0.75), (0, 0.2), (7, 0.05)]; LABELS];
        let step = StepAnswer {
            finite: true,
            classes: truth.labels().to_vec(),
            top,
            ..Default::default()
        };
        let likely = Answer::of(&step).likely(&truth, 0);
        assert_eq!(likely[0].words, "black rook");
        assert_eq!(likely[1].percent, "20.0 %");
        assert_eq!(likely.iter().map(|l| l.true_class).collect::<Vec<_>>(), [true, false, false]);
        assert_eq!(Answer::certain(truth).likely(&truth, 0).len(), 1);
    }
}
