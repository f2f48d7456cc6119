//! The network: embedding, blocks, norm, state head.

use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Device, Tensor};

use super::{GatedDeltaNetConfig, Mixer, MixerState};
use crate::{
    activations::Place,
    embedding::Embedding,
    linear::{Linear, Projection, project},
    model::PackedTokens,
    network::{Pass, SequenceNetwork},
    norm::RmsNorm,
    ops::Path,
    parameters::{ParameterError, TensorSource},
};

/// SwiGLU without biases.
#[derive(Module, Debug)]
pub struct Mlp {
    /// D to F.
    pub gate: Projection,
    /// D to F.
    pub up: Projection,
    /// F to D.
    pub down: Projection,
}

impl Mlp {
    fn forward(&self, path: Path, x: Tensor<2>) -> Tensor<2> {
        let gated = path.swiglu(project(path, x, [&self.gate, &self.up]));
        self.down.forward(path, gated)
    }
}

/// Norm, mixer, norm, MLP, each sublayer added to the residual stream.
#[derive(Module, Debug)]
pub struct Block {
    /// Before the mixer.
    pub mixer_norm: RmsNorm,
    /// The mixer.
    pub mixer: Mixer,
    /// Before the MLP.
    pub mlp_norm: RmsNorm,
    /// The MLP.
    pub mlp: Mlp,
}

/// A Gated DeltaNet.
#[derive(Module, Debug)]
pub struct GatedDeltaNet {
    /// Move embeddings.
    pub embedding: Embedding,
    /// Blocks.
    pub blocks: Vec<Block>,
    /// Before the state head.
    pub norm: RmsNorm,
    /// The state head, D to 1,878.
    pub output_head: Linear,
    #[module(skip)]
    config: GatedDeltaNetConfig,
}

impl Block {
    fn build(
        config: &GatedDeltaNetConfig,
        layer: usize,
        source: &TensorSource,
        device: &Device,
    ) -> Result<Self, ParameterError> {
        let prefix = format!("backbone.layers.{layer}");
        let norm =
            |name: &str| source.norm(&format!("{prefix}.{name}"), config.norm_eps as f32, device);
        let projection = |name: &str| source.projection(&format!("{prefix}.mlp.{name}"), device);
        Ok(Block {
            mixer_norm: norm("attn_norm")?,
            mixer: Mixer::build(&format!("{prefix}.attn"), source, device)?,
            mlp_norm: norm("mlp_norm")?,
            mlp: Mlp {
                gate: projection("gate_proj")?,
                up: projection("up_proj")?,
                down: projection("down_proj")?,
            },
        })
    }

    /// Adds the MLP to the residual stream.
    fn process(&self, path: Path, x: Tensor<2>) -> Tensor<2> {
        let processed = self.mlp.forward(path, self.mlp_norm.forward(path, x.clone()));
        path.residual(x, processed, None)
    }
}

impl SequenceNetwork for GatedDeltaNet {
    type Config = GatedDeltaNetConfig;
    type State = Vec<MixerState>;

    fn build(
        config: &GatedDeltaNetConfig,
        source: &TensorSource,
        device: &Device,
    ) -> Result<Self, ParameterError> {
        let block = |layer| Block::build(config, layer, source, device);
        Ok(GatedDeltaNet {
            embedding: Embedding { weight: source.matrix("backbone.embeddings.weight", device)? },
            blocks: (0..config.n_layers).map(block).collect::<Result<_, _>>()?,
            norm: source.norm("backbone.norm", config.norm_eps as f32, device)?,
            output_head: source.linear("output_head", device)?,
            config: config.clone(),
        })
    }

    fn hidden(&self, pass: Pass<'_>, tokens: &PackedTokens) -> Tensor<2> {
        let Pass { path, chunk_steps, .. } = pass;
        let mut x = self.embedding.forward(path, tokens.rows.clone(), None);
        for (index, block) in self.blocks.iter().enumerate() {
            let normed = block.mixer_norm.forward(path, x.clone());
            pass.tap(index, Place::MixerIn, &normed);
            let mixed = block.mixer.forward(path, normed, &self.config, chunk_steps, &tokens.games);
            pass.tap(index, Place::MixerOut, &mixed);
            x = block.process(path, path.residual(x, mixed, None));
            pass.tap(index, Place::LayerOut, &x);
        }
        self.norm.forward(path, x)
    }

    fn start(&self, branches: usize, device: &Device) -> Vec<MixerState> {
        let state = |_: &Block| Mixer::start(&self.config, branches, device);
        self.blocks.iter().map(state).collect()
    }

    fn step(
        &self,
        path: Path,
        rows: Arc<[u32]>,
        _: usize,
        states: &mut Vec<MixerState>,
    ) -> Tensor<2> {
        let mut x = self.embedding.forward(path, rows, None);
        for (block, state) in self.blocks.iter().zip(states) {
            let normed = block.mixer_norm.forward(path, x.clone());
            let mixed = block.mixer.step(path, normed, &self.config, state);
            x = block.process(path, path.residual(x, mixed, None));
        }
        self.norm.forward(path, x)
    }

    fn head(&self) -> &Linear {
        &self.output_head
    }
}
