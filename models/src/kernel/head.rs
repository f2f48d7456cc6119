//! The state head: hidden rows to 1,878 logits, and what is wanted of these: loss and gradients, or classes.
//!
//! All logits of a batch would fill main memory's bandwidth: 7.5 kB a step, written and read several times. They are
//! made for `CHUNK_ROWS` rows and one block of labels at a time instead, used up, and overwritten. The block's
//! logits, weights and weight gradients together fit a core's second-level cache.
//!
//! Logits are held transposed, `[logits, rows]`: a softmax over a label's 2 to 256 classes then runs down columns,
//! side by side for all rows, without a horizontal reduction.

use std::ops::Range;

use cwm_core::chess::label::{LABELS, LOGIT_OFFSETS, LOGITS, logit_range};
use multiversion::multiversion;

use super::{
    linear::add_row_sums,
    math::{COLUMNS, columns, columns_mut, exp},
    matrix::{Matrix, multiply, scratch},
};

/// Rows whose logits exist at a time.
const CHUNK_ROWS: usize = 128;

/// Rows are padded to a multiple of this, four vectors of 16, so that vectorised loops over them leave no remainder.
const PADDED_ROWS: usize = 64;

/// Labels whose logits exist at a time; the ranges have 416, 416, 534 and 512 logits.
const BLOCKS: [Range<usize>; 4] = [0..32, 32..64, 64..73, 73..75];

/// The most logits in a block.
const BLOCK_LOGITS: usize = 534;

/// The state head's parameters.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    /// Model width D.
    pub width: usize,
    /// `[1878, D]`.
    pub weight: &'a [f32],
    /// `[1878]`.
    pub bias: &'a [f32],
}

/// Gradients of the loss.
pub struct Gradients {
    /// `[N, D]`.
    pub hidden: Vec<f32>,
    /// `[1878, D]`.
    pub weight: Vec<f32>,
    /// `[1878]`.
    pub bias: Vec<f32>,
}

fn logits_of(labels: &Range<usize>) -> Range<usize> {
    LOGIT_OFFSETS[labels.start]..LOGIT_OFFSETS[labels.end]
}

fn chunks(rows: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows).step_by(CHUNK_ROWS).map(move |start| start..rows.min(start + CHUNK_ROWS))
}

impl<'a> Head<'a> {
    fn block(&self, logits: &Range<usize>) -> Matrix<'a> {
        let weight = &self.weight[logits.start * self.width..logits.end * self.width];
        Matrix::new(weight, logits.len(), self.width)
    }

    fn rows<'h>(&self, hidden: &'h [f32], rows: &Range<usize>) -> Matrix<'h> {
        let hidden = &hidden[rows.start * self.width..rows.end * self.width];
        Matrix::new(hidden, rows.len(), self.width)
    }

    /// Cross-entropy against `labels [N, 75]`, summed over rows and labels and multiplied by `scale`,
    /// with its gradients if asked for.
    ///
    /// `hidden` is `[N, D]`. A label beyond its class count counts as class 0 of it: callers check labels.
    pub fn loss(
        &self,
        hidden: &[f32],
        labels: &[u8],
        scale: f32,
        want_gradients: bool,
    ) -> (f64, Option<Gradients>) {
        let width = self.width;
        let rows = labels.len() / LABELS;
        let mut gradients = want_gradients.then(|| Gradients {
            hidden: vec![0.0; rows * width],
            weight: vec![0.0; LOGITS * width],
            bias: vec![0.0; LOGITS],
        });
        let mut logits = scratch(BLOCK_LOGITS * CHUNK_ROWS);
        let mut total = 0.0;
        for block in BLOCKS {
            let range = logits_of(&block);
            let weight = self.block(&range);
            for chunk in chunks(rows) {
                let count = chunk.len();
                let stride = count.next_multiple_of(PADDED_ROWS);
                let logits = &mut logits[..range.len() * stride];
                let hidden = self.rows(hidden, &chunk);
                multiply(logits, stride, false, weight, hidden.t());
                let mut loss = ColumnLoss::new(stride, count, scale);
                for label in block.clone() {
                    let classes = logit_range(label);
                    let first = classes.start - range.start;
                    let logits = &mut logits[first * stride..(first + classes.len()) * stride];
                    let truth = Truth { labels, label, first_row: chunk.start };
                    loss.add(logits, &self.bias[classes], truth, want_gradients);
                }
                total += loss.total();
                let Some(gradients) = &mut gradients else { continue };
                let d_logits = Matrix::strided(logits, range.len(), count, stride);
                let d_hidden = &mut gradients.hidden[chunk.start * width..chunk.end * width];
                multiply(d_hidden, width, true, d_logits.t(), weight);
                let d_weight = &mut gradients.weight[range.start * width..range.end * width];
                multiply(d_weight, width, true, d_logits, hidden);
                add_row_sums(&mut gradients.bias[range.clone()], logits, stride, count);
            }
        }
        (total * f64::from(scale), gradients)
    }
}

