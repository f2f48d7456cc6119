//! The short convolution of Mamba-2: each channel sees its last W numbers, causally, then SiLU.
//!
//! Weights are held tap after tap, `[W, C]`, so that inner loops run over channels; the last tap is the step itself.

use multiversion::multiversion;

use super::silu_and_slope;
use crate::kernel::math::sigmoid;

/// `[C, W]` as `[W, C]`.
pub fn taps(weight: &[f32], width: usize) -> Vec<f32> {
    let channels = weight.len() / width;
    (0..width).flat_map(|tap| (0..channels).map(move |c| weight[c * width + tap])).collect()
}

/// Channels `from ..` of `x`, rows `stride` numbers apart, through the convolution: `[T, C]` before and after SiLU.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn forward(
    x: &[f32],
    stride: usize,
    from: usize,
    taps: &[f32],
    bias: &[f32],
    before: &mut [f32],
    after: &mut [f32],
) {
    let channels = bias.len();
    let width = taps.len() / channels;
    let rows = before.chunks_exact_mut(channels).zip(after.chunks_exact_mut(channels));
    for (step, (before, after)) in rows.enumerate() {
        before.copy_from_slice(bias);
        for tap in 0..width.min(step + 1) {
            // The last tap is the step itself, the one before it the step before.
            let x = &x[(step - tap) * stride + from..][..channels];
            let weight = &taps[(width - 1 - tap) * channels..][..channels];
            for ((y, x), w) in before.iter_mut().zip(x).zip(weight) {
                *y += x * w;
            }
        }
        for (after, &before) in after.iter_mut().zip(&*before) {
            *after = before * sigmoid(before);
        }
    }
}

/// From `d [T, C]`, the gradient after SiLU, which becomes the one before: adds to the gradients of `x`, of the taps and
/// of the bias.
#[expect(clippy::too_many_arguments, reason = "three inputs, their gradients and a layout")]
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn backward(
    d: &mut [f32],
    before: &[f32],
    x: &[f32],
    stride: usize,
    from: usize,
    taps: &[f32],
    d_x: &mut [f32],
    d_taps: &mut [f32],
    d_bias: &mut [f32],
) {
    let channels = d_bias.len();
    let width = taps.len() / channels;
    let rows = d.chunks_exact_mut(channels).zip(before.chunks_exact(channels));
    for (step, (d, before)) in rows.enumerate() {
        for (d, &before) in d.iter_mut().zip(before) {
            *d *= silu_and_slope(before).1;
        }
        for (sum, d) in d_bias.iter_mut().zip(&*d) {
            *sum += d;
        }
        for tap in 0..width.min(step + 1) {
            let at = (step - tap) * stride + from;
            let of = (width - 1 - tap) * channels;
            let (x, weight) = (&x[at..][..channels], &taps[of..][..channels]);
            for ((sum, d), x) in d_taps[of..][..channels].iter_mut().zip(&*d).zip(x) {
                *sum += d * x;
            }
            for ((d_x, d), w) in d_x[at..][..channels].iter_mut().zip(&*d).zip(weight) {
                *d_x += d * w;
            }
        }
    }
}
