//! Causal self-attention of packed games, with rotary positions and dropout of the probabilities.
//!
//! Games and heads are independent. Within one, queries go in blocks of `QUERIES`; a block sees the keys up to its own
//! end, so the upper triangle beyond the diagonal blocks is never touched, and neither is padding. Scores are held
//! transposed, `[keys, queries]`: a softmax then runs down the columns of a matrix whose rows are contiguous.

use multiversion::multiversion;

use super::{
    math::{COLUMNS, columns, columns_mut, exp},
    matrix::{Matrix, multiply, scratch},
    random::Dropout,
    rope::RopeTable,
};

/// Queries in a block.
const QUERIES: usize = 64;

/// Sizes of an attention over packed rows.
#[derive(Debug, Clone, Copy)]
pub struct Shape<'a> {
    /// Model width D.
    pub width: usize,
    /// Heads H.
    pub heads: usize,
    /// Steps of each game; they add up to the rows.
    pub lengths: &'a [u32],
}

/// The block of queries that begins at step `start` of a game of `steps` steps.
#[derive(Clone, Copy)]
struct Block {
    start: usize,
    /// Queries in the block.
    queries: usize,
    /// Queries with padding: the row stride of its scores.
    stride: usize,
    /// Keys that the block sees: the steps up to its end.
    keys: usize,
}

fn blocks(steps: usize) -> impl Iterator<Item = Block> {
    (0..steps).step_by(QUERIES).map(move |start| {
        let queries = QUERIES.min(steps - start);
        let stride = queries.next_multiple_of(COLUMNS);
        Block { start, queries, stride, keys: start + queries }
    })
}

/// Numbers in the saved probabilities of one head of a game.
fn probability_count(steps: usize) -> usize {
    blocks(steps).map(|block| block.keys * block.stride).sum()
}

/// `qkv [N, 3 D]` to `[N, D]`.
///
/// If `save`, the probabilities of every block come too, `[keys, queries]` each, game by game, head by head. The sign
/// bit of a probability is set where dropout has dropped it.
pub fn forward(
    qkv: &[f32],
    shape: Shape,
    rope: &RopeTable,
    dropout: Option<Dropout>,
    save: bool,
) -> (Vec<f32>, Vec<f32>) {
    let Shape { width, heads, lengths } = shape;
    let head_width = width / heads;
    let rows: usize = lengths.iter().map(|&steps| steps as usize).sum();
    let mut out = scratch(rows * width);
    let saved = if save {
        lengths.iter().map(|&steps| heads * probability_count(steps as usize)).sum()
    } else {
        0
    };
    let mut probabilities = Vec::with_capacity(saved);
    let longest = longest(lengths);
    let mut turned = Turned::new(longest, head_width);
    let mut scores = scratch(longest * QUERIES);
    let mut dropped = scratch(if dropout.is_some() { longest * QUERIES } else { 0 });

    let mut row = 0;
    for (game, &steps) in lengths.iter().enumerate() {
        let steps = steps as usize;
        let qkv = &qkv[row * 3 * width..(row + steps) * 3 * width];
        let out = &mut out[row * width..(row + steps) * width];
        for head in 0..heads {
            let offset = head * head_width;
            turned.turn(qkv, shape, offset, rope, steps);
            let values = Matrix::strided(&qkv[2 * width + offset..], steps, head_width, 3 * width);
            let dropout = dropout.map(|dropout| dropout.of_head(game, head));
            for block in blocks(steps) {
                let scores = &mut scores[..block.keys * block.stride];
                turned.scores(block, scores);
                softmax_columns(scores, block.stride, block.start);
                let weights = match dropout {
                    None => &*scores,
                    Some(dropout) => {
                        let dropped = &mut dropped[..scores.len()];
                        drop(scores, dropped, block.stride, block.start, dropout);
                        &*dropped
                    }
                };
                multiply(
                    &mut out[block.start * width + offset..],
                    width,
                    false,
                    Matrix::strided(weights, block.keys, block.queries, block.stride).t(),
                    values.first(block.keys),
                );
                if save {
                    probabilities.extend_from_slice(scores);
                }
            }
        }
        row += steps;
    }
    (out, probabilities)
}