/// Where a label's true classes stand.
#[derive(Clone, Copy)]
struct Truth<'a> {
    labels: &'a [u8],
    label: usize,
    first_row: usize,
}

impl Truth<'_> {
    fn class(&self, row: usize, classes: usize) -> usize {
        let class = usize::from(self.labels[(self.first_row + row) * LABELS + self.label]);
        if class < classes { class } else { 0 }
    }
}

/// Sums the cross-entropy of one chunk of rows over labels.
///
/// With `m` the largest logit of a label, `s` the sum of `exp(logit - m)` and `t` the true logit, the loss is
/// `m + ln s - t`. The `s` of a row's labels are multiplied up, so that one logarithm serves a whole block: each lies
/// between 1 and 256, and the product of 75 stays far below the largest double.
struct ColumnLoss {
    columns: Columns,
    count: usize,
    scale: f32,
}

/// Sums by row of a chunk.
struct Columns {
    linear: [f64; CHUNK_ROWS],
    product: [f64; CHUNK_ROWS],
    max: [f32; CHUNK_ROWS],
    sum: [f32; CHUNK_ROWS],
    stride: usize,
}

impl ColumnLoss {
    fn new(stride: usize, count: usize, scale: f32) -> Self {
        let columns = Columns {
            linear: [0.0; CHUNK_ROWS],
            product: [1.0; CHUNK_ROWS],
            max: [0.0; CHUNK_ROWS],
            sum: [0.0; CHUNK_ROWS],
            stride,
        };
        ColumnLoss { columns, count, scale }
    }

    /// Adds a label, and turns its `logits [C, rows]` into their gradients if asked for.
    fn add(&mut self, logits: &mut [f32], bias: &[f32], truth: Truth, want_gradients: bool) {
        self.subtract_true_logits(logits, bias, truth);
        largest(logits, bias, &mut self.columns);
        if want_gradients {
            softmax(logits, bias, &mut self.columns, self.scale);
            let stride = self.columns.stride;
            for row in 0..self.count {
                logits[truth.class(row, bias.len()) * stride + row] -= self.scale;
            }
        } else {
            exponential_sums(logits, bias, &mut self.columns);
        }
    }

    /// Adds a label whose largest logits by column are known.
    fn add_below(&mut self, logits: &[f32], bias: &[f32], truth: Truth, largest: &[f32]) {
        self.subtract_true_logits(logits, bias, truth);
        self.columns.max[..largest.len()].copy_from_slice(largest);
        exponential_sums(logits, bias, &mut self.columns);
    }

    fn subtract_true_logits(&mut self, logits: &[f32], bias: &[f32], truth: Truth) {
        let stride = self.columns.stride;
        for (row, linear) in self.columns.linear[..self.count].iter_mut().enumerate() {
            let class = truth.class(row, bias.len());
            *linear -= f64::from(logits[class * stride + row] + bias[class]);
        }
    }

    fn total(&self) -> f64 {
        let rows = self.columns.linear.iter().zip(&self.columns.product).take(self.count);
        rows.map(|(linear, product)| linear + product.ln()).sum()
    }
}

