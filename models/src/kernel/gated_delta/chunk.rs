//! The gated delta rule over a chunk of steps as matrix products, and its way back.
//!
//! For one head with recurrent state `S [K, V]`, a step is
//!
//! ```text
//! e_t = v_t - g_t S_{t-1}^T k_t           the error of what the decayed state answers to the key
//! S_t = g_t S_{t-1} + k_t (b_t e_t)^T     the correction
//! o_t = S_t^T q_t
//! ```
//!
//! Within a chunk every `S_t` is the state at its beginning, decayed, plus the corrections since. With `G_ij` the decay
//! from step j to step i and `G_i` that from the beginning, the errors solve a triangular system and the outputs follow:
//!
//! ```text
//! e_i = v_i - G_i S^T k_i - sum_{j<i} G_ij (k_i . k_j) b_j e_j
//! o_i =       G_i S^T q_i + sum_{j<=i} G_ij (q_i . k_j) b_j e_j
//! ```
//!
//! Queries and keys of a chunk of n steps stand in one matrix `[2n, K]`, queries above keys, so that each product serves
//! both. Decays are always exponentials of differences of at most 0: nothing overflows however fast a state fades.

use multiversion::multiversion;

use crate::kernel::{
    lanes::{dot, update1},
    math::exp,
    matrix::{Matrix, multiply, scratch},
};

/// One chunk's inputs.
#[derive(Clone, Copy)]
pub struct Chunk<'a> {
    /// `[2n, K]`: queries, then keys.
    pub queries_keys: &'a [f32],
    /// `[n]`: logarithms of the decays.
    pub log_decay: &'a [f32],
    /// `[n]`: strengths.
    pub beta: &'a [f32],
    /// K.
    pub key: usize,
    /// V.
    pub value: usize,
}

impl<'a> Chunk<'a> {
    fn steps(&self) -> usize {
        self.beta.len()
    }

    fn queries_keys(&self) -> Matrix<'a> {
        Matrix::new(self.queries_keys, 2 * self.steps(), self.key)
    }

    fn keys(&self) -> Matrix<'a> {
        Matrix::new(&self.queries_keys[self.steps() * self.key..], self.steps(), self.key)
    }
}

/// Room for one chunk, used over and over.
pub struct Workspace {
    /// `[n]`: logarithms of the decays from the chunk's beginning.
    since_start: Vec<f32>,
    /// `[2n, n]`: products of queries and keys with keys, decayed and masked.
    products: Vec<f32>,
    /// `[n, n]`: the decays themselves.
    decays: Vec<f32>,
    /// `[2n, V]`: what the state answers to queries and keys; on the way back, gradients of both.
    reach: Vec<f32>,
    /// `[n, V]`: corrections.
    corrections: Vec<f32>,
    /// `[n, V]`: their gradients.
    d_corrections: Vec<f32>,
    /// `[n, K]`: keys as they count at the chunk's end.
    keys: Vec<f32>,
    /// `[2n, n]`: gradients of the products.
    d_products: Vec<f32>,
}

/// What [`Workspace::backward`] reads besides the chunk.
#[derive(Clone, Copy)]
pub struct Trace<'a> {
    /// `[K, V]`: the recurrent state before the chunk; none if it is zero.
    pub state: Option<&'a [f32]>,
    /// `[n, V]`: the errors that the forward pass found.
    pub errors: &'a [f32],
    /// `[n, V]`: the gradient of the outputs.
    pub d_outputs: &'a [f32],
}

/// Where [`Workspace::backward`] puts gradients.
pub struct ChunkGradients<'a> {
    /// `[2n, K]`: queries, then keys.
    pub queries_keys: &'a mut [f32],
    /// `[n, V]`.
    pub values: &'a mut [f32],
    /// `[n]`: strengths.
    pub beta: &'a mut [f32],
}

impl Workspace {
    /// Room for chunks of up to `steps` steps.
    pub fn new(steps: usize, key: usize, value: usize, backward: bool) -> Self {
        let back = |len: usize| scratch(if backward { len } else { 0 });
        Workspace {
            since_start: scratch(steps),
            products: scratch(2 * steps * steps),
            decays: scratch(steps * steps),
            reach: scratch(2 * steps * value),
            corrections: scratch(steps * value),
            d_corrections: back(steps * value),
            keys: scratch(steps * key),
            d_products: back(2 * steps * steps),
        }
    }

