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

/// The standard normal distribution at `x`: the probability of less, within 2e-7, and the density.
///
/// The tail beyond |x| is `e^(-x^2/2)` times a polynomial in `1 / (1 + |x| / sqrt 8)`, fitted to 2e-8 of its value.
#[inline(always)]
pub fn normal(x: f32) -> (f32, f32) {
    const DENSITY: f32 = 0.398_942_3;
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let e = exp(-z * z);
    let t = 1.0 / (1.0 + 0.5 * z);
    let mut p = 8.392_555e-3;
    p = p * t - 7.354_68e-2;
    p = p * t + 0.241_706_57;
    p = p * t - 0.370_187_8;
    p = p * t + 0.238_841_09;
    p = p * t - 6.368_043e-2;
    p = p * t + 0.117_559_43;
    p = p * t + 0.118_349_66;
    p = p * t + 0.141_538_75;
    p = p * t + 0.141_026_94;
    let tail = e * (t * p);
    (if x < 0.0 { tail } else { 1.0 - tail }, DENSITY * e)
}

/// Numbers that a loop with a long body takes together. As the extent of an array it spares the compiler's own choice,
/// four vectors at a time and what remains one by one. (Short bodies would be unrolled and lose by it.)
pub const COLUMNS: usize = 16;

/// A row in groups of [`COLUMNS`].
#[inline(always)]
pub fn columns(row: &[f32]) -> &[[f32; COLUMNS]] {
    row.as_chunks().0
}

/// A row in groups of [`COLUMNS`].
#[inline(always)]
pub fn columns_mut(row: &mut [f32]) -> &mut [[f32; COLUMNS]] {
    row.as_chunks_mut().0
}

/// Half the accumulators of a horizontal sum, which are 32: a fixed number, so that sums do not depend on the machine.
const LANES: usize = 16;

/// The inner product of two equally long slices, in a fixed order of additions.
#[inline(always)]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_tail) = a.as_chunks::<{ 2 * LANES }>();
    let (b, b_tail) = b.as_chunks::<{ 2 * LANES }>();
    let (mut low, mut high) = ([0.0; LANES], [0.0; LANES]);
    for i in 0..a.len().min(b.len()) {
        let (a, b) = (&a[i], &b[i]);
        for lane in 0..LANES {
            low[lane] += a[lane] * b[lane];
        }
        for lane in 0..LANES {
            high[lane] += a[LANES + lane] * b[LANES + lane];
        }
    }
    let mut tail = 0.0;
    for i in 0..a_tail.len().min(b_tail.len()) {
        tail += a_tail[i] * b_tail[i];
    }
    fold(low, high) + tail
}

/// The sum of a slice, in a fixed order of additions.
#[inline(always)]
pub fn sum(a: &[f32]) -> f32 {
    let (a, a_tail) = a.as_chunks::<{ 2 * LANES }>();
    let (mut low, mut high) = ([0.0; LANES], [0.0; LANES]);
    for a in a {
        for lane in 0..LANES {
            low[lane] += a[lane];
        }
        for lane in 0..LANES {
            high[lane] += a[LANES + lane];
        }
    }
    let mut tail = 0.0;
    for x in a_tail {
        tail += x;
    }
    fold(low, high) + tail
}

/// Adds halves to halves. Spelt out: as loops over a shrinking width the lanes would live in memory.
#[inline(always)]
fn fold(mut low: [f32; LANES], high: [f32; LANES]) -> f32 {
    for lane in 0..LANES {
        low[lane] += high[lane];
    }
    let a: [f32; 8] = [
        low[0] + low[8],
        low[1] + low[9],
        low[2] + low[10],
        low[3] + low[11],
        low[4] + low[12],
        low[5] + low[13],
        low[6] + low[14],
        low[7] + low[15],
    ];
    let b = [a[0] + a[4], a[1] + a[5], a[2] + a[6], a[3] + a[7]];
    (b[0] + b[2]) + (b[1] + b[3])
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
    fn the_normal_distribution_is_accurate() {
        // Its integral by steps of the density, in double precision.
        let density = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
        const STEP: f64 = 1.0 / 4096.0;
        let (mut x, mut truth) = (-10.0_f64, 0.0_f64);
        while x < 10.0 {
            let (probability, at) = normal(x as f32);
            assert!((f64::from(probability) - truth).abs() < 3e-7, "{x}: {probability}, {truth}");
            assert!((f64::from(at) - density(x)).abs() < 2e-7, "{x}: {at}");
            let ends = density(x) + density(x + STEP);
            truth += STEP * (ends + 4.0 * density(x + STEP / 2.0)) / 6.0;
            x += STEP;
        }
        assert!(normal(f32::NAN).0.is_nan());
        assert_eq!(normal(f32::INFINITY).0, 1.0);
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
