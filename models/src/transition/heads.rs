//! The linear heads over the context: side, rights and en passant as classes, the clocks as operations; and the
//! softmax of the cells, which lies transposed.

use std::ops::Range;

use cwm_core::chess::label::{
    FULLMOVE, HALFMOVE, LABELS, LOGIT_OFFSETS, LOGITS, PIECE_CLASSES, SIDE, SQUARES, logit_range,
};
use multiversion::multiversion;

use super::{
    config::Clocks,
    registers::{self, OPERATIONS},
};
use crate::kernel::math::exp;

/// The labels that have a head of classes: side, four rights, en passant file and rank; the clocks where they are bytes.
pub(super) fn class_heads(clocks: Clocks) -> Range<usize> {
    match clocks {
        Clocks::Registers => SIDE..HALFMOVE,
        Clocks::Bytes => SIDE..LABELS,
    }
}

/// Columns of all heads together.
pub(super) fn columns(clocks: Clocks) -> usize {
    match clocks {
        Clocks::Registers => FIRST_OPERATION + 2 * OPERATIONS,
        Clocks::Bytes => LOGITS - LOGIT_OFFSETS[SIDE],
    }
}

/// First column of the operations: of the halfmove clock, then of the fullmove number.
const FIRST_OPERATION: usize = LOGIT_OFFSETS[HALFMOVE] - LOGIT_OFFSETS[SIDE];

/// The columns of a label's head.
pub(super) fn class_columns(label: usize) -> Range<usize> {
    let logits = logit_range(label);
    logits.start - LOGIT_OFFSETS[SIDE]..logits.end - LOGIT_OFFSETS[SIDE]
}

/// Each register's first label and the columns of its operations.
pub(super) fn registers(clocks: Clocks) -> &'static [(usize, Range<usize>)] {
    const OF_CLOCKS: [(usize, Range<usize>); 2] = [
        (HALFMOVE, FIRST_OPERATION..FIRST_OPERATION + OPERATIONS),
        (FULLMOVE, FIRST_OPERATION + OPERATIONS..FIRST_OPERATION + 2 * OPERATIONS),
    ];
    match clocks {
        Clocks::Registers => &OF_CLOCKS,
        Clocks::Bytes => &[],
    }
}

/// A clock's value.
pub(super) fn clock(labels: &[u8], first: usize) -> u16 {
    u16::from_be_bytes([labels[first], labels[first + 1]])
}

/// The most probable class; NaN never is.
fn argmax(logits: &[f32]) -> u8 {
    let mut best = 0;
    for (class, &logit) in logits.iter().enumerate() {
        if logit > logits[best] || logits[best].is_nan() {
            best = class;
        }
    }
    best as u8
}

/// Writes the labels behind the squares that follow on `before`.
pub(super) fn decode(heads: &[f32], clocks: Clocks, before: &[u8], after: &mut [u8]) {
    for label in class_heads(clocks) {
        after[label] = argmax(&heads[class_columns(label)]);
    }
    for (first, columns) in registers(clocks) {
        let first = *first;
        let value = registers::next(clock(before, first), &heads[columns.clone()]);
        after[first..first + 2].copy_from_slice(&value.to_be_bytes());
    }
}

/// The logarithm of the sum of exponentials.
fn log_sum(logits: &[f32]) -> f64 {
    let max = logits.iter().copied().fold(f32::MIN, f32::max);
    let sum: f32 = logits.iter().map(|&x| exp(x - max)).sum();
    f64::from(max) + f64::from(sum).ln()
}

/// Cross-entropy of the labels behind the squares against `truth`, in nats: the clocks by their bytes.
pub(super) fn loss(heads: &[f32], clocks: Clocks, before: &[u8], truth: &[u8]) -> f64 {
    let mut loss = 0.0;
    for label in class_heads(clocks) {
        let logits = &heads[class_columns(label)];
        loss += log_sum(logits) - f64::from(logits[usize::from(truth[label])]);
    }
    for (first, columns) in registers(clocks) {
        let first = *first;
        for byte in 0..2 {
            let value = clock(before, first);
            let truth = truth[first + byte];
            loss -= registers::byte_probability(value, &heads[columns.clone()], byte, truth).ln();
        }
    }
    loss
}

/// The probability of every class of the labels behind the squares, into `out [1878 - 832]`.
pub(super) fn probabilities(heads: &[f32], clocks: Clocks, before: &[u8], out: &mut [f32]) {
    for label in class_heads(clocks) {
        let columns = class_columns(label);
        let all = log_sum(&heads[columns.clone()]);
        for column in columns {
            out[column] = (f64::from(heads[column]) - all).exp() as f32;
        }
    }
    for (first, columns) in registers(clocks) {
        let first = *first;
        for index in 0..2 {
            let range = logit_range(first + index);
            for (byte, place) in range.enumerate() {
                let value = clock(before, first);
                let p =
                    registers::byte_probability(value, &heads[columns.clone()], index, byte as u8);
                out[place - LOGIT_OFFSETS[SIDE]] = p as f32;
            }
        }
    }
}

/// Cells whose softmax runs side by side.
const SIDE_BY_SIDE: usize = 64;

