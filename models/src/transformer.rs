//! The causal Transformer (paper, section 3.2): embedding, blocks, norm, state head.
//!
//! Field names are the reference's, so that a parameter's path in this module is its name in a checkpoint.

use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use cwm_core::chess::label::{LABELS, LOGIT_OFFSETS, LOGITS};

use crate::{
    activations::Place,
    attention::Attention,
    config::TransformerConfig,
    embedding::Embedding,
    kernel::{random::Dropout, rope::RopeCache},
    linear::Linear,
    memory::KvCache,
    mlp::SwiGluMlp,
    model::PackedTokens,
    network::{DropoutSeed, Pass, SequenceNetwork},
    norm::RmsNorm,
    ops::{AttentionArgs, Games, Path, matrix},
    parameters::{ParameterError, TensorSource},
};

/// The reference's epsilon in every norm.
const NORM_EPS: f32 = 1e-6;

/// Norm, attention, norm, MLP, each sublayer added to the residual stream.
#[derive(Module, Debug)]
pub struct Block {
    /// Before the attention.
    pub norm1: RmsNorm,
    /// The mixer.
    pub attn: Attention,
    /// Before the MLP.
    pub norm2: RmsNorm,
    /// The MLP.
    pub mlp: SwiGluMlp,
}

/// A causal Transformer.
#[derive(Module, Debug)]
pub struct Transformer {
    /// Move embeddings.
    pub tok_emb: Embedding,
    /// From the labels of the state before, as a vector of zeros and 75 ones, to the model width; where they are read.
    pub label_in: Option<Linear>,
    /// Blocks.
    pub blocks: Vec<Block>,
    /// Before the state head.
    pub final_norm: RmsNorm,
    /// The state head, D to 1,878.
    pub output_head: Linear,
    #[module(skip)]
    config: TransformerConfig,
    #[module(skip)]
    rope: RopeCache,
}

/// What a Transformer remembers of a batch of prefixes.
#[derive(Debug, Clone)]
pub(crate) struct TransformerState {
    /// Keys and values, block by block.
    caches: Vec<KvCache>,
    /// The labels named last `[branches, 75]`: none before START, or where they are not read.
    labels: Option<Arc<[u8]>>,
}

/// Labels as vectors of zeros and ones: of each row the ones `before` gives, or none. `[N, 1878]`
fn multi_hot<'a>(
    before: impl ExactSizeIterator<Item = Option<&'a [u8]>>,
    device: &Device,
) -> Tensor<2> {
    let rows = before.len();
    let mut data = vec![0.0; rows * LOGITS];
    for (row, labels) in data.chunks_exact_mut(LOGITS).zip(before) {
        for (&first, &class) in LOGIT_OFFSETS.iter().zip(labels.unwrap_or_default()) {
            row[first + usize::from(class)] = 1.0;
        }
    }
    matrix(data, rows, LOGITS, device)
}

impl Transformer {
    /// The input of the first block with the labels of the states before added; a game's first row has none.
    fn with_labels(&self, path: Path, x: Tensor<2>, games: &Games) -> Tensor<2> {
        let (Some(label_in), Some(labels)) = (&self.label_in, &games.labels) else { return x };
        let mut first = vec![false; games.rows()];
        let mut row = 0;
        for &steps in &*games.lengths {
            if let Some(first) = first.get_mut(row) {
                *first = true;
            }
            row += steps as usize;
        }
        let before = first
            .iter()
            .enumerate()
            .map(|(row, &first)| (!first).then(|| &labels[(row - 1) * LABELS..row * LABELS]));
        let read = label_in.forward(path, multi_hot(before, &x.device()));
        path.residual(x, read, None)
    }
}

impl SequenceNetwork for Transformer {
    type Config = TransformerConfig;
    type State = TransformerState;