impl Columns {
    /// Takes `max` and `sum` of one label into the row sums.
    #[inline(always)]
    fn close_label(&mut self) {
        let stride = self.stride;
        let (linear, max) = (&mut self.linear[..stride], &self.max[..stride]);
        for i in 0..stride {
            linear[i] += f64::from(max[i]);
        }
        let (product, sum) = (&mut self.product[..stride], &self.sum[..stride]);
        for i in 0..stride {
            product[i] *= f64::from(sum[i]);
        }
    }
}

/// Largest logit by column.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn largest(logits: &[f32], bias: &[f32], sums: &mut Columns) {
    let max = &mut sums.max[..sums.stride];
    max.fill(f32::MIN);
    for (row, &b) in logits.chunks_exact(max.len()).zip(bias) {
        for (max, x) in max.iter_mut().zip(row) {
            let x = x + b;
            *max = if x > *max { x } else { *max };
        }
    }
}

/// Sums of exponentials by column below the largest logits, added to the row sums.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn exponential_sums(logits: &[f32], bias: &[f32], sums: &mut Columns) {
    let stride = sums.stride;
    let (max, sum) = (columns(&sums.max[..stride]), columns_mut(&mut sums.sum[..stride]));
    sum.fill([0.0; COLUMNS]);
    for (row, &b) in logits.chunks_exact(stride).zip(bias) {
        for (row, (max, sum)) in columns(row).iter().zip(max.iter().zip(&mut *sum)) {
            for i in 0..COLUMNS {
                sum[i] += exp((row[i] + b) - max[i]);
            }
        }
    }
    sums.close_label();
}

/// The same, with the probabilities times `scale` in place of the logits.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn softmax(logits: &mut [f32], bias: &[f32], sums: &mut Columns, scale: f32) {
    let stride = sums.stride;
    let (max, sum) = (columns(&sums.max[..stride]), columns_mut(&mut sums.sum[..stride]));
    sum.fill([0.0; COLUMNS]);
    for (row, &b) in logits.chunks_exact_mut(stride).zip(bias) {
        for (row, (max, sum)) in columns_mut(row).iter_mut().zip(max.iter().zip(&mut *sum)) {
            for i in 0..COLUMNS {
                let e = exp((row[i] + b) - max[i]);
                row[i] = e;
                sum[i] += e;
            }
        }
    }
    sums.close_label();
    let factors = &mut sums.sum[..stride];
    for factor in factors.iter_mut() {
        *factor = scale / *factor;
    }
    for row in logits.chunks_exact_mut(stride) {
        for (x, factor) in row.iter_mut().zip(&*factors) {
            *x *= factor;
        }
    }
}

/// What a head says of a batch of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Grades {
    /// The most probable class of each label, `[N, 75]`; the smallest of equals.
    pub classes: Vec<u8>,
    /// Rows with a logit that is not finite.
    pub non_finite: Vec<bool>,
    /// Cross-entropy of each row over its 75 labels; zeros without truth.
    pub losses: Vec<f64>,
}

impl Head<'_> {
    /// Classes, finiteness and, given the true `labels [N, 75]`, losses of `hidden [N, D]`.
    pub fn grade(&self, hidden: &[f32], labels: Option<&[u8]>) -> Grades {
        let rows = hidden.len() / self.width;
        let mut grades = Grades {
            classes: vec![0; rows * LABELS],
            non_finite: vec![false; rows],
            losses: vec![0.0; rows],
        };
        let mut logits = scratch(BLOCK_LOGITS * CHUNK_ROWS);
        for chunk in chunks(rows) {
            let count = chunk.len();
            let stride = count.next_multiple_of(PADDED_ROWS);
            let mut loss = ColumnLoss::new(stride, count, 1.0);
            let mut best = Best::new(stride);
            for block in BLOCKS {
                let range = logits_of(&block);
                let logits = &mut logits[..range.len() * stride];
                multiply(logits, stride, false, self.block(&range), self.rows(hidden, &chunk).t());
                for label in block {
                    let classes = logit_range(label);
                    let first = classes.start - range.start;
                    let logits = &logits[first * stride..(first + classes.len()) * stride];
                    let bias = &self.bias[classes];
                    argmax(logits, bias, &mut best);
                    for (row, class) in chunk.clone().zip(&best.class) {
                        grades.classes[row * LABELS + label] = *class as u8;
                    }
                    if let Some(labels) = labels {
                        let truth = Truth { labels, label, first_row: chunk.start };
                        loss.add_below(logits, bias, truth, &best.value[..stride]);
                    }
                }
            }
            for (i, row) in chunk.enumerate() {
                // Zero times a number is zero, unless the number is not finite.
                grades.non_finite[row] = best.zero[i] != 0.0;
                if labels.is_some() {
                    let columns = &loss.columns;
                    grades.losses[row] = columns.linear[i] + columns.product[i].ln();
                }
            }
        }
        grades
    }
}

