//! Small models of every family with random parameters, and what any two ways of computing their answers must share.
//!
//! A family joins in with a line in [`FAMILIES`].

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

/// A small vocabulary: 94 moves, START and PAD.
const VOCAB: usize = 96;
const START: u16 = 94;
const PAD: u16 = 95;

/// Every family and ablation.
pub static FAMILIES: [Family; 8] = [
    Family {
        name: "transformer",
        config: |heads, half, layers| {
            ModelConfig::Transformer(TransformerConfig::new(2 * half * heads, layers, heads))
        },
        noise: |_| 0.25,
    },
    // Blocks of 1 to 19 rows: those with loops of their own, and others.
    Family {
        name: "slice_block",
        config: |blocks, rows, layers| slice(2 * blocks * rows, rows, layers),
        noise: slice_noise,
    },
    Family {
        name: "slice_diagonal",
        config: |a, b, layers| slice(a * b, 1, layers),
        noise: slice_noise,
    },
    Family {
        name: "gated_deltanet_neg",
        config: |heads, key, layers| gated_deltanet(heads, key, layers, true),
        noise: gated_deltanet_noise,
    },
    Family {
        name: "gated_deltanet_pos",
        config: |heads, key, layers| gated_deltanet(heads, key, layers, false),
        noise: gated_deltanet_noise,
    },
    Family {
        name: "mamba2",
        config: |heads, half, layers| {
            ModelConfig::Mamba2(Mamba2Config {
                d_state: half + 2,
                headdim: half,
                expand: 3,
                d_conv: heads,
                ..Mamba2Config::new(heads * half, layers)
            })
        },
        noise: |_| 0.25,
    },
    Family {
        name: "mamba3_siso",
        config: |heads, half, layers| mamba3(heads, half, layers, None),
        noise: |_| 0.25,
    },
    // Ranks of 1 to 3.
    Family {
        name: "mamba3_mimo",
        config: |heads, half, layers| mamba3(2, half, layers, Some(heads)),
        noise: |_| 0.25,
    },
];

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

