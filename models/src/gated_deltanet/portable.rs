//! The mixer in Burn's own operations, for any device: chunks of steps as batched matrix products.
//!
//! The equations are those of [`crate::kernel::gated_delta`]. Here the triangular system of a chunk is solved by
//! inverting its matrix, for all games, heads and chunks at once; then one short loop carries the recurrent state from
//! chunk to chunk. Everything is single precision, and nothing is read back.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData, activation};

use crate::ops::{GatedDeltaArgs, GatedDeltaWeights};

/// Steps of a chunk where none are asked for.
const CHUNK_STEPS: usize = 32;

/// Added to the square of a query's or key's length.
const UNIT_EPS: f32 = 1e-6;

/// Logarithm of a decay to nothing.
const FADED: f32 = -1e4;

/// Queries or keys of unit length, over the last axis.
pub(super) fn unit(x: Tensor<4>) -> Tensor<4> {
    let square = (x.clone() * x.clone()).sum_dim(3);
    x / square.add_scalar(UNIT_EPS).sqrt()
}

/// Logarithms of decays, and strengths, from `a` and `b [.., H]`.
pub(super) fn scalars(
    a: Tensor<2>,
    b: Tensor<2>,
    weights: &GatedDeltaWeights,
    beta_scale: f32,
) -> (Tensor<2>, Tensor<2>) {
    let rate = weights.a_log.clone().exp().neg().unsqueeze();
    let log_decay = activation::softplus(a + weights.dt_bias.clone().unsqueeze(), 1.0) * rate;
    (log_decay, activation::sigmoid(b).mul_scalar(beta_scale))
}

/// RMSNorm over the values `[N, H, V]` of each head, gated by `gates [N, H V]`, to `[N, H V]`.
pub(super) fn gated_norm(
    outputs: Tensor<3>,
    gates: Tensor<2>,
    weight: Tensor<1>,
    eps: f64,
) -> Tensor<2> {
    let [rows, heads, value] = outputs.dims();
    let mean_square = (outputs.clone() * outputs.clone()).mean_dim(2);
    let normed = outputs / mean_square.add_scalar(eps).sqrt() * weight.unsqueeze();
    normed.reshape([rows, heads * value]) * activation::silu(gates)
}

/// Where packed rows stand in games of equally many steps, and the other way round.
struct Places {
    /// For every step of every padded game, its row; beyond a game's end, the row behind the last.
    rows: Tensor<1, Int>,
    /// For every row, its step among the padded ones.
    steps: Tensor<1, Int>,
}

impl Places {
    fn new(lengths: &[u32], padded: usize, device: &Device) -> Self {
        let total: u32 = lengths.iter().sum();
        let mut rows = vec![total as i32; lengths.len() * padded];
        let mut steps = Vec::with_capacity(total as usize);
        for (game, &length) in lengths.iter().enumerate() {
            for step in 0..length as usize {
                rows[game * padded + step] = steps.len() as i32;
                steps.push((game * padded + step) as i32);
            }
        }
        let index = |places: Vec<i32>| {
            let count = places.len();
            Tensor::from_data(TensorData::new(places, [count]), device)
        };
        Places { rows: index(rows), steps: index(steps) }
    }
}

