//! SwiGLU: of a row of 2 F numbers, the first half through SiLU times the second half; or the other way round.

use multiversion::multiversion;

use super::math::sigmoid;

/// `u [N, 2F]` to `[N, F]`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn forward(u: &[f32], width: usize) -> Vec<f32> {
    let mut y = vec![0.0; u.len() / 2];
    for (u, y) in u.chunks_exact(2 * width).zip(y.chunks_exact_mut(width)) {
        let (gate, value) = u.split_at(width);
        gated(gate, value, y);
    }
    y
}

/// The same with the gate in the second half.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn forward_gate_last(u: &[f32], width: usize) -> Vec<f32> {
    let mut y = vec![0.0; u.len() / 2];
    for (u, y) in u.chunks_exact(2 * width).zip(y.chunks_exact_mut(width)) {
        let (value, gate) = u.split_at(width);
        gated(gate, value, y);
    }
    y
}

#[inline(always)]
fn gated(gate: &[f32], value: &[f32], y: &mut [f32]) {
    for ((y, &g), &v) in y.iter_mut().zip(gate).zip(value) {
        *y = g * sigmoid(g) * v;
    }
}

/// From `dy [N, F]` and the forward's `u [N, 2F]`: `du [N, 2F]`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn backward(dy: &[f32], u: &[f32], width: usize) -> Vec<f32> {
    let mut du = vec![0.0; u.len()];
    let rows = u.chunks_exact(2 * width).zip(dy.chunks_exact(width));
    for ((u, dy), du) in rows.zip(du.chunks_exact_mut(2 * width)) {
        let (gate, value) = u.split_at(width);
        let (d_gate, d_value) = du.split_at_mut(width);
        gated_back(dy, [gate, value], [d_gate, d_value]);
    }
    du
}

/// The same with the gate in the second half.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn backward_gate_last(dy: &[f32], u: &[f32], width: usize) -> Vec<f32> {
    let mut du = vec![0.0; u.len()];
    let rows = u.chunks_exact(2 * width).zip(dy.chunks_exact(width));
    for ((u, dy), du) in rows.zip(du.chunks_exact_mut(2 * width)) {
        let (value, gate) = u.split_at(width);
        let (d_value, d_gate) = du.split_at_mut(width);
        gated_back(dy, [gate, value], [d_gate, d_value]);
    }
    du
}

#[inline(always)]
fn gated_back(dy: &[f32], [gate, value]: [&[f32]; 2], [d_gate, d_value]: [&mut [f32]; 2]) {
    let width = dy.len();
    let (gate, value) = (&gate[..width], &value[..width]);
    let (d_gate, d_value) = (&mut d_gate[..width], &mut d_value[..width]);
    for i in 0..width {
        let (g, v, dy) = (gate[i], value[i], dy[i]);
        let s = sigmoid(g);
        d_value[i] = dy * (g * s);
        d_gate[i] = dy * v * (s * (1.0 + g * (1.0 - s)));
    }
}
