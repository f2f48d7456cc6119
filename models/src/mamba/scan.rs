//! The scan that Mamba-2 and Mamba-3 share, in chunks, as matrix products of Burn's own operations.
//!
//! What it computes stands in [`crate::kernel::mamba::scan`]. Within a chunk, masked scores meet values; each chunk's sum
//! of outer products goes to the chunks behind it by one product with the decays between chunks, so there is no loop
//! over time, not even over chunks. Sums along time are products with triangular matrices.

use burn::tensor::{Bool, Device, Tensor};

/// What a scan reads, padded games of a whole number of chunks.
pub(crate) struct Inputs {
    /// Keys `[B, T, K, R, N]`; K is H, or 1 where heads share keys and queries.
    pub keys: Tensor<5>,
    /// Queries `[B, T, K, R, N]`.
    pub queries: Tensor<5>,
    /// Values `[B, T, H, R, P]`.
    pub values: Tensor<5>,
    /// Logarithm of what a step leaves of the state, `[B, T, H]`.
    pub log_decay: Tensor<3>,
    /// Weight of a step's input in the steps behind it, `[B, T, H]`.
    pub scale: Tensor<3>,
    /// Weight of a step's input in the step itself, `[B, T, H]`.
    pub same: Tensor<3>,
}

/// A lower triangle of ones, with or without its diagonal.
fn triangle(size: usize, diagonal: i64, device: &Device) -> Tensor<2> {
    Tensor::<2>::ones([size, size], device).tril(diagonal)
}

/// Sums of `[B, T, W]` along time through each step, chunk by chunk: within the chunk `[B, T / C, C, W]`, and of all
/// chunks before, `[B, T / C, 1, W]`, the chunks' own sums taken through `reduce` first.
pub(crate) fn sums(
    x: Tensor<3>,
    chunk: usize,
    reduce: impl Fn(Tensor<4>) -> Tensor<4>,
) -> (Tensor<4>, Tensor<4>) {
    let [games, steps, width] = x.dims();
    let (device, chunks) = (x.device(), steps / chunk);
    let x = x.reshape([games * chunks, chunk, width]);
    let within = triangle(chunk, 0, &device).unsqueeze::<3>().matmul(x);
    let within = within.reshape([games, chunks, chunk, width]);
    let totals = reduce(within.clone().narrow(2, chunk - 1, 1));
    let before = triangle(chunks, -1, &device).unsqueeze::<3>();
    let before = before.matmul(totals.reshape([games, chunks, width]));
    (within, before.reshape([games, chunks, 1, width]))
}

/// Outputs `[B, T, H, R, P]`.
pub(crate) fn scan(inputs: Inputs, chunk: usize) -> Tensor<5> {
    let [games, steps, groups, rank, key_width] = inputs.keys.dims();
    let [_, _, heads, _, value_width] = inputs.values.dims();
    let (device, chunks, per) = (inputs.keys.device(), steps / chunk, heads / groups);
    let (batch, rows) = (games * chunks, rank * chunk);

    // Of a chunk and a head, rank after rank: `[B C, K or H, R L, width]`.
    let by_head = |x: Tensor<5>| {
        let [_, _, count, _, width] = x.dims();
        let x = x.reshape([batch, chunk, count, rank, width]).permute([0, 2, 3, 1, 4]);
        x.reshape([batch, count, rows, width])
    };
    let keys = by_head(inputs.keys);
    let queries = by_head(inputs.queries);
    let values = by_head(inputs.values);
    // [B C, H, L]
    let gate = |x: Tensor<3>| x.reshape([batch, chunk, heads]).swap_dims(1, 2);
    let (scale, same) = (gate(inputs.scale), gate(inputs.same));
    let (sums, _) = sums(inputs.log_decay, chunk, |totals| totals);
    let sums = gate(sums.reshape([games, steps, heads]));

    // [B C, H, queries, keys]
    let hidden: Tensor<2, Bool> = Tensor::tril_mask([chunk, chunk], -1, &device);
    let decays = sums.clone().unsqueeze_dim::<4>(3) - sums.clone().unsqueeze_dim::<4>(2);
    let decays = decays.mask_fill(hidden.unsqueeze(), f32::MIN).exp();
    let own = Tensor::<2>::eye(chunk, &device).unsqueeze::<4>() * same.unsqueeze_dim::<4>(2);
    let weights = decays * scale.clone().unsqueeze_dim::<4>(2) + own;

    let scores = queries.clone().matmul(keys.clone().swap_dims(2, 3));
    let weights = weights.reshape([batch, groups, per, chunk, chunk]);
    let weighted = if rank == 1 {
        scores.unsqueeze_dim::<5>(2) * weights
    } else {
        // Each rank's square of scores has the same weights.
        let scores = scores.reshape([batch * groups, 1, rank, chunk, rank * chunk]);
        let weights = weights.reshape([batch * groups, per, 1, chunk, chunk]);
        let weights = weights.repeat_dim(4, rank);
        (scores * weights).reshape([batch, groups, per, rows, rows])
    };
    let mut y = weighted.reshape([batch, heads, rows, rows]).matmul(values.clone());

    if chunks > 1 {
        // What each chunk leaves at its end: `[B C, K, N, per P]`.
        let end = sums.clone().narrow(2, chunk - 1, 1);
        let to_end = (end.clone() - sums.clone()).exp() * scale;
        let per_row = |gate: Tensor<3>| gate.repeat_dim(2, rank).unsqueeze_dim::<4>(3);
        let left = values * per_row(to_end);
        let left = left.reshape([batch, groups, per, rows, value_width]).permute([0, 1, 3, 2, 4]);
        let left = left.reshape([batch, groups, rows, per * value_width]);
        let left = keys.swap_dims(2, 3).matmul(left);

        // What it finds: the decays from a chunk's end to another's start are sums of whole chunks.
        let totals = end.reshape([games, chunks, heads]);
        let through = triangle(chunks, 0, &device).unsqueeze::<3>().matmul(totals.clone());
        let before = through.clone() - totals;
        let between = before.swap_dims(1, 2).unsqueeze_dim::<4>(3)
            - through.swap_dims(1, 2).unsqueeze_dim::<4>(2);
        let hidden: Tensor<2, Bool> = Tensor::tril_mask([chunks, chunks], -1, &device);
        let between = between.mask_fill(hidden.unsqueeze(), f32::MIN).exp();
        let by_chunk = [games, chunks, groups, key_width, per, value_width];
        let left = left.reshape(by_chunk).permute([0, 2, 4, 1, 3, 5]);
        let left = left.reshape([games, heads, chunks, key_width * value_width]);
        let found = between.matmul(left);
        let found = found.reshape([games, groups, per, chunks, key_width, value_width]);
        let found = found.permute([0, 3, 1, 4, 2, 5]);
        let found = found.reshape([batch, groups, key_width, per * value_width]);
        let carried = queries.matmul(found);
        let carried = carried.reshape([batch, groups, rows, per, value_width]);
        let carried = carried.permute([0, 1, 3, 2, 4]).reshape([batch, heads, rows, value_width]);
        y = y + carried * per_row(sums.exp());
    }
    let y = y.reshape([batch, heads, rank, chunk, value_width]).permute([0, 3, 1, 2, 4]);
    y.reshape([games, steps, heads, rank, value_width])
}