    /// Values become errors in place (`[n, V]`); the outputs `[n, V]` are written. `state` is the one before the chunk,
    /// zero if `first`, and becomes the one after it unless `last`.
    pub fn forward(
        &mut self,
        chunk: Chunk,
        errors: &mut [f32],
        outputs: &mut [f32],
        state: &mut [f32],
        (first, last): (bool, bool),
    ) {
        let Chunk { key, value, .. } = chunk;
        let n = chunk.steps();
        self.mix(chunk);
        if !first {
            let state = Matrix::new(state, key, value);
            multiply(&mut self.reach, value, false, chunk.queries_keys(), state);
            let (to_queries, to_keys) = self.reach[..2 * n * value].split_at(n * value);
            decayed_answers(&self.since_start[..n], to_queries, to_keys, outputs, errors);
        }
        let products = &self.products[..2 * n * n];
        let corrections = &mut self.corrections[..n * value];
        solve(&products[n * n..], chunk.beta, errors, corrections);
        let corrections = Matrix::new(corrections, n, value);
        multiply(outputs, value, !first, Matrix::new(products, n, n), corrections);
        if !last {
            let kept = keys_at_end(chunk, &self.since_start[..n], &mut self.keys);
            let keys = Matrix::new(&self.keys, n, key);
            if first {
                multiply(state, value, false, keys.t(), corrections);
            } else {
                scale(state, kept);
                multiply(state, value, true, keys.t(), corrections);
            }
        }
    }

    /// From the gradient `d_state` of the recurrent state after the chunk (not read if the chunk is the `last`) to that of
    /// the state before it, in place, and to those of the chunk's inputs.
    pub fn backward(
        &mut self,
        chunk: Chunk,
        trace: Trace,
        d_state: &mut [f32],
        last: bool,
        gradients: ChunkGradients,
    ) {
        let ChunkGradients { queries_keys: d_queries_keys, values: d_values, beta: d_beta } =
            gradients;
        let Chunk { key, value, .. } = chunk;
        let n = chunk.steps();
        self.mix(chunk);
        let corrections = &mut self.corrections[..n * value];
        scale_rows_into(trace.errors, chunk.beta, corrections);

        // Gradients of the corrections: from the outputs, from the state after the chunk, and from later errors.
        let d_corrections = &mut self.d_corrections[..n * value];
        let d_outputs = Matrix::new(trace.d_outputs, n, value);
        let answers = Matrix::new(&self.products, n, n);
        multiply(d_corrections, value, false, answers.t(), d_outputs);
        let kept = if last {
            0.0
        } else {
            let kept = keys_at_end(chunk, &self.since_start[..n], &mut self.keys);
            let keys = Matrix::new(&self.keys, n, key);
            multiply(d_corrections, value, true, keys, Matrix::new(d_state, key, value));
            kept
        };
        solve_backward(
            &self.products[n * n..2 * n * n],
            chunk.beta,
            trace.errors,
            d_corrections,
            d_values,
            d_beta,
        );

        // Gradients of outputs above those of the answers that were subtracted from values.
        let reach = &mut self.reach[..2 * n * value];
        reach[..n * value].copy_from_slice(trace.d_outputs);
        update1(&mut reach[n * value..], d_values, |_, d| -d);
        let d_products = &mut self.d_products[..2 * n * n];
        let corrections = Matrix::new(corrections, n, value);
        multiply(d_products, n, false, Matrix::new(reach, 2 * n, value), corrections.t());
        decay_products(d_products, &self.decays[..n * n], n);

        let (queries_keys, keys) = (chunk.queries_keys(), chunk.keys());
        let d_products = Matrix::new(d_products, 2 * n, n);
        multiply(d_queries_keys, key, false, d_products, keys);
        multiply(&mut d_queries_keys[n * key..], key, true, d_products.t(), queries_keys);
        if !last {
            let corrections = &mut self.corrections[..n * value];
            to_end(&self.since_start[..n], corrections, value);
            let d_state = Matrix::new(d_state, key, value);
            let corrections = Matrix::new(corrections, n, value);
            multiply(&mut d_queries_keys[n * key..], key, true, corrections, d_state.t());
        }
        if let Some(state) = trace.state {
            from_start(&self.since_start[..n], reach, value);
            let reach = Matrix::new(reach, 2 * n, value);
            multiply(d_queries_keys, key, true, reach, Matrix::new(state, key, value).t());
            if !last {
                scale(d_state, kept);
            }
            multiply(d_state, value, !last, queries_keys.t(), reach);
        }
    }

    /// Decays, and the products of queries and keys with keys under them.
    fn mix(&mut self, chunk: Chunk) {
        let n = chunk.steps();
        let since_start = &mut self.since_start[..n];
        let mut sum = 0.0;
        for (since, log) in since_start.iter_mut().zip(chunk.log_decay) {
            sum += log;
            *since = sum;
        }
        decay_table(since_start, &mut self.decays[..n * n]);
        let products = &mut self.products[..2 * n * n];
        multiply(products, n, false, chunk.queries_keys(), chunk.keys().t());
        decay_products(products, &self.decays[..n * n], n);
    }
}