    fn build(
        config: &TransformerConfig,
        source: &TensorSource,
        device: &Device,
    ) -> Result<Self, ParameterError> {
        let linear = |name: String| source.linear(&name, device);
        let norm = |name: String| source.norm(&name, NORM_EPS, device);
        let block = |layer: usize| -> Result<Block, ParameterError> {
            Ok(Block {
                norm1: norm(format!("blocks.{layer}.norm1"))?,
                attn: Attention {
                    qkv: linear(format!("blocks.{layer}.attn.qkv"))?,
                    out_proj: linear(format!("blocks.{layer}.attn.out_proj"))?,
                },
                norm2: norm(format!("blocks.{layer}.norm2"))?,
                mlp: SwiGluMlp {
                    in_proj: linear(format!("blocks.{layer}.mlp.in_proj"))?,
                    out_proj: linear(format!("blocks.{layer}.mlp.out_proj"))?,
                },
            })
        };
        Ok(Transformer {
            tok_emb: Embedding { weight: source.matrix("tok_emb.weight", device)? },
            label_in: match config.label_feedback {
                true => Some(linear("label_in".into())?),
                false => None,
            },
            blocks: (0..config.n_layers).map(block).collect::<Result<_, _>>()?,
            final_norm: norm("final_norm".into())?,
            output_head: linear("output_head".into())?,
            config: config.clone(),
            rope: RopeCache::new(config.head_width()),
        })
    }

    fn hidden(&self, pass: Pass<'_>, tokens: &PackedTokens) -> Tensor<2> {
        let Pass { path, training, .. } = pass;
        let PackedTokens { rows, games } = tokens;
        let rope = self.rope.get(games.longest());
        // Places in the network, in the order of the forward pass: three a block after the embedding's.
        let dropout = |site: u64| {
            let DropoutSeed { seed, step } = training?;
            let dropout = Dropout::at(self.config.dropout, seed, step, site)?;
            Some(dropout.from(games.first_row))
        };
        let mut x = self.tok_emb.forward(path, rows.clone(), dropout(0));
        x = self.with_labels(path, x, games);
        for (index, block) in self.blocks.iter().enumerate() {
            let site = 1 + 3 * index as u64;
            let args = AttentionArgs {
                heads: self.config.n_heads,
                games: games.clone(),
                rope: rope.clone(),
                dropout: dropout(site),
            };
            let normed = block.norm1.forward(path, x.clone());
            pass.tap(index, Place::MixerIn, &normed);
            let mixed = block.attn.forward(path, normed, args);
            pass.tap(index, Place::MixerOut, &mixed);
            x = path.residual(x, mixed, dropout(site + 1));
            let processed = block.mlp.forward(path, block.norm2.forward(path, x.clone()));
            x = path.residual(x, processed, dropout(site + 2));
            pass.tap(index, Place::LayerOut, &x);
        }
        self.final_norm.forward(path, x)
    }

    fn start(&self, branches: usize, device: &Device) -> TransformerState {
        let (heads, width) = (self.config.n_heads, self.config.head_width());
        let cache = |_: &Block| KvCache::new(branches, heads, width, device);
        TransformerState { caches: self.blocks.iter().map(cache).collect(), labels: None }
    }

    fn step(
        &self,
        path: Path,
        rows: Arc<[u32]>,
        step: usize,
        state: &mut TransformerState,
    ) -> Tensor<2> {
        let rope = self.rope.get(step + 1);
        let mut x = self.tok_emb.forward(path, rows, None);
        if let Some(label_in) = &self.label_in {
            let branches = x.dims()[0];
            let labels = state.labels.as_deref();
            let before = (0..branches).map(|i| labels.map(|l| &l[i * LABELS..(i + 1) * LABELS]));
            let read = label_in.forward(path, multi_hot(before, &x.device()));
            x = path.residual(x, read, None);
        }
        for (block, cache) in self.blocks.iter().zip(&mut state.caches) {
            let normed = block.norm1.forward(path, x.clone());
            let mixed = block.attn.step(path, normed, self.config.n_heads, step, &rope, cache);
            x = path.residual(x, mixed, None);
            let processed = block.mlp.forward(path, block.norm2.forward(path, x.clone()));
            x = path.residual(x, processed, None);
        }
        self.final_norm.forward(path, x)
    }

    fn feed_back(state: &mut TransformerState, labels: &[u8]) {
        state.labels = Some(labels.into());
    }

    fn head(&self) -> &Linear {
        &self.output_head
    }
}
