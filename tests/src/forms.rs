//! The two forms of the operations, and the two ways of reading a game, compute the same.

use burn::tensor::{Device, Tensor};
use cwm_core::{
    chess::label::{LABELS, LOGITS, class_count, logit_range},
    data::batch::Batch,
};
use cwm_models::{
    Model, ModelConfig, TransformerConfig,
    ops::Path,
    train::{OptimizerConfig, ScheduleConfig, Trainer},
};
use proptest::prelude::*;

/// A small vocabulary: 94 moves, START and PAD.
const VOCAB: usize = 96;
const START: u16 = 94;
const PAD: u16 = 95;

/// Numbers below `limit`, the same for a seed.
fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |limit| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    }
}

/// A model of this shape whose every parameter matters: norms are not one, biases not zero.
fn model(heads: usize, head_width: usize, layers: usize, dropout: f64, seed: u64) -> Model {
    let mut config = TransformerConfig::new(heads * head_width, layers, heads);
    config.dropout = dropout;
    (config.move_vocab, config.start_move_id, config.pad_move_id) = (VOCAB, START, PAD);
    let config = ModelConfig::Transformer(config);
    let mut model = Model::new(&config, seed, &Device::flex()).unwrap();
    let mut next = random(seed);
    let mut parameters = model.named_parameters();
    for tensor in parameters.values_mut() {
        tensor.data.iter_mut().for_each(|x| *x += (next(2001) as f32 - 1000.0) / 4000.0);
    }
    model.load_named_parameters(&parameters).unwrap();
    model
}

/// A batch of random tokens and labels.
fn batch(lengths: &[u32], seed: u64) -> Batch {
    let mut next = random(!seed);
    let steps = lengths.iter().copied().max().unwrap() as usize;
    let mut tokens = vec![PAD; lengths.len() * steps];
    for (row, &length) in tokens.chunks_mut(steps).zip(lengths) {
        row[0] = START;
        row[1..length as usize].iter_mut().for_each(|token| *token = next(94) as u16);
    }
    let rows: u32 = lengths.iter().sum();
    let labels = (0..rows as usize * LABELS).map(|i| next(class_count(i % LABELS)) as u8).collect();
    Batch { games: lengths.len(), steps, tokens, lengths: lengths.to_vec(), labels }
}

fn gradients(model: &Model, batch: &Batch) -> (f64, Vec<Vec<f32>>) {
    let (optimizer, schedule) = (OptimizerConfig::default(), ScheduleConfig::default());
    let trainer = Trainer::from_model(model.clone(), &optimizer, &schedule, 3).unwrap();
    trainer.loss_and_gradients(batch).unwrap()
}