/// Of the cell logits `[13, rows]`, columns `first..first + 64`: the most probable classes, and whether all are finite.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub(super) fn decode_cells(logits: &[f32], rows: usize, first: usize, after: &mut [u8]) -> bool {
    let mut best = [f32::MIN; SIDE_BY_SIDE];
    let mut class = [0_u32; SIDE_BY_SIDE];
    let mut faults = [0.0_f32; SIDE_BY_SIDE];
    for c in 0..PIECE_CLASSES {
        let column = &logits[c * rows + first..][..SIDE_BY_SIDE];
        for i in 0..SIDE_BY_SIDE {
            let x = column[i];
            // 0 for every finite number.
            faults[i] += x * 0.0;
            let better = x > best[i];
            best[i] = if better { x } else { best[i] };
            class[i] = if better { c as u32 } else { class[i] };
        }
    }
    for (after, class) in after[..SQUARES].iter_mut().zip(class) {
        *after = class as u8;
    }
    faults.iter().all(|&fault| fault == 0.0)
}

/// The largest logit and the sum of exponentials less than it, for 64 columns.
#[inline(always)]
fn softmax_sums(logits: &[f32], rows: usize, first: usize) -> ([f32; 64], [f32; 64]) {
    let (mut max, mut sum) = ([f32::MIN; SIDE_BY_SIDE], [0.0_f32; SIDE_BY_SIDE]);
    for c in 0..PIECE_CLASSES {
        let column = &logits[c * rows + first..][..SIDE_BY_SIDE];
        for i in 0..SIDE_BY_SIDE {
            max[i] = if column[i] > max[i] { column[i] } else { max[i] };
        }
    }
    for c in 0..PIECE_CLASSES {
        let column = &logits[c * rows + first..][..SIDE_BY_SIDE];
        for i in 0..SIDE_BY_SIDE {
            sum[i] += exp(column[i] - max[i]);
        }
    }
    (max, sum)
}

/// Cross-entropy of 64 cells against `truth`, in nats.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub(super) fn cell_loss(logits: &[f32], rows: usize, first: usize, truth: &[u8]) -> f64 {
    let (max, sum) = softmax_sums(logits, rows, first);
    let mut loss = 0.0;
    for (i, &class) in truth[..SQUARES].iter().enumerate() {
        let logit = logits[usize::from(class) * rows + first + i];
        loss += f64::from(max[i] - logit) + f64::from(sum[i].ln());
    }
    loss
}

/// The probability of every class of 64 cells, into `out [64, 13]`.
pub(super) fn cell_probabilities(logits: &[f32], rows: usize, first: usize, out: &mut [f32]) {
    let (max, sum) = softmax_sums(logits, rows, first);
    for (i, out) in out[..SQUARES * PIECE_CLASSES].chunks_exact_mut(PIECE_CLASSES).enumerate() {
        for (c, p) in out.iter_mut().enumerate() {
            *p = exp(logits[c * rows + first + i] - max[i]) / sum[i];
        }
    }
}

/// Cross-entropy of weighted cells, and its gradient in place of the logits; rows of any number.
#[cfg(feature = "train")]
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub(super) fn cell_gradient(
    logits: &mut [f32],
    rows: usize,
    truth: &[u8],
    weights: &[f32],
    scale: f32,
) -> f64 {
    let mut loss = 0.0;
    for first in (0..rows).step_by(SIDE_BY_SIDE) {
        let n = SIDE_BY_SIDE.min(rows - first);
        let (mut max, mut sum) = ([f32::MIN; SIDE_BY_SIDE], [0.0_f32; SIDE_BY_SIDE]);
        for c in 0..PIECE_CLASSES {
            let column = &logits[c * rows + first..][..n];
            for (max, &x) in max.iter_mut().zip(column) {
                *max = if x > *max { x } else { *max };
            }
        }
        let mut own = [0.0_f32; SIDE_BY_SIDE];
        for i in 0..n {
            own[i] = logits[usize::from(truth[first + i]) * rows + first + i];
        }
        for c in 0..PIECE_CLASSES {
            let column = &mut logits[c * rows + first..][..n];
            for ((x, max), sum) in column.iter_mut().zip(&max).zip(&mut sum) {
                *x = exp(*x - max);
                *sum += *x;
            }
        }
        for i in 0..n {
            let weight = weights[first + i];
            loss += f64::from(weight * (max[i] - own[i] + sum[i].ln()));
            sum[i] = weight * scale / sum[i];
        }
        for c in 0..PIECE_CLASSES {
            let column = &mut logits[c * rows + first..][..n];
            for (x, share) in column.iter_mut().zip(&sum) {
                *x *= share;
            }
        }
        for i in first..first + n {
            logits[usize::from(truth[i]) * rows + i] -= weights[i] * scale;
        }
    }
    loss
}

/// Cross-entropy of the heads of one step as it is trained, and its gradient in place of the logits.
///
/// Registers are trained by their operations; with `swapped`, the fullmove number teaches nothing.
#[cfg(feature = "train")]
pub(super) fn gradient(
    heads: &mut [f32],
    clocks: Clocks,
    before: &[u8],
    after: &[u8],
    swapped: bool,
    scale: f32,
) -> f64 {
    let mut loss = 0.0;
    for label in class_heads(clocks) {
        let logits = &mut heads[class_columns(label)];
        if swapped && label >= FULLMOVE {
            logits.fill(0.0);
            continue;
        }
        let all = log_sum(logits);
        let class = usize::from(after[label]);
        loss += all - f64::from(logits[class]);
        for x in logits.iter_mut() {
            *x = exp(*x - all as f32) * scale;
        }
        logits[class] -= scale;
    }
    for (first, columns) in registers(clocks) {
        let first = *first;
        let logits = &mut heads[columns.clone()];
        if swapped && first == FULLMOVE {
            logits.fill(0.0);
        } else {
            loss += registers::loss(clock(before, first), clock(after, first), logits, scale);
        }
    }
    loss
}

const _: () = assert!(FIRST_OPERATION == 22 && LABELS == FULLMOVE + 2);
