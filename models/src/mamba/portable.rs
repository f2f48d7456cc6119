//! The mixers of Mamba-2 and Mamba-3 between their projections, as compositions of Burn's own operations.

use burn::tensor::{Device, Int, Tensor, TensorData, activation};

use super::scan::{Inputs, scan, sums};
use crate::{
    kernel::mamba::mamba3::A_MAX,
    ops::{Games, MAMBA_NORM_EPS as EPS, Mamba2Args, Mamba2Weights, Mamba3Args, Mamba3Weights},
};

/// Steps of a chunk unless told otherwise: with more inputs a step, a score matrix is as large with fewer steps. Of 4 to
/// 128, 16 to 64 are about equally fast on the CPU with one input a step (`cargo bench --bench mixers`).
fn chunk_steps(rank: usize) -> usize {
    if rank == 1 { 32 } else { (64 / rank).max(8) }
}

/// Where rows of packed games stand in padded ones of a whole number of chunks, and the other way round.
struct Padding {
    games: usize,
    steps: usize,
    chunk: usize,
    /// `[B T]`: the row, or the one behind the last, which is to be 0.
    padded: Tensor<1, Int>,
    /// `[N]`.
    packed: Tensor<1, Int>,
}

impl Padding {
    fn new(games: &Games, chunk: usize, device: &Device) -> Self {
        let count = games.lengths.len();
        // No longer chunks than games.
        let chunk = chunk.min(games.longest().max(1));
        let steps = games.longest().max(1).next_multiple_of(chunk);
        let rows = games.rows();
        let mut padded = vec![rows as i32; count * steps];
        let mut packed = Vec::with_capacity(rows);
        for (game, &length) in games.lengths.iter().enumerate() {
            let first = game * steps;
            for (step, row) in padded[first..][..length as usize].iter_mut().enumerate() {
                *row = packed.len() as i32;
                packed.push((first + step) as i32);
            }
        }
        let index = |rows: Vec<i32>| {
            let count = rows.len();
            Tensor::<1, Int>::from_data(TensorData::new(rows, [count]), device)
        };
        Padding { games: count, steps, chunk, padded: index(padded), packed: index(packed) }
    }

    /// `[N, W]` to `[B T, W]`.
    fn pad(&self, x: Tensor<2>) -> Tensor<2> {
        let zeros = Tensor::zeros([1, x.dims()[1]], &x.device());
        Tensor::cat(vec![x, zeros], 0).select(0, self.padded.clone())
    }

    /// `[B T, W]` to `[N, W]`.
    fn pack(&self, x: Tensor<2>) -> Tensor<2> {
        x.select(0, self.packed.clone())
    }
}

/// Columns of rows, one part after the other.
struct Columns {
    rows: Tensor<2>,
    next: usize,
}

impl Columns {
    fn take(&mut self, width: usize) -> Tensor<2> {
        let part = self.rows.clone().narrow(1, self.next, width);
        self.next += width;
        part
    }
}

/// RMSNorm over the last axis.
fn norm<const D: usize>(x: Tensor<D>, weight: Tensor<1>) -> Tensor<D> {
    let mean_square = x.clone().powf_scalar(2.0).mean_dim(D - 1);
    x / mean_square.add_scalar(EPS).sqrt() * weight.unsqueeze()
}

/// Parts of projected rows of Mamba-2, `[M, ..]` each.
pub(super) struct Parts2 {
    /// `[M, H P]`.
    pub z: Tensor<2>,
    /// What the convolution sees: x, B, C, `[M, C]`.
    pub conv: Tensor<2>,
    /// After softplus, `[M, H]`.
    pub dt: Tensor<2>,
    /// `[M, H]`.
    pub log_decay: Tensor<2>,
}

impl Parts2 {
    pub fn of(u: Tensor<2>, weights: &Mamba2Weights, args: &Mamba2Args) -> Self {
        let inner = args.heads * args.head_width;
        let mut columns = Columns { rows: u, next: 0 };
        let z = columns.take(inner);
        let conv = columns.take(inner + 2 * args.state_width);
        let dt = columns.take(args.heads) + weights.dt_bias.clone().unsqueeze();
        let dt = activation::softplus(dt, 1.0);
        let log_decay = dt.clone() * weights.a_log.clone().exp().neg().unsqueeze();
        Parts2 { z, conv, dt, log_decay }
    }
}

/// Keys, queries `[M, N]` and values `[M, H, P]` of rows `[M, C]` behind the convolution.
pub(super) fn keys_and_values(
    conv: Tensor<2>,
    args: &Mamba2Args,
) -> (Tensor<2>, Tensor<2>, Tensor<3>) {
    let rows = conv.dims()[0];
    let mut columns = Columns { rows: conv, next: 0 };
    let x = columns.take(args.heads * args.head_width);
    let keys = columns.take(args.state_width);
    let queries = columns.take(args.state_width);
    (keys, queries, x.reshape([rows, args.heads, args.head_width]))
}

