//! The forward pass over many steps at once, of all their cells or of some.

use cwm_core::chess::label::{LABELS, PIECE_CLASSES};
use multiversion::multiversion;

use super::{
    config::{CELL_OUTPUTS, place},
    inputs::{Move, PIECE, context_rows},
    network::Transition,
};
use crate::kernel::matrix::{Matrix, multiply};

/// Steps to compute.
#[derive(Clone, Copy)]
pub(super) struct Steps<'a> {
    /// The moves `[N]`.
    pub moves: &'a [Move],
    /// Labels before each `[N, 75]`.
    pub before: &'a [u8],
    /// Cells of each step (K).
    pub cells_per_step: usize,
    /// The cells `[N, K]`.
    pub cells: &'a [u8],
}

impl Steps<'_> {
    /// Steps (N).
    pub fn len(&self) -> usize {
        self.moves.len()
    }

    /// Cells in all (N K).
    pub fn rows(&self) -> usize {
        self.len() * self.cells_per_step
    }
}

/// What the layers give; kept from call to call for its memory.
#[derive(Default)]
pub(super) struct Activations {
    /// First hidden layer of the context network `[N, C]`.
    pub first: Vec<f32>,
    /// The second `[N, C]`.
    pub second: Vec<f32>,
    /// The context `[N, D]`.
    pub context: Vec<f32>,
    /// The heads' logits `[N, 28]`; with clocks as bytes `[N, 1046]`.
    pub heads: Vec<f32>,
    /// What the context gives to the cells `[N, H]`.
    pub cell_context: Vec<f32>,
    /// First hidden layer of the cells `[N K, H]`.
    pub cell_first: Vec<f32>,
    /// The second `[N K, H]`.
    pub cell_second: Vec<f32>,
    /// The cells' logits, transposed `[14, N K]`: 13 classes, then the weight of the copy, already added to the class
    /// that the cell has.
    pub logits: Vec<f32>,
}

