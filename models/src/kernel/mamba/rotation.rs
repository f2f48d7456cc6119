//! The data-dependent rotation of Mamba-3: angles that add up over a game, and what they do to pairs of channels.
//!
//! Each of the N / 4 angles turns a pair of the N channels of a key or query. Which pairs, differs: with SISO the
//! neighbours (2i, 2i + 1), with MIMO (i, i + N / 2). Keys and queries are therefore held in an order of channels
//! ([`channel_order`]) in which the first members of all pairs come first, the second ones next and the channels that
//! stay as they are last; inner products do not care for the order.

use multiversion::multiversion;

use crate::kernel::math::sigmoid;

/// The channel of the reference that stands at each place.
pub fn channel_order(width: usize, halves: bool) -> Vec<usize> {
    let angles = width / 4;
    let pair = |i: usize| if halves { [i, i + width / 2] } else { [2 * i, 2 * i + 1] };
    let first = (0..angles).map(|i| pair(i)[0]);
    let second = (0..angles).map(|i| pair(i)[1]);
    let mut order: Vec<usize> = first.chain(second).collect();
    let rest: Vec<usize> = (0..width).filter(|channel| !order.contains(channel)).collect();
    order.extend(rest);
    order
}

/// Sine and cosine of an angle within a turn or so of 0, to about 1e-7.
#[inline(always)]
pub fn sin_cos(x: f32) -> (f32, f32) {
    // Adding this rounds to an integer, which then stands in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let shifted = x * std::f32::consts::FRAC_2_PI + ROUND;
    let quarter = shifted - ROUND;
    let r = (x - quarter * 1.570_796_4) - quarter * -4.371_139e-8;
    let r2 = r * r;
    // Taylor's series, on [-pi / 4, pi / 4].
    let sin = r + r
        * r2
        * (-1.666_666_7e-1 + r2 * (8.333_333e-3 + r2 * (-1.984_127e-4 + r2 * 2.755_731_9e-6)));
    let cos =
        1.0 + r2 * (-0.5 + r2 * (4.166_666_7e-2 + r2 * (-1.388_888_9e-3 + r2 * 2.480_158_7e-5)));
    let quarter = shifted.to_bits() & 3;
    let (s, c) = if quarter & 1 == 0 { (sin, cos) } else { (cos, sin) };
    let s = if quarter & 2 == 0 { s } else { -s };
    let c = if (quarter + 1) & 2 == 0 { c } else { -c };
    (s, c)
}

/// The hyperbolic tangent, to about 1e-7.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    2.0 * sigmoid(2.0 * x) - 1.0
}

/// Cosines and sines of one head's angles over a game, `[T, N / 4]` each, from `turns [T, N / 4]`, which are
/// `pi tanh(angle)`, and the head's `dt [T]`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn angles(turns: &[f32], dt: &[f32], sums: &mut [f64], cos: &mut [f32], sin: &mut [f32]) {
    const TURN: f64 = std::f64::consts::TAU;
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let count = sums.len();
    sums.fill(0.0);
    let rows = cos.chunks_exact_mut(count).zip(sin.chunks_exact_mut(count));
    for (((cos, sin), turns), &dt) in rows.zip(turns.chunks_exact(count)).zip(dt) {
        for (sum, turn) in sums.iter_mut().zip(turns) {
            // Whole turns are taken off: the sum stays small, and so do its errors.
            let angle = *sum + f64::from(turn * dt);
            *sum = angle - ((angle * (1.0 / TURN) + ROUND) - ROUND) * TURN;
        }
        for ((cos, sin), sum) in cos.iter_mut().zip(sin).zip(&*sums) {
            (*sin, *cos) = sin_cos(*sum as f32);
        }
    }
}

/// `y = rotated(x + bias)`, channels in [`channel_order`].
#[inline(always)]
pub fn turn(x: &[f32], bias: &[f32], cos: &[f32], sin: &[f32], y: &mut [f32]) {
    let count = cos.len();
    let (x, bias, y) = (&x[..4 * count], &bias[..4 * count], &mut y[..4 * count]);
    let (sin, cos) = (&sin[..count], &cos[..count]);
    for i in 0..count {
        let (a, b) = (x[i] + bias[i], x[count + i] + bias[count + i]);
        y[i] = a * cos[i] - b * sin[i];
        y[count + i] = a * sin[i] + b * cos[i];
    }
    for i in 2 * count..4 * count {
        y[i] = x[i] + bias[i];
    }
}

/// From `y`, its gradient `d` (which becomes that of `x + bias`): adds the gradients of the angles.
#[inline(always)]
pub fn turn_back(d: &mut [f32], y: &[f32], cos: &[f32], sin: &[f32], d_angles: &mut [f32]) {
    let count = cos.len();
    let (d, y, sin) = (&mut d[..4 * count], &y[..4 * count], &sin[..count]);
    let d_angles = &mut d_angles[..count];
    for i in 0..count {
        let (da, db) = (d[i], d[count + i]);
        d_angles[i] += db * y[i] - da * y[count + i];
        d[i] = da * cos[i] + db * sin[i];
        d[count + i] = db * cos[i] - da * sin[i];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_permutations_with_the_pairs_apart() {
        assert_eq!(channel_order(8, false), [0, 2, 1, 3, 4, 5, 6, 7]);
        assert_eq!(channel_order(8, true), [0, 1, 4, 5, 2, 3, 6, 7]);
    }

    #[test]
    fn sines_and_tangents_are_accurate() {
        for i in -70_000..70_000 {
            let x = i as f32 * 1e-4;
            let (sin, cos) = sin_cos(x);
            let x = f64::from(x);
            assert!((f64::from(sin) - x.sin()).abs() < 4e-7, "sine of {x}");
            assert!((f64::from(cos) - x.cos()).abs() < 4e-7, "cosine of {x}");
            assert!((f64::from(tanh(x as f32)) - x.tanh()).abs() < 3e-7, "tanh of {x}");
        }
    }

    #[test]
    fn angles_add_up_over_many_turns() {
        let (turns, dt) = (vec![3.0_f32; 2000], vec![2.5_f32; 1000]);
        let (mut sums, mut cos, mut sin) = ([0.0; 2], vec![0.0; 2000], vec![0.0; 2000]);
        angles(&turns, &dt, &mut sums, &mut cos, &mut sin);
        for step in 0..1000 {
            let angle = 7.5 * (step + 1) as f64;
            assert!((f64::from(sin[2 * step + 1]) - angle.sin()).abs() < 1e-6, "step {step}");
            assert!((f64::from(cos[2 * step]) - angle.cos()).abs() < 1e-6, "step {step}");
        }
    }
}
