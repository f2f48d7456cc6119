//! The shape of a Gated DeltaNet (paper, section 3.2 and appendix B.2).

use cwm_core::chess::label::LOGITS;
use serde::{Deserialize, Serialize};

use crate::config::{
    ConfigError, Initial, MAX_EXTENT, ModelConfig, Shape, Vocabulary, common, default_ff_mult,
    default_move_vocab, default_pad, default_start, in_range, positive,
};

/// The shape of a Gated DeltaNet. The reference's has no dropout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatedDeltaNetConfig {
    /// Model width D.
    pub d_model: usize,
    /// Blocks.
    pub n_layers: usize,
    /// Heads H.
    pub n_heads: usize,
    /// Key width K of a head, whatever the model's width. 48 if absent.
    #[serde(default = "default_head_dim")]
    pub head_dim: usize,
    /// Value width V of a head, in multiples of K. 2 if absent.
    #[serde(default = "default_expand_v")]
    pub expand_v: f64,
    /// Whether transitions may have eigenvalues down to -1; without, they lie between 0 and 1. True if absent.
    #[serde(default = "default_allow_neg_eigval")]
    pub allow_neg_eigval: bool,
    /// Steps that a short convolution sees, its own included. 4 if absent.
    #[serde(default = "default_conv_size")]
    pub conv_size: usize,
    /// Two thirds of it is the width inside the MLP in multiples of D, before rounding up to a multiple of 256. 4 if absent.
    #[serde(default = "default_ff_mult")]
    pub ff_mult: usize,
    /// Added to the mean square in every norm. 1e-6 if absent.
    #[serde(default = "default_norm_eps")]
    pub norm_eps: f64,
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

fn default_head_dim() -> usize {
    48
}
fn default_expand_v() -> f64 {
    2.0
}
fn default_allow_neg_eigval() -> bool {
    true
}
fn default_conv_size() -> usize {
    4
}
fn default_norm_eps() -> f64 {
    1e-6
}

/// The MLP's width is a multiple of this.
const FF_MULTIPLE: usize = 256;

/// Standard deviation of every matrix at the start.
const INITIAL_DEVIATION: f64 = 0.02;

impl GatedDeltaNetConfig {
    /// The benchmark's Gated DeltaNet of this size, with negative eigenvalues.
    pub fn new(d_model: usize, n_layers: usize, n_heads: usize) -> Self {
        GatedDeltaNetConfig {
            d_model,
            n_layers,
            n_heads,
            head_dim: default_head_dim(),
            expand_v: default_expand_v(),
            allow_neg_eigval: default_allow_neg_eigval(),
            conv_size: default_conv_size(),
            ff_mult: default_ff_mult(),
            norm_eps: default_norm_eps(),
            move_vocab: default_move_vocab(),
            start_move_id: default_start(),
            pad_move_id: default_pad(),
        }
    }

    /// Value width V of a head.
    pub fn value_width(&self) -> usize {
        (self.head_dim as f64 * self.expand_v) as usize
    }

    /// Width inside the MLP (F).
    pub fn ff_width(&self) -> usize {
        (self.d_model * self.ff_mult * 2 / 3).next_multiple_of(FF_MULTIPLE)
    }

    /// What the strength of a correction, a number between 0 and 1, is multiplied by.
    pub(crate) fn beta_scale(&self) -> f32 {
        if self.allow_neg_eigval { 2.0 } else { 1.0 }
    }
}

impl Shape for GatedDeltaNetConfig {
    fn family(&self) -> &'static str {
        "gated_deltanet"
    }

    fn variant(&self) -> Option<String> {
        (!self.allow_neg_eigval).then(|| "positive".to_string())
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
        Some("backbone.embeddings.weight")
    }

    fn validate(&self) -> Result<(), ConfigError> {
        common(self, 0.0)?;
        in_range("n_heads", self.n_heads, 1, 4096)?;
        in_range("head_dim", self.head_dim, 1, 4096)?;
        in_range("conv_size", self.conv_size, 2, 64)?;
        in_range("ff_mult", self.ff_mult, 1, 64)?;
        positive("norm_eps", self.norm_eps)?;
        positive("expand_v", self.expand_v)?;
        let value_width = self.head_dim as f64 * self.expand_v;
        if value_width.fract() != 0.0 || !(1.0..=4096.0).contains(&value_width) {
            return Err(ConfigError::OutOfRange {
                key: "expand_v",
                value: self.expand_v.to_string(),
                expected: format!(
                    "a factor that makes of `head_dim` = {} a whole number from 1 to 4096",
                    self.head_dim
                ),
            });
        }
        let width = self.n_heads * self.head_dim.max(self.value_width());
        if width > MAX_EXTENT {
            return Err(ConfigError::OutOfRange {
                key: "n_heads",
                value: self.n_heads.to_string(),
                expected: format!("heads of together at most {MAX_EXTENT} channels"),
            });
        }
        Ok(())
    }

    fn parameter_shapes(&self) -> Vec<(String, Vec<usize>)> {
        let (d, f, heads, taps) = (self.d_model, self.ff_width(), self.n_heads, self.conv_size);
        let (key, value) = (heads * self.head_dim, heads * self.value_width());
        let mut shapes = vec![("backbone.embeddings.weight".to_string(), vec![self.move_vocab, d])];
        for layer in 0..self.n_layers {
            let mut push = |name: &str, shape: &[usize]| {
                shapes.push((format!("backbone.layers.{layer}.{name}"), shape.to_vec()));
            };
            push("attn_norm.weight", &[d]);
            push("attn.A_log", &[heads]);
            push("attn.dt_bias", &[heads]);
            push("attn.q_proj.weight", &[key, d]);
            push("attn.k_proj.weight", &[key, d]);
            push("attn.v_proj.weight", &[value, d]);
            push("attn.a_proj.weight", &[heads, d]);
            push("attn.b_proj.weight", &[heads, d]);
            push("attn.q_conv1d.weight", &[key, 1, taps]);
            push("attn.k_conv1d.weight", &[key, 1, taps]);
            push("attn.v_conv1d.weight", &[value, 1, taps]);
            push("attn.g_proj.weight", &[value, d]);
            push("attn.o_norm.weight", &[self.value_width()]);
            push("attn.o_proj.weight", &[d, value]);
            push("mlp_norm.weight", &[d]);
            push("mlp.gate_proj.weight", &[f, d]);
            push("mlp.up_proj.weight", &[f, d]);
            push("mlp.down_proj.weight", &[d, f]);
        }
        shapes.push(("backbone.norm.weight".into(), vec![d]));
        shapes.push(("output_head.weight".into(), vec![LOGITS, d]));
        shapes.push(("output_head.bias".into(), vec![LOGITS]));
        shapes
    }

    fn initial(&self, name: &str, _: &[usize]) -> Option<Initial> {
        Some(match name {
            _ if name.ends_with("A_log") => Initial::Of(initial_a_log),
            _ if name.ends_with("dt_bias") => Initial::Of(initial_dt_bias),
            _ if name.ends_with("bias") => Initial::Constant(0.0),
            _ if name.contains("norm") => Initial::Constant(1.0),
            _ => Initial::Normal(INITIAL_DEVIATION),
        })
    }

    fn no_decay(&self) -> &'static [&'static str] {
        &[".A_log", ".dt_bias"]
    }

    fn without_dropout(&self) -> ModelConfig {
        ModelConfig::GatedDeltaNet(self.clone())
    }

    fn clipped(&self, n_layers: usize) -> ModelConfig {
        ModelConfig::GatedDeltaNet(Self { n_layers: self.n_layers.min(n_layers), ..self.clone() })
    }
}