/// From `dy [N, D]`, the forward's `qkv [N, 3 D]` and its saved probabilities: `dqkv [N, 3 D]`.
pub fn backward(
    dy: &[f32],
    qkv: &[f32],
    probabilities: &[f32],
    shape: Shape,
    rope: &RopeTable,
    dropout: Option<Dropout>,
) -> Vec<f32> {
    let Shape { width, heads, lengths } = shape;
    let head_width = width / heads;
    let mut d_qkv = vec![0.0; qkv.len()];
    let longest = longest(lengths);
    let mut turned = Turned::new(longest, head_width);
    let mut d_queries = scratch(QUERIES * head_width);
    let mut d_keys = scratch(longest * head_width);
    let mut dropped = scratch(longest * QUERIES);
    let mut d_scores = scratch(longest * QUERIES);

    let mut row = 0;
    let mut saved = 0;
    for &steps in lengths {
        let steps = steps as usize;
        let range = row * 3 * width..(row + steps) * 3 * width;
        let (qkv, d_qkv) = (&qkv[range.clone()], &mut d_qkv[range]);
        let dy = &dy[row * width..(row + steps) * width];
        for head in 0..heads {
            let offset = head * head_width;
            turned.turn(qkv, shape, offset, rope, steps);
            let values = Matrix::strided(&qkv[2 * width + offset..], steps, head_width, 3 * width);
            let d_keys = &mut d_keys[..steps * head_width];
            d_keys.fill(0.0);
            for block in blocks(steps) {
                let Block { start, queries, stride, keys } = block;
                let probabilities = &probabilities[saved..saved + keys * stride];
                saved += keys * stride;
                let dy = Matrix::strided(&dy[start * width + offset..], queries, head_width, width);
                let dropped = &mut dropped[..keys * stride];
                let d_scores = &mut d_scores[..keys * stride];
                multiply(d_scores, stride, false, values.first(keys), dy.t());
                softmax_columns_backward(
                    probabilities,
                    d_scores,
                    dropped,
                    stride,
                    queries,
                    dropout,
                );
                let d_scores = Matrix::strided(d_scores, keys, queries, stride);
                // dV, dK and dQ of this block.
                multiply(
                    &mut d_qkv[2 * width + offset..],
                    3 * width,
                    true,
                    Matrix::strided(dropped, keys, queries, stride),
                    dy,
                );
                multiply(d_keys, head_width, true, d_scores, turned.queries(block));
                multiply(&mut d_queries, head_width, false, d_scores.t(), turned.keys(keys));
                let d_queries = &d_queries[..queries * head_width];
                turn_rows_back(d_queries, rope, turned.scale, start, d_qkv, width, offset);
            }
            turn_rows_back(d_keys, rope, 1.0, 0, d_qkv, width, width + offset);
        }
        row += steps;
    }
    d_qkv
}

fn longest(lengths: &[u32]) -> usize {
    lengths.iter().copied().max().unwrap_or(0) as usize
}

/// One head's queries (scaled by `1 / sqrt(K)`) and keys after the rotary map, `[T, K]` each.
/// Behind the queries stand rows of zeros, so that blocks can be padded.
struct Turned {
    queries: Vec<f32>,
    keys: Vec<f32>,
    width: usize,
    scale: f32,
}

impl Turned {
    fn new(steps: usize, width: usize) -> Self {
        Turned {
            queries: scratch((steps + COLUMNS) * width),
            keys: scratch(steps * width),
            width,
            scale: 1.0 / (width as f32).sqrt(),
        }
    }

    fn turn(&mut self, qkv: &[f32], shape: Shape, offset: usize, rope: &RopeTable, steps: usize) {
        let width = self.width;
        turn_rows(qkv, shape.width, offset, rope, self.scale, &mut self.queries[..steps * width]);
        turn_rows(
            qkv,
            shape.width,
            shape.width + offset,
            rope,
            1.0,
            &mut self.keys[..steps * width],
        );
        self.queries[steps * width..(steps + COLUMNS) * width].fill(0.0);
    }

    fn queries(&self, block: Block) -> Matrix<'_> {
        Matrix::new(&self.queries[block.start * self.width..], block.queries, self.width)
    }

    fn keys(&self, count: usize) -> Matrix<'_> {
        Matrix::new(&self.keys, count, self.width)
    }

    /// The block's scores, `[keys, queries]`.
    fn scores(&self, block: Block, out: &mut [f32]) {
        let queries = &self.queries[block.start * self.width..];
        let queries = Matrix::new(queries, block.stride, self.width);
        multiply(out, block.stride, false, self.keys(block.keys), queries.t());
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn turn_rows(
    qkv: &[f32],
    width: usize,
    offset: usize,
    rope: &RopeTable,
    scale: f32,
    out: &mut [f32],
) {
    let head_width = rope.width();
    for (position, out) in out.chunks_exact_mut(head_width).enumerate() {
        let x = &qkv[position * 3 * width + offset..][..head_width];
        rope.turn(position, x, scale, out);
    }
}

/// The way back: gradients `d` of turned rows, the first at step `start`, into their channels of `d_qkv`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn turn_rows_back(
    d: &[f32],
    rope: &RopeTable,
    scale: f32,
    start: usize,
    d_qkv: &mut [f32],
    width: usize,
    offset: usize,
) {
    let head_width = rope.width();
    for (i, d) in d.chunks_exact(head_width).enumerate() {
        let out = &mut d_qkv[(start + i) * 3 * width + offset..][..head_width];
        rope.turn_back(start + i, d, scale, out);
    }
}

