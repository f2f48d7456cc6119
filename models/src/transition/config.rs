//! The shape of a transition machine, and the names and shapes of its parameters.

use serde::{Deserialize, Serialize};

use super::{heads, inputs};
use crate::config::{ConfigError, Initial, ModelConfig, Shape, Vocabulary, in_range};
use cwm_core::chess::MoveToken;

/// The widest layer: keeps the precomputed table of cell inputs below 20 MB.
const MAX_WIDTH: usize = 1024;

/// The shape of a transition machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TransitionConfig {
    /// Width C of the context network's two hidden layers.
    pub context_hidden: usize,
    /// Width D of the context that all cells of a step share.
    pub context_width: usize,
    /// Width H of the cell network's two hidden layers.
    pub cell_hidden: usize,
    /// Whether cells see their file and rank relative to the two named cells.
    pub relative_positions: bool,
    /// What the clocks are to the network.
    pub clocks: Clocks,
}

/// What the clocks are to the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clocks {
    /// Registers on which it chooses keep, +1 or reset; it does not read them.
    #[default]
    Registers,
    /// Four bytes like any other labels: read as inputs, named as one of 256 classes each.
    Bytes,
}

impl Default for TransitionConfig {
    fn default() -> Self {
        TransitionConfig {
            context_hidden: 160,
            context_width: 96,
            cell_hidden: 64,
            relative_positions: true,
            clocks: Clocks::Registers,
        }
    }
}

/// Rows of the cell network's output: 13 classes and the weight of the copy.
pub(super) const CELL_OUTPUTS: usize = 14;

/// Parameters by their place in [`TransitionConfig::parameter_shapes`].
pub(super) mod place {
    pub const CONTEXT_INPUTS: usize = 0;
    pub const CONTEXT_INPUTS_BIAS: usize = 1;
    pub const CONTEXT_HIDDEN: usize = 2;
    pub const CONTEXT_HIDDEN_BIAS: usize = 3;
    pub const CONTEXT_OUTPUT: usize = 4;
    pub const CONTEXT_OUTPUT_BIAS: usize = 5;
    pub const HEADS: usize = 6;
    pub const HEADS_BIAS: usize = 7;
    pub const CELL_INPUTS: usize = 8;
    pub const CELL_CONTEXT: usize = 9;
    pub const CELL_CONTEXT_BIAS: usize = 10;
    pub const CELL_HIDDEN: usize = 11;
    pub const CELL_HIDDEN_BIAS: usize = 12;
    pub const CELL_OUTPUT: usize = 13;
    pub const CELL_OUTPUT_BIAS: usize = 14;
}

