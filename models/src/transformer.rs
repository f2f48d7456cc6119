//! The causal Transformer (paper, section 3.2): embedding, blocks, norm, state head.
//!
//! Field names are the reference's, so that a parameter's path in this module is its name in a checkpoint.

use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Device, Tensor};

use crate::{
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
    ops::{AttentionArgs, Path},
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

impl SequenceNetwork for Transformer {
    type Config = TransformerConfig;
    type State = Vec<KvCache>;

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
            blocks: (0..config.n_layers).map(block).collect::<Result<_, _>>()?,
            final_norm: norm("final_norm".into())?,
            output_head: linear("output_head".into())?,
            config: config.clone(),
            rope: RopeCache::new(config.head_width()),
        })
    }

    fn hidden(&self, pass: Pass, tokens: &PackedTokens) -> Tensor<2> {
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
        for (site, block) in (1..).step_by(3).zip(&self.blocks) {
            let args = AttentionArgs {
                heads: self.config.n_heads,
                games: games.clone(),
                rope: rope.clone(),
                dropout: dropout(site),
            };
            let mixed = block.attn.forward(path, block.norm1.forward(path, x.clone()), args);
            x = path.residual(x, mixed, dropout(site + 1));
            let processed = block.mlp.forward(path, block.norm2.forward(path, x.clone()));
            x = path.residual(x, processed, dropout(site + 2));
        }
        self.final_norm.forward(path, x)
    }

    fn start(&self, branches: usize, device: &Device) -> Vec<KvCache> {
        let (heads, width) = (self.config.n_heads, self.config.head_width());
        let cache = |_: &Block| KvCache::new(branches, heads, width, device);
        self.blocks.iter().map(cache).collect()
    }

    fn step(
        &self,
        path: Path,
        rows: Arc<[u32]>,
        step: usize,
        caches: &mut Vec<KvCache>,
    ) -> Tensor<2> {
        let rope = self.rope.get(step + 1);
        let mut x = self.tok_emb.forward(path, rows, None);
        for (block, cache) in self.blocks.iter().zip(caches) {
            let normed = block.norm1.forward(path, x.clone());
            let mixed = block.attn.step(path, normed, self.config.n_heads, step, &rope, cache);
            x = path.residual(x, mixed, None);
            let processed = block.mlp.forward(path, block.norm2.forward(path, x.clone()));
            x = path.residual(x, processed, None);
        }
        self.final_norm.forward(path, x)
    }

    fn head(&self) -> &Linear {
        &self.output_head
    }
}