/// Softmax down each column of `[keys, stride]`; column c holds query `start + c` and sees the keys up to its own step.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn softmax_columns(scores: &mut [f32], stride: usize, start: usize) {
    let mut max = [f32::MIN; QUERIES];
    let mut sum = [0.0_f32; QUERIES];
    let (max, sum) = (&mut max[..stride], &mut sum[..stride]);
    for (key, row) in scores.chunks_exact_mut(stride).enumerate() {
        // Queries before the key do not see it.
        row[..key.saturating_sub(start).min(stride)].fill(f32::MIN);
        for (max, x) in max.iter_mut().zip(&*row) {
            *max = if *x > *max { *x } else { *max };
        }
    }
    for (key, row) in scores.chunks_exact_mut(stride).enumerate() {
        for (row, max) in columns_mut(row).iter_mut().zip(columns(max)) {
            for i in 0..COLUMNS {
                row[i] = exp(row[i] - max[i]);
            }
        }
        row[..key.saturating_sub(start).min(stride)].fill(0.0);
        for (sum, x) in sum.iter_mut().zip(&*row) {
            *sum += x;
        }
    }
    for sum in sum.iter_mut() {
        *sum = 1.0 / *sum;
    }
    for row in scores.chunks_exact_mut(stride) {
        for (x, inverse) in row.iter_mut().zip(&*sum) {
            *x *= inverse;
        }
    }
}

/// Writes the probabilities after dropout, and marks the dropped ones by their sign bit.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn drop(
    probabilities: &mut [f32],
    dropped: &mut [f32],
    stride: usize,
    start: usize,
    dropout: Dropout,
) {
    let rows = probabilities.chunks_exact_mut(stride).zip(dropped.chunks_exact_mut(stride));
    for (key, (row, dropped)) in rows.enumerate() {
        let mut first = element(key, start);
        for (p, out) in columns_mut(row).iter_mut().zip(columns_mut(dropped)) {
            for i in 0..COLUMNS {
                let factor = dropout.factor(first.wrapping_add(i as u32));
                out[i] = p[i] * factor;
                p[i] = if factor == 0.0 { -p[i] } else { p[i] };
            }
            first = first.wrapping_add(COLUMNS as u32);
        }
    }
}

/// The dropout index of a key and a query of one head.
pub fn element(key: usize, query: usize) -> u32 {
    ((key as u32) << 16).wrapping_add(query as u32)
}

/// From the probabilities with their dropout marks and the gradient of the dropped ones (`d`): the gradient of the
/// scores, in place of `d`, and the dropped probabilities.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn softmax_columns_backward(
    probabilities: &[f32],
    d: &mut [f32],
    dropped: &mut [f32],
    stride: usize,
    queries: usize,
    dropout: Option<Dropout>,
) {
    let scale = dropout.map_or(1.0, Dropout::scale);
    let mut along = [0.0_f32; QUERIES];
    let along = &mut along[..stride];
    let rows = probabilities.chunks_exact(stride).zip(dropped.chunks_exact_mut(stride));
    for ((p, dropped), d) in rows.zip(d.chunks_exact_mut(stride)) {
        // The product has left the padding as it was.
        d[queries..].fill(0.0);
        let (p, dropped, d) = (&p[..stride], &mut dropped[..stride], &d[..stride]);
        for i in 0..stride {
            let kept = if p[i].is_sign_negative() { 0.0 } else { p[i] * scale };
            dropped[i] = kept;
            along[i] += kept * d[i];
        }
    }
    let rows = probabilities.chunks_exact(stride).zip(d.chunks_exact_mut(stride));
    for (p, d) in rows {
        let (p, d) = (&p[..stride], &mut d[..stride]);
        for i in 0..stride {
            let d_probability = if p[i].is_sign_negative() { 0.0 } else { d[i] * scale };
            d[i] = p[i].abs() * (d_probability - along[i]);
        }
    }
}
