//! The shapes of Mamba-2 and Mamba-3.

use cwm_core::chess::label::LOGITS;
use serde::{Deserialize, Serialize};

use crate::config::{
    ConfigError, Initial, MAX_EXTENT, ModelConfig, Shape, Vocabulary, common, default_dropout,
    default_ff_mult, default_move_vocab, default_pad, default_start, in_range,
};

/// The shape of a Mamba-2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mamba2Config {
    /// Model width D.
    pub d_model: usize,
    /// Blocks.
    pub n_layers: usize,
    /// State width N. 128 if absent.
    #[serde(default = "default_d_state")]
    pub d_state: usize,
    /// Steps that the short convolution sees. 4 if absent.
    #[serde(default = "default_d_conv")]
    pub d_conv: usize,
    /// Channels of the mixer, in multiples of D. 2 if absent.
    #[serde(default = "default_expand")]
    pub expand: usize,
    /// Channels of a head P; divides those of the mixer. 64 if absent.
    #[serde(default = "default_headdim")]
    pub headdim: usize,
    /// Width inside the MLP, in multiples of D, rounded up to a multiple of 128. 4 if absent.
    #[serde(default = "default_ff_mult")]
    pub ff_mult: usize,
    /// Dropout of embeddings while training. 0.1 if absent.
    #[serde(default = "default_dropout")]
    pub dropout: f64,
    /// Tokens in the vocabulary. The benchmark's 20,482 if absent.
    #[serde(default = "default_move_vocab")]
    pub move_vocab: usize,
    /// The token that begins every game.
    #[serde(default = "default_start")]
    pub start_move_id: u16,
    /// The token that fills the steps behind the end of a game.
    #[serde(default = "default_pad")]
    pub pad_move_id: u16,
}

/// The shape of a Mamba-3.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mamba3Config {
    /// Model width D.
    pub d_model: usize,
    /// Blocks.
    pub n_layers: usize,
    /// State width N, a multiple of 4. 128 if absent.
    #[serde(default = "default_d_state")]
    pub d_state: usize,
    /// Channels of the mixer, in multiples of D. 2 if absent.
    #[serde(default = "default_expand")]
    pub expand: usize,
    /// Channels of a head P; divides those of the mixer. 64 if absent.
    #[serde(default = "default_headdim")]
    pub headdim: usize,
    /// Inputs a step R, with MIMO; SISO if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mimo_rank: Option<usize>,
    /// Width inside the MLP, in multiples of D, rounded up to a multiple of 128. 4 if absent.
    #[serde(default = "default_ff_mult")]
    pub ff_mult: usize,
    /// Dropout of embeddings while training. 0.1 if absent.
    #[serde(default = "default_dropout")]
    pub dropout: f64,
    /// Tokens in the vocabulary. The benchmark's 20,482 if absent.
    #[serde(default = "default_move_vocab")]
    pub move_vocab: usize,
    /// The token that begins every game.
    #[serde(default = "default_start")]
    pub start_move_id: u16,
    /// The token that fills the steps behind the end of a game.
    #[serde(default = "default_pad")]
    pub pad_move_id: u16,
}

fn default_d_state() -> usize {
    128
}
fn default_d_conv() -> usize {
    4
}
fn default_expand() -> usize {
    2
}
fn default_headdim() -> usize {
    64
}

/// The numbers that both families share, and what follows from them.
#[derive(Debug, Clone, Copy)]
struct Widths {
    d_model: usize,
    n_layers: usize,
    d_state: usize,
    expand: usize,
    headdim: usize,
    ff_mult: usize,
    move_vocab: usize,
}

impl Widths {
    fn inner(self) -> usize {
        self.expand * self.d_model
    }

    fn heads(self) -> usize {
        self.inner() / self.headdim
    }

    /// Checks what [`common`] leaves.
    fn validate(self) -> Result<(), ConfigError> {
        in_range("d_state", self.d_state, 1, 1 << 12)?;
        in_range("expand", self.expand, 1, 16)?;
        in_range("headdim", self.headdim, 1, MAX_EXTENT)?;
        in_range("ff_mult", self.ff_mult, 1, 64)?;
        if self.inner().is_multiple_of(self.headdim) {
            return Ok(());
        }
        let expected = format!("a divisor of `expand` times `d_model` = {}", self.inner());
        Err(ConfigError::OutOfRange { key: "headdim", value: self.headdim.to_string(), expected })
    }

