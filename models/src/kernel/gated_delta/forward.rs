//! The mixer's forward pass.

use super::{
    Head, Shape, Weights,
    chunk::{Chunk, Workspace},
    conv,
    gate::Scalars,
};
use crate::kernel::matrix::scratch;

/// What the backward pass needs of the forward pass, game after game.
#[derive(Debug, Default)]
pub struct Saved {
    /// `[T, H (2 K + V)]`: what goes into SiLU.
    pub(super) convolved: Vec<f32>,
    /// `[T, V]` for every head: what the recurrent state answers.
    pub(super) outputs: Vec<f32>,
    /// `[T, V]` for every head: errors, see [`super::chunk`].
    pub(super) errors: Vec<f32>,
    /// `[K, V]` for every head and every chunk but the first: the recurrent state before it.
    pub(super) states: Vec<f32>,
}

/// `u [N, input]` to `[N, H V]`; if `save`, with what [`super::backward()`] needs.
pub fn forward(u: &[f32], weights: Weights, shape: Shape, save: bool) -> (Vec<f32>, Option<Saved>) {
    let Shape { heads, key, value, .. } = shape;
    let (input, mixed, output) = (shape.input(), shape.mixed(), shape.output());
    let rows = shape.rows();
    let longest = shape.longest();
    let conv_weights = conv::transpose(weights.conv, shape.taps);
    let (gate, norm) = (weights.gate(), weights.gated_norm());

    let mut y = scratch(rows * output);
    let mut saved = Saved::default();
    if save {
        saved.convolved.reserve_exact(rows * mixed);
        saved.outputs.reserve_exact(rows * output);
        saved.errors.reserve_exact(rows * output);
    }
    let mut convolved = scratch(longest * mixed);
    let mut activated = scratch(longest * mixed);
    let mut outputs = scratch(longest * value);
    let mut state = scratch(key * value);
    let mut inputs = Head::new(shape);
    let mut scalars = Scalars::default();
    let mut workspace = Workspace::new(shape.chunk.min(longest), key, value, false);

    let mut row = 0;
    for &steps in shape.lengths {
        let steps = steps as usize;
        let u = &u[row * input..(row + steps) * input];
        let y = &mut y[row * output..(row + steps) * output];
        let convolved = &mut convolved[..steps * mixed];
        let activated = &mut activated[..steps * mixed];
        conv::forward(u, input, &conv_weights, mixed, convolved);
        conv::silu(convolved, activated);
        if save {
            saved.convolved.extend_from_slice(convolved);
        }
        for head in 0..heads {
            inputs.gather(activated, shape, head);
            gate.forward(u, input, shape.scalars(), head, &mut scalars);
            let outputs = &mut outputs[..steps * value];
            // The values become errors where they stand.
            let errors = &mut inputs.values[..steps * value];
            for (start, n) in shape.chunks(steps) {
                let end = start + n;
                let chunk = Chunk {
                    queries_keys: &inputs.queries_keys[2 * start * key..2 * end * key],
                    log_decay: &scalars.log_decay[start..end],
                    beta: &scalars.beta[start..end],
                    key,
                    value,
                };
                if save && start > 0 {
                    saved.states.extend_from_slice(&state);
                }
                workspace.forward(
                    chunk,
                    &mut errors[start * value..end * value],
                    &mut outputs[start * value..end * value],
                    &mut state,
                    (start == 0, end == steps),
                );
            }
            let gates = &u[mixed + head * value..];
            norm.forward(outputs, gates, input, &mut y[head * value..], output);
            if save {
                saved.outputs.extend_from_slice(outputs);
                saved.errors.extend_from_slice(errors);
            }
        }
        row += steps;
    }
    (y, save.then_some(saved))
}
