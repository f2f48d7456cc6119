//! SLiCE's recurrence over packed games: `y_t = y_{t-1} + A_t y_{t-1} + b_t`, A block-diagonal (paper, section 3.2).
//!
//! `A_t` and `b_t` are linear in the increment `x_t = scale [1, u_t - u_{t-1}]`, so they come from one matrix product over
//! all rows; only the mat-vecs with the blocks run step after step. For these the rows of A's weight are put in another
//! order first: within a block column after column, so that a mat-vec is a sum of columns, each a few lanes wide.

use multiversion::multiversion;

use super::matrix::{Matrix, multiply, scratch};

/// Sizes of a recurrence.
#[derive(Debug, Clone, Copy)]
pub struct Shape<'a> {
    /// Numbers in a row (D).
    pub width: usize,
    /// Rows and columns of a block of A; divides `width`.
    pub block: usize,
    /// What the increments are multiplied by.
    pub scale: f32,
    /// Steps of each game; they add up to the rows (N).
    pub lengths: &'a [u32],
}

/// The learnt numbers.
#[derive(Debug, Clone, Copy)]
pub struct Weights<'a> {
    /// `[D block, D + 1]`: time, then channels, to A by block, row and column.
    pub a: &'a [f32],
    /// `[D, D + 1]`: to b.
    pub b: &'a [f32],
    /// `[D]`: the state before the first step.
    pub init: &'a [f32],
}

/// What the backward pass needs of the forward one.
#[derive(Debug, Clone)]
pub struct Saved {
    /// `[N, D block]`: A, each block column after column.
    pub transitions: Vec<f32>,
    /// `[N, D]`: the states.
    pub states: Vec<f32>,
}

/// Gradients of everything that the forward pass took.
#[derive(Debug, Clone)]
pub struct Gradients {
    /// `[N, D]`.
    pub u: Vec<f32>,
    /// As [`Weights::a`].
    pub a: Vec<f32>,
    /// As [`Weights::b`].
    pub b: Vec<f32>,
    /// As [`Weights::init`].
    pub init: Vec<f32>,
}

impl Shape<'_> {
    fn rows(&self) -> usize {
        self.lengths.iter().map(|&steps| steps as usize).sum()
    }

    /// Where row `row` of A's weight goes: columns of a block become its rows.
    fn transposed(&self, row: usize) -> usize {
        let (block, within) = (row / (self.block * self.block), row % (self.block * self.block));
        let (i, j) = (within / self.block, within % self.block);
        (block * self.block + j) * self.block + i
    }
}

/// `u [N, D]` to the states `[N, D]` and A.
pub fn forward(u: &[f32], weights: Weights, shape: Shape) -> Saved {
    let (rows, width) = (shape.rows(), shape.width);
    let outputs = width * shape.block;
    assert_eq!(u.len(), rows * width, "rows of the games and of their inputs differ");
    let increments = increments(u, shape);
    let a = turned(weights.a, shape);
    let transitions = project(&increments, &a, shape, outputs);
    let mut states = project(&increments, weights.b, shape, width);
    scan(&mut states, &transitions, weights.init, shape);
    Saved { transitions, states }
}

/// From `dy [N, D]`, the forward's `u`, weights and what it saved: all gradients.
pub fn backward(dy: &[f32], u: &[f32], weights: Weights, saved: &Saved, shape: Shape) -> Gradients {
    let (rows, width) = (shape.rows(), shape.width);
    let outputs = width * shape.block;
    let mut d_states = dy.to_vec();
    let mut d_transitions = scratch(rows * outputs);
    let mut init = vec![0.0; width];
    scan_back(&mut d_states, &mut d_transitions, &mut init, saved, weights.init, shape);

    let increments = increments(u, shape);
    let a = turned(weights.a, shape);
    let mut d_increments = scratch(rows * width);
    for (accumulate, d, w, outputs) in
        [(false, &d_transitions, &a[..], outputs), (true, &d_states, weights.b, width)]
    {
        let channels = Matrix::strided(&w[1..], outputs, width, width + 1);
        multiply(&mut d_increments, width, accumulate, Matrix::new(d, rows, outputs), channels);
    }
    let a = weight_gradient(&d_transitions, &increments, shape, outputs);
    let b = weight_gradient(&d_states, &increments, shape, width);
    Gradients { u: increments_back(&d_increments, shape), a: turned(&a, shape), b, init }
}

/// The rows of A's weight, columns of blocks first; applied twice, as they were.
fn turned(weight: &[f32], shape: Shape) -> Vec<f32> {
    let row_len = shape.width + 1;
    if shape.block == 1 {
        return weight.to_vec();
    }
    let mut out = scratch(weight.len());
    for (row, numbers) in weight.chunks_exact(row_len).enumerate() {
        let to = shape.transposed(row) * row_len;
        out[to..to + row_len].copy_from_slice(numbers);
    }
    out
}

