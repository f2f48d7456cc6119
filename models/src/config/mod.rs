//! A model's shape by family, as it stands in presets, checkpoints and run directories (paper, section 3.2).

//!
//! To add a family: a struct of its numbers that implements `shape::Shape`, a variant of [`ModelConfig`], a line in
//! `ModelConfig::shape` and one in `ModelConfig::samples`. Its network then goes into [`crate::network`].

mod shape;
mod transformer;

use cwm_core::chess::MoveToken;
use serde::{Deserialize, Serialize};

use crate::{
    gated_deltanet::GatedDeltaNetConfig,
    mamba::{Mamba2Config, Mamba3Config},
    slice::SliceConfig,
    transition::TransitionConfig,
};

pub(crate) use shape::{Initial, Shape, Vocabulary};
pub use transformer::TransformerConfig;

/// The shape of a model. Written as a table with the key `family`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "snake_case")]
pub enum ModelConfig {
    /// Causal Transformer: RMSNorm before each sublayer, rotary positions, SwiGLU.
    Transformer(TransformerConfig),
    /// SLiCE: a block-diagonal or diagonal recurrence, driven by the increments of its input.
    Slice(SliceConfig),
    /// Gated DeltaNet: a gated delta rule behind short convolutions, SwiGLU.
    #[serde(rename = "gated_deltanet")]
    GatedDeltaNet(GatedDeltaNetConfig),
    /// Mamba-2: a decaying state behind a short convolution.
    Mamba2(Mamba2Config),
    /// Mamba-3: a decaying and turning state, the trapezoidal rule; SISO or MIMO.
    Mamba3(Mamba3Config),
    /// The transition machine: the recurrent state is the label vector itself.
    Transition(TransitionConfig),
}

pub(crate) fn default_ff_mult() -> usize {
    4
}
pub(crate) fn default_dropout() -> f64 {
    0.1
}
pub(crate) fn default_move_vocab() -> usize {
    MoveToken::VOCAB
}
pub(crate) fn default_start() -> u16 {
    MoveToken::START.id()
}
pub(crate) fn default_pad() -> u16 {
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
pub(crate) const MAX_EXTENT: usize = 1 << 16;

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

/// Checks the numbers that all families of sequence models share.
pub(crate) fn common(shape: &dyn Shape, dropout: f64) -> Result<(), ConfigError> {
    in_range("d_model", shape.d_model(), 1, MAX_EXTENT)?;
    in_range("n_layers", shape.n_layers(), 1, 1024)?;
    let Vocabulary { tokens, start, pad } = shape.vocabulary();
    in_range("move_vocab", tokens, 2, MAX_EXTENT)?;
    for (key, id) in [("start_move_id", start), ("pad_move_id", pad)] {
        in_range(key, usize::from(id), 0, tokens - 1)?;
    }
    if (0.0..1.0).contains(&dropout) {
        return Ok(());
    }
    let expected = "at least 0 and below 1".into();
    Err(ConfigError::OutOfRange { key: "dropout", value: dropout.to_string(), expected })
}

/// Checks a positive factor.
pub(crate) fn positive(key: &'static str, value: f64) -> Result<(), ConfigError> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(ConfigError::OutOfRange { key, value: value.to_string(), expected: "above 0".into() })
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

    /// What the family says of itself.
    pub(crate) fn shape(&self) -> &dyn Shape {
        match self {
            ModelConfig::Transformer(config) => config,
            ModelConfig::Slice(config) => config,
            ModelConfig::GatedDeltaNet(config) => config,
            ModelConfig::Mamba2(config) => config,
            ModelConfig::Mamba3(config) => config,
            ModelConfig::Transition(config) => config,
        }
    }

    /// One configuration of each family: their keys are the known ones.
    pub(crate) fn samples() -> Vec<ModelConfig> {
        vec![
            ModelConfig::Transformer(TransformerConfig::new(128, 1, 2)),
            ModelConfig::Slice(SliceConfig::new(128, 1, 8)),
            ModelConfig::GatedDeltaNet(GatedDeltaNetConfig::new(128, 1, 2)),
            ModelConfig::Mamba2(Mamba2Config::new(128, 1)),
            ModelConfig::Mamba3(Mamba3Config::new(128, 1, Some(4))),
            ModelConfig::Transition(TransitionConfig::default()),
        ]
    }

    /// The family's name, as the key `family` holds it.
    pub fn family(&self) -> &'static str {
        self.shape().family()
    }

    /// The family's name and that of the variant, if it is one: `slice-diagonal`. Presets are named so.
    pub fn variant(&self) -> String {
        let family = self.family();
        self.shape()
            .variant()
            .map_or_else(|| family.to_string(), |variant| format!("{family}-{variant}"))
    }

    /// A short name of the size, as in the paper: `d128/l1`.
    pub fn size(&self) -> String {
        self.shape().size()
    }

    /// A name for tables: `transformer d128/l1`.
    pub fn name(&self) -> String {
        format!("{} {}", self.variant(), self.size())
    }

    /// Model width D; of the transition machine, the width of its context.
    pub fn d_model(&self) -> usize {
        self.shape().d_model()
    }

    /// Blocks; the transition machine counts as one.
    pub fn n_layers(&self) -> usize {
        self.shape().n_layers()
    }

    /// Checks every number.
    ///
    /// # Errors
    /// [`ConfigError`] naming the first key at fault.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.shape().validate()
    }

    /// Names and shapes of every parameter, in the reference's order.
    pub fn parameter_shapes(&self) -> Vec<(String, Vec<usize>)> {
        self.shape().parameter_shapes()
    }

    /// Parameters in all, with the full embedding.
    pub fn parameter_count(&self) -> usize {
        self.parameter_shapes().iter().map(|(_, shape)| shape.iter().product::<usize>()).sum()
    }

    /// Whether a sequence model reads the labels of the state before beside each move.
    pub fn reads_labels(&self) -> bool {
        self.shape().reads_labels()
    }

    /// Whether the state carried from step to step has the form of the answer, so that scores do not compare with those
    /// of sequence mixers.
    pub fn is_structured(&self) -> bool {
        self.shape().is_structured()
    }

    /// Whether a table embeds move tokens; the transition machine takes them apart instead.
    pub fn has_token_embedding(&self) -> bool {
        self.shape().embedding().is_some()
    }

    /// Whether the reference has such networks too.
    pub fn in_reference(&self) -> bool {
        !matches!(self, ModelConfig::Transition(_))
    }

    /// Tokens in the vocabulary.
    pub fn move_vocab(&self) -> usize {
        self.shape().vocabulary().tokens
    }

    /// The token that fills the steps behind the end of a game.
    pub fn pad_move_id(&self) -> u16 {
        self.shape().vocabulary().pad
    }

    /// The token that begins every game.
    pub fn start_move_id(&self) -> u16 {
        self.shape().vocabulary().start
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