/// See [`crate::ops::Path::gated_delta`].
pub(crate) fn mix(u: Tensor<2>, weights: GatedDeltaWeights, args: &GatedDeltaArgs) -> Tensor<2> {
    let GatedDeltaArgs { heads, key, value, ref games, .. } = *args;
    let [_, width] = u.dims();
    let device = u.device();
    let (count, longest) = (games.lengths.len(), games.longest());
    let chunk = args.chunk_steps.unwrap_or(CHUNK_STEPS).min(longest);
    let chunks = longest.div_ceil(chunk);
    let steps = chunks * chunk;
    let places = Places::new(&games.lengths, steps, &device);
    let channels = heads * (2 * key + value);
    let gates = u.clone().narrow(1, channels, heads * value);

    // What stands beyond a game's end reaches nothing before it.
    let padded = Tensor::cat(vec![u, Tensor::zeros([1, width], &device)], 0).select(0, places.rows);
    let mixed = padded.clone().narrow(1, 0, channels).reshape([count, steps, channels]);
    let convolved = activation::silu(convolve(mixed, weights.conv.clone()));
    let part = |first: usize, width: usize| {
        convolved
            .clone()
            .narrow(2, first, heads * width)
            .reshape([count, steps, heads, width])
            .swap_dims(1, 2)
            .reshape([count * heads, chunks, chunk, width])
    };
    let queries = unit(part(0, key)).div_scalar((key as f32).sqrt());
    let keys = unit(part(heads * key, key));
    let values = part(2 * heads * key, value);
    let scalar = |x: Tensor<2>| {
        x.reshape([count, steps, heads]).swap_dims(1, 2).reshape([count * heads, chunks, chunk, 1])
    };
    let at = |first: usize| padded.clone().narrow(1, channels + heads * value + first, heads);
    let (log_decay, beta) = scalars(at(0), at(heads), &weights, args.beta_scale);
    let (log_decay, beta) = (scalar(log_decay), scalar(beta));

    let outputs = delta_rule(queries, keys, values, log_decay, beta);
    let outputs = outputs
        .reshape([count, heads, steps, value])
        .swap_dims(1, 2)
        .reshape([count * steps, heads * value])
        .select(0, places.steps);
    let [rows, _] = outputs.dims();
    let outputs = outputs.reshape([rows, heads, value]);
    gated_norm(outputs, gates, weights.norm, f64::from(args.norm_eps))
}

/// Depthwise causal convolution of `[B, T, X]` by `[X, W]` along the steps.
fn convolve(x: Tensor<3>, weights: Tensor<2>) -> Tensor<3> {
    let [count, steps, channels] = x.dims();
    let [_, taps] = weights.dims();
    let before = Tensor::zeros([count, taps - 1, channels], &x.device());
    let x = Tensor::cat(vec![before, x], 1);
    let tap = |tap: usize| {
        let weight = weights.clone().narrow(1, tap, 1).reshape([1, 1, channels]);
        x.clone().narrow(1, tap, steps) * weight
    };
    (1..taps).fold(tap(0), |sum, next| sum + tap(next))
}

/// The gated delta rule over `[B H, chunks, C, K]` queries and keys, values of width V, scalars of width 1; queries are
/// scaled. Gives `[B H, chunks, C, V]`.
fn delta_rule(
    queries: Tensor<4>,
    keys: Tensor<4>,
    values: Tensor<4>,
    log_decay: Tensor<4>,
    beta: Tensor<4>,
) -> Tensor<4> {
    let [games, chunks, chunk, key] = keys.dims();
    let value = values.dims()[3];
    let device = keys.device();
    let masks = Masks { chunk, device: &device };

    // Logarithms of the decays since a chunk's beginning: sums as one product.
    let since = masks.lower(0).matmul(log_decay);
    let between = since.clone() - since.clone().swap_dims(2, 3);
    let later: Tensor<2, Bool> = Tensor::tril_mask([chunk, chunk], 0, &device);
    let decays = between.mask_fill(later.unsqueeze(), FADED).exp();
    let transposed = keys.clone().swap_dims(2, 3);
    let answers = queries.clone().matmul(transposed.clone()) * decays.clone();
    let overlaps = keys.clone().matmul(transposed) * decays * masks.lower(1) * beta.clone();
    let inverse = inverse(overlaps, &masks);

    let from_start = since.clone().exp();
    let end = since.clone().narrow(2, chunk - 1, 1);
    let corrections = inverse.clone().matmul(values * beta.clone());
    let reach = inverse.matmul(keys.clone() * (beta * from_start.clone()));
    let queries = queries * from_start;
    let keys = (keys * (end.clone() - since).exp()).swap_dims(2, 3);
    let kept = end.exp();

    let mut state: Option<Tensor<3>> = None;
    let mut outputs = Vec::with_capacity(chunks);
    for i in 0..chunks {
        let of = |x: &Tensor<4>| {
            let [_, _, rows, cols] = x.dims();
            x.clone().narrow(1, i, 1).reshape([games, rows, cols])
        };
        let mut correction = of(&corrections);
        if let Some(state) = &state {
            correction = correction - of(&reach).matmul(state.clone());
        }
        let mut output = of(&answers).matmul(correction.clone());
        if let Some(state) = &state {
            output = output + of(&queries).matmul(state.clone());
        }
        outputs.push(output.reshape([games, 1, chunk, value]));
        if i + 1 < chunks {
            let added = of(&keys).matmul(correction);
            debug_assert_eq!(added.dims(), [games, key, value]);
            state = Some(match state {
                Some(state) => state * of(&kept) + added,
                None => added,
            });
        }
    }
    Tensor::cat(outputs, 1)
}

