//! RMSNorm over the last axis: `y = x / sqrt(mean(x^2) + eps) * w`.

use multiversion::multiversion;

use super::math::dot;

/// `x [N, D]`, `w [D]` to `[N, D]`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn forward(x: &[f32], w: &[f32], eps: f32) -> Vec<f32> {
    let mut y = vec![0.0; x.len()];
    let width = w.len();
    for (x, y) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)) {
        let inverse = inverse_rms(x, eps);
        for ((y, x), w) in y.iter_mut().zip(x).zip(w) {
            *y = (x * inverse) * w;
        }
    }
    y
}

/// From `dy [N, D]` and the forward's `x`, `w`: `dx [N, D]`, `dw [D]`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn backward(dy: &[f32], x: &[f32], w: &[f32], eps: f32) -> (Vec<f32>, Vec<f32>) {
    let width = w.len();
    let mut dx = vec![0.0; x.len()];
    let mut dw = vec![0.0; width];
    let mut scaled = vec![0.0; width];
    let rows = x.chunks_exact(width).zip(dy.chunks_exact(width));
    for ((x, dy), dx) in rows.zip(dx.chunks_exact_mut(width)) {
        let (x, dy, dx) = (&x[..width], &dy[..width], &mut dx[..width]);
        let inverse = inverse_rms(x, eps);
        // Slices of one length, and a loop for each result: else these loops run one number at a time.
        let (scaled, dw) = (&mut scaled[..width], &mut dw[..width]);
        for i in 0..width {
            scaled[i] = dy[i] * w[i];
        }
        for i in 0..width {
            dw[i] += dy[i] * (x[i] * inverse);
        }
        // d(1/rms)/dx brings back the projection of the gradient on x.
        let along = dot(scaled, x) * inverse * inverse * inverse / width as f32;
        for i in 0..width {
            dx[i] = scaled[i] * inverse - x[i] * along;
        }
    }
    (dx, dw)
}

#[inline(always)]
fn inverse_rms(x: &[f32], eps: f32) -> f32 {
    1.0 / (dot(x, x) / x.len() as f32 + eps).sqrt()
}