    /// All parameters, given those of a mixer between its norm and its last projection.
    fn parameter_shapes(self, mixer: &[(&str, Vec<usize>)]) -> Vec<(String, Vec<usize>)> {
        let (d, f) = (self.d_model, (self.ff_mult * self.d_model).next_multiple_of(128));
        let mut shapes = vec![("embedding.weight".to_string(), vec![self.move_vocab, d])];
        for layer in 0..self.n_layers {
            let mut push = |name: &str, shape: &[usize]| {
                shapes.push((format!("layers.{layer}.{name}"), shape.to_vec()));
            };
            push("norm.weight", &[d]);
            for (name, shape) in mixer {
                push(&format!("mixer.{name}"), shape);
            }
            push("mixer.out_proj.weight", &[d, self.inner()]);
            push("norm2.weight", &[d]);
            push("mlp.fc1.weight", &[2 * f, d]);
            push("mlp.fc2.weight", &[d, f]);
        }
        shapes.push(("final_norm.weight".into(), vec![d]));
        shapes.push(("output_head.weight".into(), vec![LOGITS, d]));
        shapes.push(("output_head.bias".into(), vec![LOGITS]));
        shapes
    }

    /// The distributions that both families start with.
    fn initial(self, name: &str, shape: &[usize]) -> Option<Initial> {
        if name == "embedding.weight" {
            return Some(Initial::Normal(0.02));
        }
        if name == "output_head.bias" {
            return Some(Initial::Constant(0.0));
        }
        let (_, name) = name.strip_prefix("layers.")?.split_once('.')?;
        Some(match name {
            // What is added to the residual stream: less, the more is added.
            "mixer.out_proj.weight" | "mlp.fc2.weight" => {
                let bound = 1.0 / (shape[1] as f64).sqrt();
                Initial::Uniform(bound / (2.0 * self.n_layers as f64).sqrt())
            }
            "mixer.dt_bias" => Initial::Of(initial_dt_bias),
            "mixer.A_log" => Initial::Of(|u| (1.0 + 15.0 * u).ln()),
            "mixer.D" | "mixer.B_bias" | "mixer.C_bias" | "mixer.mimo_z" => Initial::Constant(1.0),
            "mixer.mimo_x" | "mixer.mimo_o" => Initial::Constant(1.0 / shape[1] as f32),
            _ => return None,
        })
    }
}

/// `softplus` of it is uniform between 0.001 and 0.1 on a logarithmic scale.
fn initial_dt_bias(u: f64) -> f64 {
    let (low, high) = (0.001_f64.ln(), 0.1_f64.ln());
    let dt = (low + u * (high - low)).exp().max(1e-4);
    dt + (-(-dt).exp_m1()).ln()
}

impl Mamba2Config {
    /// The benchmark's Mamba-2 of this size.
    pub fn new(d_model: usize, n_layers: usize) -> Self {
        Mamba2Config {
            d_model,
            n_layers,
            d_state: default_d_state(),
            d_conv: default_d_conv(),
            expand: default_expand(),
            headdim: default_headdim(),
            ff_mult: default_ff_mult(),
            dropout: default_dropout(),
            move_vocab: default_move_vocab(),
            start_move_id: default_start(),
            pad_move_id: default_pad(),
        }
    }

    /// Heads H.
    pub fn heads(&self) -> usize {
        self.widths().heads()
    }

    fn widths(&self) -> Widths {
        let Self { d_model, n_layers, d_state, expand, headdim, ff_mult, move_vocab, .. } = *self;
        Widths { d_model, n_layers, d_state, expand, headdim, ff_mult, move_vocab }
    }
}

impl Mamba3Config {
    /// The benchmark's Mamba-3 of this size: SISO, or MIMO of a rank.
    pub fn new(d_model: usize, n_layers: usize, mimo_rank: Option<usize>) -> Self {
        Mamba3Config {
            d_model,
            n_layers,
            d_state: default_d_state(),
            expand: default_expand(),
            headdim: default_headdim(),
            mimo_rank,
            ff_mult: default_ff_mult(),
            dropout: default_dropout(),
            move_vocab: default_move_vocab(),
            start_move_id: default_start(),
            pad_move_id: default_pad(),
        }
    }