/// `increments [N, D]`, already scaled, through `weight [out, D + 1]`, whose first column is for time.
fn project(increments: &[f32], weight: &[f32], shape: Shape, outputs: usize) -> Vec<f32> {
    let width = shape.width;
    let rows = increments.len() / width;
    let time: Vec<f32> = weight.chunks_exact(width + 1).map(|row| row[0] * shape.scale).collect();
    let mut out = Vec::with_capacity(rows * outputs);
    for _ in 0..rows {
        out.extend_from_slice(&time);
    }
    let channels = Matrix::strided(&weight[1..], outputs, width, width + 1);
    multiply(&mut out, outputs, true, Matrix::new(increments, rows, width), channels.t());
    out
}

/// From the gradient `d [N, out]` of a projection: that of its weight, `[out, D + 1]`.
fn weight_gradient(d: &[f32], increments: &[f32], shape: Shape, outputs: usize) -> Vec<f32> {
    let width = shape.width;
    let rows = increments.len() / width;
    let mut weight = scratch(outputs * (width + 1));
    let time = super::linear::bias_gradient(d, outputs);
    for (row, sum) in weight.chunks_exact_mut(width + 1).zip(time) {
        row[0] = sum * shape.scale;
    }
    let (d, x) = (Matrix::new(d, rows, outputs), Matrix::new(increments, rows, width));
    multiply(&mut weight[1..], width + 1, false, d.t(), x);
    weight
}

/// `scale (u_t - u_{t-1})`, with 0 before the first step of a game.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn increments(u: &[f32], shape: Shape) -> Vec<f32> {
    let Shape { width, scale, lengths, .. } = shape;
    let mut out = Vec::with_capacity(u.len());
    let mut first = 0;
    for &steps in lengths {
        let game = &u[first..first + steps as usize * width];
        first += game.len();
        let (start, after) = game.split_at(width.min(game.len()));
        out.extend(start.iter().map(|x| x * scale));
        out.extend(after.iter().zip(game).map(|(now, before)| (now - before) * scale));
    }
    out
}

/// The transpose of [`increments`].
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn increments_back(d: &[f32], shape: Shape) -> Vec<f32> {
    let Shape { width, scale, lengths, .. } = shape;
    let mut out = Vec::with_capacity(d.len());
    let mut first = 0;
    for &steps in lengths {
        let game = &d[first..first + steps as usize * width];
        first += game.len();
        let after = &game[width.min(game.len())..];
        out.extend(game.iter().zip(after).map(|(now, next)| (now - next) * scale));
        out.extend(game[after.len()..].iter().map(|x| x * scale));
    }
    out
}

/// Turns `b` into the states, in place.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn scan(states: &mut [f32], transitions: &[f32], init: &[f32], shape: Shape) {
    // Literal sizes let the compiler keep a column in a register.
    match shape.block {
        1 => scan_diagonal(states, transitions, init, shape),
        2 => scan_blocks::<2>(states, transitions, init, shape),
        4 => scan_blocks::<4>(states, transitions, init, shape),
        8 => scan_blocks::<8>(states, transitions, init, shape),
        16 => scan_blocks::<16>(states, transitions, init, shape),
        _ => scan_any(states, transitions, init, shape),
    }
}

/// Calls `step(row, previous state, this state)` for every row in order, game after game.
#[inline(always)]
fn each_step(
    states: &mut [f32],
    init: &[f32],
    shape: Shape,
    mut step: impl FnMut(usize, &[f32], &mut [f32]),
) {
    let width = shape.width;
    let mut row = 0;
    for &steps in shape.lengths {
        for t in 0..steps as usize {
            let (before, now) = states.split_at_mut(row * width);
            let previous = if t == 0 { init } else { &before[(row - 1) * width..] };
            step(row, &previous[..width], &mut now[..width]);
            row += 1;
        }
    }
}

#[inline(always)]
fn scan_diagonal(states: &mut [f32], transitions: &[f32], init: &[f32], shape: Shape) {
    let width = shape.width;
    each_step(states, init, shape, |row, previous, now| {
        let a = &transitions[row * width..][..width];
        for i in 0..width {
            now[i] += previous[i] + a[i] * previous[i];
        }
    });
}

#[inline(always)]
fn scan_blocks<const K: usize>(
    states: &mut [f32],
    transitions: &[f32],
    init: &[f32],
    shape: Shape,
) {
    let size = shape.width * K;
    each_step(states, init, shape, |row, previous, now| {
        let a: &[[f32; K]] = transitions[row * size..][..size].as_chunks().0;
        let (previous, now) = (previous.as_chunks::<K>().0, now.as_chunks_mut::<K>().0);
        for ((now, previous), a) in now.iter_mut().zip(previous).zip(a.as_chunks::<K>().0) {
            let mut sum = [0.0; K];
            for j in 0..K {
                for i in 0..K {
                    sum[i] += a[j][i] * previous[j];
                }
            }
            for i in 0..K {
                now[i] += previous[i] + sum[i];
            }
        }
    });
}

