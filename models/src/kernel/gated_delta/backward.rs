//! The mixer's backward pass.

use multiversion::multiversion;

use super::{
    Head, Saved, Shape, Weights,
    chunk::{Chunk, ChunkGradients, Trace, Workspace},
    conv,
    gate::Scalars,
    norm,
};
use crate::kernel::{lanes::dot, matrix::scratch};

/// Gradients by everything that the mixer reads.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients {
    /// `[N, input]`.
    pub u: Vec<f32>,
    /// `[H (2 K + V), W]`.
    pub conv: Vec<f32>,
    /// `[H]`.
    pub a_log: Vec<f32>,
    /// `[H]`.
    pub dt_bias: Vec<f32>,
    /// `[V]`.
    pub norm: Vec<f32>,
}

/// From `dy [N, H V]`, the forward's `u [N, input]` and what it saved.
pub fn backward(dy: &[f32], u: &[f32], weights: Weights, shape: Shape, saved: &Saved) -> Gradients {
    let Shape { heads, key, value, .. } = shape;
    let (input, mixed, output) = (shape.input(), shape.mixed(), shape.output());
    let longest = shape.longest();
    let conv_weights = conv::transpose(weights.conv, shape.taps);
    let (gate, norm) = (weights.gate(), weights.gated_norm());

    let mut du = scratch(u.len());
    let mut d_conv = vec![0.0; conv_weights.len()];
    let (mut d_a_log, mut d_dt_bias) = (vec![0.0_f64; heads], vec![0.0_f64; heads]);
    let mut d_norm = vec![0.0; value];
    let mut activated = scratch(longest * mixed);
    let mut d_mixed = scratch(longest * mixed);
    let mut inputs = Head::new(shape);
    let mut d_inputs = Head::new(shape);
    let mut d_outputs = scratch(longest * value);
    let mut d_state = scratch(key * value);
    let (mut scalars, mut d_scalars) = (Scalars::default(), Scalars::default());
    let mut workspace = Workspace::new(shape.chunk.min(longest), key, value, true);

    let (mut row, mut states) = (0, &saved.states[..]);
    for &steps in shape.lengths {
        let steps = steps as usize;
        let range = row * input..(row + steps) * input;
        let (u, du) = (&u[range.clone()], &mut du[range]);
        let dy = &dy[row * output..(row + steps) * output];
        let convolved = &saved.convolved[row * mixed..(row + steps) * mixed];
        let activated = &mut activated[..steps * mixed];
        let d_mixed = &mut d_mixed[..steps * mixed];
        conv::silu(convolved, activated);
        for head in 0..heads {
            let range =
                row * output + head * steps * value..row * output + (head + 1) * steps * value;
            let (outputs, errors) = (&saved.outputs[range.clone()], &saved.errors[range]);
            let d_outputs = &mut d_outputs[..steps * value];
            let gates = mixed + head * value;
            norm.backward(
                &dy[head * value..],
                output,
                outputs,
                &u[gates..],
                input,
                d_outputs,
                &mut du[gates..],
                &mut d_norm,
            );
            inputs.gather(activated, shape, head);
            gate.forward(u, input, shape.scalars(), head, &mut scalars);
            d_scalars.beta.resize(steps, 0.0);

            let before = steps.div_ceil(shape.chunk).saturating_sub(1);
            let (mine, others) = states.split_at(before * key * value);
            states = others;
            for (start, n) in shape.chunks(steps).rev() {
                let (i, end) = (start / shape.chunk, start + n);
                let chunk = Chunk {
                    queries_keys: &inputs.queries_keys[2 * start * key..2 * end * key],
                    log_decay: &scalars.log_decay[start..end],
                    beta: &scalars.beta[start..end],
                    key,
                    value,
                };
                let rows = start * value..end * value;
                let trace = Trace {
                    state: (i > 0).then(|| &mine[(i - 1) * key * value..i * key * value]),
                    errors: &errors[rows.clone()],
                    d_outputs: &d_outputs[rows.clone()],
                };
                workspace.backward(
                    chunk,
                    trace,
                    &mut d_state,
                    end == steps,
                    ChunkGradients {
                        queries_keys: &mut d_inputs.queries_keys[2 * start * key..2 * end * key],
                        values: &mut d_inputs.values[rows],
                        beta: &mut d_scalars.beta[start..end],
                    },
                );
            }
            let through = [outputs, d_outputs, &inputs.values, &d_inputs.values];
            d_scalars.log_decay.resize(steps, 0.0);
            decay_gradient(through, value, &mut d_scalars.log_decay);
            let (a, dt) = gate.backward(&d_scalars, u, input, shape.scalars(), head, du);
            d_a_log[head] += a;
            d_dt_bias[head] += dt;
            d_inputs.scatter(activated, shape, head, d_mixed);
        }
        conv::silu_backward(convolved, d_mixed);
        conv::backward(d_mixed, u, input, &conv_weights, mixed, du, &mut d_conv);
        row += steps;
    }
    let single = |sums: Vec<f64>| sums.into_iter().map(|x| x as f32).collect();
    Gradients {
        u: du,
        // The same exchange of axes, the other way.
        conv: conv::transpose(&d_conv, mixed),
        a_log: single(d_a_log),
        dt_bias: single(d_dt_bias),
        norm: d_norm,
    }
}

/// Gradients by the logarithms of the decays, without touching a recurrent state.
///
/// Multiplying the state before step t by a factor multiplies, of all later outputs, what does not come from values since;
/// so the gradient by the logarithm of that factor is the sum over later steps of `o . do - v . dv`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn decay_gradient(through: [&[f32]; 4], value: usize, d_log_decay: &mut [f32]) {
    let [outputs, d_outputs, values, d_values] = through;
    let mut sum = 0.0_f64;
    for (step, d) in d_log_decay.iter_mut().enumerate().rev() {
        let along = |a: &[f32], b: &[f32]| {
            let range = step * value..(step + 1) * value;
            f64::from(dot(&a[range.clone()], &b[range]))
        };
        sum += along(outputs, d_outputs) - along(values, d_values);
        *d = sum as f32;
    }
}

impl Head {
    /// The way back of [`Head::gather`]: gradients into the head's places in the rows of `d_mixed`.
    fn scatter(&self, activated: &[f32], shape: Shape, head: usize, d_mixed: &mut [f32]) {
        scatter(self, activated, shape, head, d_mixed);
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn scatter(d: &Head, activated: &[f32], shape: Shape, head: usize, d_mixed: &mut [f32]) {
    let Shape { heads, key, value, .. } = shape;
    let mixed = shape.mixed();
    for (start, n) in shape.chunks(activated.len() / mixed) {
        let (queries, keys) =
            d.queries_keys[2 * start * key..2 * (start + n) * key].split_at(n * key);
        for i in 0..n {
            let x = &activated[(start + i) * mixed..][..mixed];
            let out = &mut d_mixed[(start + i) * mixed..][..mixed];
            let range = i * key..(i + 1) * key;
            let at = head * key..(head + 1) * key;
            let scale = shape.query_scale();
            norm::unit_backward(&queries[range.clone()], &x[at.clone()], scale, &mut out[at]);
            let at = (heads + head) * key..(heads + head + 1) * key;
            norm::unit_backward(&keys[range], &x[at.clone()], 1.0, &mut out[at]);
            let at = 2 * heads * key + head * value;
            out[at..at + value].copy_from_slice(&d.values[(start + i) * value..][..value]);
        }
    }
}
