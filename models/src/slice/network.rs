//! The layers of a SLiCE, over packed games and step by step.

use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::{SliceConfig, scan};
use crate::{
    activations::Place,
    embedding::Embedding,
    kernel::random::Dropout,
    linear::Linear,
    model::PackedTokens,
    network::{DropoutSeed, Pass, SequenceNetwork},
    norm::RmsNorm,
    ops::{Path, SliceArgs},
    parameters::{ParameterError, TensorSource},
};

/// The reference's epsilon in every norm.
const NORM_EPS: f32 = 1e-6;

/// Steps of a chunk in the portable form: nearly the fastest of d128/l1 on the CPU (`cargo bench --workspace --bench
/// mixers -- slice-d128 --chunks`), and twice as few steps from chunk to chunk as the fastest.
const CHUNK_STEPS: usize = 8;

/// `down(gelu(up(x)))`.
#[derive(Module, Debug)]
pub struct GeluMlp {
    /// D to F.
    pub up: Linear,
    /// F to D.
    pub down: Linear,
}

/// Norm, recurrence, norm, MLP, each sublayer added to the residual stream.
#[derive(Module, Debug)]
pub struct SliceLayer {
    /// `[D]`: the state before the first step.
    pub init: Param<Tensor<1>>,
    /// `[D block, D + 1]`: an increment to the transition, by block, row and column.
    pub a: Param<Tensor<2>>,
    /// `[D, D + 1]`: an increment to what is added.
    pub b: Param<Tensor<2>>,
    /// Before the recurrence.
    pub norm1: RmsNorm,
    /// Before the MLP.
    pub norm2: RmsNorm,
    /// The MLP.
    pub mlp: GeluMlp,
}

/// A SLiCE.
#[derive(Module, Debug)]
pub struct Slice {
    /// Move embeddings.
    pub embedding: Embedding,
    /// Layers.
    pub layers: Vec<SliceLayer>,
    /// The state head, D to 1,878.
    pub output_head: Linear,
    #[module(skip)]
    config: SliceConfig,
}

/// What a layer remembers of a batch of prefixes.
#[derive(Debug, Clone)]
pub struct SliceState {
    /// `[branches, D]`: the recurrence's state.
    state: Tensor<2>,
    /// `[branches, D]`: the normed input of the last step, 0 before the first.
    input: Tensor<2>,
}

impl GeluMlp {
    fn forward(&self, path: Path, x: Tensor<2>) -> Tensor<2> {
        self.down.forward(path, path.gelu(self.up.forward(path, x)))
    }
}

impl SequenceNetwork for Slice {
    type Config = SliceConfig;
    type State = Vec<SliceState>;

    fn build(
        config: &SliceConfig,
        source: &TensorSource,
        device: &Device,
    ) -> Result<Self, ParameterError> {
        let layer = |layer: usize| -> Result<SliceLayer, ParameterError> {
            let name = |name: &str| format!("layers.{layer}.{name}");
            Ok(SliceLayer {
                init: source.vector(&name("slice.init"), device)?,
                a: source.matrix(&name("slice.vf_A.weight"), device)?,
                b: source.matrix(&name("slice.vf_B.weight"), device)?,
                norm1: source.norm(&name("norm1"), NORM_EPS, device)?,
                norm2: source.norm(&name("norm2"), NORM_EPS, device)?,
                mlp: GeluMlp {
                    up: source.linear(&name("token_mlp.0"), device)?,
                    down: source.linear(&name("token_mlp.2"), device)?,
                },
            })
        };
        Ok(Slice {
            embedding: Embedding { weight: source.matrix("embedding.weight", device)? },
            layers: (0..config.n_layers).map(layer).collect::<Result<_, _>>()?,
            output_head: source.linear("output_head", device)?,
            config: config.clone(),
        })
    }

    fn hidden(&self, pass: Pass<'_>, tokens: &PackedTokens) -> Tensor<2> {
        let Pass { path, chunk_steps, training, .. } = pass;
        let PackedTokens { rows, games } = tokens;
        // Places in the network, in the order of the forward pass: two a layer after the embedding's.
        let dropout = |site: u64| {
            let DropoutSeed { seed, step } = training?;
            let dropout = Dropout::at(self.config.dropout, seed, step, site)?;
            Some(dropout.from(games.first_row))
        };
        let args = SliceArgs {
            block: self.config.block_size,
            scale: self.config.scale as f32,
            games: games.clone(),
            chunk_steps: chunk_steps.unwrap_or(CHUNK_STEPS),
        };
        let mut x = self.embedding.forward(path, rows.clone(), dropout(0));
        for (index, layer) in self.layers.iter().enumerate() {
            let site = 1 + 2 * index as u64;
            let normed = layer.norm1.forward(path, x.clone());
            pass.tap(index, Place::MixerIn, &normed);
            let (a, b) = (layer.a.val(), layer.b.val());
            let mixed = path.slice(normed, a, b, layer.init.val(), args.clone());
            pass.tap(index, Place::MixerOut, &mixed);
            x = path.residual(x, mixed, dropout(site));
            let processed = layer.mlp.forward(path, layer.norm2.forward(path, x.clone()));
            x = path.residual(x, processed, dropout(site + 1));
            pass.tap(index, Place::LayerOut, &x);
        }
        x
    }

    fn start(&self, branches: usize, device: &Device) -> Vec<SliceState> {
        let zeros = Tensor::zeros([branches, self.config.d_model], device);
        let state = |layer: &SliceLayer| SliceState {
            state: zeros.clone() + layer.init.val().unsqueeze(),
            input: zeros.clone(),
        };
        self.layers.iter().map(state).collect()
    }

    fn step(
        &self,
        path: Path,
        rows: Arc<[u32]>,
        _: usize,
        states: &mut Vec<SliceState>,
    ) -> Tensor<2> {
        let SliceConfig { block_size, scale, .. } = self.config;
        let mut x = self.embedding.forward(path, rows, None);
        for (layer, memory) in self.layers.iter().zip(states) {
            let normed = layer.norm1.forward(path, x.clone());
            let increment = scan::with_time(normed.clone() - memory.input.clone(), scale as f32);
            let state = memory.state.clone();
            memory.state = scan::step(state, increment, layer.a.val(), layer.b.val(), block_size);
            memory.input = normed;
            x = path.residual(x, memory.state.clone(), None);
            let processed = layer.mlp.forward(path, layer.norm2.forward(path, x.clone()));
            x = path.residual(x, processed, None);
        }
        x
    }

    fn head(&self) -> &Linear {
        &self.output_head
    }
}
