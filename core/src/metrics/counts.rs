//! The counts behind every published number, as integers.

use crate::{
    chess::{
        Trajectory,
        label::{LABELS, LabelGroup, SQUARES},
    },
    tracker::Prediction,
};

use super::{
    loss::Loss,
    record::{GameRecord, compare},
};

/// Steps in a prefix bin: \[0,20), \[20,40), ... (paper, section F).
pub const BIN_STEPS: usize = 20;

/// Counts of one prefix bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BinCounts {
    /// Steps that fall into the bin.
    pub steps: u64,
    /// Those with all 75 labels right.
    pub exact_steps: u64,
    /// Labels right over the bin's steps.
    pub labels_right: u64,
}

/// Where games go wrong first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FirstMistakes {
    /// Games by the step of their first mistake; as long as the latest such step needs.
    pub by_step: Vec<u64>,
    /// Games whose first mistake touches a label group, in the order of [`LabelGroup::ALL`]; a game that errs in
    /// several groups at once counts in each.
    pub by_group: [u64; LabelGroup::ALL.len()],
}

/// Everything counted over a set of games. [`Counts::merge`] is exact, associative and commutative.
///
/// | here | reference |
/// |---|---|
/// | exact state accuracy = `exact_steps / steps` | `full_exact` |
/// | labelwise accuracy = `labels_right / (75 steps)` | `partial_exact` |
/// | trajectory exactness = `exact_games / games` | `game_exact` |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// Games graded.
    pub games: u64,
    /// Games with every step exact.
    pub exact_games: u64,
    /// Steps graded.
    pub steps: u64,
    /// Steps with all 75 labels right.
    pub exact_steps: u64,
    /// Steps at which some logit was not finite; wrong in all 75 labels.
    pub non_finite_steps: u64,
    /// Steps at which each label is right.
    pub label_right: [u64; LABELS],
    /// Prefix bins of [`BIN_STEPS`] steps, as many as the longest game reaches.
    pub bins: Vec<BinCounts>,
    /// First mistakes.
    pub first_mistakes: FirstMistakes,
    /// Cross-entropy, over the games whose tracker gives one.
    pub loss: Loss,
}

impl Default for Counts {
    fn default() -> Self {
        Counts {
            games: 0,
            exact_games: 0,
            steps: 0,
            exact_steps: 0,
            non_finite_steps: 0,
            label_right: [0; LABELS],
            bins: Vec::new(),
            first_mistakes: FirstMistakes::default(),
            loss: Loss::default(),
        }
    }
}

impl Counts {
    /// Grades one more game and returns its record.
    pub fn add(&mut self, game: &Trajectory, prediction: &Prediction) -> GameRecord {
        if self.bins.len() < game.steps().div_ceil(BIN_STEPS) {
            self.bins.resize(game.steps().div_ceil(BIN_STEPS), BinCounts::default());
        }
        let mut first_mistake: Option<(usize, [bool; LABELS])> = None;
        let record = compare(game, prediction, |step, right| {
            let mut labels_right = 0;
            for (count, &ok) in self.label_right.iter_mut().zip(right) {
                *count += u64::from(ok);
                labels_right += u64::from(ok);
            }
            let bin = &mut self.bins[step / BIN_STEPS];
            bin.steps += 1;
            bin.exact_steps += u64::from(labels_right == LABELS as u64);
            bin.labels_right += labels_right;
            if labels_right < LABELS as u64 && first_mistake.is_none() {
                first_mistake = Some((step, *right));
            }
        });
        self.games += 1;
        self.steps += u64::from(record.steps);
        self.exact_steps += u64::from(record.exact_steps);
        self.non_finite_steps +=
            prediction.non_finite_steps.iter().filter(|&&step| step < game.steps()).count() as u64;
        match first_mistake {
            None => self.exact_games += 1,
            Some((step, right)) => {
                let by_step = &mut self.first_mistakes.by_step;
                by_step.resize(by_step.len().max(step + 1), 0);
                by_step[step] += 1;
                for (count, group) in self.first_mistakes.by_group.iter_mut().zip(LabelGroup::ALL) {
                    *count += u64::from(right[group.labels()].contains(&false));
                }
            }
        }
        if let Some(sum) = prediction.loss_sum {
            self.loss.merge(&Loss::of_game(sum, (game.steps() * LABELS) as u64));
        }
        record
    }

    /// Adds the counts of other games.
    pub fn merge(&mut self, other: &Counts) {
        self.games += other.games;
        self.exact_games += other.exact_games;
        self.steps += other.steps;
        self.exact_steps += other.exact_steps;
        self.non_finite_steps += other.non_finite_steps;
        add_each(&mut self.label_right, &other.label_right);
        if self.bins.len() < other.bins.len() {
            self.bins.resize(other.bins.len(), BinCounts::default());
        }
        for (mine, theirs) in self.bins.iter_mut().zip(&other.bins) {
            mine.steps += theirs.steps;
            mine.exact_steps += theirs.exact_steps;
            mine.labels_right += theirs.labels_right;
        }
        let mine = &mut self.first_mistakes;
        let theirs = &other.first_mistakes;
        mine.by_step.resize(mine.by_step.len().max(theirs.by_step.len()), 0);
        add_each(&mut mine.by_step, &theirs.by_step);
        add_each(&mut mine.by_group, &theirs.by_group);
        self.loss.merge(&other.loss);
    }

