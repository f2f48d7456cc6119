//! The recurrence as compositions of Burn's own operations: step by step, and in chunks that are parallel over time.
//!
//! A step is the affine map `y -> M_t y + b_t`, `M_t = I + A_t`. Within a chunk of C steps, the maps from the chunk's
//! start to each of its steps come from doubling: in round r every map is composed with the one `2^r` steps before it, so
//! `log2 C` rounds of products over all steps of all games replace the loop over time. Then states pass from chunk to
//! chunk, one product a chunk.

use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::ops::{Games, SliceArgs};

/// The states `[N, D]` over `u [N, D]`, from `a [D block, D + 1]`, `b [D, D + 1]` and `init [D]`.
pub(crate) fn states(
    u: Tensor<2>,
    a: Tensor<2>,
    b: Tensor<2>,
    init: Tensor<1>,
    args: &SliceArgs,
) -> Tensor<2> {
    let [rows, width] = u.dims();
    let device = u.device();
    if rows == 0 {
        return u;
    }
    let plan = Plan::new(&args.games, args.chunk_steps, &device);
    let increments = increments(u, &args.games, args.scale);

    // [rows, D block] and [rows, D], then padded: behind the end of a game the map is the identity.
    let a = increments.clone().matmul(a.transpose());
    let b = increments.matmul(b.transpose());
    let pad = |x: Tensor<2>| with_row_of_zeros(x).select(0, plan.padded.clone());
    let (k, blocks) = (args.block, width / args.block);
    let Plan { games, chunks, steps, .. } = plan;
    let maps = Maps {
        matrices: pad(a).reshape([games * chunks, steps, blocks, k, k]),
        vectors: pad(b).reshape([games * chunks, steps, blocks, k, 1]),
    };
    let maps = maps.plus_identity(k, &device).since_start(steps);

    let matrices = maps.matrices.reshape([games, chunks, steps, blocks, k * k]);
    let vectors = maps.vectors.reshape([games, chunks, steps, blocks, k]);
    let mut state = init.reshape([1, 1, blocks, k, 1]).expand([games, 1, blocks, k, 1]);
    let mut all = Vec::with_capacity(chunks);
    for chunk in 0..chunks {
        let part = |x: &Tensor<5>| x.clone().narrow(1, chunk, 1);
        let matrices = part(&matrices).reshape([games, steps, blocks, k, k]);
        let vectors = part(&vectors).reshape([games, steps, blocks, k, 1]);
        let reached = product(matrices, state) + vectors;
        state = reached.clone().narrow(1, steps - 1, 1);
        all.push(reached.reshape([games, steps, width]));
    }
    let padded = Tensor::cat(all, 1).reshape([games * chunks * steps, width]);
    padded.select(0, plan.packed)
}

/// What the recurrence is driven by: `scale [1, u_t - u_(t-1)]` of `u [N, D]`, a game's first difference being from 0:
/// `[N, D + 1]`.
pub(crate) fn increments(u: Tensor<2>, games: &Games, scale: f32) -> Tensor<2> {
    let [rows, _] = u.dims();
    // The row of the step before; behind the last row for a game's first step.
    let mut before: Vec<i32> = (0..rows as i32).map(|row| row - 1).collect();
    let mut first = 0;
    for &steps in games.lengths.iter().filter(|&&steps| steps > 0) {
        before[first as usize] = rows as i32;
        first += steps;
    }
    let before = Tensor::<1, Int>::from_data(TensorData::new(before, [rows]), &u.device());
    let before = with_row_of_zeros(u.clone()).select(0, before);
    with_time(u - before, scale)
}

/// One step: the state `[branches, D]` moved by an increment `[branches, D + 1]`.
pub(crate) fn step(
    state: Tensor<2>,
    increment: Tensor<2>,
    a: Tensor<2>,
    b: Tensor<2>,
    block: usize,
) -> Tensor<2> {
    let [branches, width] = state.dims();
    let blocks = width / block;
    let transition = increment.clone().matmul(a.transpose());
    let transition = transition.reshape([branches, 1, blocks, block, block]);
    let moved = product(transition, state.clone().reshape([branches, 1, blocks, block, 1]));
    state + moved.reshape([branches, width]) + increment.matmul(b.transpose())
}

/// `scale [1, increment]` of `increment [N, D]`: `[N, D + 1]`.
pub(crate) fn with_time(increment: Tensor<2>, scale: f32) -> Tensor<2> {
    let [rows, _] = increment.dims();
    let time = Tensor::ones([rows, 1], &increment.device());
    Tensor::cat(vec![time, increment], 1).mul_scalar(scale)
}

fn with_row_of_zeros(x: Tensor<2>) -> Tensor<2> {
    let [_, width] = x.dims();
    let zeros = Tensor::zeros([1, width], &x.device());
    Tensor::cat(vec![x, zeros], 0)
}

/// Block by block `[.., k, k]` times `[.., k, n]`; blocks of one number need no matrix product.
fn product(a: Tensor<5>, b: Tensor<5>) -> Tensor<5> {
    if a.dims()[4] == 1 { a * b } else { a.matmul(b) }
}

/// Affine maps `y -> M y + b`, one a step: `[chunks of all games, C, blocks, k, k]` and `[.., k, 1]`.
struct Maps {
    matrices: Tensor<5>,
    vectors: Tensor<5>,
}

impl Maps {
    fn plus_identity(self, k: usize, device: &Device) -> Self {
        let identity = Tensor::<2>::eye(k, device).reshape([1, 1, 1, k, k]);
        Maps { matrices: self.matrices + identity, ..self }
    }

    /// Each map composed with all those before it in its chunk of `steps` steps.
    fn since_start(self, steps: usize) -> Self {
        let Maps { mut matrices, mut vectors } = self;
        let mut shift = 1;
        while shift < steps {
            let tail = |x: &Tensor<5>| x.clone().narrow(1, shift, steps - shift);
            let head = |x: &Tensor<5>| x.clone().narrow(1, 0, steps - shift);
            let later = tail(&matrices);
            let moved = product(later.clone(), head(&vectors)) + tail(&vectors);
            let composed = product(later, head(&matrices));
            matrices = Tensor::cat(vec![matrices.narrow(1, 0, shift), composed], 1);
            vectors = Tensor::cat(vec![vectors.narrow(1, 0, shift), moved], 1);
            shift *= 2;
        }
        Maps { matrices, vectors }
    }
}

/// How packed rows lie in chunks of equal length, game after game.
struct Plan {
    games: usize,
    chunks: usize,
    /// Steps of a chunk.
    steps: usize,
    /// `[games x chunks x steps]`: the row of each place; behind the last row for padding.
    padded: Tensor<1, Int>,
    /// `[rows]`: the place of each row.
    packed: Tensor<1, Int>,
}

impl Plan {
    fn new(batch: &Games, chunk_steps: usize, device: &Device) -> Self {
        let rows = batch.rows();
        let (games, longest) = (batch.lengths.len(), batch.longest());
        let steps = chunk_steps.clamp(1, longest);
        let chunks = longest.div_ceil(steps);
        let mut padded = vec![rows as i32; games * chunks * steps];
        let mut packed = Vec::with_capacity(rows);
        for (game, &length) in batch.lengths.iter().enumerate() {
            for step in 0..length as usize {
                let (row, place) = (packed.len(), game * chunks * steps + step);
                padded[place] = row as i32;
                packed.push(place as i32);
            }
        }
        let index = |places: Vec<i32>| {
            let count = places.len();
            Tensor::from_data(TensorData::new(places, [count]), device)
        };
        Plan { games, chunks, steps, padded: index(padded), packed: index(packed) }
    }
}
