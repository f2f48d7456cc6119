//! `y = x W^T + b` with `W` as `[out, in]`, as PyTorch keeps it.

use multiversion::multiversion;

use super::{
    math,
    matrix::{Matrix, multiply, scratch},
};

/// Sizes of a linear map over packed rows.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Rows (N).
    pub rows: usize,
    /// Numbers in an input row.
    pub inputs: usize,
    /// Numbers in an output row.
    pub outputs: usize,
}

/// `x [N, in]`, `w [out, in]`, `b [out]` to `[N, out]`.
pub fn forward(x: &[f32], w: &[f32], b: &[f32], shape: Shape) -> Vec<f32> {
    let Shape { rows, inputs, outputs } = shape;
    let mut y = Vec::with_capacity(rows * outputs);
    for _ in 0..rows {
        y.extend_from_slice(b);
    }
    let (x, w) = (Matrix::new(x, rows, inputs), Matrix::new(w, outputs, inputs));
    multiply(&mut y, outputs, true, x, w.t());
    y
}

/// The same without bias.
pub fn product(x: &[f32], w: &[f32], shape: Shape) -> Vec<f32> {
    let Shape { rows, inputs, outputs } = shape;
    let mut y = scratch(rows * outputs);
    let (x, w) = (Matrix::new(x, rows, inputs), Matrix::new(w, outputs, inputs));
    multiply(&mut y, outputs, false, x, w.t());
    y
}

/// From `dy [N, out]`: `dx [N, in]`.
pub fn input_gradient(dy: &[f32], w: &[f32], shape: Shape) -> Vec<f32> {
    let Shape { rows, inputs, outputs } = shape;
    let mut dx = scratch(rows * inputs);
    let (dy, w) = (Matrix::new(dy, rows, outputs), Matrix::new(w, outputs, inputs));
    multiply(&mut dx, inputs, false, dy, w);
    dx
}

/// From `dy [N, out]` and `x [N, in]`: `dw [out, in]`.
pub fn weight_gradient(dy: &[f32], x: &[f32], shape: Shape) -> Vec<f32> {
    let Shape { rows, inputs, outputs } = shape;
    let mut dw = scratch(outputs * inputs);
    let (dy, x) = (Matrix::new(dy, rows, outputs), Matrix::new(x, rows, inputs));
    multiply(&mut dw, inputs, false, dy.t(), x);
    dw
}

/// From `dy [N, out]`: `db [out]`, the sum over rows.
pub fn bias_gradient(dy: &[f32], outputs: usize) -> Vec<f32> {
    let mut db = vec![0.0; outputs];
    add_rows(&mut db, dy);
    db
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn add_rows(sums: &mut [f32], rows: &[f32]) {
    for row in rows.chunks_exact(sums.len()) {
        for (sum, x) in sums.iter_mut().zip(row) {
            *sum += x;
        }
    }
}

/// The sum of each of `rows` rows that stand `stride` numbers apart, over their first `cols` numbers, added to `sums`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn add_row_sums(sums: &mut [f32], rows: &[f32], stride: usize, cols: usize) {
    for (sum, row) in sums.iter_mut().zip(rows.chunks_exact(stride)) {
        *sum += math::sum(&row[..cols]);
    }
}
