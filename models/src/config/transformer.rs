//! The shape of a Transformer (paper, section 3.2).

use cwm_core::chess::label::LOGITS;
use serde::{Deserialize, Serialize};

use super::{
    ConfigError, Initial, MAX_EXTENT, ModelConfig, Shape, Vocabulary, common, default_dropout,
    default_ff_mult, default_move_vocab, default_pad, default_start, in_range,
};

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
    #[serde(default = "super::default_ff_mult")]
    pub ff_mult: usize,
    /// Dropout of embeddings, attention probabilities and sublayer outputs while training. 0.1 if absent.
    #[serde(default = "super::default_dropout")]
    pub dropout: f64,
    /// Whether the labels of the state before are an input beside each move: the true ones in training, afterwards the
    /// network's own answers. An experiment on what the transition machine's feedback does for a sequence mixer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub label_feedback: bool,
    /// Tokens in the vocabulary. The benchmark's 20,482 if absent.
    #[serde(default = "super::default_move_vocab")]
    pub move_vocab: usize,
    /// The token that begins every game.
    #[serde(default = "super::default_start")]
    pub start_move_id: u16,
    /// The token that fills the steps behind the end of a game.
    #[serde(default = "super::default_pad")]
    pub pad_move_id: u16,
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
            label_feedback: false,
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
}

impl Shape for TransformerConfig {
    fn family(&self) -> &'static str {
        "transformer"
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
        Some("tok_emb.weight")
    }

    fn variant(&self) -> Option<String> {
        self.label_feedback.then(|| "labels".to_string())
    }

    fn reads_labels(&self) -> bool {
        self.label_feedback
    }

    fn is_structured(&self) -> bool {
        self.label_feedback
    }

    fn initial(&self, name: &str, _: &[usize]) -> Option<Initial> {
        // 75 columns together weigh as much as the embedding of a move: a variance of 1.
        (name == "label_in.weight").then_some(Initial::Uniform(0.2))
    }

    fn without_dropout(&self) -> ModelConfig {
        ModelConfig::Transformer(Self { dropout: 0.0, ..self.clone() })
    }

    fn clipped(&self, n_layers: usize) -> ModelConfig {
        ModelConfig::Transformer(Self { n_layers: self.n_layers.min(n_layers), ..self.clone() })
    }

    fn validate(&self) -> Result<(), ConfigError> {
        common(self, self.dropout)?;
        in_range("n_heads", self.n_heads, 1, MAX_EXTENT)?;
        in_range("ff_mult", self.ff_mult, 1, 64)?;
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
        if self.label_feedback {
            shapes.push(("label_in.weight".into(), vec![d, LOGITS]));
            shapes.push(("label_in.bias".into(), vec![d]));
        }
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