fn mamba3(heads: usize, half: usize, layers: usize, mimo_rank: Option<usize>) -> ModelConfig {
    ModelConfig::Mamba3(Mamba3Config {
        d_state: 4 * half.div_ceil(3),
        headdim: half,
        expand: 1,
        ..Mamba3Config::new(heads * half, layers, mimo_rank)
    })
}

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
#[derive(Debug)]
pub struct Family {
    /// The golden model of the same kind.
    pub name: &'static str,
    /// A configuration of some shape: two small numbers, each at least one, that the family makes of what it will, and layers.
    pub config: fn(usize, usize, usize) -> ModelConfig,
    /// How far each parameter strays from its start, by name.
    pub noise: fn(&str) -> f32,
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
    /// The family of a name.
    ///
    /// # Panics
    /// If there is none.
    pub fn of(name: &str) -> &'static Family {
        FAMILIES.iter().find(|family| family.name == name).expect("a family of this name")
    }

    /// A model whose every parameter matters: norms are not one, biases not zero.
    pub fn model(
        &self,
        (a, b): (usize, usize),
        layers: usize,
        dropout: f64,
        seed: u64,
        device: &Device,
    ) -> Model {
        let config = with(&(self.config)(a, b, layers), dropout);
        let mut model = Model::new(&config, seed, device).unwrap();
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
pub fn batch(lengths: &[u32], seed: u64) -> Batch {
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

/// All logits of a batch `[N, 1878]`.
pub fn logits(model: &Model, batch: &Batch) -> Vec<f32> {
    let rows = batch.tokens.chunks_exact(batch.steps).zip(&batch.lengths);
    let tokens = rows.flat_map(|(row, &length)| row[..length as usize].to_vec());
    let packed = model.pack(tokens, batch.lengths.clone()).unwrap();
    numbers(model.logits(&packed))
}

/// The numbers of a tensor.
pub fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

/// Largest difference, and norm of the difference relative to that of `b`.
pub fn distance(a: &[f32], b: &[f32]) -> (f64, f64) {
    assert_eq!(a.len(), b.len());
    let pairs = || a.iter().zip(b).map(|(&a, &b)| f64::from(a) - f64::from(b));
    let norm: f64 = b.iter().map(|&b| f64::from(b).powi(2)).sum();
    // `f64::max` passes over NaN.
    let worse = |worst: f64, d: f64| if d > worst || d.is_nan() { d } else { worst };
    let largest = pairs().map(f64::abs).fold(0.0, worse);
    (largest, (pairs().map(|d| d * d).sum::<f64>() / norm.max(1e-30)).sqrt())
}

fn gradients(model: &Model, batch: &Batch) -> (f64, Vec<Vec<f32>>) {
    let (optimizer, schedule) = (OptimizerConfig::default(), ScheduleConfig::default());
    let trainer = Trainer::from_model(model.clone(), &optimizer, &schedule, 3).unwrap();
    trainer.loss_and_gradients(batch).unwrap()
}

/// Own operations and Burn's give the same logits, loss and gradients.
///
/// # Panics
/// If logits differ by 1e-4, the loss by 5e-6, or gradients by as much and relatively by 1e-4.
pub fn check_forms(own: Model, lengths: &[u32], seed: u64) {
    let portable = own.clone().into_portable();
    let batch = batch(lengths, seed);

    let (largest, _) = distance(&logits(&own, &batch), &logits(&portable, &batch));
    assert!(largest < 1e-4, "logits are {largest:e} apart");

    let (own_loss, own_gradients) = gradients(&own, &batch);
    let (portable_loss, portable_gradients) = gradients(&portable, &batch);
    assert!(
        (own_loss - portable_loss).abs() < 5e-6 * portable_loss.max(1.0),
        "loss {own_loss} and {portable_loss}"
    );
    let shapes = own.config().parameter_shapes();
    assert_eq!(shapes.len(), own_gradients.len());
    for ((name, _), (a, b)) in shapes.iter().zip(own_gradients.iter().zip(&portable_gradients)) {
        let (largest, relative) = distance(a, b);
        assert!(
            largest < 5e-6 || relative < 1e-4,
            "gradients of {name} are {largest:e} apart, relatively {relative:e}"
        );
    }
}

/// Reading in chunks of every length gives what reading step by step in one pass gives.
///
/// # Panics
/// If logits differ by `tolerance`.
pub fn check_chunks(form: &str, model: Model, chunks: &[usize], tolerance: f64) {
    let batch = batch(&[1, 30, 131, 64], 5);
    let model = model.into_portable();
    let whole = logits(&model.clone().with_chunk_steps(1), &batch);
    let mut farthest = 0.0_f64;
    for &steps in chunks {
        let chunked = logits(&model.clone().with_chunk_steps(steps), &batch);
        let (largest, _) = distance(&chunked, &whole);
        assert!(largest < tolerance, "{form}: in chunks of {steps} logits are {largest:e} apart");
        farthest = farthest.max(largest);
    }
    println!("{form}: in chunks, logits are up to {farthest:.1e} apart");
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

/// Two games of 600 steps side by side, read move by move and at once; half-way the memory is forked, and the fork goes
/// astray.
///
/// # Panics
/// If logits or probabilities differ by 1e-3, or named classes where they do not tie within that.
pub fn check_steps(form: &str, model: &Model) {
    const STEPS: usize = 600;
    const TOLERANCE: f64 = 1e-3;
    const LOOK_STEPS: usize = 50;
    let batch = batch(&[STEPS as u32, STEPS as u32], 11);
    let whole = logits(model, &batch);
    let (weight, bias) = model.head();
    let mut memory = model.start(2);
    // Answers stay on the device for a while: every look at them makes a GPU stop.
    let mut unseen = Vec::new();
    let mut farthest = 0.0_f64;
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
        unseen.push(model.step(&mut memory, rows.into()));
        if unseen.len() < LOOK_STEPS {
            continue;
        }
        let hidden = Tensor::cat(std::mem::take(&mut unseen), 0);
        let stepped = numbers(Path::Portable.linear(hidden, weight.clone(), bias.clone()));
        for (i, stepped) in stepped.chunks_exact(LOGITS).enumerate() {
            let (branch, step) = (i % 2, step + 1 - LOOK_STEPS + i / 2);
            let whole = &whole[(branch * STEPS + step) * LOGITS..][..LOGITS];
            let place = format!("{form}, game {branch}, step {step}");
            farthest = farthest.max(check_answers(&place, stepped, whole, TOLERANCE));
        }
    }
    assert!(unseen.is_empty());
    println!("{form}: move by move, logits are up to {farthest:.1e} apart");
    assert_eq!(memory.steps(), STEPS);
}

/// Two answers `[.., 1878]` of one model; gives the largest difference of logits.
///
/// # Panics
/// If logits or probabilities differ by `tolerance`, or named classes where they do not tie within that.
pub fn check_answers(place: &str, a: &[f32], b: &[f32], tolerance: f64) -> f64 {
    let (farthest, _) = distance(a, b);
    assert!(farthest < tolerance, "{place}: logits are {farthest:e} apart");
    for (row, (a, b)) in a.chunks_exact(LOGITS).zip(b.chunks_exact(LOGITS)).enumerate() {
        let apart = probabilities(a).into_iter().zip(probabilities(b));
        let largest = apart.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(largest < tolerance, "{place}, row {row}: probabilities are {largest:e} apart");
        for label in 0..LABELS {
            let (a, _) = best(&a[logit_range(label)]);
            let (b, lead) = best(&b[logit_range(label)]);
            let tie = f64::from(lead) < tolerance;
            assert!(a == b || tie, "{place}, row {row}, label {label}: class {a} and {b}");
        }
    }
    farthest
}
