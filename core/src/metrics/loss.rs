//! Cross-entropy summed in fixed point, so that adding games up gives the same bits in any order.

/// A sum of cross-entropies in nats, and the labels it runs over (75 a step).
///
/// The sum is held in units of 2^-40 nats in 128 bits: one game is rounded once (to 1e-12 nats), and from there on
/// addition is exact, associative and commutative, which no floating-point sum is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loss {
    units: u128,
    labels: u64,
    non_finite_games: u64,
}

const UNITS_PER_NAT: f64 = (1u64 << 40) as f64;

impl Loss {
    /// The loss of one game: its sum over steps and labels, and the number of those labels.
    /// A sum that is not finite (or negative) is counted apart and leaves no mean.
    pub fn of_game(sum: f64, labels: u64) -> Self {
        if sum.is_finite() && sum >= 0.0 {
            // Float to integer casts saturate; 2^88 nats is far beyond any f32 logit's doing.
            Loss { units: (sum * UNITS_PER_NAT).round() as u128, labels, non_finite_games: 0 }
        } else {
            Loss { units: 0, labels, non_finite_games: 1 }
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Loss) {
        self.units = self.units.saturating_add(other.units);
        self.labels += other.labels;
        self.non_finite_games += other.non_finite_games;
    }

    /// The sum in nats, over the games whose loss is finite.
    pub fn sum(&self) -> f64 {
        self.units as f64 / UNITS_PER_NAT
    }

    /// Labels that the sum runs over.
    pub const fn labels(&self) -> u64 {
        self.labels
    }

    /// Games whose loss was not finite.
    pub const fn non_finite_games(&self) -> u64 {
        self.non_finite_games
    }

    /// Nats a label: the reference's `loss`. `None` without labels or if some game's loss was not finite.
    pub fn mean(&self) -> Option<f64> {
        (self.labels > 0 && self.non_finite_games == 0).then(|| self.sum() / self.labels as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_is_per_label_and_non_finite_games_forbid_it() {
        let mut loss = Loss::of_game(150.0, 150);
        assert_eq!(loss.mean(), Some(1.0));
        loss.merge(&Loss::of_game(f64::NAN, 75));
        assert_eq!((loss.mean(), loss.non_finite_games(), loss.labels()), (None, 1, 225));
        assert_eq!(Loss::default().mean(), None);
    }

    #[test]
    fn huge_losses_of_exploding_models_still_add_up() {
        // The largest mean loss that the paper publishes is 4.43e17 nats a label.
        let one = Loss::of_game(4.43e17 * 600.0 * 75.0, 600 * 75);
        let mut all = Loss::default();
        for _ in 0..10_000 {
            all.merge(&one);
        }
        assert!((all.mean().unwrap() / 4.43e17 - 1.0).abs() < 1e-12);
    }
}