impl Shape for TransitionConfig {
    fn family(&self) -> &'static str {
        "transition"
    }

    fn validate(&self) -> Result<(), ConfigError> {
        in_range("context_hidden", self.context_hidden, 1, MAX_WIDTH)?;
        in_range("context_width", self.context_width, 1, MAX_WIDTH)?;
        in_range("cell_hidden", self.cell_hidden, 1, MAX_WIDTH)
    }

    /// A short name of the size: the three widths, and what it lacks.
    fn size(&self) -> String {
        let relative = if self.relative_positions { "" } else { "/absolute" };
        let clocks = match self.clocks {
            Clocks::Registers => "",
            Clocks::Bytes => "/byte-clocks",
        };
        let (c, d, h) = (self.context_hidden, self.context_width, self.cell_hidden);
        format!("c{c}/d{d}/h{h}{relative}{clocks}")
    }

    /// Matrices are `[out, in]`, as everywhere, but for the two tables of inputs: of these a step reads a few rows, as of
    /// an embedding.
    fn parameter_shapes(&self) -> Vec<(String, Vec<usize>)> {
        let (c, d, h) = (self.context_hidden, self.context_width, self.cell_hidden);
        let shapes: [(&str, &[usize]); 15] = [
            ("context.inputs.weight", &[inputs::context_table_rows(self.clocks), c]),
            ("context.inputs.bias", &[c]),
            ("context.hidden.weight", &[c, c]),
            ("context.hidden.bias", &[c]),
            ("context.output.weight", &[d, c]),
            ("context.output.bias", &[d]),
            ("heads.weight", &[heads::columns(self.clocks), d]),
            ("heads.bias", &[heads::columns(self.clocks)]),
            ("cell.inputs.weight", &[inputs::cell_table_rows(self.relative_positions), h]),
            ("cell.context.weight", &[h, d]),
            ("cell.context.bias", &[h]),
            ("cell.hidden.weight", &[h, h]),
            ("cell.hidden.bias", &[h]),
            ("cell.output.weight", &[CELL_OUTPUTS, h]),
            ("cell.output.bias", &[CELL_OUTPUTS]),
        ];
        shapes.into_iter().map(|(name, shape)| (name.to_string(), shape.to_vec())).collect()
    }

    fn d_model(&self) -> usize {
        self.context_width
    }

    fn n_layers(&self) -> usize {
        1
    }

    fn vocabulary(&self) -> Vocabulary {
        let [start, pad] = [MoveToken::START, MoveToken::PAD].map(MoveToken::id);
        Vocabulary { tokens: MoveToken::VOCAB, start, pad }
    }

    fn embedding(&self) -> Option<&'static str> {
        None
    }

    fn is_structured(&self) -> bool {
        true
    }

    fn initial(&self, name: &str, shape: &[usize]) -> Option<Initial> {
        Some(Initial::Uniform(self.initial_bound(name, shape)))
    }

    fn without_dropout(&self) -> ModelConfig {
        ModelConfig::Transition(self.clone())
    }

    fn clipped(&self, _: usize) -> ModelConfig {
        ModelConfig::Transition(self.clone())
    }
}

impl TransitionConfig {
    /// Bound of the uniform distribution that a parameter of this name and shape starts with; biases start at 0.
    fn initial_bound(&self, name: &str, shape: &[usize]) -> f64 {
        // A step reads this many rows of a table.
        let inputs = match name {
            "context.inputs.weight" => match self.clocks {
                Clocks::Registers => 10,
                Clocks::Bytes => 14,
            },
            "cell.inputs.weight" => 2 + 4 * usize::from(self.relative_positions),
            _ => shape.get(1).copied().unwrap_or(1),
        };
        match name {
            _ if name.ends_with(".bias") => 0.0,
            "heads.weight" | "cell.output.weight" => (1.0 / inputs as f64).sqrt(),
            // Keeps the size of numbers through layers of rectified sums.
            _ => (6.0 / inputs as f64).sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelConfig;

    #[test]
    fn the_default_has_93_thousand_parameters() {
        let config = ModelConfig::Transition(TransitionConfig::default());
        config.validate().unwrap();
        assert_eq!(config.parameter_count(), 93_354);
        assert_eq!(ModelConfig::from_toml("family = \"transition\"\n").unwrap(), config);
        assert_eq!(ModelConfig::from_json(&config.to_json()).unwrap(), config);
        let wide = ModelConfig::from_toml("family = \"transition\"\ncell_hidden = 2000\n");
        assert!(wide.unwrap_err().to_string().contains("cell_hidden"));
        let clocks = ModelConfig::from_toml("family = \"transition\"\nclocks = \"sundial\"\n");
        assert!(clocks.unwrap_err().to_string().contains("sundial"));
    }

    #[test]
    fn what_is_taken_away_shows_in_size_and_shapes() {
        let config = |toml: &str| {
            let config = ModelConfig::from_toml(&format!("family = \"transition\"\n{toml}\n"));
            let config = config.unwrap();
            assert_eq!(ModelConfig::from_json(&config.to_json()).unwrap(), config);
            config
        };
        let absolute = config("relative_positions = false");
        assert_eq!(absolute.size(), "c160/d96/h64/absolute");
        // Four tables of 16 rows less.
        assert_eq!(absolute.parameter_count(), 93_354 - 4 * 16 * 64);
        let bytes = config("clocks = \"bytes\"");
        assert_eq!(bytes.size(), "c160/d96/h64/byte-clocks");
        // 4 * 256 rows more to read, and as many columns to name in place of the six operations.
        assert_eq!(bytes.parameter_count(), 93_354 + 1024 * 160 + (1024 - 6) * 97);
    }
}
