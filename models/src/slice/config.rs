//! The shape of a SLiCE.

use cwm_core::chess::label::LOGITS;
use serde::{Deserialize, Serialize};

use crate::config::{
    ConfigError, Initial, MAX_EXTENT, ModelConfig, Shape, Vocabulary, common, default_dropout,
    default_ff_mult, default_move_vocab, default_pad, default_start, in_range, positive,
};

/// The shape of a SLiCE.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SliceConfig {
    /// Model width D.
    pub d_model: usize,
    /// Layers.
    pub n_layers: usize,
    /// Rows and columns of a block of the transition; divides D. 8 if absent; 1 is the diagonal ablation.
    #[serde(default = "default_block_size")]
    pub block_size: usize,
    /// What increments are multiplied by. 0.1 if absent.
    #[serde(default = "default_tenth")]
    pub scale: f64,
    /// Standard deviation of the recurrence's initial weights; those of A are divided by the root of `block_size`.
    /// 0.1 if absent.
    #[serde(default = "default_tenth")]
    pub init_std: f64,
    /// Width inside the MLP, in multiples of D. 4 if absent.
    #[serde(default = "default_ff_mult")]
    pub ff_mult: usize,
    /// Dropout of embeddings and sublayer outputs while training. 0.1 if absent.
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

fn default_block_size() -> usize {
    8
}
fn default_tenth() -> f64 {
    0.1
}

impl SliceConfig {
    /// The benchmark's SLiCE of this size; `block_size` 8, or 1 for the diagonal ablation.
    pub fn new(d_model: usize, n_layers: usize, block_size: usize) -> Self {
        SliceConfig {
            d_model,
            n_layers,
            block_size,
            scale: default_tenth(),
            init_std: default_tenth(),
            ff_mult: default_ff_mult(),
            dropout: default_dropout(),
            move_vocab: default_move_vocab(),
            start_move_id: default_start(),
            pad_move_id: default_pad(),
        }
    }
}

impl Shape for SliceConfig {
    fn family(&self) -> &'static str {
        "slice"
    }

    fn variant(&self) -> Option<String> {
        (self.block_size == 1).then(|| "diagonal".into())
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
        in_range("ff_mult", self.ff_mult, 1, 64)?;
        in_range("block_size", self.block_size, 1, MAX_EXTENT)?;
        if !self.d_model.is_multiple_of(self.block_size) {
            return Err(ConfigError::OutOfRange {
                key: "block_size",
                value: self.block_size.to_string(),
                expected: format!("a divisor of `d_model` = {}", self.d_model),
            });
        }
        positive("scale", self.scale)?;
        positive("init_std", self.init_std)
    }

    fn parameter_shapes(&self) -> Vec<(String, Vec<usize>)> {
        let (d, f) = (self.d_model, self.ff_mult * self.d_model);
        let mut shapes = vec![("embedding.weight".to_string(), vec![self.move_vocab, d])];
        for layer in 0..self.n_layers {
            let mut push = |name: &str, shape: &[usize]| {
                shapes.push((format!("layers.{layer}.{name}"), shape.to_vec()));
            };
            push("slice.init", &[d]);
            push("slice.vf_A.weight", &[d * self.block_size, d + 1]);
            push("slice.vf_B.weight", &[d, d + 1]);
            push("norm1.weight", &[d]);
            push("norm2.weight", &[d]);
            push("token_mlp.0.weight", &[f, d]);
            push("token_mlp.0.bias", &[f]);
            push("token_mlp.2.weight", &[d, f]);
            push("token_mlp.2.bias", &[d]);
        }
        shapes.push(("output_head.weight".into(), vec![LOGITS, d]));
        shapes.push(("output_head.bias".into(), vec![LOGITS]));
        shapes
    }

    fn initial(&self, name: &str, _: &[usize]) -> Option<Initial> {
        let deviation = match name.rsplit_once("slice.")?.1 {
            "vf_A.weight" => self.init_std / (self.block_size as f64).sqrt(),
            _ => self.init_std,
        };
        Some(Initial::Normal(deviation))
    }

    fn without_dropout(&self) -> ModelConfig {
        ModelConfig::Slice(Self { dropout: 0.0, ..self.clone() })
    }

    fn clipped(&self, n_layers: usize) -> ModelConfig {
        ModelConfig::Slice(Self { n_layers: self.n_layers.min(n_layers), ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_equal_the_papers_table_4() {
        for (block, counts) in [
            (8, [3_144_662, 7_962_966, 18_641_238, 38_241_110]),
            (1, [3_029_078, 7_041_878, 14_501_718, 27_209_558]),
        ] {
            for ((d, l), count) in [(128, 1), (256, 2), (384, 4), (512, 6)].into_iter().zip(counts)
            {
                let config = ModelConfig::Slice(SliceConfig::new(d, l, block));
                config.validate().unwrap();
                assert_eq!(config.parameter_count(), count, "{}", config.name());
            }
        }
    }

    #[test]
    fn bad_shapes_name_the_key() {
        let check = |change: fn(&mut SliceConfig), key: &str| {
            let mut config = SliceConfig::new(128, 1, 8);
            change(&mut config);
            let error = ModelConfig::Slice(config).validate().unwrap_err();
            assert!(error.to_string().contains(key), "{error}");
        };
        check(|c| c.d_model = 0, "`d_model`");
        check(|c| c.block_size = 0, "`block_size`");
        check(|c| c.block_size = 24, "`block_size`");
        check(|c| c.scale = 0.0, "`scale`");
        check(|c| c.init_std = f64::NAN, "`init_std`");
        check(|c| c.ff_mult = 0, "`ff_mult`");
        check(|c| c.dropout = 1.0, "`dropout`");
    }

    #[test]
    fn toml_has_defaults() {
        let toml = "family = \"slice\"\nd_model = 128\nn_layers = 1\n";
        let config = ModelConfig::from_toml(toml).unwrap();
        assert_eq!(config, ModelConfig::Slice(SliceConfig::new(128, 1, 8)));
        assert_eq!(config.variant(), "slice");
        let diagonal = ModelConfig::Slice(SliceConfig::new(128, 1, 1));
        assert_eq!(diagonal.name(), "slice-diagonal d128/l1");
    }
}