/// `RMSNorm((y + D x) silu(z))` of `y` and `x [M, H, P]`.
pub(super) fn gate_and_norm(
    y: Tensor<3>,
    x: Tensor<3>,
    z: Tensor<2>,
    weights: &Mamba2Weights,
) -> Tensor<2> {
    let [rows, heads, width] = y.dims();
    let y = y + x * weights.d.clone().reshape([1, heads, 1]);
    norm(y.reshape([rows, heads * width]) * activation::silu(z), weights.norm.clone())
}

/// The taps of the convolution, `[W, C]`.
pub(super) fn taps(weights: &Mamba2Weights) -> Tensor<2> {
    let [channels, _, width] = weights.conv.dims();
    weights.conv.clone().reshape([channels, width]).transpose()
}

/// `u [N, projected]` to `[N, H P]`.
pub(crate) fn mamba2(u: Tensor<2>, weights: Mamba2Weights, args: &Mamba2Args) -> Tensor<2> {
    if u.dims()[0] == 0 {
        return u.narrow(1, 0, args.heads * args.head_width);
    }
    let device = u.device();
    let chunk = args.chunk_steps.unwrap_or_else(|| chunk_steps(1));
    let padding = Padding::new(&args.games, chunk, &device);
    let Padding { games, steps, chunk, .. } = padding;
    let parts = Parts2::of(padding.pad(u), &weights, args);

    let channels = parts.conv.dims()[1];
    let before = Tensor::zeros([games, args.conv_width - 1, channels], &device);
    let seen = Tensor::cat(vec![before, parts.conv.reshape([games, steps, channels])], 1);
    let taps = taps(&weights);
    let mut conv = weights.conv_bias.clone().unsqueeze::<3>();
    for tap in 0..args.conv_width {
        let weight = taps.clone().narrow(0, tap, 1).unsqueeze::<3>();
        conv = conv + seen.clone().narrow(1, tap, steps) * weight;
    }
    let conv = activation::silu(conv.reshape([games * steps, channels]));

    let (keys, queries, x) = keys_and_values(conv, args);
    let shared = [games, steps, 1, 1, args.state_width];
    let gate = |x: Tensor<2>| x.reshape([games, steps, args.heads]);
    let inputs = Inputs {
        keys: keys.reshape(shared),
        queries: queries.reshape(shared),
        values: x.clone().reshape([games, steps, args.heads, 1, args.head_width]),
        log_decay: gate(parts.log_decay),
        scale: gate(parts.dt.clone()),
        same: gate(parts.dt),
    };
    let y = scan(inputs, chunk).reshape([games * steps, args.heads, args.head_width]);
    padding.pack(gate_and_norm(y, x, parts.z, &weights))
}

/// Parts of projected rows of Mamba-3, `[M, ..]` each.
pub(super) struct Parts3 {
    /// `[M, H, P]`.
    pub z: Tensor<3>,
    /// Values `[M, H, R, P]`.
    pub values: Tensor<4>,
    /// Before the rotation, `[M, H, R, N]`.
    pub keys: Tensor<4>,
    /// Before the rotation, `[M, H, R, N]`.
    pub queries: Tensor<4>,
    /// `[M, H]`.
    pub dt: Tensor<2>,
    /// `[M, H]`.
    pub log_decay: Tensor<2>,
    /// `lambda dt`: what counts at once, `[M, H]`.
    pub now: Tensor<2>,
    /// `(1 - lambda) dt`: what the step before counts from here on, `[M, H]`.
    pub before: Tensor<2>,
    /// By how much the angles grow, `[M, H, N / 4]`.
    pub turns: Tensor<3>,
}

impl Parts3 {
    pub fn of(u: Tensor<2>, weights: &Mamba3Weights, args: &Mamba3Args) -> Self {
        let Mamba3Args { heads, head_width, state_width, .. } = *args;
        let (rank, rows) = (args.rank(), u.dims()[0]);
        let mut columns = Columns { rows: u, next: 0 };
        let z = columns.take(heads * head_width).reshape([rows, heads, head_width]);
        let x = columns.take(heads * head_width).reshape([rows, heads, 1, head_width]);
        let [keys, queries] =
            [(&weights.b_norm, &weights.b_bias), (&weights.c_norm, &weights.c_bias)].map(
                |(weight, bias)| {
                    let raw =
                        columns.take(rank * state_width).reshape([rows, 1, rank, state_width]);
                    norm(raw, weight.clone()) + bias.clone().unsqueeze()
                },
            );
        let dt = columns.take(heads) + weights.dt_bias.clone().unsqueeze();
        let dt = activation::softplus(dt, 1.0);
        let a = activation::softplus(columns.take(heads), 1.0).neg().clamp_max(A_MAX);
        let lambda = activation::sigmoid(columns.take(heads));
        let turns = columns.take(state_width / 4).tanh().mul_scalar(std::f32::consts::PI);
        let now = lambda * dt.clone();
        Parts3 {
            z,
            values: match &weights.mimo {
                None => x,
                Some([factors, ..]) => x * factors.clone().unsqueeze(),
            },
            keys,
            queries,
            log_decay: a * dt.clone(),
            before: dt.clone() - now.clone(),
            now,
            turns: turns.unsqueeze_dim::<3>(1) * dt.clone().unsqueeze_dim::<3>(2),
            dt,
        }
    }
}

