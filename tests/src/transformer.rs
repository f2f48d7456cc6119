//! The Transformer against golden data of the PyTorch reference, and its fused form against its portable one.

use std::{collections::BTreeMap, fs, path::PathBuf};

use burn::tensor::Device;
use cwm_core::{
    chess::label::{LABELS, LOGITS, LabelGroup, logit_range},
    data::batch::Batch,
};
use cwm_models::{
    Model, ModelConfig, NamedTensor, Parameters, TransformerConfig,
    init::initial_parameters,
    train::{OptimizerConfig, ScheduleConfig, ScheduleKind, Trainer},
    vocabulary::TokenRows,
};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/models").join(name)
}

fn json(name: &str) -> Value {
    serde_json::from_slice(&fs::read(fixture(name)).unwrap()).unwrap()
}

/// All tensors of a file, whatever their type, as `f64`.
fn tensors(name: &str) -> BTreeMap<String, (Vec<usize>, Vec<f64>)> {
    let bytes = fs::read(fixture(name)).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let tensors = file.iter().map(|(name, view)| {
        let data = view.data();
        let numbers = match view.dtype() {
            Dtype::F32 => {
                data.as_chunks().0.iter().map(|&b| f64::from(f32::from_le_bytes(b))).collect()
            }
            Dtype::I64 => {
                data.as_chunks().0.iter().map(|&b| i64::from_le_bytes(b) as f64).collect()
            }
            Dtype::BOOL => data.iter().map(|&b| f64::from(b)).collect(),
            other => panic!("{name} has type {other:?}"),
        };
        (name.to_string(), (view.shape().to_vec(), numbers))
    });
    tensors.collect()
}

fn parameters(name: &str) -> Parameters {
    let named = tensors(name).into_iter().map(|(name, (shape, data))| {
        (name, NamedTensor { shape, data: data.iter().map(|&x| x as f32).collect() })
    });
    named.collect()
}

/// The golden model's configuration.
fn config() -> ModelConfig {
    let json = json("transformer/config.json");
    let number = |key: &str| json[key].as_u64().unwrap() as usize;
    ModelConfig::Transformer(TransformerConfig {
        d_model: number("d_model"),
        n_layers: number("n_layers"),
        n_heads: number("n_heads"),
        ff_mult: number("ff_mult"),
        dropout: json["dropout"].as_f64().unwrap(),
        move_vocab: number("move_vocab"),
        start_move_id: number("start_move_id") as u16,
        pad_move_id: number("pad_move_id") as u16,
    })
}

/// The golden batch.
fn batch() -> Batch {
    let io = tensors("transformer/io.safetensors");
    let (shape, moves) = &io["moves"];
    let lengths: Vec<u32> = io["lengths"].1.iter().map(|&x| x as u32).collect();
    let states = &io["states"].1;
    let mut labels = Vec::new();
    for (game, &length) in lengths.iter().enumerate() {
        let first = game * shape[1] * LABELS;
        labels.extend(states[first..first + length as usize * LABELS].iter().map(|&x| x as u8));
    }
    Batch {
        games: shape[0],
        steps: shape[1],
        tokens: moves.iter().map(|&x| x as u16).collect(),
        lengths,
        labels,
    }
}

/// The golden logits of valid steps, `[N, 1878]`.
fn golden_logits(batch: &Batch) -> Vec<f64> {
    let mut files = tensors("transformer/logits_board.safetensors");
    files.extend(tensors("transformer/logits_counters.safetensors"));
    let groups = ["pieces", "side", "castle", "ep_file", "ep_rank", "halfmove", "fullmove"];
    let mut logits = Vec::new();
    for (game, &length) in batch.lengths.iter().enumerate() {
        for step in 0..length as usize {
            for group in groups {
                let (shape, data) = &files[group];
                let width: usize = shape[2..].iter().product();
                let first = (game * batch.steps + step) * width;
                logits.extend_from_slice(&data[first..first + width]);
            }
        }
    }
    logits
}