/// `out [n, outputs] = x [n, inputs] w^T + b`, rectified if asked.
fn linear(out: &mut Vec<f32>, x: &[f32], n: usize, w: &[f32], b: &[f32], rectified: bool) {
    let outputs = b.len();
    let inputs = w.len() / outputs;
    out.resize(n * outputs, 0.0);
    let w = Matrix::new(w, outputs, inputs);
    multiply(out, outputs, false, Matrix::new(x, n, inputs), w.t());
    if rectified { rectify(out, b) } else { add_bias(out, b) }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn rectify(rows: &mut [f32], bias: &[f32]) {
    for row in rows.chunks_exact_mut(bias.len()) {
        for (x, b) in row.iter_mut().zip(bias) {
            let y = *x + b;
            // Unlike `max`, this lets NaN pass: a broken network must not look like a sound one.
            *x = if y < 0.0 { 0.0 } else { y };
        }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn add_bias(rows: &mut [f32], bias: &[f32]) {
    for row in rows.chunks_exact_mut(bias.len()) {
        for (x, b) in row.iter_mut().zip(bias) {
            *x += b;
        }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn add_row(sum: &mut [f32], row: &[f32]) {
    for (sum, x) in sum.iter_mut().zip(row) {
        *sum += x;
    }
}

/// One step's cells: `out [K, H]` from the context's part, the table of pieces, and both positions `[64, H]`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn cell_inputs(
    out: &mut [f32],
    context: &[f32],
    pieces: &[f32],
    positions: [&[f32]; 2],
    before: &[u8],
    cells: &[u8],
) {
    let width = context.len();
    for (out, &cell) in out.chunks_exact_mut(width).zip(cells) {
        let cell = usize::from(cell);
        let piece = &pieces[(PIECE + usize::from(before[cell])) * width..][..width];
        let from = &positions[0][cell * width..][..width];
        let to = &positions[1][cell * width..][..width];
        for i in 0..width {
            let y = (context[i] + piece[i]) + (from[i] + to[i]);
            out[i] = if y < 0.0 { 0.0 } else { y };
        }
    }
}

/// Adds each cell's copy weight to the class that it has. `logits [14, rows]`.
fn add_copies(logits: &mut [f32], steps: Steps) {
    let rows = steps.rows();
    let (logits, copies) = logits.split_at_mut(PIECE_CLASSES * rows);
    let cells = steps.cells.chunks_exact(steps.cells_per_step);
    let mut row = 0;
    for (cells, before) in cells.zip(steps.before.chunks_exact(LABELS)) {
        for &cell in cells {
            logits[usize::from(before[usize::from(cell)]) * rows + row] += copies[row];
            row += 1;
        }
    }
}

impl Transition {
    /// Computes all layers of `steps`.
    pub(super) fn forward(&self, steps: Steps, out: &mut Activations) {
        let n = steps.len();
        let config = self.config();
        let (c, h) = (config.context_hidden, config.cell_hidden);
        let p = |place| self.parameter(place);
        let k = steps.cells_per_step;

        let table = p(place::CONTEXT_INPUTS);
        out.first.clear();
        out.first.resize(n * c, 0.0);
        let rows = out.first.chunks_exact_mut(c);
        for ((sum, &step), before) in rows.zip(steps.moves).zip(steps.before.chunks_exact(LABELS)) {
            context_rows(step, before, config.clocks, |row| {
                add_row(sum, &table[row * c..(row + 1) * c])
            });
        }
        self.context_layers(n, out);

        out.cell_first.resize(n * k * h, 0.0);
        for i in 0..n {
            cell_inputs(
                &mut out.cell_first[i * k * h..(i + 1) * k * h],
                &out.cell_context[i * h..(i + 1) * h],
                p(place::CELL_INPUTS),
                [self.positions(0, steps.moves[i].from), self.positions(1, steps.moves[i].to)],
                &steps.before[i * LABELS..(i + 1) * LABELS],
                &steps.cells[i * k..(i + 1) * k],
            );
        }
        self.cell_layers(steps.rows(), out);
        add_copies(&mut out.logits, steps);
    }

    /// The context network and the heads of `n` steps, whose sums of input rows lie in `out.first`.
    pub(super) fn context_layers(&self, n: usize, out: &mut Activations) {
        let p = |place| self.parameter(place);
        rectify(&mut out.first, p(place::CONTEXT_INPUTS_BIAS));
        let (w, b) = (p(place::CONTEXT_HIDDEN), p(place::CONTEXT_HIDDEN_BIAS));
        linear(&mut out.second, &out.first, n, w, b, true);
        let (w, b) = (p(place::CONTEXT_OUTPUT), p(place::CONTEXT_OUTPUT_BIAS));
        linear(&mut out.context, &out.second, n, w, b, true);
        linear(&mut out.heads, &out.context, n, p(place::HEADS), p(place::HEADS_BIAS), false);

        let (w, b) = (p(place::CELL_CONTEXT), p(place::CELL_CONTEXT_BIAS));
        linear(&mut out.cell_context, &out.context, n, w, b, false);
    }

    /// The cell network over `rows` cells, whose first layer lies in `out.cell_first`; the copies are still to be added.
    pub(super) fn cell_layers(&self, rows: usize, out: &mut Activations) {
        let p = |place| self.parameter(place);
        let h = self.config().cell_hidden;
        let (w, b) = (p(place::CELL_HIDDEN), p(place::CELL_HIDDEN_BIAS));
        linear(&mut out.cell_second, &out.cell_first, rows, w, b, true);
        out.logits.resize(CELL_OUTPUTS * rows, 0.0);
        let w = Matrix::new(p(place::CELL_OUTPUT), CELL_OUTPUTS, h);
        multiply(&mut out.logits, rows, false, w, Matrix::new(&out.cell_second, rows, h).t());
        for (logits, &bias) in out.logits.chunks_exact_mut(rows).zip(p(place::CELL_OUTPUT_BIAS)) {
            logits.iter_mut().for_each(|x| *x += bias);
        }
    }
}
