//! Matrix products over borrowed slices, with strides checked before `gemm` sees a pointer.

/// A matrix inside a slice.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a> Matrix<'a> {
    /// `rows x cols` numbers, row after row.
    pub fn new(data: &'a [f32], rows: usize, cols: usize) -> Self {
        Self::strided(data, rows, cols, cols)
    }

    /// `rows x cols` numbers, each row `row_stride` numbers after the one before.
    pub fn strided(data: &'a [f32], rows: usize, cols: usize, row_stride: usize) -> Self {
        check(data.len(), rows, cols, row_stride);
        Matrix { data, rows, cols, row_stride, col_stride: 1 }
    }

    /// The first `rows` rows.
    pub fn first(self, rows: usize) -> Self {
        assert!(rows <= self.rows, "{rows} rows of {}", self.rows);
        Matrix { rows, ..self }
    }

    /// The transpose, without moving a number.
    pub fn t(self) -> Self {
        Matrix {
            data: self.data,
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
        }
    }
}

fn check(len: usize, rows: usize, cols: usize, row_stride: usize) {
    assert!(
        cols <= row_stride || rows <= 1,
        "rows of {cols} numbers overlap at stride {row_stride}"
    );
    if rows > 0 && cols > 0 {
        let needed = (rows - 1) * row_stride + cols;
        assert!(
            needed <= len,
            "a matrix of {rows} x {cols} needs {needed} numbers, {len} are there"
        );
    }
}

/// `out = a b`, or `out += a b` if `accumulate`. `out` has as many rows as `a` and as many columns as `b`,
/// each row `row_stride` numbers after the one before.
pub fn multiply(out: &mut [f32], row_stride: usize, accumulate: bool, a: Matrix, b: Matrix) {
    assert_eq!(a.cols, b.rows, "inner extents differ");
    check(out.len(), a.rows, b.cols, row_stride);
    if a.rows == 0 || b.cols == 0 {
        return;
    }
    #[cfg(not(target_arch = "wasm32"))]
    let _measured = meter::product(a.rows, b.cols, a.cols);
    // SAFETY: `check` has made sure, for all three matrices, that the last element lies inside its slice and that the
    // rows of `out` do not overlap; `out` is borrowed mutably, so it aliases neither operand.
    unsafe {
        gemm::gemm(
            a.rows,
            b.cols,
            a.cols,
            out.as_mut_ptr(),
            1,
            row_stride as isize,
            accumulate,
            a.data.as_ptr(),
            a.col_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.col_stride as isize,
            b.row_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// A vector of `len` numbers that the caller overwrites.
pub fn scratch(len: usize) -> Vec<f32> {
    vec![0.0; len]
}

/// Measures the matrix products of a thread, for profiles.
#[cfg(not(target_arch = "wasm32"))]
pub mod meter {
    use std::{cell::Cell, time::Instant};

    /// What the products of a thread came to.
    #[derive(Debug, Clone, Copy, PartialEq, Default)]
    pub struct Products {
        /// Time in them.
        pub secs: f64,
        /// Multiplications and additions.
        pub flop: f64,
    }

    thread_local! {
        static PRODUCTS: Cell<Option<Products>> = const { Cell::new(None) };
    }

    /// What `run` returns, and the products that it did on this thread.
    pub fn measure<T>(run: impl FnOnce() -> T) -> (T, Products) {
        PRODUCTS.set(Some(Products::default()));
        let result = run();
        (result, PRODUCTS.take().unwrap_or_default())
    }

    /// Adds one product when it is dropped, if the thread is measured.
    pub(super) fn product(rows: usize, cols: usize, inner: usize) -> Option<Running> {
        let flop = 2.0 * rows as f64 * cols as f64 * inner as f64;
        PRODUCTS.get().map(|_| Running { flop, started: Instant::now() })
    }

    pub(super) struct Running {
        flop: f64,
        started: Instant,
    }

    impl Drop for Running {
        fn drop(&mut self) {
            if let Some(products) = PRODUCTS.get() {
                let secs = products.secs + self.started.elapsed().as_secs_f64();
                PRODUCTS.set(Some(Products { secs, flop: products.flop + self.flop }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(a: &Matrix, b: &Matrix) -> Vec<f32> {
        let mut out = vec![0.0; a.rows * b.cols];
        for i in 0..a.rows {
            for j in 0..b.cols {
                for k in 0..a.cols {
                    out[i * b.cols + j] += a.data[i * a.row_stride + k * a.col_stride]
                        * b.data[k * b.row_stride + j * b.col_stride];
                }
            }
        }
        out
    }

    proptest! {
        #[test]
        fn equals_the_triple_loop(m in 0_usize..9, n in 0_usize..40, k in 0_usize..20, pad in 0_usize..3,
            transpose: bool, accumulate: bool) {
            let a: Vec<f32> = (0..m * k + 1).map(|i| (i % 7) as f32 - 3.0).collect();
            let b: Vec<f32> = (0..(n + pad) * k + n + 1).map(|i| (i % 5) as f32 - 2.0).collect();
            let a = if transpose { Matrix::new(&a, k, m).t() } else { Matrix::new(&a, m, k) };
            let b = Matrix::strided(&b, k, n, n + pad);
            let mut out = vec![1.0; m * (n + pad) + 1];
            multiply(&mut out, n + pad, accumulate, a, b);
            let expected = naive(&a, &b);
            for i in 0..m {
                for j in 0..n {
                    let base = if accumulate { 1.0 } else { 0.0 };
                    prop_assert_eq!(out[i * (n + pad) + j], base + expected[i * n + j]);
                }
            }
        }
    }

    #[test]
    fn products_are_metered_where_asked_for() {
        let run = || {
            multiply(
                &mut [0.0; 6],
                3,
                false,
                Matrix::new(&[1.0; 8], 2, 4),
                Matrix::new(&[1.0; 12], 4, 3),
            )
        };
        let ((), products) = meter::measure(run);
        assert_eq!(products.flop, 48.0);
        run();
        assert_eq!(meter::measure(|| ()).1, meter::Products::default());
    }

    #[test]
    #[should_panic(expected = "needs")]
    fn short_slices_are_refused() {
        Matrix::new(&[0.0; 5], 2, 3);
    }
}