/// Constant matrices of zeros and ones, `[1, 1, C, C]`.
struct Masks<'a> {
    chunk: usize,
    device: &'a Device,
}

impl Masks<'_> {
    fn of(&self, holds: impl Fn(usize, usize) -> bool) -> Tensor<4> {
        let n = self.chunk;
        let number = |i: usize| if holds(i / n, i % n) { 1.0 } else { 0.0 };
        let data: Vec<f32> = (0..n * n).map(number).collect();
        Tensor::from_data(TensorData::new(data, [1, 1, n, n]), self.device)
    }

    /// Ones where the row is at least `offset` behind the column.
    fn lower(&self, offset: usize) -> Tensor<4> {
        self.of(|row, col| row >= col + offset)
    }

    /// Ones in the lower left quarters of the blocks of `2 size` along the diagonal.
    fn quarters(&self, size: usize) -> Tensor<4> {
        self.of(|row, col| {
            row / (2 * size) == col / (2 * size)
                && !(row / size).is_multiple_of(2)
                && (col / size).is_multiple_of(2)
        })
    }
}

/// The inverse of the identity plus a strictly lower triangular matrix `[.., C, C]`, from blocks of one row to the whole.
///
/// The inverse of two neighbouring blocks has the inverses of both on its diagonal, and below it the part between them,
/// multiplied by one inverse from each side. Unlike sums of powers of the matrix this needs no number larger than the
/// inverse has, which matters where keys resemble each other.
fn inverse(lower: Tensor<4>, masks: &Masks) -> Tensor<4> {
    let identity = masks.of(|row, col| row == col);
    let mut inverse = identity - lower.clone() * masks.quarters(1);
    let mut size = 2;
    while size < masks.chunk {
        let between = lower.clone() * masks.quarters(size);
        inverse = inverse.clone() - inverse.clone().matmul(between).matmul(inverse);
        size *= 2;
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The worst that keys can do: all the same, each correction twice as large as the error. Powers of the matrix reach
    /// 10^17 here.
    #[test]
    fn equal_keys_at_full_strength_are_inverted_exactly() {
        let device = Device::flex();
        for chunk in [1, 2, 5, 32, 64, 100] {
            let masks = Masks { chunk, device: &device };
            let inverse = inverse(masks.lower(1).mul_scalar(2.0), &masks);
            let inverse: Vec<f32> = inverse.into_data().try_into_vec().unwrap();
            for (i, x) in inverse.into_iter().enumerate() {
                let (row, col) = (i / chunk, i % chunk);
                let sign = if (row + col) % 2 == 0 { 2.0 } else { -2.0 };
                let expected = if row > col { sign } else { f32::from(u8::from(row == col)) };
                assert_eq!(x, expected, "row {row}, column {col} of {chunk}");
            }
        }
    }
}