/// The golden model in both forms.
fn models() -> [(&'static str, Model); 2] {
    let weights = parameters("transformer/weights.safetensors");
    let model = Model::from_parameters(&config(), &weights, &Device::flex()).unwrap();
    [("fused", model.clone()), ("portable", model.into_portable())]
}

fn optimizer() -> (OptimizerConfig, ScheduleConfig) {
    let json = json("transformer/config.json");
    let number = |key: &str| json[key].as_f64().unwrap();
    let optimizer = OptimizerConfig {
        lr: number("lr"),
        beta2: number("beta2"),
        weight_decay: number("weight_decay"),
        grad_clip: number("grad_clip"),
        ..OptimizerConfig::default()
    };
    let schedule = ScheduleConfig {
        kind: ScheduleKind::Cosine,
        warmup_steps: number("lr_warmup_steps") as u64,
        decay_steps: number("lr_decay_steps") as u64,
        floor_ratio: number("lr_min_ratio"),
    };
    (optimizer, schedule)
}

fn trainer(model: Model) -> Trainer {
    let (optimizer, schedule) = optimizer();
    Trainer::from_model(model, &optimizer, &schedule, 0).unwrap()
}

fn max_difference(a: &[f32], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(&a, b)| (f64::from(a) - b).abs()).fold(0.0, f64::max)
}

fn relative_l2(a: &[f32], b: &[f64]) -> f64 {
    let difference: f64 = a.iter().zip(b).map(|(&a, b)| (f64::from(a) - b).powi(2)).sum();
    let norm: f64 = b.iter().map(|b| b * b).sum();
    (difference / norm.max(1e-30)).sqrt()
}

#[test]
fn logits_equal_the_references() {
    let batch = batch();
    let golden = golden_logits(&batch);
    let tokens: Vec<u16> = batch
        .tokens
        .chunks_exact(batch.steps)
        .zip(&batch.lengths)
        .flat_map(|(tokens, &length)| tokens[..length as usize].to_vec())
        .collect();
    for (name, model) in models() {
        let packed = model.pack(tokens.iter().copied(), batch.lengths.clone()).unwrap();
        let logits: Vec<f32> = model.logits(&packed).into_data().try_into_vec().unwrap();
        for group in LabelGroup::ALL {
            let labels = group.labels();
            let range = logit_range(labels.start).start..logit_range(labels.end - 1).end;
            let mut worst = 0.0_f64;
            for (a, b) in logits.chunks_exact(LOGITS).zip(golden.chunks_exact(LOGITS)) {
                worst = worst.max(max_difference(&a[range.clone()], &b[range.clone()]));
            }
            assert!(worst < 1e-4, "{name}: logits of {} are off by {worst:e}", group.name());
        }
    }
}

#[test]
fn loss_and_gradients_equal_the_references() {
    let batch = batch();
    let golden_loss = tensors("transformer/io.safetensors")["loss"].1[0];
    let golden = tensors("transformer/grads.safetensors");
    for (form, model) in models() {
        let names = model.config().parameter_shapes();
        let (loss, gradients) = trainer(model).loss_and_gradients(&batch).unwrap();
        assert!((loss - golden_loss).abs() < 5e-6, "{form}: loss {loss} is not {golden_loss}");
        for ((name, _), gradient) in names.iter().zip(&gradients) {
            let golden = &golden[name].1;
            let (absolute, relative) =
                (max_difference(gradient, golden), relative_l2(gradient, golden));
            assert!(
                absolute < 5e-6 && relative < 1e-4,
                "{form}: gradient of {name} is off by {absolute:e}, relatively {relative:e}"
            );
        }
    }
}

