//! Rows at the two ends of the recurrence: queries and keys of unit length, and the gated RMSNorm over a head's values.

use multiversion::multiversion;

use crate::kernel::{
    lanes::{dot, update1, update2, update3},
    math::sigmoid,
};

use super::conv::silu_slope;

/// Added to the square of a query's or key's length.
const UNIT_EPS: f32 = 1e-6;

#[inline(always)]
fn inverse_length(x: &[f32]) -> f32 {
    1.0 / (dot(x, x) + UNIT_EPS).sqrt()
}

/// `x / |x| * scale`.
#[inline(always)]
pub fn unit(x: &[f32], scale: f32, out: &mut [f32]) {
    let factor = inverse_length(x) * scale;
    update1(out, x, |_, x| x * factor);
}

/// From `d`, the gradient of `unit(x, scale)`, to `dx`.
#[inline(always)]
pub fn unit_backward(d: &[f32], x: &[f32], scale: f32, dx: &mut [f32]) {
    let inverse = inverse_length(x);
    let along = dot(d, x) * inverse * inverse;
    let factor = inverse * scale;
    update2(dx, d, x, |_, d, x| (d - x * along) * factor);
}

/// The gated RMSNorm's weight and epsilon.
#[derive(Debug, Clone, Copy)]
pub struct GatedNorm<'a> {
    /// `[V]`, the same for every head.
    pub weight: &'a [f32],
    /// Added to the mean square.
    pub eps: f32,
}

impl GatedNorm<'_> {
    #[inline(always)]
    fn inverse_rms(&self, o: &[f32]) -> f32 {
        1.0 / (dot(o, o) / o.len() as f32 + self.eps).sqrt()
    }

    /// One head's outputs `o [T, V]` and gates, at `gate` of rows `stride` apart, to the head's place in the rows of `y`,
    /// `width` apart: `y = o / rms(o) * weight * silu(gate)`.
    pub fn forward(&self, o: &[f32], gate: &[f32], stride: usize, y: &mut [f32], width: usize) {
        gated_norm(*self, o, gate, stride, y, width);
    }

    /// The way back: from `dy` (rows `width` apart) to `d_o [T, V]`, to the gate's place in rows of `du`, and to the weight.
    #[expect(clippy::too_many_arguments, reason = "each is a slice with a stride of its own")]
    pub fn backward(
        &self,
        dy: &[f32],
        width: usize,
        o: &[f32],
        gate: &[f32],
        stride: usize,
        d_o: &mut [f32],
        du: &mut [f32],
        d_weight: &mut [f32],
    ) {
        gated_norm_backward(*self, dy, width, o, gate, stride, d_o, du, d_weight);
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn gated_norm(
    norm: GatedNorm,
    o: &[f32],
    gate: &[f32],
    stride: usize,
    y: &mut [f32],
    width: usize,
) {
    let value = norm.weight.len();
    for (step, o) in o.chunks_exact(value).enumerate() {
        let inverse = norm.inverse_rms(o);
        let gate = &gate[step * stride..][..value];
        let y = &mut y[step * width..][..value];
        update3(y, [o, norm.weight, gate], |_, o, w, g| o * inverse * w * (g * sigmoid(g)));
    }
}

#[expect(clippy::too_many_arguments, reason = "each is a slice with a stride of its own")]
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn gated_norm_backward(
    norm: GatedNorm,
    dy: &[f32],
    width: usize,
    o: &[f32],
    gate: &[f32],
    stride: usize,
    d_o: &mut [f32],
    du: &mut [f32],
    d_weight: &mut [f32],
) {
    let value = norm.weight.len();
    let w = norm.weight;
    let mut gated = vec![0.0; value];
    let rows = o.chunks_exact(value).zip(d_o.chunks_exact_mut(value));
    for (step, (o, d_o)) in rows.enumerate() {
        let inverse = norm.inverse_rms(o);
        let gate = &gate[step * stride..][..value];
        let dy = &dy[step * width..][..value];
        let d_gate = &mut du[step * stride..][..value];
        update3(d_gate, [dy, o, w], |_, dy, o, w| dy * o * inverse * w);
        update1(d_gate, gate, |d, g| d * silu_slope(g));
        update2(&mut gated, dy, gate, |_, dy, g| dy * (g * sigmoid(g)));
        update2(d_weight, &gated, o, |d, gated, o| d + gated * o * inverse);
        update1(&mut gated, w, |gated, w| gated * w);
        let along = dot(&gated, o) * inverse * inverse * inverse / value as f32;
        update2(d_o, &gated, o, |_, gated, o| gated * inverse - o * along);
    }
}
