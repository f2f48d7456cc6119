//! The golden data of the PyTorch reference: its models, what they were given and what they gave.
//!
//! A family joins in with a line in [`GOLDEN`], one for each folder of `fixtures/models`; its README says how the folders
//! are made.

use std::{collections::BTreeMap, fs, path::PathBuf};

use burn::tensor::{Device, Tensor};
use cwm_core::{
    chess::label::{LABELS, LOGITS, LabelGroup, logit_range},
    data::batch::Batch,
};
use cwm_models::{
    Activation, GatedDeltaNetConfig, Mamba2Config, Mamba3Config, Model, ModelConfig, NamedTensor,
    Parameters, SliceConfig, TransformerConfig,
    train::{OptimizerConfig, ScheduleConfig, ScheduleKind, Trainer},
};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

use crate::families::numbers;

/// Every golden model.
pub static GOLDEN: [Golden; 8] = [
    Golden {
        folder: "transformer",
        sized: |d, l, h| ModelConfig::Transformer(TransformerConfig::new(d, l, h)),
        keys: &[("n_heads", "n_heads"), ("ff_mult", "ff_mult")],
    },
    Golden {
        folder: "slice_block",
        sized: |d, l, _| ModelConfig::Slice(SliceConfig::new(d, l, 8)),
        keys: &SLICE_KEYS,
    },
    Golden {
        folder: "slice_diagonal",
        sized: |d, l, _| ModelConfig::Slice(SliceConfig::new(d, l, 1)),
        keys: &SLICE_KEYS,
    },
    Golden {
        folder: "gated_deltanet_neg",
        sized: |d, l, h| gated_deltanet(d, l, h, true),
        keys: &GATED_DELTANET_KEYS,
    },
    Golden {
        folder: "gated_deltanet_pos",
        sized: |d, l, h| gated_deltanet(d, l, h, false),
        keys: &GATED_DELTANET_KEYS,
    },
    Golden {
        folder: "mamba2",
        sized: |d, l, _| ModelConfig::Mamba2(Mamba2Config::new(d, l)),
        keys: &[
            MAMBA_KEYS[0],
            MAMBA_KEYS[1],
            MAMBA_KEYS[2],
            MAMBA_KEYS[3],
            ("d_conv", "mamba_d_conv"),
        ],
    },
    Golden {
        folder: "mamba3_siso",
        sized: |d, l, _| ModelConfig::Mamba3(Mamba3Config::new(d, l, None)),
        keys: &MAMBA_KEYS,
    },
    Golden {
        folder: "mamba3_mimo",
        sized: |d, l, _| ModelConfig::Mamba3(Mamba3Config::new(d, l, Some(4))),
        keys: &[
            MAMBA_KEYS[0],
            MAMBA_KEYS[1],
            MAMBA_KEYS[2],
            MAMBA_KEYS[3],
            ("mimo_rank", "mamba3_mimo_rank"),
        ],
    },
];

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

/// A file of `fixtures/models`.
pub fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/models").join(name)
}

/// A JSON file of `fixtures/models`.
pub fn json(name: &str) -> Value {
    serde_json::from_slice(&fs::read(fixture(name)).unwrap()).unwrap()
}