#[test]
fn three_optimiser_steps_equal_the_references() {
    let batch = batch();
    let golden = tensors("transformer/after_steps.safetensors");
    let steps = json("transformer/steps.json");
    for (form, model) in models() {
        let mut trainer = trainer(model);
        for step in steps["steps"].as_array().unwrap() {
            let report = trainer.step(&batch).unwrap();
            let number = |key: &str| step[key].as_f64().unwrap();
            assert!((report.loss - number("loss")).abs() < 5e-6, "{form}: {report:?}, {step}");
            let norm = number("grad_norm_preclip");
            assert!((report.grad_norm - norm).abs() < 1e-5 * norm, "{form}: {report:?}, {step}");
            assert!((report.lr - number("lr_used")).abs() < 1e-12, "{form}: {report:?}, {step}");
            assert!(!report.skipped_non_finite);
        }
        for (name, tensor) in trainer.model().named_parameters() {
            let worst = max_difference(&tensor.data, &golden[&name].1);
            assert!(worst < 5e-5, "{form}: {name} is off by {worst:e} after three steps");
        }
    }
}

#[test]
fn schedules_equal_the_references() {
    let json = json("lr_schedules.json");
    let base = json["base_lr"].as_f64().unwrap();
    for (name, rates) in json["lr_used_by_step_1_to_14"].as_object().unwrap() {
        // Names are like `cosine_w2_d10`.
        let parts: Vec<&str> = name.split('_').collect();
        let number = |part: &str| part[1..].parse().unwrap();
        let schedule = ScheduleConfig {
            kind: if parts[0] == "linear" { ScheduleKind::Linear } else { ScheduleKind::Cosine },
            warmup_steps: number(parts[1]),
            decay_steps: number(parts[2]),
            floor_ratio: rates[13].as_f64().unwrap() / base,
        };
        for (done, rate) in rates.as_array().unwrap().iter().enumerate() {
            let ours = base * schedule.factor(done as u64);
            assert!((ours - rate.as_f64().unwrap()).abs() < 1e-15, "{name} step {}", done + 1);
        }
    }
}

#[test]
fn names_and_shapes_are_the_references() {
    for (name, shapes) in json("transformer/shapes.json").as_object().unwrap() {
        let (d, l, h) = if name.ends_with("d128") { (128, 1, 2) } else { (512, 6, 8) };
        let ours = ModelConfig::Transformer(TransformerConfig::new(d, l, h)).parameter_shapes();
        let ours: BTreeMap<String, Vec<usize>> = ours.into_iter().collect();
        let golden: BTreeMap<String, Vec<usize>> = serde_json::from_value(shapes.clone()).unwrap();
        assert_eq!(ours, golden, "{name}");
    }
}

#[test]
fn initial_statistics_are_the_references() {
    for (name, golden) in json("transformer/init_stats.json").as_object().unwrap() {
        let (d, l, h) = if name.ends_with("d128") { (128, 1, 2) } else { (256, 2, 4) };
        let config = ModelConfig::Transformer(TransformerConfig::new(d, l, h));
        let ours = initial_parameters(&config, 0, &TokenRows::Full(20_482));
        for (parameter, golden) in golden.as_object().unwrap() {
            let data: Vec<f64> = ours[parameter].data.iter().map(|&x| f64::from(x)).collect();
            let n = data.len() as f64;
            let mean = data.iter().sum::<f64>() / n;
            let std = (data.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
            let [golden_mean, golden_std, golden_max] =
                ["mean", "std", "max"].map(|key| golden[key].as_f64().unwrap());
            // Both are samples: each strays by a standard deviation over the root of n.
            let slack = 8.0 * golden_std / n.sqrt();
            assert!((mean - golden_mean).abs() <= slack, "{name} {parameter}: mean {mean}");
            assert!((std - golden_std).abs() <= slack, "{name} {parameter}: deviation {std}");
            let max = data.iter().copied().fold(f64::MIN, f64::max);
            let bound = if parameter == "tok_emb.weight" { 1.2 } else { 1.1 };
            assert!(
                max <= golden_max * bound && max >= golden_max / bound,
                "{name} {parameter}: {max}"
            );
        }
    }
}
