//! 95 % intervals by bootstrap over games.
//!
//! The steps of one game stand or fall together, so games are drawn, not steps: each resample draws as many games as
//! there are, with replacement (multinomial), from a ChaCha8 stream of the given seed, and takes each metric as a
//! ratio of sums over the drawn games. The interval runs from the 2.5 % to the 97.5 % quantile of the resamples. All
//! metrics share the resamples, and their sums are integers (loss apart, which is summed in game order), so equal
//! records and seed give equal bits.
//!
//! Where every game has the same share, 0 or 1, all resamples agree and their spread says nothing. There the Wilson
//! score interval stands in, with games as the trials: `0` of `n` gives `[0, z²/(n + z²)]`, 3.8/n for large n (close
//! to the rule of three). One game alone, or other shares without spread, get no interval.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::record::GameRecord;
use crate::chess::label::{LABELS, LabelGroup};

use super::counts::BIN_STEPS;

/// How the resamples are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Resampling {
    /// Resamples, 1,000 or more for published numbers.
    pub resamples: u32,
    /// Seed of the ChaCha8 stream.
    pub seed: u64,
}

impl Default for Resampling {
    fn default() -> Self {
        Resampling { resamples: 1000, seed: 0 }
    }
}

/// Where an interval comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntervalMethod {
    /// Quantiles of resampled games.
    Bootstrap,
    /// The Wilson score over games, for a share of 0 or 1.
    Wilson,
}

/// A 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How it was found.
    pub method: IntervalMethod,
}

/// The intervals of one grading; `None` where the games allow none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Intervals {
    /// Of exact state accuracy.
    pub exact_state: Option<Interval>,
    /// Of labelwise accuracy.
    pub labelwise: Option<Interval>,
    /// Of trajectory exactness.
    pub trajectory: Option<Interval>,
    /// Of the mean loss.
    pub loss: Option<Interval>,
    /// Of each label group's accuracy, in the order of [`LabelGroup::ALL`].
    pub groups: [Option<Interval>; LabelGroup::ALL.len()],
    /// Of exact state accuracy in each prefix bin.
    pub bins: Vec<Option<Interval>>,
}

/// The square of the normal quantile at 97.5 %.
const Z2: f64 = 1.959_963_984_540_054 * 1.959_963_984_540_054;

impl Intervals {
    /// Intervals of every metric over `games`, whose order matters to the last bits.
    pub fn over(games: &[GameRecord], resampling: Resampling) -> Intervals {
        let column = |value: &dyn Fn(&GameRecord) -> u32| games.iter().map(value).collect();
        let steps: Vec<u32> = column(&|g| g.steps);
        let ones = vec![1; games.len()];
        let bins = games.iter().map(|g| g.bin_exact_steps.len()).max().unwrap_or(0);

        // Numerator, denominator and labels per unit of the denominator.
        let mut ratios = vec![
            Ratio::new(column(&|g| g.exact_steps), steps.clone(), 1),
            Ratio::new(column(&|g| g.labels_right() as u32), steps.clone(), LABELS),
            Ratio::new(column(&|g| g.is_exact().into()), ones, 1),
        ];
        for (i, group) in LabelGroup::ALL.iter().enumerate() {
            let right = column(&|g| g.group_labels_right[i]);
            ratios.push(Ratio::new(right, steps.clone(), group.labels().len()));
        }
        for bin in 0..bins {
            let exact = column(&|g| g.bin_exact_steps.get(bin).copied().unwrap_or(0).into());
            let in_bin = column(&|g| {
                (g.steps as usize).saturating_sub(bin * BIN_STEPS).min(BIN_STEPS) as u32
            });
            ratios.push(Ratio::new(exact, in_bin, 1));
        }
        let mut loss = Loss::new(games);

        let mut rng = ChaCha8Rng::seed_from_u64(resampling.seed);
        let mut weights = vec![0u32; games.len()];
        let rounds = if games.len() < 2 { 0 } else { resampling.resamples };
        for _ in 0..rounds {
            weights.fill(0);
            for _ in 0..games.len() {
                weights[rng.random_range(0..games.len() as u32) as usize] += 1;
            }
            ratios.iter_mut().for_each(|ratio| ratio.resample(&weights));
            if let Some(loss) = &mut loss {
                loss.resample(&weights);
            }
        }

        let mut found = ratios.into_iter().map(Ratio::interval);
        let mut next = || found.next().flatten();
        Intervals {
            exact_state: next(),
            labelwise: next(),
            trajectory: next(),
            groups: std::array::from_fn(|_| next()),
            bins: (0..bins).map(|_| next()).collect(),
            loss: loss.and_then(|loss| quantiles(loss.resampled)),
        }
    }
}

