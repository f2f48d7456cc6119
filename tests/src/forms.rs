//! The forms of the operations, and the two ways of reading a game, compute the same, for every family.
//!
//! A family joins in with a line in the call of `forms!` at the end.

use burn::tensor::{Device, Tensor};
use cwm_core::{
    chess::label::{LABELS, LOGITS, class_count, logit_range},
    data::batch::Batch,
};
use cwm_models::{
    GatedDeltaNetConfig, Mamba2Config, Mamba3Config, Model, ModelConfig, SliceConfig,
    TransformerConfig,
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

/// How a family is put to the test.
struct Family {
    /// A configuration of some shape: two small numbers, each at least one, that the family makes of what it will, and layers.
    config: fn(usize, usize, usize) -> ModelConfig,
    /// How far each parameter strays from its start, by name.
    noise: fn(&str) -> f32,
}

/// Sets what all families have in their configurations.
fn with(config: &ModelConfig, dropout: f64) -> ModelConfig {
    let mut table: serde_json::Value = serde_json::from_str(&config.to_json()).unwrap();
    // Not every family has dropout.
    if !table["dropout"].is_null() {
        table["dropout"] = dropout.into();
    }
    table["move_vocab"] = VOCAB.into();
    table["start_move_id"] = START.into();
    table["pad_move_id"] = PAD.into();
    ModelConfig::from_json(&table.to_string()).unwrap()
}

impl Family {
    /// A model whose every parameter matters: norms are not one, biases not zero.
    fn model(&self, (a, b): (usize, usize), layers: usize, dropout: f64, seed: u64) -> Model {
        let config = with(&(self.config)(a, b, layers), dropout);
        let mut model = Model::new(&config, seed, &Device::flex()).unwrap();
        let mut next = random(seed);
        let mut parameters = model.named_parameters();
        for (name, tensor) in &mut parameters {
            let noise = (self.noise)(name) / 1000.0;
            tensor.data.iter_mut().for_each(|x| *x += (next(2001) as f32 - 1000.0) * noise);
        }
        model.load_named_parameters(&parameters).unwrap();
        model
    }
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

/// Logits, loss and gradients of both forms.
fn check_fused(fused: Model, lengths: &[u32], seed: u64) -> Result<(), TestCaseError> {
    let portable = fused.clone().into_portable();
    let batch = batch(lengths, seed);

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
    Ok(())
}

/// Chunks of one step, of a few, of as many as a game has, and of more.
fn check_chunks(model: Model) {
    let batch = batch(&[1, 30, 131, 64], 5);
    let model = model.into_portable();
    let whole = logits(&model.clone().with_chunk_steps(1), &batch);
    for steps in [2, 7, 16, 64, 131, 1000] {
        let chunked = logits(&model.clone().with_chunk_steps(steps), &batch);
        let (largest, _) = distance(&chunked, &whole);
        assert!(largest < 1e-4, "in chunks of {steps} logits are {largest:e} apart");
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

/// Two games side by side, read move by move and at once; half-way the memory is forked, and the fork goes astray.
fn check_steps(fused: Model) {
    const STEPS: usize = 600;
    const TOLERANCE: f64 = 1e-3;
    let batch = batch(&[STEPS as u32, STEPS as u32], 11);
    for (form, model) in [("portable", fused.clone().into_portable()), ("fused", fused)] {
        let whole = logits(&model, &batch);
        let (weight, bias) = model.head();
        let mut memory = model.start(2);
        for step in 0..STEPS {
            if step == STEPS / 2 {
                let mut fork = memory.clone();
                for token in [3, 7] {
                    model.step(&mut fork, vec![token; 2].into());
                }
                assert_eq!(fork.steps(), memory.steps() + 2);
            }
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

/// A module of tests for each family.
macro_rules! forms {
    ($($name:ident: $config:expr, $noise:expr;)*) => {
        $(mod $name {
            use super::*;

            const FAMILY: Family = Family { config: $config, noise: $noise };

            proptest! {
                #![proptest_config(ProptestConfig::with_cases(24))]

                /// Odd widths, ragged lengths around the borders of blocks, games of one step, with and without dropout.
                #[test]
                fn fused_equals_portable(
                    a in 1_usize..4, b in 1_usize..20, layers in 1_usize..3,
                    lengths in prop::collection::vec(
                        prop_oneof![Just(1_u32), 2_u32..20, 60_u32..70, 120_u32..135], 1..5),
                    dropout in prop_oneof![Just(0.0), 0.05..0.6], seed: u64,
                ) {
                    check_fused(FAMILY.model((a, b), layers, dropout, seed), &lengths, seed)?;
                }
            }

            #[test]
            fn reading_move_by_move_equals_reading_at_once_over_600_steps() {
                check_steps(FAMILY.model((3, 7), 2, 0.1, 7));
            }

            #[test]
            fn chunks_of_any_length_give_one_answer() {
                check_chunks(FAMILY.model((2, 8), 2, 0.0, 9));
            }
        })*
    };
}

/// Transitions stay near the identity, so that products of hundreds stay in bounds.
fn slice(d_model: usize, block_size: usize, layers: usize) -> ModelConfig {
    let config = SliceConfig::new(d_model, layers, block_size);
    ModelConfig::Slice(SliceConfig { scale: 0.02, ..config })
}

fn slice_noise(name: &str) -> f32 {
    if name.ends_with("vf_A.weight") { 0.05 } else { 0.25 }
}

/// Values three times as wide as keys, and a model's width that has nothing to do with either. Where a query and a key are
/// all but orthogonal, the gated norm makes much of little and of its rounding errors, unless its epsilon is above both.
fn gated_deltanet(heads: usize, key: usize, layers: usize, allow_neg_eigval: bool) -> ModelConfig {
    let config = GatedDeltaNetConfig::new(8 * heads + key, layers, heads);
    ModelConfig::GatedDeltaNet(GatedDeltaNetConfig {
        head_dim: key,
        expand_v: 3.0,
        allow_neg_eigval,
        norm_eps: 1e-4,
        ..config
    })
}

fn gated_deltanet_noise(name: &str) -> f32 {
    if name.contains("conv1d") { 0.8 } else { 0.25 }
}

forms! {
    transformer: |heads, half, layers| {
        ModelConfig::Transformer(TransformerConfig::new(2 * half * heads, layers, heads))
    }, |_| 0.25;
    // Blocks of 1 to 19 rows: those with loops of their own, and others.
    slice_block: |blocks, rows, layers| slice(2 * blocks * rows, rows, layers), slice_noise;
    slice_diagonal: |a, b, layers| slice(a * b, 1, layers), slice_noise;
    gated_deltanet_neg: |heads, key, layers| gated_deltanet(heads, key, layers, true),
        gated_deltanet_noise;
    gated_deltanet_pos: |heads, key, layers| gated_deltanet(heads, key, layers, false),
        gated_deltanet_noise;
    mamba2: |heads, half, layers| {
        ModelConfig::Mamba2(Mamba2Config {
            d_state: half + 2,
            headdim: half,
            expand: 3,
            d_conv: heads,
            ..Mamba2Config::new(heads * half, layers)
        })
    }, |_| 0.25;
    mamba3_siso: |heads, half, layers| mamba3(heads, half, layers, None), |_| 0.25;
    // Ranks of 1 to 3.
    mamba3_mimo: |heads, half, layers| mamba3(2, half, layers, Some(heads)), |_| 0.25;
}

fn mamba3(heads: usize, half: usize, layers: usize, mimo_rank: Option<usize>) -> ModelConfig {
    ModelConfig::Mamba3(Mamba3Config {
        d_state: 4 * half.div_ceil(3),
        headdim: half,
        expand: 1,
        ..Mamba3Config::new(heads * half, layers, mimo_rank)
    })
}
