//! A model's shape by family, as it stands in presets, checkpoints and run directories (paper, section 3.2).

use cwm_core::chess::{MoveToken, label::LOGITS};
use serde::{Deserialize, Serialize};

use crate::transition::TransitionConfig;

/// The shape of a model. Written as a table with the key `family`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "snake_case")]
pub enum ModelConfig {
    /// Causal Transformer: RMSNorm before each sublayer, rotary positions, SwiGLU.
    Transformer(TransformerConfig),
    /// The transition machine: the recurrent state is the label vector itself.
    Transition(TransitionConfig),
}

/// The shape of a Transformer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransformerConfig {
    /// Model width D.
    pub d_model: usize,
    /// Blocks.
    pub n_layers: usize,
    /// Attention heads H; `d_model / n_heads` must be even.
    pub n_heads: usize,
    /// Width inside the MLP, in multiples of D. 4 if absent.
    #[serde(default = "default_ff_mult")]
    pub ff_mult: usize,
    /// Dropout of embeddings, attention probabilities and sublayer outputs while training. 0.1 if absent.
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

fn default_ff_mult() -> usize {
    4
}
fn default_dropout() -> f64 {
    0.1
}
fn default_move_vocab() -> usize {
    MoveToken::VOCAB
}
fn default_start() -> u16 {
    MoveToken::START.id()
}
fn default_pad() -> u16 {
    MoveToken::PAD.id()
}

/// A model shape that cannot be built.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A number outside its range.
    #[error("model: `{key}` is {value}, expected {expected}")]
    OutOfRange {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What would do.
        expected: String,
    },
    /// Text that is no configuration.
    #[error("model: {0}")]
    Syntax(String),
}

/// The most that any extent of a model may be: keeps products of untrusted extents far from overflow.
const MAX_EXTENT: usize = 1 << 16;

/// Checks one number.
pub(crate) fn in_range(
    key: &'static str,
    value: usize,
    min: usize,
    max: usize,
) -> Result<(), ConfigError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    let expected = format!("a whole number from {min} to {max}");
    Err(ConfigError::OutOfRange { key, value: value.to_string(), expected })
}

impl ModelConfig {
    /// Reads a configuration from JSON and checks it.
    ///
    /// # Errors
    /// [`ConfigError`] naming the key at fault.
    pub fn from_json(text: &str) -> Result<Self, ConfigError> {
        let config: Self =
            serde_json::from_str(text).map_err(|error| ConfigError::Syntax(error.to_string()))?;
        config.validate()?;
        Ok(config)
    }

    /// Reads a configuration from TOML and checks it.
    ///
    /// # Errors
    /// [`ConfigError`] naming the key at fault.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text)
            .map_err(|error| ConfigError::Syntax(error.message().to_string()))?;
        config.validate()?;
        Ok(config)
    }

    /// The configuration as one JSON object.
    pub fn to_json(&self) -> String {
        // Numbers, strings and fixed keys always serialise.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The family's name, as the key `family` holds it.
    pub fn family(&self) -> &'static str {
        match self {
            ModelConfig::Transformer(_) => "transformer",
            ModelConfig::Transition(_) => "transition",
        }
    }

    /// A short name of the size, as in the paper: `d128/l1`.
    pub fn size(&self) -> String {
        match self {
            ModelConfig::Transformer(c) => format!("d{}/l{}", c.d_model, c.n_layers),
            ModelConfig::Transition(c) => c.size(),
        }
    }

    /// A name for tables: `transformer d128/l1`.
    pub fn name(&self) -> String {
        format!("{} {}", self.family(), self.size())
    }

    /// Model width D; of the transition machine, the width of its context.
    pub fn d_model(&self) -> usize {
        match self {
            ModelConfig::Transformer(c) => c.d_model,
            ModelConfig::Transition(c) => c.context_width,
        }
    }

    /// Blocks; the transition machine counts as one.
    pub fn n_layers(&self) -> usize {
        match self {
            ModelConfig::Transformer(c) => c.n_layers,
            ModelConfig::Transition(_) => 1,
        }
    }

    /// Checks every number.
    ///
    /// # Errors
    /// [`ConfigError`] naming the first key at fault.
    pub fn validate(&self) -> Result<(), ConfigError> {
        match self {
            ModelConfig::Transformer(config) => config.validate(),
            ModelConfig::Transition(config) => config.validate(),
        }
    }

    /// Names and shapes of every parameter, in the reference's order.
    pub fn parameter_shapes(&self) -> Vec<(String, Vec<usize>)> {
        match self {
            ModelConfig::Transformer(config) => config.parameter_shapes(),
            ModelConfig::Transition(config) => config.parameter_shapes(),
        }
    }

    /// Parameters in all, with the full embedding.
    pub fn parameter_count(&self) -> usize {
        self.parameter_shapes().iter().map(|(_, shape)| shape.iter().product::<usize>()).sum()
    }

    /// Bound of the uniform distribution that a parameter starts with, where it is not PyTorch's default.
    pub(crate) fn initial_bound(&self, name: &str, shape: &[usize]) -> Option<f64> {
        match self {
            ModelConfig::Transformer(_) => None,
            ModelConfig::Transition(config) => Some(config.initial_bound(name, shape)),
        }
    }

    /// Whether a table embeds move tokens; the transition machine takes them apart instead.
    pub fn has_token_embedding(&self) -> bool {
        !matches!(self, ModelConfig::Transition(_))
    }

    /// Tokens in the vocabulary.
    pub fn move_vocab(&self) -> usize {
        match self {
            ModelConfig::Transformer(config) => config.move_vocab,
            ModelConfig::Transition(_) => MoveToken::VOCAB,
        }
    }

    /// The token that fills the steps behind the end of a game.
    pub fn pad_move_id(&self) -> u16 {
        match self {
            ModelConfig::Transformer(config) => config.pad_move_id,
            ModelConfig::Transition(_) => MoveToken::PAD.id(),
        }
    }

    /// The token that begins every game.
    pub fn start_move_id(&self) -> u16 {
        match self {
            ModelConfig::Transformer(config) => config.start_move_id,
            ModelConfig::Transition(_) => MoveToken::START.id(),
        }
    }
}