    /// Labels right over all steps.
    pub fn labels_right(&self) -> u64 {
        self.label_right.iter().sum()
    }

    /// Labels graded: 75 a step.
    pub const fn labels(&self) -> u64 {
        self.steps * LABELS as u64
    }

    /// Labels right in a group, and labels graded in it.
    pub fn group(&self, group: LabelGroup) -> (u64, u64) {
        let labels = group.labels();
        (self.label_right[labels.clone()].iter().sum(), self.steps * labels.len() as u64)
    }

    /// Steps at which each square (a8, b8, .., h1) is right.
    pub fn squares_right(&self) -> &[u64] {
        &self.label_right[..SQUARES]
    }
}

fn add_each(to: &mut [u64], from: &[u64]) {
    for (a, b) in to.iter_mut().zip(from) {
        *a += b;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::chess::{MoveToken, State};

    /// A game of `steps` steps and a prediction that is wrong in `errors` random labels.
    fn game(seed: u64, steps: usize, errors: usize) -> (Trajectory, Prediction) {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let truth = vec![State::start(); steps];
        let mut tokens = vec![MoveToken::START; steps];
        tokens[1..].fill(MoveToken::PAD);
        let mut labels: Vec<[u8; LABELS]> = truth.iter().map(|s| *s.labels()).collect();
        for _ in 0..errors {
            // Classes 0 and 1 exist for every label.
            let label = &mut labels[rng.random_range(0..steps)][rng.random_range(0..LABELS)];
            *label = u8::from(*label == 0);
        }
        let states = labels.into_iter().map(|l| State::new(l).unwrap()).collect();
        let non_finite_steps = if seed.is_multiple_of(5) { vec![steps - 1] } else { vec![] };
        let loss_sum = (!seed.is_multiple_of(3)).then(|| rng.random_range(0.0..1e4));
        (
            Trajectory::from_aligned(tokens, truth).unwrap(),
            Prediction { states, loss_sum, non_finite_steps },
        )
    }

    fn counts_of(games: &[(u64, usize, usize)]) -> Counts {
        let mut counts = Counts::default();
        for &(seed, steps, errors) in games {
            let (game, prediction) = game(seed, steps, errors);
            counts.add(&game, &prediction);
        }
        counts
    }

    fn games() -> impl Strategy<Value = Vec<(u64, usize, usize)>> {
        proptest::collection::vec((0..1000u64, 1..90usize, 0..12usize), 0..6)
    }

    proptest! {
        #[test]
        fn merging_is_adding_the_games(a in games(), b in games(), c in games()) {
            let (ca, cb, cc) = (counts_of(&a), counts_of(&b), counts_of(&c));
            let merged = |x: &Counts, y: &Counts| { let mut z = x.clone(); z.merge(y); z };
            let left = merged(&merged(&ca, &cb), &cc);
            prop_assert_eq!(&left, &merged(&ca, &merged(&cb, &cc)));
            prop_assert_eq!(&left, &merged(&cc, &merged(&cb, &ca)));
            prop_assert_eq!(&left, &counts_of(&[a, b, c].concat()));
            prop_assert_eq!(&merged(&ca, &Counts::default()), &ca);
        }

        #[test]
        fn counts_and_records_tell_the_same(list in games()) {
            let mut counts = Counts::default();
            let mut records = Vec::new();
            for &(seed, steps, errors) in &list {
                let (game, prediction) = game(seed, steps, errors);
                records.push(counts.add(&game, &prediction));
            }
            let sum = |f: &dyn Fn(&GameRecord) -> u64| records.iter().map(f).sum::<u64>();
            prop_assert_eq!(counts.steps, sum(&|r| r.steps.into()));
            prop_assert_eq!(counts.exact_steps, sum(&|r| r.exact_steps.into()));
            prop_assert_eq!(counts.exact_steps, counts.bins.iter().map(|b| b.exact_steps).sum::<u64>());
            prop_assert_eq!(
                counts.exact_steps,
                sum(&|r| r.bin_exact_steps.iter().map(|&n| u64::from(n)).sum())
            );
            prop_assert_eq!(counts.labels_right(), sum(&|r| r.labels_right()));
            prop_assert_eq!(counts.labels_right(), counts.bins.iter().map(|b| b.labels_right).sum::<u64>());
            prop_assert_eq!(counts.exact_games, sum(&|r| r.is_exact().into()));
            let mistaken: u64 = counts.first_mistakes.by_step.iter().sum();
            prop_assert_eq!(counts.games, counts.exact_games + mistaken);
            for record in &records {
                prop_assert_eq!(record.is_exact(), record.exact_steps == record.steps);
            }
        }
    }

    #[test]
    fn non_finite_and_missing_steps_are_wrong_in_all_labels() {
        let (game, mut prediction) = game(1, 30, 0);
        prediction.non_finite_steps = vec![3, 25, 99];
        prediction.states.truncate(29);
        let mut counts = Counts::default();
        let record = counts.add(&game, &prediction);
        assert_eq!((record.exact_steps, record.first_mistake), (27, Some(3)));
        assert_eq!(counts.labels_right(), 27 * 75);
        assert_eq!(counts.non_finite_steps, 2);
        assert_eq!(counts.first_mistakes.by_group, [1; 6]);
        assert_eq!(counts.bins[1], BinCounts { steps: 10, exact_steps: 8, labels_right: 600 });
    }
}
