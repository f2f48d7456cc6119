//! Elementary functions that vectorise.

/// The natural exponential, within 2 units in the last place on [-87, 88] and clamped to that interval.
///
/// The argument is split as `n ln 2 + r`, `|r| <= ln 2 / 2`; `e^r` is a polynomial and `2^n` goes into the exponent bits.
/// NaN stays NaN.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // Adding this rounds to an integer, which then stands in the low bits.
    const ROUND: f32 = 12_582_912.0;
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let x = if x < -87.0 { -87.0 } else { x };
    let x = if x > 88.0 { 88.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    let mut p = 1.987_569_1e-4;
    p = p * r + 1.398_199_9e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_5e-1;
    p = p * r + 0.5;
    let e = p * (r * r) + r + 1.0;
    let exponent = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32) + 127;
    e * f32::from_bits((exponent as u32) << 23)
}

/// The logistic function.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Lanes of the accumulators in a horizontal sum: a fixed number, so that sums do not depend on the machine.
const LANES: usize = 32;

/// The inner product of two equally long slices, in a fixed order of additions.
#[inline(always)]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let tail: f32 = a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(x, y)| x * y).sum();
    for (a, b) in a_chunks.zip(b_chunks) {
        for lane in 0..LANES {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    fold(lanes) + tail
}

/// The sum of a slice, in a fixed order of additions.
#[inline(always)]
pub fn sum(a: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    let chunks = a.chunks_exact(LANES);
    let tail: f32 = chunks.remainder().iter().sum();
    for a in chunks {
        for lane in 0..LANES {
            lanes[lane] += a[lane];
        }
    }
    fold(lanes) + tail
}

#[inline(always)]
fn fold(mut lanes: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_accurate_to_two_units() {
        let mut worst = 0.0_f64;
        let mut x = -87.0_f32;
        while x < 88.0 {
            let truth = f64::from(x).exp();
            worst = worst.max(((f64::from(exp(x)) - truth) / truth).abs());
            x += 0.000_37;
        }
        assert!(worst < 2.5e-7, "worst relative error {worst:e}");
    }

    #[test]
    fn exp_at_the_edges() {
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(-1e30) < 2e-38 && exp(f32::NEG_INFINITY) < 2e-38);
        assert!(exp(1e30).is_finite());
        assert!(exp(f32::NAN).is_nan());
        assert_eq!(sigmoid(-200.0) + sigmoid(200.0), 1.0);
    }

    #[test]
    fn sums_of_every_length() {
        for n in 0..100 {
            let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let expected: f32 = a.iter().map(|x| x * x).sum();
            assert_eq!(dot(&a, &a), expected);
            assert_eq!(sum(&a), a.iter().sum::<f32>());
        }
    }
}