/// A share as a ratio of two sums over games.
struct Ratio {
    numerators: Vec<u32>,
    denominators: Vec<u32>,
    scale: f64,
    resampled: Vec<f64>,
}

impl Ratio {
    fn new(numerators: Vec<u32>, denominators: Vec<u32>, labels: usize) -> Self {
        Ratio { numerators, denominators, scale: labels as f64, resampled: Vec::new() }
    }

    fn resample(&mut self, weights: &[u32]) {
        let denominator = weighted_sum(weights, &self.denominators);
        // A resample may hold no game that reaches a late prefix bin.
        if denominator > 0 {
            let numerator = weighted_sum(weights, &self.numerators);
            self.resampled.push(numerator as f64 / (denominator as f64 * self.scale));
        }
    }

    fn interval(self) -> Option<Interval> {
        let sum = |column: &[u32]| column.iter().map(|&n| u64::from(n)).sum::<u64>();
        let numerator = sum(&self.numerators);
        let denominator = sum(&self.denominators) * self.scale as u64;
        let games = self.denominators.iter().filter(|&&n| n > 0).count() as f64;
        if denominator == 0 {
            None
        } else if numerator == 0 {
            Some(Interval { low: 0.0, high: Z2 / (games + Z2), method: IntervalMethod::Wilson })
        } else if numerator == denominator {
            Some(Interval { low: games / (games + Z2), high: 1.0, method: IntervalMethod::Wilson })
        } else {
            quantiles(self.resampled)
        }
    }
}

/// The mean loss, over the games that have one; absent if none has or one is not finite.
struct Loss {
    sums: Vec<f64>,
    labels: Vec<u32>,
    resampled: Vec<f64>,
}

impl Loss {
    fn new(games: &[GameRecord]) -> Option<Self> {
        let sums: Vec<f64> = games.iter().map(|g| g.loss_sum.unwrap_or(0.0)).collect();
        let labels = games
            .iter()
            .map(|g| if g.loss_sum.is_some() { g.steps * LABELS as u32 } else { 0 })
            .collect();
        (games.iter().any(|g| g.loss_sum.is_some()) && sums.iter().all(|sum| sum.is_finite()))
            .then_some(Loss { sums, labels, resampled: Vec::new() })
    }

    fn resample(&mut self, weights: &[u32]) {
        let labels = weighted_sum(weights, &self.labels);
        if labels > 0 {
            let sum: f64 = weights.iter().zip(&self.sums).map(|(&w, sum)| f64::from(w) * sum).sum();
            self.resampled.push(sum / labels as f64);
        }
    }
}

fn weighted_sum(weights: &[u32], values: &[u32]) -> u64 {
    weights.iter().zip(values).map(|(&w, &v)| u64::from(w) * u64::from(v)).sum()
}

