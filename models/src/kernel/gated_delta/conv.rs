//! The short convolution of every channel along the steps of a game, and SiLU behind it.

use multiversion::multiversion;

use crate::kernel::{
    lanes::{update1, update2},
    math::sigmoid,
};

/// Weights `[channels, W]` as the parameters hold them to `[W, channels]`, whose rows are contiguous.
pub fn transpose(weights: &[f32], taps: usize) -> Vec<f32> {
    let channels = weights.len() / taps;
    let mut out = Vec::with_capacity(weights.len());
    for tap in 0..taps {
        out.extend((0..channels).map(|channel| weights[channel * taps + tap]));
    }
    out
}

/// One game's rows `x`, `stride` numbers apart, of which the first `channels` are convolved, to `out [T, channels]`:
/// `out_t = sum_j w_j x_{t-W+1+j}`, with zeros before the first step. `weights` is `[W, channels]`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn forward(x: &[f32], stride: usize, weights: &[f32], channels: usize, out: &mut [f32]) {
    let taps = weights.len() / channels;
    for (step, out) in out.chunks_exact_mut(channels).enumerate() {
        out.fill(0.0);
        for (tap, weights) in weights.chunks_exact(channels).enumerate() {
            if let Some(source) = (step + 1 + tap).checked_sub(taps) {
                let x = &x[source * stride..][..channels];
                update2(out, x, weights, |out, x, w| out + x * w);
            }
        }
    }
}

/// The way back: from `d [T, channels]`, the gradient of the output, to the first `channels` numbers of the rows `dx`
/// (overwritten), and to `d_weights [W, channels]` (added).
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn backward(
    d: &[f32],
    x: &[f32],
    stride: usize,
    weights: &[f32],
    channels: usize,
    dx: &mut [f32],
    d_weights: &mut [f32],
) {
    let taps = weights.len() / channels;
    let steps = d.len() / channels;
    for step in 0..steps {
        let dx = &mut dx[step * stride..][..channels];
        let x = &x[step * stride..][..channels];
        dx.fill(0.0);
        for tap in 0..taps {
            // The output that reads this row through this tap.
            let output = step + taps - 1 - tap;
            if output < steps {
                let d = &d[output * channels..][..channels];
                let range = tap * channels..(tap + 1) * channels;
                update2(dx, d, &weights[range.clone()], |dx, d, w| dx + d * w);
                update2(&mut d_weights[range], d, x, |dw, d, x| dw + d * x);
            }
        }
    }
}

/// `out = c sigmoid(c)`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn silu(c: &[f32], out: &mut [f32]) {
    update1(out, c, |_, c| c * sigmoid(c));
}

/// From the gradient of SiLU's output to that of its input, in place.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn silu_backward(c: &[f32], d: &mut [f32]) {
    update1(d, c, |d, c| d * silu_slope(c));
}

/// The derivative of SiLU.
#[inline(always)]
pub fn silu_slope(c: f32) -> f32 {
    let s = sigmoid(c);
    s * (1.0 + c * (1.0 - s))
}