    /// Heads H.
    pub fn heads(&self) -> usize {
        self.widths().heads()
    }

    /// Inputs a step R.
    pub fn rank(&self) -> usize {
        self.mimo_rank.unwrap_or(1)
    }

    fn widths(&self) -> Widths {
        let Self { d_model, n_layers, d_state, expand, headdim, ff_mult, move_vocab, .. } = *self;
        Widths { d_model, n_layers, d_state, expand, headdim, ff_mult, move_vocab }
    }
}

impl Shape for Mamba2Config {
    fn family(&self) -> &'static str {
        "mamba2"
    }

    fn d_model(&self) -> usize {
        self.d_model
    }

    fn n_layers(&self) -> usize {
        self.n_layers
    }

    fn vocabulary(&self) -> Vocabulary {
        let Self { move_vocab, start_move_id, pad_move_id, .. } = *self;
        Vocabulary { tokens: move_vocab, start: start_move_id, pad: pad_move_id }
    }

    fn embedding(&self) -> Option<&'static str> {
        Some("embedding.weight")
    }

    fn validate(&self) -> Result<(), ConfigError> {
        common(self, self.dropout)?;
        in_range("d_conv", self.d_conv, 1, 64)?;
        self.widths().validate()
    }

    fn parameter_shapes(&self) -> Vec<(String, Vec<usize>)> {
        let widths = self.widths();
        let (inner, heads) = (widths.inner(), widths.heads());
        let channels = inner + 2 * self.d_state;
        widths.parameter_shapes(&[
            ("dt_bias", vec![heads]),
            ("A_log", vec![heads]),
            ("D", vec![heads]),
            ("in_proj.weight", vec![inner + channels + heads, self.d_model]),
            ("conv1d.weight", vec![channels, 1, self.d_conv]),
            ("conv1d.bias", vec![channels]),
            ("norm.weight", vec![inner]),
        ])
    }

    fn initial(&self, name: &str, shape: &[usize]) -> Option<Initial> {
        self.widths().initial(name, shape)
    }

    fn without_dropout(&self) -> ModelConfig {
        ModelConfig::Mamba2(Self { dropout: 0.0, ..self.clone() })
    }

    fn clipped(&self, n_layers: usize) -> ModelConfig {
        ModelConfig::Mamba2(Self { n_layers: self.n_layers.min(n_layers), ..self.clone() })
    }
}