fn logits(model: &Model, batch: &Batch) -> Vec<f32> {
    let rows = batch.tokens.chunks_exact(batch.steps).zip(&batch.lengths);
    let tokens = rows.flat_map(|(row, &length)| row[..length as usize].to_vec());
    let packed = model.pack(tokens, batch.lengths.clone()).unwrap();
    numbers(model.logits(&packed))
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

/// Largest difference, and norm of the difference relative to that of `b`.
fn distance(a: &[f32], b: &[f32]) -> (f64, f64) {
    assert_eq!(a.len(), b.len());
    let pairs = || a.iter().zip(b).map(|(&a, &b)| f64::from(a) - f64::from(b));
    let norm: f64 = b.iter().map(|&b| f64::from(b).powi(2)).sum();
    let largest = pairs().map(f64::abs).fold(0.0, f64::max);
    (largest, (pairs().map(|d| d * d).sum::<f64>() / norm.max(1e-30)).sqrt())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Odd widths, ragged lengths around the borders of blocks, games of one step, with and without dropout.
    #[test]
    fn fused_equals_portable(
        heads in 1_usize..4, half_head_width in 1_usize..20, layers in 1_usize..3,
        lengths in prop::collection::vec(prop_oneof![Just(1_u32), 2_u32..20, 60_u32..70, 120_u32..135], 1..5),
        dropout in prop_oneof![Just(0.0), 0.05..0.6], seed: u64,
    ) {
        let fused = model(heads, 2 * half_head_width, layers, dropout, seed);
        let portable = fused.clone().into_portable();
        let batch = batch(&lengths, seed);

        let (largest, _) = distance(&logits(&fused, &batch), &logits(&portable, &batch));
        prop_assert!(largest < 1e-4, "logits are {largest:e} apart");

        let (fused_loss, fused_gradients) = gradients(&fused, &batch);
        let (portable_loss, portable_gradients) = gradients(&portable, &batch);
        prop_assert!(
            (fused_loss - portable_loss).abs() < 5e-6 * portable_loss.max(1.0),
            "loss {fused_loss} and {portable_loss}"
        );
        let shapes = fused.config().parameter_shapes();
        prop_assert_eq!(shapes.len(), fused_gradients.len());
        for ((name, _), (a, b)) in shapes.iter().zip(fused_gradients.iter().zip(&portable_gradients)) {
            let (largest, relative) = distance(a, b);
            prop_assert!(
                largest < 5e-6 || relative < 1e-4,
                "gradients of {name} are {largest:e} apart, relatively {relative:e}"
            );
        }
    }
}

/// Probabilities of one row's labels.
fn probabilities(row: &[f32]) -> Vec<f64> {
    let mut all = Vec::with_capacity(LOGITS);
    for label in 0..LABELS {
        let logits = &row[logit_range(label)];
        let max = f64::from(logits.iter().copied().fold(f32::MIN, f32::max));
        let sum: f64 = logits.iter().map(|&x| (f64::from(x) - max).exp()).sum();
        all.extend(logits.iter().map(|&x| (f64::from(x) - max).exp() / sum));
    }
    all
}

/// The class with the largest logit, and how far the second lies below.
fn best(logits: &[f32]) -> (usize, f32) {
    let (mut class, mut first, mut second) = (0, f32::MIN, f32::MIN);
    for (c, &x) in logits.iter().enumerate() {
        if x > first {
            (class, first, second) = (c, x, first);
        } else if x > second {
            second = x;
        }
    }
    (class, first - second)
}

#[test]
fn reading_move_by_move_equals_reading_at_once_over_600_steps() {
    const STEPS: usize = 600;
    const TOLERANCE: f64 = 1e-3;
    // Two games side by side, one as long as the memory holds, the other to tell branches apart.
    let batch = batch(&[STEPS as u32, STEPS as u32], 11);
    let fused = model(3, 14, 2, 0.1, 7);
    for (form, model) in [("portable", fused.clone().into_portable()), ("fused", fused)] {
        let whole = logits(&model, &batch);
        let (weight, bias) = model.head();
        let mut memory = model.start(2);
        for step in 0..STEPS {
            let tokens = [batch.tokens[step], batch.tokens[STEPS + step]];
            let rows: Vec<u32> =
                tokens.iter().map(|&token| model.tokens().row(token).unwrap()).collect();
            let hidden = model.step(&mut memory, rows.into());
            let stepped = numbers(Path::Portable.linear(hidden, weight.clone(), bias.clone()));
            for (branch, stepped) in stepped.chunks_exact(LOGITS).enumerate() {
                let whole = &whole[(branch * STEPS + step) * LOGITS..][..LOGITS];
                let place = format!("{form}, game {branch}, step {step}");
                let (largest, _) = distance(stepped, whole);
                assert!(largest < TOLERANCE, "{place}: logits are {largest:e} apart");
                let apart = probabilities(stepped).into_iter().zip(probabilities(whole));
                let largest = apart.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(largest < TOLERANCE, "{place}: probabilities are {largest:e} apart");
                for label in 0..LABELS {
                    let (a, _) = best(&stepped[logit_range(label)]);
                    let (b, lead) = best(&whole[logit_range(label)]);
                    let tie = f64::from(lead) < TOLERANCE;
                    assert!(a == b || tie, "{place}, label {label}: class {a} and {b}");
                }
            }
        }
        assert_eq!(memory.steps(), STEPS);
    }
}
