//! The clocks as registers: the network chooses among three operations, and the value follows.
//!
//! Operations that lead to the same value are one outcome: on a clock of 0, keep and reset are the same. The
//! probability of a byte is that of the outcomes which have it; a share of [`DOUBT`], spread over all 256 bytes, keeps
//! the loss of an impossible byte finite.

use crate::kernel::math::exp;

/// Operations on a register: keep, +1, reset.
pub(super) const OPERATIONS: usize = 3;

/// Probability that a byte is drawn uniformly instead.
pub(super) const DOUBT: f64 = 1e-6;

/// The values that the operations lead to.
pub(super) fn outcomes(value: u16) -> [u16; OPERATIONS] {
    [value, value.saturating_add(1), 0]
}

/// Softmax of three logits.
pub(super) fn probabilities(logits: &[f32]) -> [f32; OPERATIONS] {
    let logits = [logits[0], logits[1], logits[2]];
    let max = logits.iter().copied().fold(f32::MIN, f32::max);
    let weights = logits.map(|x| exp(x - max));
    let sum: f32 = weights.iter().sum();
    weights.map(|w| w / sum)
}

/// The most probable value after `value`.
pub(super) fn next(value: u16, logits: &[f32]) -> u16 {
    let (outcomes, p) = (outcomes(value), probabilities(logits));
    let mass = |i: usize| -> f32 {
        (0..OPERATIONS).filter(|&j| outcomes[j] == outcomes[i]).map(|j| p[j]).sum()
    };
    let mut best = 0;
    for i in 1..OPERATIONS {
        if mass(i) > mass(best) {
            best = i;
        }
    }
    outcomes[best]
}

/// The expected value after an expected `value`.
pub(super) fn expected(value: f64, logits: &[f32]) -> f64 {
    let [keep, add, _] = probabilities(logits).map(f64::from);
    (keep + add) * value + add
}

/// The probability that byte `index` (0 high, 1 low) of the value after `value` is `byte`.
pub(super) fn byte_probability(value: u16, logits: &[f32], index: usize, byte: u8) -> f64 {
    let p = probabilities(logits);
    let outcomes = outcomes(value);
    let mass: f32 =
        (0..OPERATIONS).filter(|&i| outcomes[i].to_be_bytes()[index] == byte).map(|i| p[i]).sum();
    (1.0 - DOUBT) * f64::from(mass) + DOUBT / 256.0
}

/// Cross-entropy of the value `after` given `value`, and its gradient in place of the logits. A value that no operation
/// leads to teaches nothing.
#[cfg(feature = "train")]
pub(super) fn loss(value: u16, after: u16, logits: &mut [f32], scale: f32) -> f64 {
    let (outcomes, p) = (outcomes(value), probabilities(logits));
    let mass: f32 = (0..OPERATIONS).filter(|&i| outcomes[i] == after).map(|i| p[i]).sum();
    if !outcomes.contains(&after) {
        logits.fill(0.0);
        return 0.0;
    }
    // At a mass of zero, one share of the smallest number keeps the gradient where it points.
    let mass = mass.max(f32::MIN_POSITIVE);
    for i in 0..OPERATIONS {
        let share = if outcomes[i] == after { p[i] / mass } else { 0.0 };
        logits[i] = (p[i] - share) * scale;
    }
    -f64::from(mass).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_that_coincide_are_added_up() {
        let logits = [0.0, 0.4, 0.0];
        assert_eq!(next(0, &logits), 0);
        assert_eq!(next(7, &logits), 8);
        assert_eq!(next(u16::MAX, &[0.0, 1.0, 1.2]), u16::MAX, "+1 and keep are one outcome there");
        assert_eq!(next(7, &[0.0, 1.0, 1.2]), 0);
    }

    #[test]
    fn expected_values_are_means_of_the_outcomes() {
        assert!((expected(7.0, &[9.0, -9.0, -9.0]) - 7.0).abs() < 1e-3);
        assert!((expected(7.0, &[-9.0, 9.0, -9.0]) - 8.0).abs() < 1e-3);
        assert!((expected(7.0, &[0.0, 0.0, 0.0]) - 15.0 / 3.0).abs() < 1e-6);
    }

    #[test]
    fn bytes_have_a_distribution() {
        for value in [0, 1, 7, 255, 256, 511, 65_535] {
            for index in 0..2 {
                let sum: f64 = (0..=255)
                    .map(|byte| byte_probability(value, &[0.3, -1.0, 0.2], index, byte))
                    .sum();
                assert!((sum - 1.0).abs() < 1e-6, "{sum}");
            }
        }
        let impossible = byte_probability(7, &[0.0; 3], 1, 99);
        assert!(impossible > 0.0 && -impossible.ln() < 20.0);
    }

    #[cfg(feature = "train")]
    #[test]
    fn gradients_are_those_of_the_loss() {
        for (value, after) in [(0, 0), (0, 1), (7, 7), (7, 8), (7, 0)] {
            let logits = [0.3_f32, -0.2, 0.9];
            let mut gradient = logits;
            loss(value, after, &mut gradient, 1.0);
            for i in 0..3 {
                let at = |delta: f32| {
                    let mut moved = logits;
                    moved[i] += delta;
                    loss(value, after, &mut moved, 1.0)
                };
                let slope = (at(0.01) - at(-0.01)) / 0.02;
                assert!((slope - f64::from(gradient[i])).abs() < 1e-3, "{value} to {after}");
            }
        }
        let mut logits = [1.0; 3];
        assert_eq!(loss(7, 9, &mut logits, 1.0), 0.0);
        assert_eq!(logits, [0.0; 3]);
    }
}