/// Turns a row of 1,878 logits into the probabilities of each label's classes.
pub fn softmax_row(row: &mut [f32]) {
    for label in 0..LABELS {
        let row = &mut row[logit_range(label)];
        let max = row.iter().fold(f32::MIN, |max, &x| if x > max { x } else { max });
        row.iter_mut().for_each(|x| *x = exp(*x - max));
        let sum: f32 = row.iter().sum();
        row.iter_mut().for_each(|x| *x /= sum);
    }
}

/// The largest logit by row of a chunk.
struct Best {
    value: [f32; CHUNK_ROWS],
    class: [u32; CHUNK_ROWS],
    /// Zero times every logit so far, added up.
    zero: [f32; CHUNK_ROWS],
    stride: usize,
}

impl Best {
    fn new(stride: usize) -> Self {
        let (value, class, zero) = ([0.0; CHUNK_ROWS], [0; CHUNK_ROWS], [0.0; CHUNK_ROWS]);
        Best { value, class, zero, stride }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn argmax(logits: &[f32], bias: &[f32], best: &mut Best) {
    let stride = best.stride;
    let (value, class) = (&mut best.value[..stride], &mut best.class[..stride]);
    let zero = &mut best.zero[..stride];
    value.fill(f32::MIN);
    class.fill(0);
    for (c, (row, &b)) in logits.chunks_exact(stride).zip(bias).enumerate() {
        // Tells the compiler that no index below can fail: a loop with a way out keeps its last numbers scalar.
        let row = &row[..stride];
        for i in 0..stride {
            // All is read first: a class that is read only where it stays would need a branch.
            let (x, old, old_class) = (row[i] + b, value[i], class[i]);
            let better = x > old;
            value[i] = if better { x } else { old };
            class[i] = if better { c as u32 } else { old_class };
            zero[i] += x * 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_every_label_and_fit() {
        let labels: Vec<usize> = BLOCKS.into_iter().flatten().collect();
        assert_eq!(labels, (0..LABELS).collect::<Vec<_>>());
        let widest = BLOCKS.iter().map(|block| logits_of(block).len()).max();
        assert_eq!(widest, Some(BLOCK_LOGITS));
    }

    #[test]
    fn grade_finds_rows_that_are_not_finite() {
        let width = 3;
        let weight: Vec<f32> =
            (0..LOGITS * width).map(|i| ((i * 7 % 13) as f32 - 6.0) / 6.0).collect();
        let bias = vec![0.1; LOGITS];
        let head = Head { width, weight: &weight, bias: &bias };
        let mut hidden = vec![0.5; 20 * width];
        hidden[5 * width] = f32::NAN;
        hidden[9 * width + 1] = f32::INFINITY;
        let labels = vec![0; 20 * LABELS];
        let grades = head.grade(&hidden, Some(&labels));
        let bad: Vec<usize> = (0..20).filter(|&row| grades.non_finite[row]).collect();
        assert_eq!(bad, [5, 9]);
        assert!(!head.loss(&hidden, &labels, 1.0, false).0.is_finite());
        let sum: f64 = grades.losses[10..].iter().sum();
        let (loss, _) = head.loss(&hidden[10 * width..], &labels[10 * LABELS..], 1.0, false);
        assert!((sum - loss).abs() < 1e-9 * loss);
    }
}