/// Keys or queries `[M, H, R, N]` turned by angles `[M, H, N / 4]`: neighbouring channels are pairs, or, with MIMO,
/// those that are N / 2 apart.
pub(super) fn turn(x: Tensor<4>, angles: Tensor<3>, halves: bool) -> Tensor<4> {
    let [rows, heads, rank, width] = x.dims();
    let count = width / 4;
    let (cos, sin) = (angles.clone().cos(), angles.sin());
    let cos = cos.reshape([rows, heads, 1, count]);
    let sin = sin.reshape([rows, heads, 1, count]);
    let turned = |a: Tensor<4>, b: Tensor<4>| {
        let first = a.clone() * cos.clone() - b.clone() * sin.clone();
        (first, a * sin.clone() + b * cos.clone())
    };
    let part = |from: usize, count: usize| x.clone().narrow(3, from, count);
    if halves {
        let (a, b) = turned(part(0, count), part(2 * count, count));
        return Tensor::cat(vec![a, part(count, count), b, part(3 * count, count)], 3);
    }
    let pairs = part(0, 2 * count).reshape([rows, heads, rank, count, 2]);
    let member = |i: usize| pairs.clone().narrow(4, i, 1).reshape([rows, heads, rank, count]);
    let (a, b) = turned(member(0), member(1));
    let pairs = Tensor::cat(vec![a.unsqueeze_dim::<5>(4), b.unsqueeze_dim::<5>(4)], 4);
    Tensor::cat(vec![pairs.reshape([rows, heads, rank, 2 * count]), part(2 * count, 2 * count)], 3)
}

/// An angle less its whole turns.
pub(super) fn less_turns<const D: usize>(angle: Tensor<D>) -> Tensor<D> {
    const TURN: f32 = std::f32::consts::TAU;
    let whole = angle.clone().detach().div_scalar(TURN).round().mul_scalar(TURN);
    angle - whole
}

/// Skip and gate: `y [M, H, R, P]` to `[M, H P]`.
pub(super) fn gate(y: Tensor<4>, parts: Parts3, weights: &Mamba3Weights) -> Tensor<2> {
    let [rows, heads, _, width] = y.dims();
    let y = y + parts.values * weights.d.clone().reshape([1, heads, 1, 1]);
    let z = parts.z.unsqueeze_dim::<4>(2);
    let y = match &weights.mimo {
        None => y * activation::silu(z),
        Some([_, inside, outside]) => {
            let gate = activation::silu(z * inside.clone().unsqueeze());
            (y * gate * outside.clone().unsqueeze()).sum_dim(2)
        }
    };
    y.reshape([rows, heads * width])
}

/// `u [N, projected]` to `[N, H P]`.
pub(crate) fn mamba3(u: Tensor<2>, weights: Mamba3Weights, args: &Mamba3Args) -> Tensor<2> {
    let Mamba3Args { heads, head_width, state_width, .. } = *args;
    if u.dims()[0] == 0 {
        return u.narrow(1, 0, heads * head_width);
    }
    let (rank, device) = (args.rank(), u.device());
    let chunk = args.chunk_steps.unwrap_or_else(|| chunk_steps(rank));
    let padding = Padding::new(&args.games, chunk, &device);
    let Padding { games, steps, chunk, .. } = padding;
    let parts = Parts3::of(padding.pad(u), &weights, args);

    let count = state_width / 4;
    let turns = parts.turns.clone().reshape([games, steps, heads * count]);
    let (within, before) = sums(turns, chunk, less_turns);
    let angles = (within + before).reshape([games * steps, heads, count]);
    let halves = args.mimo_rank.is_some();
    let [keys, queries] =
        [&parts.keys, &parts.queries].map(|rows| turn(rows.clone(), angles.clone(), halves));

    let gate_of = |x: Tensor<2>| x.reshape([games, steps, heads]);
    let now = gate_of(parts.now.clone());
    // A step counts in part when the next one comes.
    let end = Tensor::zeros([games, 1, heads], &device);
    let later = Tensor::cat(vec![gate_of(parts.before.clone()), end], 1).narrow(1, 1, steps);
    let inputs = Inputs {
        keys: keys.reshape([games, steps, heads, rank, state_width]),
        queries: queries.reshape([games, steps, heads, rank, state_width]),
        values: parts.values.clone().reshape([games, steps, heads, rank, head_width]),
        log_decay: gate_of(parts.log_decay.clone()),
        scale: now.clone() + later,
        same: now,
    };
    let y = scan(inputs, chunk).reshape([games * steps, heads, rank, head_width]);
    padding.pack(gate(y, parts, &weights))
}