/// Keys decayed to the chunk's end; returns the share of the state that stays over the whole chunk.
fn keys_at_end(chunk: Chunk, since_start: &[f32], keys: &mut [f32]) -> f32 {
    let n = since_start.len();
    let keys = &mut keys[..n * chunk.key];
    keys.copy_from_slice(&chunk.queries_keys[n * chunk.key..]);
    to_end(since_start, keys, chunk.key);
    exp(since_start[n - 1])
}

/// `decays[i][j] = exp(since[i] - since[j])` for j up to i, else 0.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn decay_table(since: &[f32], decays: &mut [f32]) {
    for (i, row) in decays.chunks_exact_mut(since.len()).enumerate() {
        update1(row, since, |_, s| exp(since[i] - s));
        row[i + 1..].fill(0.0);
    }
}

/// Products `[2n, n]` under their decays: a query sees keys up to its own step, a key only those before it.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn decay_products(products: &mut [f32], decays: &[f32], n: usize) {
    let (queries, keys) = products.split_at_mut(n * n);
    for half in [queries, &mut *keys] {
        // A product beyond the diagonal may be anything finite: it is times zero.
        update1(half, decays, |p, d| p * d);
    }
    for i in 0..n {
        keys[i * n + i] = 0.0;
    }
}

/// Rows times their decays since the chunk's beginning, both halves alike.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn from_start(since: &[f32], rows: &mut [f32], width: usize) {
    for (i, row) in rows.chunks_exact_mut(width).enumerate() {
        let decay = exp(since[i % since.len()]);
        row.iter_mut().for_each(|x| *x *= decay);
    }
}

/// Rows times their decays until the chunk's end.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn to_end(since: &[f32], rows: &mut [f32], width: usize) {
    let end = since[since.len() - 1];
    for (row, since) in rows.chunks_exact_mut(width).zip(since) {
        let decay = exp(end - since);
        row.iter_mut().for_each(|x| *x *= decay);
    }
}

fn scale(x: &mut [f32], factor: f32) {
    x.iter_mut().for_each(|x| *x *= factor);
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn scale_rows_into(rows: &[f32], factors: &[f32], out: &mut [f32]) {
    let width = rows.len() / factors.len();
    let rows = rows.chunks_exact(width).zip(out.chunks_exact_mut(width));
    for ((row, out), factor) in rows.zip(factors) {
        update1(out, row, |_, x| x * factor);
    }
}

/// What the state answers, decayed: to queries as the outputs' beginning, to keys taken from the values.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn decayed_answers(
    since: &[f32],
    to_queries: &[f32],
    to_keys: &[f32],
    outputs: &mut [f32],
    errors: &mut [f32],
) {
    let value = to_keys.len() / since.len();
    for (i, since) in since.iter().enumerate() {
        let decay = exp(*since);
        let range = i * value..(i + 1) * value;
        update1(&mut outputs[range.clone()], &to_queries[range.clone()], |_, x| x * decay);
        update1(&mut errors[range.clone()], &to_keys[range], |e, x| e - x * decay);
    }
}

/// Forward substitution: errors `[n, V]` in place, and the corrections that they bring.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn solve(products: &[f32], beta: &[f32], errors: &mut [f32], corrections: &mut [f32]) {
    let n = beta.len();
    let value = errors.len() / n;
    for i in 0..n {
        let error = &mut errors[i * value..][..value];
        let (before, rest) = corrections.split_at_mut(i * value);
        for (j, correction) in before.chunks_exact(value).enumerate() {
            let product = products[i * n + j];
            update1(error, correction, |e, c| e - c * product);
        }
        update1(&mut rest[..value], error, |_, e| e * beta[i]);
    }
}

/// The transpose, from the last step to the first: `d`, the gradient of the corrections by all that comes after them,
/// becomes that by everything; from it those of values and strengths.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn solve_backward(
    products: &[f32],
    beta: &[f32],
    errors: &[f32],
    d: &mut [f32],
    d_values: &mut [f32],
    d_beta: &mut [f32],
) {
    let n = beta.len();
    let value = errors.len() / n;
    for i in (0..n).rev() {
        let (before, rest) = d.split_at_mut(i * value);
        let d_value = &mut d_values[i * value..][..value];
        d_beta[i] = dot(&rest[..value], &errors[i * value..][..value]);
        update1(d_value, &rest[..value], |_, d| d * beta[i]);
        for (j, d) in before.chunks_exact_mut(value).enumerate() {
            let product = products[i * n + j];
            update1(d, d_value, |d, v| d - v * product);
        }
    }
}