impl Shape for Mamba3Config {
    fn family(&self) -> &'static str {
        "mamba3"
    }

    fn variant(&self) -> Option<String> {
        self.mimo_rank.map(|rank| format!("mimo{rank}"))
    }

    fn d_model(&self) -> usize {
        self.d_model
    }

    fn n_layers(&self) -> usize {
        self.n_layers
    }

    fn vocabulary(&self) -> Vocabulary {
        let Self { move_vocab, start_move_id, pad_move_id, .. } = *self;
        Vocabulary { tokens: move_vocab, start: start_move_id, pad: pad_move_id }
    }

    fn embedding(&self) -> Option<&'static str> {
        Some("embedding.weight")
    }

    fn validate(&self) -> Result<(), ConfigError> {
        common(self, self.dropout)?;
        self.widths().validate()?;
        in_range("mimo_rank", self.rank(), 1, 64)?;
        if self.d_state.is_multiple_of(4) {
            return Ok(());
        }
        let (key, value) = ("d_state", self.d_state.to_string());
        Err(ConfigError::OutOfRange { key, value, expected: "a multiple of 4".into() })
    }

    fn parameter_shapes(&self) -> Vec<(String, Vec<usize>)> {
        let widths = self.widths();
        let (inner, heads, rank, n) = (widths.inner(), widths.heads(), self.rank(), self.d_state);
        let projected = 2 * inner + 2 * rank * n + 3 * heads + n / 4;
        let mut mixer = vec![
            ("dt_bias", vec![heads]),
            ("B_bias", vec![heads, rank, n]),
            ("C_bias", vec![heads, rank, n]),
        ];
        if self.mimo_rank.is_some() {
            for name in ["mimo_x", "mimo_z", "mimo_o"] {
                mixer.push((name, vec![heads, rank, self.headdim]));
            }
        }
        mixer.push(("D", vec![heads]));
        mixer.push(("in_proj.weight", vec![projected, self.d_model]));
        mixer.push(("B_norm.weight", vec![n]));
        mixer.push(("C_norm.weight", vec![n]));
        widths.parameter_shapes(&mixer)
    }

    fn initial(&self, name: &str, shape: &[usize]) -> Option<Initial> {
        self.widths().initial(name, shape)
    }

    fn without_dropout(&self) -> ModelConfig {
        ModelConfig::Mamba3(Self { dropout: 0.0, ..self.clone() })
    }

    fn clipped(&self, n_layers: usize) -> ModelConfig {
        ModelConfig::Mamba3(Self { n_layers: self.n_layers.min(n_layers), ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [(usize, usize); 4] = [(128, 1), (256, 2), (384, 4), (512, 6)];

    #[test]
    fn counts_equal_the_papers_table_4_and_those_of_mimo_the_references() {
        let mamba2 = |(d, l)| ModelConfig::Mamba2(Mamba2Config::new(d, l));
        let siso = |(d, l)| ModelConfig::Mamba3(Mamba3Config::new(d, l, None));
        let mimo = |(d, l)| ModelConfig::Mamba3(Mamba3Config::new(d, l, Some(4)));
        let check = |config: fn((usize, usize)) -> ModelConfig, counts: [usize; 4]| {
            for (size, count) in SIZES.into_iter().zip(counts) {
                let config = config(size);
                config.validate().unwrap();
                assert_eq!(config.parameter_count(), count, "{}", config.name());
            }
        };
        check(mamba2, [3_195_362, 8_230_534, 19_643_750, 40_648_822]);
        check(siso, [3_198_942, 8_250_998, 19_719_478, 40_826_902]);
        check(mimo, [3_303_390, 8_668_790, 20_972_854, 43_333_654]);
        assert_eq!(mimo(SIZES[0]).name(), "mamba3-mimo4 d128/l1");
    }

    #[test]
    fn bad_shapes_name_the_key() {
        let check2 = |change: fn(&mut Mamba2Config), key: &str| {
            let mut config = Mamba2Config::new(128, 1);
            change(&mut config);
            let error = ModelConfig::Mamba2(config).validate().unwrap_err();
            assert!(error.to_string().contains(key), "{error}");
        };
        check2(|c| c.d_model = 0, "`d_model`");
        check2(|c| c.headdim = 48, "`headdim`");
        check2(|c| c.headdim = 0, "`headdim`");
        check2(|c| c.d_conv = 0, "`d_conv`");
        check2(|c| c.d_state = 0, "`d_state`");
        check2(|c| c.expand = 0, "`expand`");
        check2(|c| c.ff_mult = 65, "`ff_mult`");
        check2(|c| c.dropout = -0.1, "`dropout`");
        let check3 = |change: fn(&mut Mamba3Config), key: &str| {
            let mut config = Mamba3Config::new(128, 1, None);
            change(&mut config);
            let error = ModelConfig::Mamba3(config).validate().unwrap_err();
            assert!(error.to_string().contains(key), "{error}");
        };
        check3(|c| c.d_state = 126, "`d_state`");
        check3(|c| c.mimo_rank = Some(0), "`mimo_rank`");
        check3(|c| c.n_layers = 0, "`n_layers`");
        check3(|c| c.pad_move_id = 20_482, "`pad_move_id`");
    }

    #[test]
    fn toml_has_defaults() {
        let size = "d_model = 128\nn_layers = 1\n";
        let config = ModelConfig::from_toml(&format!("family = \"mamba2\"\n{size}")).unwrap();
        assert_eq!(config, ModelConfig::Mamba2(Mamba2Config::new(128, 1)));
        let siso = ModelConfig::from_toml(&format!("family = \"mamba3\"\n{size}")).unwrap();
        assert_eq!(siso, ModelConfig::Mamba3(Mamba3Config::new(128, 1, None)));
        assert_eq!(ModelConfig::from_json(&siso.to_json()).unwrap(), siso);
        let mimo = format!("family = \"mamba3\"\n{size}mimo_rank = 4\n");
        let mimo = ModelConfig::from_toml(&mimo).unwrap();
        assert_eq!(mimo, ModelConfig::Mamba3(Mamba3Config::new(128, 1, Some(4))));
        assert_eq!(ModelConfig::from_json(&mimo.to_json()).unwrap(), mimo);
    }
}
