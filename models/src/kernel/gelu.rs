//! GELU with the exact normal distribution: `y = x P(x)`.

use multiversion::multiversion;

use super::math::normal;

/// `x` to `y` of the same length.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn forward(x: &[f32]) -> Vec<f32> {
    let mut y = vec![0.0; x.len()];
    for (y, &x) in y.iter_mut().zip(x) {
        let (probability, _) = normal(x);
        *y = x * probability;
    }
    y
}

/// From `dy` and the forward's `x`: `dx`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn backward(dy: &[f32], x: &[f32]) -> Vec<f32> {
    let mut dx = vec![0.0; x.len()];
    for ((dx, &dy), &x) in dx.iter_mut().zip(dy).zip(x) {
        let (probability, density) = normal(x);
        *dx = dy * (probability + x * density);
    }
    dx
}