/// The 2.5 % and 97.5 % quantiles, interpolated; `None` if they coincide, as without spread or resamples.
fn quantiles(mut resampled: Vec<f64>) -> Option<Interval> {
    resampled.sort_unstable_by(f64::total_cmp);
    let last = resampled.len().checked_sub(1)?;
    let at = |share: f64| {
        let place = share * last as f64;
        let below = place.floor() as usize;
        let (a, b) = (resampled[below], resampled[(below + 1).min(last)]);
        a + (b - a) * place.fract()
    };
    let (low, high) = (at(0.025), at(0.975));
    (low < high).then_some(Interval { low, high, method: IntervalMethod::Bootstrap })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(steps: u32, exact_steps: u32) -> GameRecord {
        let mut bins = vec![0; (steps as usize).div_ceil(BIN_STEPS)];
        for step in 0..exact_steps as usize {
            bins[step / BIN_STEPS] += 1;
        }
        GameRecord {
            steps,
            exact_steps,
            group_labels_right: LabelGroup::ALL.map(|g| exact_steps * g.labels().len() as u32),
            bin_exact_steps: bins,
            first_mistake: (exact_steps < steps).then_some(exact_steps),
            loss_sum: Some(f64::from(steps - exact_steps) * 75.0),
        }
    }

    #[test]
    fn half_of_many_games_spreads_as_the_binomial_says() {
        let games: Vec<_> =
            (0..1000).map(|i| record(10, if i % 2 == 0 { 10 } else { 0 })).collect();
        let found = Intervals::over(&games, Resampling::default());
        let interval = found.trajectory.unwrap();
        // Normal theory: 0.5 ± 1.96 sqrt(0.25 / 1000) = 0.5 ± 0.031.
        assert!((interval.low - 0.469).abs() < 0.005, "{interval:?}");
        assert!((interval.high - 0.531).abs() < 0.005, "{interval:?}");
        // Steps of a game go together, so ten times as many steps narrow nothing.
        let steps = found.exact_state.unwrap();
        assert_eq!((steps.low, steps.high), (interval.low, interval.high));
        // Half of the steps cost one nat a label.
        let loss = found.loss.unwrap();
        assert!((loss.low + interval.high - 1.0).abs() < 1e-9, "{loss:?}");
    }

    #[test]
    fn shares_of_zero_and_one_get_wilson_intervals_over_games() {
        let all = Intervals::over(&vec![record(50, 50); 400], Resampling::default());
        let none = Intervals::over(&vec![record(50, 0); 400], Resampling::default());
        for (found, low, high) in [(all, 0.9905, 1.0), (none, 0.0, 0.0095)] {
            for interval in [found.exact_state, found.trajectory, found.bins[2], found.groups[3]] {
                let interval = interval.unwrap();
                assert_eq!(interval.method, IntervalMethod::Wilson);
                assert!((interval.low - low).abs() < 1e-4 && (interval.high - high).abs() < 1e-4);
            }
        }
    }

    #[test]
    fn one_game_or_none_allows_no_bootstrap() {
        assert_eq!(Intervals::over(&[], Resampling::default()), Intervals::default());
        let found = Intervals::over(&[record(10, 3)], Resampling::default());
        assert_eq!((found.exact_state, found.loss), (None, None));
        assert!(found.trajectory.is_some_and(|i| i.high > 0.7));
    }

    #[test]
    fn a_loss_that_is_not_finite_has_no_interval() {
        let mut games = vec![record(10, 3), record(10, 4), record(10, 5)];
        games[1].loss_sum = Some(f64::INFINITY);
        let found = Intervals::over(&games, Resampling::default());
        assert!(found.loss.is_none() && found.exact_state.is_some());
    }

    proptest! {
        #[test]
        fn intervals_are_reproducible_and_hold_the_share(
            games in proptest::collection::vec((1..60u32, 0..60u32), 2..40), seed: u64
        ) {
            let games: Vec<_> = games.iter().map(|&(s, e)| record(s, e.min(s))).collect();
            let resampling = Resampling { resamples: 1000, seed };
            let found = Intervals::over(&games, resampling);
            prop_assert_eq!(&found, &Intervals::over(&games, resampling));
            let exact: u32 = games.iter().map(|g| g.exact_steps).sum();
            let steps: u32 = games.iter().map(|g| g.steps).sum();
            if let Some(interval) = found.exact_state {
                let share = f64::from(exact) / f64::from(steps);
                prop_assert!(0.0 <= interval.low && interval.high <= 1.0);
                prop_assert!(interval.low <= share && share <= interval.high);
            }
        }
    }
}
