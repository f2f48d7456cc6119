//! The residual stream: `x + dropout(y)`.

use multiversion::multiversion;

use super::random::Dropout;

/// `x [N, D]`, `y [N, D]` to `[N, D]`.
pub fn forward(x: &[f32], y: &[f32], width: usize, dropout: Option<Dropout>) -> Vec<f32> {
    let mut out = x.to_vec();
    match dropout {
        None => out.iter_mut().zip(y).for_each(|(out, y)| *out += y),
        Some(dropout) => add_masked(&mut out, y, first_index(dropout, width), dropout),
    }
    out
}

/// Multiplies `dy [N, D]` by the forward's mask.
pub fn mask(dy: &[f32], width: usize, dropout: Dropout) -> Vec<f32> {
    let mut out = vec![0.0; dy.len()];
    add_masked(&mut out, dy, first_index(dropout, width), dropout);
    out
}

fn first_index(dropout: Dropout, width: usize) -> u32 {
    dropout.first.wrapping_mul(width as u32)
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn add_masked(out: &mut [f32], y: &[f32], first: u32, dropout: Dropout) {
    let mut index = first;
    for (out, y) in out.iter_mut().zip(y) {
        *out += y * dropout.factor(index);
        index = index.wrapping_add(1);
    }
}
