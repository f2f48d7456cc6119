//! Models of every family, in every form, against golden data of the PyTorch reference.
//!
//! A family joins in with a line in the call of `golden!` at the end, one for each folder of `fixtures/models`; its README
//! says how the folders are made.

use std::{collections::BTreeMap, fs, path::PathBuf};

use burn::tensor::Device;
use cwm_core::{
    chess::label::{LABELS, LOGITS, LabelGroup, logit_range},
    data::batch::Batch,
};
use cwm_models::{
    GatedDeltaNetConfig, Mamba2Config, Mamba3Config, Model, ModelConfig, NamedTensor, Parameters,
    SliceConfig, TransformerConfig,
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

/// A model of the golden data.
struct Golden {
    /// The folder in `fixtures/models`.
    folder: &'static str,
    /// The configuration of a width, a depth and a number of heads.
    sized: fn(usize, usize, usize) -> ModelConfig,
    /// The family's own keys, and the reference's for the same.
    keys: &'static [(&'static str, &'static str)],
}

impl Golden {
    fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.folder)
    }

    fn settings(&self) -> Value {
        json(&self.path("config.json"))
    }

    /// The golden model's configuration.
    fn config(&self) -> ModelConfig {
        let settings = self.settings();
        let number = |key: &str| settings[key].as_u64().unwrap() as usize;
        let sized = (self.sized)(number("d_model"), number("n_layers"), number("n_heads"));
        let mut config: Value = serde_json::from_str(&sized.to_json()).unwrap();
        let shared =
            ["dropout", "move_vocab", "start_move_id", "pad_move_id"].map(|key| (key, key));
        // Not every family has dropout.
        let shared = shared.iter().filter(|(key, _)| !config[key].is_null()).copied();
        for (key, theirs) in shared.collect::<Vec<_>>().iter().chain(self.keys) {
            assert!(!settings[theirs].is_null(), "{} has no `{theirs}`", self.folder);
            config[key] = settings[theirs].clone();
        }
        ModelConfig::from_json(&config.to_string()).unwrap()
    }

    /// The golden batch.
    fn batch(&self) -> Batch {
        let io = tensors(&self.path("io.safetensors"));
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

    /// The golden model in every form.
    fn models(&self) -> [(&'static str, Model); 3] {
        let weights = parameters(&self.path("weights.safetensors"));
        let model = Model::from_parameters(&self.config(), &weights, &Device::flex()).unwrap();
        let portable = model.clone().into_portable();
        // No game is as long as a multiple of 9.
        [
            ("fused", model),
            ("in chunks of 9", portable.clone().with_chunk_steps(9)),
            ("portable", portable),
        ]
    }

    fn trainer(&self, model: Model) -> Trainer {
        let settings = self.settings();
        let number = |key: &str| settings[key].as_f64().unwrap();
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
        Trainer::from_model(model, &optimizer, &schedule, 0).unwrap()
    }

    /// The head's input and all logits.
    fn check_outputs(&self) {
        let batch = self.batch();
        let golden = tensors(&self.path("outputs.safetensors"));
        let (hidden, logits) = (&golden["hidden"].1, &golden["logits"].1);
        let tokens: Vec<u16> = batch
            .tokens
            .chunks_exact(batch.steps)
            .zip(&batch.lengths)
            .flat_map(|(tokens, &length)| tokens[..length as usize].to_vec())
            .collect();
        for (form, model) in self.models() {
            let packed = model.pack(tokens.iter().copied(), batch.lengths.clone()).unwrap();
            let ours: Vec<f32> = model.hidden(&packed, None).into_data().try_into_vec().unwrap();
            let worst = max_difference(&ours, hidden);
            assert!(worst < 1e-4, "{form}: the head's input is off by {worst:e}");
            let ours: Vec<f32> = model.logits(&packed).into_data().try_into_vec().unwrap();
            for group in LabelGroup::ALL {
                let labels = group.labels();
                let range = logit_range(labels.start).start..logit_range(labels.end - 1).end;
                let mut worst = 0.0_f64;
                for (a, b) in ours.chunks_exact(LOGITS).zip(logits.chunks_exact(LOGITS)) {
                    worst = worst.max(max_difference(&a[range.clone()], &b[range.clone()]));
                }
                assert!(worst < 1e-4, "{form}: logits of {} are off by {worst:e}", group.name());
            }
        }
    }

    fn check_loss_and_gradients(&self) {
        let batch = self.batch();
        let golden_loss = tensors(&self.path("io.safetensors"))["loss"].1[0];
        let golden = tensors(&self.path("grads.safetensors"));
        for (form, model) in self.models() {
            let names = model.config().parameter_shapes();
            let (loss, gradients) = self.trainer(model).loss_and_gradients(&batch).unwrap();
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

    fn check_three_steps(&self) {
        let batch = self.batch();
        let golden = tensors(&self.path("after_steps.safetensors"));
        let steps = json(&self.path("steps.json"));
        for (form, model) in self.models() {
            let mut trainer = self.trainer(model);
            for step in steps["steps"].as_array().unwrap() {
                let report = trainer.step(&batch).unwrap();
                let number = |key: &str| step[key].as_f64().unwrap();
                assert!((report.loss - number("loss")).abs() < 5e-6, "{form}: {report:?}, {step}");
                let norm = number("grad_norm_preclip");
                assert!(
                    (report.grad_norm - norm).abs() < 1e-5 * norm,
                    "{form}: {report:?}, {step}"
                );
                assert!(
                    (report.lr - number("lr_used")).abs() < 1e-12,
                    "{form}: {report:?}, {step}"
                );
                assert!(!report.skipped_non_finite);
            }
            for (name, tensor) in trainer.model().named_parameters() {
                let worst = max_difference(&tensor.data, &golden[&name].1);
                assert!(worst < 5e-5, "{form}: {name} is off by {worst:e} after three steps");
            }
        }
    }

    fn check_names_and_shapes(&self) {
        let sizes = json(&self.path("shapes.json"));
        for (size, (d, l, h)) in [("d128", (128, 1, 2)), ("d512", (512, 6, 8))] {
            let ours = (self.sized)(d, l, h).parameter_shapes();
            let ours: BTreeMap<String, Vec<usize>> = ours.into_iter().collect();
            let golden: BTreeMap<String, Vec<usize>> =
                serde_json::from_value(sizes[size].clone()).unwrap();
            assert_eq!(ours, golden, "{size}");
        }
    }

    fn check_initial_statistics(&self) {
        let sizes = json(&self.path("init_stats.json"));
        for (size, (d, l, h)) in [("d128", (128, 1, 2)), ("d256", (256, 2, 4))] {
            let ours = initial_parameters(&(self.sized)(d, l, h), 0, &TokenRows::Full(20_482));
            let golden = sizes[size].as_object().unwrap();
            assert_eq!(golden.len(), ours.len());
            for (parameter, golden) in golden {
                let data: Vec<f64> = ours[parameter].data.iter().map(|&x| f64::from(x)).collect();
                check_statistics(&format!("{size} {parameter}"), &data, golden);
            }
        }
    }
}

/// Both are samples of one distribution: each strays by a standard deviation over the root of their number.
fn check_statistics(place: &str, ours: &[f64], golden: &Value) {
    let n = ours.len() as f64;
    let mean = ours.iter().sum::<f64>() / n;
    let std = (ours.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    let [golden_mean, golden_std, golden_min, golden_max] =
        ["mean", "std", "min", "max"].map(|key| golden[key].as_f64().unwrap());
    let slack = 8.0 * golden_std / n.sqrt();
    assert!((mean - golden_mean).abs() <= slack, "{place}: mean {mean}, not {golden_mean}");
    assert!((std - golden_std).abs() <= slack, "{place}: deviation {std}, not {golden_std}");
    if n < 16.0 {
        return;
    }
    // Ends of a uniform distribution are sharp, those of a normal one are not, least of all in small samples.
    let half = (golden_max - golden_min) / 2.0;
    let sharp = half < 2.0 * golden_std && n >= 256.0;
    let reach = if sharp { 0.1 } else { 0.3 + 6.0 / n.sqrt() };
    let slack = reach * half + 1e-12;
    let min = ours.iter().copied().fold(f64::MAX, f64::min);
    let max = ours.iter().copied().fold(f64::MIN, f64::max);
    assert!((min - golden_min).abs() <= slack, "{place}: smallest {min}, not {golden_min}");
    assert!((max - golden_max).abs() <= slack, "{place}: largest {max}, not {golden_max}");
}

fn max_difference(a: &[f32], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    // `f64::max` passes over NaN.
    let differences = a.iter().zip(b).map(|(&a, b)| (f64::from(a) - b).abs());
    differences.fold(0.0, |worst, d| if d > worst || d.is_nan() { d } else { worst })
}

fn relative_l2(a: &[f32], b: &[f64]) -> f64 {
    let difference: f64 = a.iter().zip(b).map(|(&a, b)| (f64::from(a) - b).powi(2)).sum();
    let norm: f64 = b.iter().map(|b| b * b).sum();
    (difference / norm.max(1e-30)).sqrt()
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

/// A module of tests for each model.
macro_rules! golden {
    ($($folder:ident: $sized:expr, $keys:expr;)*) => {
        $(mod $folder {
            use super::*;

            const GOLDEN: Golden =
                Golden { folder: stringify!($folder), sized: $sized, keys: &$keys };

            #[test]
            fn outputs_equal_the_references() {
                GOLDEN.check_outputs();
            }

            #[test]
            fn loss_and_gradients_equal_the_references() {
                GOLDEN.check_loss_and_gradients();
            }

            #[test]
            fn three_optimiser_steps_equal_the_references() {
                GOLDEN.check_three_steps();
            }

            #[test]
            fn names_and_shapes_are_the_references() {
                GOLDEN.check_names_and_shapes();
            }

            #[test]
            fn initial_statistics_are_the_references() {
                GOLDEN.check_initial_statistics();
            }
        })*
    };
}

golden! {
    transformer:
        |d, l, h| ModelConfig::Transformer(TransformerConfig::new(d, l, h)),
        [("n_heads", "n_heads"), ("ff_mult", "ff_mult")];
    slice_block:
        |d, l, _| ModelConfig::Slice(SliceConfig::new(d, l, 8)), SLICE_KEYS;
    slice_diagonal:
        |d, l, _| ModelConfig::Slice(SliceConfig::new(d, l, 1)), SLICE_KEYS;
    gated_deltanet_neg: |d, l, h| gated_deltanet(d, l, h, true), GATED_DELTANET_KEYS;
    gated_deltanet_pos: |d, l, h| gated_deltanet(d, l, h, false), GATED_DELTANET_KEYS;
    mamba2:
        |d, l, _| ModelConfig::Mamba2(Mamba2Config::new(d, l)),
        [MAMBA_KEYS[0], MAMBA_KEYS[1], MAMBA_KEYS[2], MAMBA_KEYS[3], ("d_conv", "mamba_d_conv")];
    mamba3_siso:
        |d, l, _| ModelConfig::Mamba3(Mamba3Config::new(d, l, None)), MAMBA_KEYS;
    mamba3_mimo:
        |d, l, _| ModelConfig::Mamba3(Mamba3Config::new(d, l, Some(4))),
        [MAMBA_KEYS[0], MAMBA_KEYS[1], MAMBA_KEYS[2], MAMBA_KEYS[3], ("mimo_rank", "mamba3_mimo_rank")];
}

fn gated_deltanet(d: usize, l: usize, h: usize, allow_neg_eigval: bool) -> ModelConfig {
    let config = GatedDeltaNetConfig::new(d, l, h);
    ModelConfig::GatedDeltaNet(GatedDeltaNetConfig { allow_neg_eigval, ..config })
}

const GATED_DELTANET_KEYS: [(&str, &str); 7] = [
    ("n_heads", "n_heads"),
    ("head_dim", "gated_deltanet_head_dim"),
    ("expand_v", "gated_deltanet_expand_v"),
    ("allow_neg_eigval", "gated_deltanet_allow_neg_eigval"),
    ("conv_size", "gated_deltanet_conv_size"),
    ("norm_eps", "gated_deltanet_norm_eps"),
    ("ff_mult", "ff_mult"),
];

const SLICE_KEYS: [(&str, &str); 4] = [
    ("block_size", "slice_block_size"),
    ("scale", "slice_scale"),
    ("init_std", "slice_init_std"),
    ("ff_mult", "ff_mult"),
];

const MAMBA_KEYS: [(&str, &str); 4] = [
    ("d_state", "mamba_d_state"),
    ("expand", "mamba_expand"),
    ("headdim", "mamba_headdim"),
    ("ff_mult", "ff_mult"),
];
