//! What the crate asks of a family's configuration, and the distributions that parameters start with.

use super::{ConfigError, ModelConfig};

/// A family's shape: everything that does not need tensors. One implementation a family, beside its configuration.
pub(crate) trait Shape {
    /// The value of the key `family`.
    fn family(&self) -> &'static str;

    /// What sets a variant of the family apart in the names of presets and tables (`diagonal`); the family itself has none.
    fn variant(&self) -> Option<String> {
        None
    }

    /// A short name of the size, as in the paper: `d128/l1`.
    fn size(&self) -> String {
        format!("d{}/l{}", self.d_model(), self.n_layers())
    }

    /// Model width D.
    fn d_model(&self) -> usize;

    /// Blocks.
    fn n_layers(&self) -> usize;

    /// Tokens in the vocabulary, the one that begins every game, and the one that fills the steps behind its end.
    fn vocabulary(&self) -> Vocabulary;

    /// The parameter that embeds move tokens, one row a token, where the family has one.
    fn embedding(&self) -> Option<&'static str>;

    /// Whether the network reads the labels of the state before beside each move: its own answers, but for training.
    fn reads_labels(&self) -> bool {
        false
    }

    /// Whether the state carried from step to step has the form of the answer.
    fn is_structured(&self) -> bool {
        false
    }

    /// Checks every number.
    fn validate(&self) -> Result<(), ConfigError>;

    /// Names and shapes of every parameter, in the reference's order. The network visits its parameters in this order.
    fn parameter_shapes(&self) -> Vec<(String, Vec<usize>)>;

    /// The distribution that a parameter starts with, where it is not PyTorch's default (see [`crate::init`]).
    fn initial(&self, name: &str, shape: &[usize]) -> Option<Initial> {
        let _ = (name, shape);
        None
    }

    /// Endings of the names of parameters that weight decay leaves alone, whatever the optimiser's settings.
    #[cfg_attr(not(feature = "train"), allow(dead_code))]
    fn no_decay(&self) -> &'static [&'static str] {
        &[]
    }

    /// The same shape without dropout, for comparing shapes.
    fn without_dropout(&self) -> ModelConfig;

    /// The same shape with at most this many blocks.
    fn clipped(&self, n_layers: usize) -> ModelConfig;
}

/// A vocabulary of move tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Vocabulary {
    /// Tokens.
    pub tokens: usize,
    /// The token that begins every game.
    pub start: u16,
    /// The token that fills the steps behind the end of a game.
    pub pad: u16,
}

/// The distribution that the numbers of a parameter start with, independently of each other.
#[derive(Debug, Clone, Copy)]
#[allow(dead_code)] // Not every kind is in use yet.
pub(crate) enum Initial {
    /// Uniform within this bound of 0.
    Uniform(f64),
    /// Normal around 0 with this standard deviation.
    Normal(f64),
    /// One number.
    Constant(f32),
    /// What this function makes of a uniform number on [0, 1).
    Of(fn(f64) -> f64),
}