/// All tensors of a file, whatever their type, as `f64`.
pub fn tensors(name: &str) -> BTreeMap<String, (Vec<usize>, Vec<f64>)> {
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

/// All tensors of a file as parameters.
pub fn parameters(name: &str) -> Parameters {
    let named = tensors(name).into_iter().map(|(name, (shape, data))| {
        (name, NamedTensor { shape, data: data.iter().map(|&x| x as f32).collect() })
    });
    named.collect()
}

/// A model of the golden data.
#[derive(Debug)]
pub struct Golden {
    /// The folder in `fixtures/models`.
    pub folder: &'static str,
    /// The configuration of a width, a depth and a number of heads.
    pub sized: fn(usize, usize, usize) -> ModelConfig,
    /// The family's own keys, and the reference's for the same.
    keys: &'static [(&'static str, &'static str)],
}

impl Golden {
    /// The golden model of a folder.
    ///
    /// # Panics
    /// If there is none.
    pub fn of(folder: &str) -> &'static Golden {
        GOLDEN.iter().find(|golden| golden.folder == folder).expect("a folder of golden data")
    }

    /// A file of the folder.
    pub fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.folder)
    }

    /// The reference's settings.
    pub fn settings(&self) -> Value {
        json(&self.path("config.json"))
    }

    /// The golden model's configuration.
    pub fn config(&self) -> ModelConfig {
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
    pub fn batch(&self) -> Batch {
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

    /// The golden model on a device.
    pub fn model(&self, device: &Device) -> Model {
        let weights = parameters(&self.path("weights.safetensors"));
        Model::from_parameters(&self.config(), &weights, device).unwrap()
    }

    /// A trainer with the golden optimiser and schedule.
    pub fn trainer(&self, model: Model) -> Trainer {
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

    /// Tokens of the golden batch, packed.
    fn tokens(&self) -> Vec<u16> {
        let batch = self.batch();
        let games = batch.tokens.chunks_exact(batch.steps).zip(&batch.lengths);
        games.flat_map(|(tokens, &length)| tokens[..length as usize].to_vec()).collect()
    }

    /// What flows between the layers, the head's input and all logits of `model`, in the form called `form`.
    ///
    /// # Panics
    /// If a number is off by `tolerance`.
    pub fn check_outputs(&self, form: &str, model: &Model, tolerance: f64) {
        let golden = tensors(&self.path("outputs.safetensors"));
        let packed = model.pack(self.tokens(), self.batch().lengths).unwrap();
        let check = |what: &str, ours: Tensor<2>, golden: &[f64]| {
            let worst = max_difference(&numbers(ours), golden);
            assert!(worst < tolerance, "{form}: {what} is off by {worst:e}");
        };
        let activations = model.activations(&packed);
        assert_eq!(activations.len() + 2, golden.len(), "golden tensors that no layer gives");
        for Activation { layer, place, values } in activations {
            let name = format!("layers.{layer}.{}", place.name());
            check(&name, values, &golden[&name].1);
        }
        check("the head's input", model.hidden(&packed, None), &golden["hidden"].1);
        let ours = numbers(model.logits(&packed));
        for group in LabelGroup::ALL {
            let labels = group.labels();
            let range = logit_range(labels.start).start..logit_range(labels.end - 1).end;
            let rows = ours.chunks_exact(LOGITS).zip(golden["logits"].1.chunks_exact(LOGITS));
            let worst = rows
                .map(|(a, b)| max_difference(&a[range.clone()], &b[range.clone()]))
                .fold(0.0, worse);
            assert!(worst < tolerance, "{form}: logits of {} are off by {worst:e}", group.name());
        }
    }

    /// Loss and gradients of `model`, in the form called `form`.
    ///
    /// # Panics
    /// If the loss is off by `of_loss`, or a gradient by `absolute` or, in norm, relatively by `relative`.
    pub fn check_gradients(
        &self,
        form: &str,
        model: Model,
        of_loss: f64,
        (absolute, relative): (f64, f64),
    ) {
        let golden_loss = tensors(&self.path("io.safetensors"))["loss"].1[0];
        let golden = tensors(&self.path("grads.safetensors"));
        let names = model.config().parameter_shapes();
        let (loss, gradients) = self.trainer(model).loss_and_gradients(&self.batch()).unwrap();
        let off = (loss - golden_loss).abs();
        assert!(off < of_loss, "{form}: loss {loss} is not {golden_loss}");
        for ((name, _), gradient) in names.iter().zip(&gradients) {
            let golden = &golden[name].1;
            let worst = max_difference(gradient, golden);
            let distance = relative_l2(gradient, golden);
            assert!(
                worst < absolute && distance < relative,
                "{form}: gradient of {name} is off by {worst:e}, relatively {distance:e}"
            );
        }
    }
}

/// The larger; not a number if one is not.
fn worse(a: f64, b: f64) -> f64 {
    // `f64::max` passes over NaN.
    if b > a || b.is_nan() { b } else { a }
}

/// The largest difference; not a number if one is not.
pub fn max_difference(a: &[f32], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(&a, b)| (f64::from(a) - b).abs()).fold(0.0, worse)
}

/// The norm of the difference, relative to that of `b`.
pub fn relative_l2(a: &[f32], b: &[f64]) -> f64 {
    let difference: f64 = a.iter().zip(b).map(|(&a, b)| (f64::from(a) - b).powi(2)).sum();
    let norm: f64 = b.iter().map(|b| b * b).sum();
    (difference / norm.max(1e-30)).sqrt()
}