impl TransformerConfig {
    /// The benchmark's Transformer of this size: vocabulary, MLP width and dropout as in the paper.
    pub fn new(d_model: usize, n_layers: usize, n_heads: usize) -> Self {
        TransformerConfig {
            d_model,
            n_layers,
            n_heads,
            ff_mult: default_ff_mult(),
            dropout: default_dropout(),
            move_vocab: default_move_vocab(),
            start_move_id: default_start(),
            pad_move_id: default_pad(),
        }
    }

    /// Channels of a head.
    pub fn head_width(&self) -> usize {
        self.d_model / self.n_heads
    }

    /// Width inside the MLP (F).
    pub fn ff_width(&self) -> usize {
        self.ff_mult * self.d_model
    }

    fn validate(&self) -> Result<(), ConfigError> {
        in_range("d_model", self.d_model, 1, MAX_EXTENT)?;
        in_range("n_layers", self.n_layers, 1, 1024)?;
        in_range("n_heads", self.n_heads, 1, MAX_EXTENT)?;
        in_range("ff_mult", self.ff_mult, 1, 64)?;
        in_range("move_vocab", self.move_vocab, 2, MAX_EXTENT)?;
        for (key, id) in [("start_move_id", self.start_move_id), ("pad_move_id", self.pad_move_id)]
        {
            in_range(key, usize::from(id), 0, self.move_vocab - 1)?;
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(ConfigError::OutOfRange {
                key: "dropout",
                value: self.dropout.to_string(),
                expected: "at least 0 and below 1".into(),
            });
        }
        if !self.d_model.is_multiple_of(self.n_heads) || !self.head_width().is_multiple_of(2) {
            return Err(ConfigError::OutOfRange {
                key: "n_heads",
                value: self.n_heads.to_string(),
                expected: format!(
                    "a number that divides `d_model` = {} into even heads",
                    self.d_model
                ),
            });
        }
        Ok(())
    }

    fn parameter_shapes(&self) -> Vec<(String, Vec<usize>)> {
        let (d, f) = (self.d_model, self.ff_width());
        let mut shapes = vec![("tok_emb.weight".to_string(), vec![self.move_vocab, d])];
        for layer in 0..self.n_layers {
            let mut push = |name: &str, shape: &[usize]| {
                shapes.push((format!("blocks.{layer}.{name}"), shape.to_vec()));
            };
            push("norm1.weight", &[d]);
            push("attn.qkv.weight", &[3 * d, d]);
            push("attn.qkv.bias", &[3 * d]);
            push("attn.out_proj.weight", &[d, d]);
            push("attn.out_proj.bias", &[d]);
            push("norm2.weight", &[d]);
            push("mlp.in_proj.weight", &[2 * f, d]);
            push("mlp.in_proj.bias", &[2 * f]);
            push("mlp.out_proj.weight", &[d, f]);
            push("mlp.out_proj.bias", &[d]);
        }
        shapes.push(("final_norm.weight".into(), vec![d]));
        shapes.push(("output_head.weight".into(), vec![LOGITS, d]));
        shapes.push(("output_head.bias".into(), vec![LOGITS]));
        shapes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_equal_the_papers_table_4() {
        for (d, l, h, count) in [
            (128, 1, 2, 3_128_150),
            (256, 2, 4, 7_831_126),
            (384, 4, 6, 18_048_726),
            (512, 6, 8, 36_662_614),
        ] {
            let config = ModelConfig::Transformer(TransformerConfig::new(d, l, h));
            config.validate().unwrap();
            assert_eq!(config.parameter_count(), count, "{}", config.size());
        }
    }

    #[test]
    fn bad_shapes_name_the_key() {
        let check = |change: fn(&mut TransformerConfig), key: &str| {
            let mut config = TransformerConfig::new(128, 1, 2);
            change(&mut config);
            let error = ModelConfig::Transformer(config).validate().unwrap_err();
            assert!(error.to_string().contains(key), "{error}");
        };
        check(|c| c.d_model = 0, "`d_model`");
        check(|c| c.n_heads = 3, "`n_heads`");
        check(|c| c.n_heads = 128, "`n_heads`");
        check(|c| c.dropout = 1.0, "`dropout`");
        check(|c| c.dropout = f64::NAN, "`dropout`");
        check(|c| c.ff_mult = 0, "`ff_mult`");
        check(|c| c.pad_move_id = 20_482, "`pad_move_id`");
    }

    #[test]
    fn json_and_toml_round_trip_with_defaults() {
        let toml = "family = \"transformer\"\nd_model = 128\nn_layers = 1\nn_heads = 2\n";
        let config = ModelConfig::from_toml(toml).unwrap();
        assert_eq!(config, ModelConfig::Transformer(TransformerConfig::new(128, 1, 2)));
        assert_eq!(ModelConfig::from_json(&config.to_json()).unwrap(), config);
        let unknown = ModelConfig::from_toml(&format!("{toml}width = 3\n")).unwrap_err();
        assert!(unknown.to_string().contains("width"), "{unknown}");
        let family = ModelConfig::from_toml("family = \"lstm\"\n").unwrap_err();
        assert!(family.to_string().contains("lstm"), "{family}");
    }
}
