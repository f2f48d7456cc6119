//! The operations as compositions of Burn's own, for any device. Masks of dropout are the same as in the fused form.

use std::sync::Arc;

use burn::tensor::{Bool, ExecutionError, Int, Tensor, TensorData, activation};
use cwm_core::chess::label::LABELS;

use super::{AttentionArgs, Grades, matrix};
use crate::{
    kernel::{attention::element, random::Dropout},
    loss::{cross_entropy_by_row, label_runs},
    model::numbers,
};

pub(super) fn gather(table: Tensor<2>, rows: &[u32]) -> Tensor<2> {
    let rows: Vec<i32> = rows.iter().map(|&row| row as i32).collect();
    let count = rows.len();
    let device = table.device();
    let rows = Tensor::<1, Int>::from_data(TensorData::new(rows, [count]), &device);
    table.select(0, rows)
}

pub(super) fn linear(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
    x.matmul(weight.transpose()) + bias.unsqueeze()
}

pub(super) fn rms_norm(x: Tensor<2>, weight: Tensor<1>, eps: f32) -> Tensor<2> {
    let mean_square = x.clone().powf_scalar(2.0).mean_dim(1);
    x / mean_square.add_scalar(eps).sqrt() * weight.unsqueeze()
}

pub(super) fn swiglu(u: Tensor<2>) -> Tensor<2> {
    let mut halves = u.chunk(2, 1).into_iter();
    match (halves.next(), halves.next()) {
        (Some(gate), Some(value)) => activation::silu(gate) * value,
        _ => unreachable!("a chunk in two has two parts"),
    }
}

pub(super) fn dropout(x: Tensor<2>, dropout: Dropout) -> Tensor<2> {
    let [rows, width] = x.dims();
    let first = dropout.first.wrapping_mul(width as u32);
    let factors =
        (0..(rows * width) as u32).map(|i| dropout.factor(first.wrapping_add(i))).collect();
    let device = x.device();
    x * matrix(factors, rows, width, &device)
}

/// Rows `[N, 3D]` go to padded games `[B, T, 3D]` for the attention, and back.
pub(super) fn attention(qkv: Tensor<2>, args: &AttentionArgs) -> Tensor<2> {
    let [rows, width] = qkv.dims();
    let (width, heads) = (width / 3, args.heads);
    let head_width = width / heads;
    let (games, steps) = (args.games.lengths.len(), args.games.longest());
    let device = qkv.device();

    // A row of zeros behind the last row stands for padding.
    let mut padded = vec![rows as i32; games * steps];
    let mut packed = Vec::with_capacity(rows);
    for (game, &length) in args.games.lengths.iter().enumerate() {
        for step in 0..length as usize {
            padded[game * steps + step] = packed.len() as i32;
            packed.push((game * steps + step) as i32);
        }
    }
    let index = |rows: Vec<i32>| {
        let count = rows.len();
        Tensor::<1, Int>::from_data(TensorData::new(rows, [count]), &device)
    };
    let qkv = Tensor::cat(vec![qkv, Tensor::zeros([1, 3 * width], &device)], 0);
    let qkv = qkv.select(0, index(padded)).reshape([games, steps, 3, heads, head_width]);
    // [B, H, T, K]
    let part = |i: usize| {
        qkv.clone().narrow(2, i, 1).reshape([games, steps, heads, head_width]).swap_dims(1, 2)
    };
    let (query, key, value) = (turn(part(0), args), turn(part(1), args), part(2));

    let scores = query.matmul(key.swap_dims(2, 3)).div_scalar((head_width as f32).sqrt());
    let hidden: Tensor<2, Bool> = Tensor::tril_mask([steps, steps], 0, &device);
    let scores = scores.mask_fill(hidden.unsqueeze(), f32::MIN);
    let mut probabilities = activation::softmax(scores, 3);
    if let Some(dropout) = args.dropout {
        probabilities = probabilities * probability_factors(dropout, args, steps, &device);
    }
    let out = probabilities.matmul(value).swap_dims(1, 2).reshape([games * steps, width]);
    out.select(0, index(packed))
}

/// `[B, H, T, T]` factors of dropout.
fn probability_factors(
    dropout: Dropout,
    args: &AttentionArgs,
    steps: usize,
    device: &burn::tensor::Device,
) -> Tensor<4> {
    let games = args.games.lengths.len();
    let dropout = dropout.from(args.games.first_game);
    let mut factors = Vec::with_capacity(games * args.heads * steps * steps);
    for game in 0..games {
        for head in 0..args.heads {
            let dropout = dropout.of_head(game, head);
            for query in 0..steps {
                factors.extend((0..steps).map(|key| dropout.factor(element(key, query))));
            }
        }
    }
    Tensor::from_data(TensorData::new(factors, [games, args.heads, steps, steps]), device)
}

/// The rotary map of `[B, H, T, K]`.
fn turn(x: Tensor<4>, args: &AttentionArgs) -> Tensor<4> {
    let [games, heads, steps, width] = x.dims();
    let device = x.device();
    let (mut cos, mut partner) = (Vec::new(), Vec::new());
    for position in 0..steps {
        let (c, p) = args.rope.at(position);
        cos.extend_from_slice(c);
        partner.extend_from_slice(p);
    }
    let table = |data: Vec<f32>| matrix(data, steps, width, &device).unsqueeze::<4>();
    let swapped = x
        .clone()
        .reshape([games, heads, steps, width / 2, 2])
        .flip([4])
        .reshape([games, heads, steps, width]);
    x * table(cos) + swapped * table(partner)
}

/// Classes, finiteness and, given `labels [N, 75]`, losses of `hidden [N, D]` through a state head.
/// Classes, losses and flags alone leave the device.
pub(crate) async fn grade(
    hidden: Tensor<2>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    labels: Option<Arc<[u8]>>,
) -> Result<Grades, ExecutionError> {
    let logits = linear(hidden, weight, bias);
    let [rows, _] = logits.dims();
    let mut classes = vec![0; rows * LABELS];
    for run in label_runs() {
        let part = logits.clone().narrow(1, run.logits.start, run.logits.len());
        let part = part.reshape([rows * run.labels.len(), run.classes]).argmax(1);
        let best = part.into_data_async().await?;
        for (i, class) in best.iter::<u32>().enumerate() {
            let (row, label) = (i / run.labels.len(), run.labels.start + i % run.labels.len());
            classes[row * LABELS + label] = class as u8;
        }
    }
    // Zero times a number is zero, unless the number is not finite.
    let zeros = logits.clone().mul_scalar(0.0).sum_dim(1).into_data_async().await?;
    let non_finite = numbers(zeros).iter().map(|&zero| zero != 0.0).collect();
    let losses = match labels {
        None => vec![0.0; rows],
        Some(labels) => {
            let losses = cross_entropy_by_row(logits, &labels).into_data_async().await?;
            numbers(losses).into_iter().map(f64::from).collect()
        }
    };
    Ok(Grades { classes, non_finite, losses })
}
