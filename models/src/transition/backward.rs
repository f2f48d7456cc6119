//! The backward pass, by hand: gradients of the training loss of many steps.

use cwm_core::chess::label::{LABELS, PIECE_CLASSES};
use multiversion::multiversion;

use super::{
    config::{CELL_OUTPUTS, place},
    forward::{Activations, Steps},
    heads,
    inputs::{PIECE, SQUARE, context_rows, relative_rows},
    network::Transition,
};
use crate::kernel::matrix::{Matrix, multiply};

/// What the answers should have been.
#[derive(Clone, Copy)]
pub(super) struct Targets<'a> {
    /// Labels after each step `[N, 75]`.
    pub after: &'a [u8],
    /// Whether the fullmove number says nothing `[N]`.
    pub swapped: &'a [bool],
    /// Weight of each cell `[N, K]`.
    pub weights: &'a [f32],
}

/// Loss and gradients by parameter, added up.
pub(super) struct Sums {
    pub loss: f64,
    pub gradients: Vec<Vec<f32>>,
}

impl Sums {
    pub fn new(network: &Transition) -> Self {
        let gradients = network.parameters().iter().map(|p| vec![0.0; p.len()]).collect();
        Sums { loss: 0.0, gradients }
    }
}

/// Sets the gradient of what a rectifier held back to zero.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn hold_back(gradient: &mut [f32], output: &[f32]) {
    for (gradient, &y) in gradient.iter_mut().zip(output) {
        *gradient = if y > 0.0 { *gradient } else { 0.0 };
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn add_rows(sums: &mut [f32], rows: &[f32]) {
    for row in rows.chunks_exact(sums.len()) {
        for (sum, x) in sums.iter_mut().zip(row) {
            *sum += x;
        }
    }
}

/// Backward through `y = x w^T + b`: adds to the gradients of `w` and `b`, and gives that of `x`, added to `dx` or in
/// place of it.
fn linear(
    dy: &[f32],
    x: &[f32],
    n: usize,
    w: &[f32],
    (dw, db): (&mut [f32], &mut [f32]),
    (dx, accumulate): (&mut [f32], bool),
) {
    let outputs = db.len();
    let inputs = w.len() / outputs;
    let gradient = Matrix::new(dy, n, outputs);
    multiply(dw, inputs, true, gradient.t(), Matrix::new(x, n, inputs));
    add_rows(db, dy);
    multiply(dx, inputs, accumulate, gradient, Matrix::new(w, outputs, inputs));
}

/// Two neighbouring gradients at once.
fn pair(gradients: &mut [Vec<f32>], weight: usize) -> (&mut [f32], &mut [f32]) {
    let (weights, biases) = gradients.split_at_mut(weight + 1);
    (&mut weights[weight], &mut biases[0])
}

impl Transition {
    /// Adds loss and gradients of `steps`, each step weighing `scale`; `forward` has filled `act`, whose logits are
    /// overwritten.
    pub(super) fn backward(
        &self,
        steps: Steps,
        targets: Targets,
        scale: f32,
        act: &mut Activations,
        sums: &mut Sums,
    ) {
        let (n, k, rows) = (steps.len(), steps.cells_per_step, steps.rows());
        let config = self.config();
        let (c, d, h) = (config.context_hidden, config.context_width, config.cell_hidden);
        let p = |place| self.parameter(place);
        let g = &mut sums.gradients;

        let cells = steps.cells.chunks_exact(k);
        let of_cells = |labels: &[u8]| -> Vec<u8> {
            let each = cells.clone().zip(labels.chunks_exact(LABELS));
            each.flat_map(|(cells, labels)| cells.iter().map(|&cell| labels[usize::from(cell)]))
                .collect()
        };
        let (truth, held) = (of_cells(targets.after), of_cells(steps.before));
        let (logits, copies) = act.logits.split_at_mut(PIECE_CLASSES * rows);
        sums.loss +=
            f64::from(scale) * heads::cell_gradient(logits, rows, &truth, targets.weights, scale);
        for (row, (copy, &class)) in copies.iter_mut().zip(&held).enumerate() {
            *copy = logits[usize::from(class) * rows + row];
        }
        for i in 0..n {
            let labels = i * LABELS..(i + 1) * LABELS;
            let (before, after) = (&steps.before[labels.clone()], &targets.after[labels]);
            let columns = heads::columns(config.clocks);
            let logits = &mut act.heads[i * columns..(i + 1) * columns];
            let swapped = targets.swapped[i];
            let loss = heads::gradient(logits, config.clocks, before, after, swapped, scale);
            sums.loss += f64::from(scale) * loss;
        }

        // Cells, from the logits [14, rows] down.
        let output = Matrix::new(&act.logits, CELL_OUTPUTS, rows);
        let second = Matrix::new(&act.cell_second, rows, h);
        multiply(&mut g[place::CELL_OUTPUT], h, true, output, second);
        for (db, logits) in g[place::CELL_OUTPUT_BIAS].iter_mut().zip(act.logits.chunks_exact(rows))
        {
            *db += crate::kernel::math::sum(logits);
        }
        let mut d_second = vec![0.0; rows * h];
        let weight = Matrix::new(p(place::CELL_OUTPUT), CELL_OUTPUTS, h);
        multiply(&mut d_second, h, false, output.t(), weight);
        hold_back(&mut d_second, &act.cell_second);
        let mut d_first = vec![0.0; rows * h];
        linear(
            &d_second,
            &act.cell_first,
            rows,
            p(place::CELL_HIDDEN),
            pair(g, place::CELL_HIDDEN),
            (&mut d_first, false),
        );
        hold_back(&mut d_first, &act.cell_first);
        let mut d_cell_context = vec![0.0; n * h];
        for i in 0..n {
            let d_first = &d_first[i * k * h..(i + 1) * k * h];
            add_rows(&mut d_cell_context[i * h..(i + 1) * h], d_first);
            let table = &mut g[place::CELL_INPUTS];
            let cells = &steps.cells[i * k..(i + 1) * k];
            for ((row, &cell), &class) in
                d_first.chunks_exact(h).zip(cells).zip(&held[i * k..(i + 1) * k])
            {
                let cell = usize::from(cell);
                let mut add = |index: usize| {
                    add_rows(&mut table[index * h..(index + 1) * h], row);
                };
                add(PIECE + usize::from(class));
                add(SQUARE + cell);
                if config.relative_positions {
                    relative_rows(cell, steps.moves[i].from, 0).into_iter().for_each(&mut add);
                    relative_rows(cell, steps.moves[i].to, 1).into_iter().for_each(&mut add);
                }
            }
        }

        // The context.
        let mut d_context = vec![0.0; n * d];
        linear(
            &d_cell_context,
            &act.context,
            n,
            p(place::CELL_CONTEXT),
            pair(g, place::CELL_CONTEXT),
            (&mut d_context, false),
        );
        linear(
            &act.heads,
            &act.context,
            n,
            p(place::HEADS),
            pair(g, place::HEADS),
            (&mut d_context, true),
        );
        hold_back(&mut d_context, &act.context);
        let mut d_second = vec![0.0; n * c];
        linear(
            &d_context,
            &act.second,
            n,
            p(place::CONTEXT_OUTPUT),
            pair(g, place::CONTEXT_OUTPUT),
            (&mut d_second, false),
        );
        hold_back(&mut d_second, &act.second);
        let mut d_first = vec![0.0; n * c];
        linear(
            &d_second,
            &act.first,
            n,
            p(place::CONTEXT_HIDDEN),
            pair(g, place::CONTEXT_HIDDEN),
            (&mut d_first, false),
        );
        hold_back(&mut d_first, &act.first);
        add_rows(&mut g[place::CONTEXT_INPUTS_BIAS], &d_first);
        let table = &mut g[place::CONTEXT_INPUTS];
        for ((row, &step), before) in
            d_first.chunks_exact(c).zip(steps.moves).zip(steps.before.chunks_exact(LABELS))
        {
            context_rows(step, before, config.clocks, |index| {
                add_rows(&mut table[index * c..(index + 1) * c], row);
            });
        }
    }
}