/// Decay rates start uniform between 0 and 16.
fn initial_a_log(uniform: f64) -> f64 {
    (16.0 * uniform).max(f64::from(f32::MIN_POSITIVE)).ln()
}

/// Time steps start between 0.001 and 0.1, their logarithms uniform; the bias is what softplus makes one of.
fn initial_dt_bias(uniform: f64) -> f64 {
    let (low, high) = (0.001_f64.ln(), 0.1_f64.ln());
    let step = (low + uniform * (high - low)).exp().max(1e-4);
    step + (-(-step).exp_m1()).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_equal_the_papers_table_4() {
        for (d, l, h, f, count) in [
            (128, 1, 2, 512, 3_161_402),
            (256, 2, 4, 768, 7_703_846),
            (384, 4, 6, 1024, 16_886_406),
            (512, 6, 8, 1536, 35_136_502),
        ] {
            for allow_neg_eigval in [true, false] {
                let config =
                    GatedDeltaNetConfig { allow_neg_eigval, ..GatedDeltaNetConfig::new(d, l, h) };
                assert_eq!(config.ff_width(), f);
                let config = ModelConfig::GatedDeltaNet(config);
                config.validate().unwrap();
                assert_eq!(config.parameter_count(), count, "{}", config.size());
            }
        }
    }

    #[test]
    fn bad_shapes_name_the_key() {
        let check = |change: fn(&mut GatedDeltaNetConfig), key: &str| {
            let mut config = GatedDeltaNetConfig::new(128, 1, 2);
            change(&mut config);
            let error = ModelConfig::GatedDeltaNet(config).validate().unwrap_err();
            assert!(error.to_string().contains(key), "{error}");
        };
        check(|c| c.d_model = 0, "`d_model`");
        check(|c| c.n_heads = 0, "`n_heads`");
        check(|c| c.n_heads = 4096, "`n_heads`");
        check(|c| c.head_dim = 0, "`head_dim`");
        check(|c| c.expand_v = 1.99, "`expand_v`");
        check(|c| c.expand_v = f64::NAN, "`expand_v`");
        check(|c| c.expand_v = 1e300, "`expand_v`");
        check(|c| c.conv_size = 1, "`conv_size`");
        check(|c| c.norm_eps = 0.0, "`norm_eps`");
        check(|c| c.pad_move_id = 20_482, "`pad_move_id`");
    }

    #[test]
    fn gates_start_where_the_references_do() {
        let softplus = |x: f64| x.exp().ln_1p();
        for (uniform, step) in [(0.0, 0.001), (0.5, 0.01), (1.0, 0.1)] {
            assert!((softplus(initial_dt_bias(uniform)) / step - 1.0).abs() < 1e-9);
        }
        assert!((initial_a_log(0.5) - 8.0_f64.ln()).abs() < 1e-12);
        assert!(initial_a_log(0.0).is_finite());
    }

    #[test]
    fn names_tell_the_ablation() {
        let mut config = GatedDeltaNetConfig::new(128, 1, 2);
        assert_eq!(ModelConfig::GatedDeltaNet(config.clone()).variant(), "gated_deltanet");
        config.allow_neg_eigval = false;
        assert_eq!(ModelConfig::GatedDeltaNet(config).variant(), "gated_deltanet-positive");
        let toml = "family = \"gated_deltanet\"\nd_model = 128\nn_layers = 1\nn_heads = 2\n";
        let config = ModelConfig::from_toml(toml).unwrap();
        assert_eq!(config, ModelConfig::GatedDeltaNet(GatedDeltaNetConfig::new(128, 1, 2)));
        assert_eq!(ModelConfig::from_json(&config.to_json()).unwrap(), config);
    }
}