#[inline(always)]
fn scan_any(states: &mut [f32], transitions: &[f32], init: &[f32], shape: Shape) {
    let k = shape.block;
    let size = shape.width * k;
    each_step(states, init, shape, |row, previous, now| {
        let a = &transitions[row * size..][..size];
        let blocks = now.chunks_exact_mut(k).zip(previous.chunks_exact(k));
        for ((now, previous), a) in blocks.zip(a.chunks_exact(k * k)) {
            for (i, now) in now.iter_mut().enumerate() {
                let sum: f32 = (0..k).map(|j| a[j * k + i] * previous[j]).sum();
                *now += previous[i] + sum;
            }
        }
    });
}

/// Turns the gradients of outputs in `d_states` into those of states, which are those of b; writes those of A.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn scan_back(
    d_states: &mut [f32],
    d_transitions: &mut [f32],
    d_init: &mut [f32],
    saved: &Saved,
    init: &[f32],
    shape: Shape,
) {
    let width = shape.width;
    let size = width * shape.block;
    let mut end = shape.rows();
    for &steps in shape.lengths.iter().rev() {
        let first = end - steps as usize;
        for row in (first..end).rev() {
            let (before, now) = d_states.split_at_mut(row * width);
            let now = &now[..width];
            let (previous, d_previous) = if row > first {
                (&saved.states[(row - 1) * width..][..width], &mut before[(row - 1) * width..])
            } else {
                (init, &mut *d_init)
            };
            let a = &saved.transitions[row * size..][..size];
            let d_a = &mut d_transitions[row * size..][..size];
            let d_previous = &mut d_previous[..width];
            match shape.block {
                1 => back_diagonal(now, previous, a, d_previous, d_a),
                2 => back_blocks::<2>(now, previous, a, d_previous, d_a),
                4 => back_blocks::<4>(now, previous, a, d_previous, d_a),
                8 => back_blocks::<8>(now, previous, a, d_previous, d_a),
                16 => back_blocks::<16>(now, previous, a, d_previous, d_a),
                k => back_any(k, now, previous, a, d_previous, d_a),
            }
        }
        end = first;
    }
}

#[inline(always)]
fn back_diagonal(
    now: &[f32],
    previous: &[f32],
    a: &[f32],
    d_previous: &mut [f32],
    d_a: &mut [f32],
) {
    let width = now.len();
    let (previous, a, d_a) = (&previous[..width], &a[..width], &mut d_a[..width]);
    for i in 0..width {
        d_previous[i] += now[i] + a[i] * now[i];
        d_a[i] = now[i] * previous[i];
    }
}

#[inline(always)]
fn back_blocks<const K: usize>(
    now: &[f32],
    previous: &[f32],
    a: &[f32],
    d_previous: &mut [f32],
    d_a: &mut [f32],
) {
    let (now, previous) = (now.as_chunks::<K>().0, previous.as_chunks::<K>().0);
    let a = a.as_chunks::<K>().0.as_chunks::<K>().0;
    let d_previous = d_previous.as_chunks_mut::<K>().0;
    let d_a = d_a.as_chunks_mut::<K>().0.as_chunks_mut::<K>().0;
    let blocks = now.iter().zip(previous).zip(a).zip(d_previous).zip(d_a);
    for ((((now, previous), a), d_previous), d_a) in blocks {
        for j in 0..K {
            for i in 0..K {
                d_a[j][i] = now[i] * previous[j];
            }
        }
        let mut along = [0.0; K];
        for j in 0..K {
            let mut products = [0.0; K];
            for i in 0..K {
                products[i] = a[j][i] * now[i];
            }
            along[j] = products.iter().sum();
        }
        for j in 0..K {
            d_previous[j] += now[j] + along[j];
        }
    }
}

#[inline(always)]
fn back_any(
    k: usize,
    now: &[f32],
    previous: &[f32],
    a: &[f32],
    d_previous: &mut [f32],
    d_a: &mut [f32],
) {
    let blocks = now.chunks_exact(k).zip(previous.chunks_exact(k)).zip(a.chunks_exact(k * k));
    let gradients = d_previous.chunks_exact_mut(k).zip(d_a.chunks_exact_mut(k * k));
    for (((now, previous), a), (d_previous, d_a)) in blocks.zip(gradients) {
        for j in 0..k {
            let mut along = 0.0;
            for i in 0..k {
                d_a[j * k + i] = now[i] * previous[j];
                along += a[j * k + i] * now[i];
            }
            d_previous[j] += now[j] + along;
        }
    }
}
