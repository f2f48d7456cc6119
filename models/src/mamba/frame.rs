//! What stands around the mixers: embedding, blocks on the residual stream, norm and state head.

use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Device, Tensor};

use crate::{
    activations::Place,
    embedding::Embedding,
    kernel::random::Dropout,
    linear::{Linear, Projection},
    model::PackedTokens,
    network::{DropoutSeed, Pass},
    norm::RmsNorm,
    ops::{Games, MAMBA_NORM_EPS, Path},
    parameters::{ParameterError, TensorSource},
};

/// A sequence mixer with both of its projections.
pub(crate) trait Mixer: Module {
    /// The family's configuration.
    type Config;
    /// What it remembers of a batch of prefixes. A clone is a fork.
    type State: Clone + std::fmt::Debug;

    /// Builds it from the parameters whose names begin with `name`.
    fn build(
        config: &Self::Config,
        name: &str,
        source: &TensorSource,
        device: &Device,
    ) -> Result<Self, ParameterError>;

    /// # Shapes
    /// `[N, D]` of packed games to `[N, D]`
    fn forward(
        &self,
        path: Path,
        x: Tensor<2>,
        games: &Games,
        chunk_steps: Option<usize>,
    ) -> Tensor<2>;

    /// The state of `branches` games before their first token.
    fn start(&self, branches: usize, device: &Device) -> Self::State;

    /// One step of each branch.
    ///
    /// # Shapes
    /// `[branches, D]` to `[branches, D]`
    fn step(&self, path: Path, x: Tensor<2>, state: &mut Self::State) -> Tensor<2>;
}

/// `fc2(value silu(gate))`, value and gate the halves of `fc1`.
#[derive(Module, Debug)]
pub(crate) struct GatedMlp {
    /// D to 2 F, the gate last.
    pub fc1: Projection,
    /// F to D.
    pub fc2: Projection,
}

/// Norm, mixer, norm, MLP, each sublayer added to the residual stream.
#[derive(Module, Debug)]
pub(crate) struct MambaBlock<M: Module> {
    /// Before the mixer.
    pub norm: RmsNorm,
    /// The mixer.
    pub mixer: M,
    /// Before the MLP.
    pub norm2: RmsNorm,
    /// The MLP.
    pub mlp: GatedMlp,
}

/// A network of blocks.
#[derive(Module, Debug)]
pub(crate) struct Frame<M: Module> {
    /// Move embeddings.
    pub embedding: Embedding,
    /// Blocks.
    pub layers: Vec<MambaBlock<M>>,
    /// Before the state head.
    pub final_norm: RmsNorm,
    /// The state head, D to 1,878.
    pub output_head: Linear,
    #[module(skip)]
    dropout: f64,
}

impl GatedMlp {
    fn forward(&self, path: Path, x: Tensor<2>) -> Tensor<2> {
        let gated = path.swiglu_gate_last(self.fc1.forward(path, x));
        self.fc2.forward(path, gated)
    }
}

impl<M: Mixer> Frame<M> {
    pub(super) fn build(
        config: &M::Config,
        n_layers: usize,
        dropout: f64,
        source: &TensorSource,
        device: &Device,
    ) -> Result<Self, ParameterError> {
        let block = |layer: usize| -> Result<MambaBlock<M>, ParameterError> {
            let name = |name: &str| format!("layers.{layer}.{name}");
            Ok(MambaBlock {
                norm: source.norm(&name("norm"), MAMBA_NORM_EPS, device)?,
                mixer: M::build(config, &name("mixer"), source, device)?,
                norm2: source.norm(&name("norm2"), MAMBA_NORM_EPS, device)?,
                mlp: GatedMlp {
                    fc1: source.projection(&name("mlp.fc1"), device)?,
                    fc2: source.projection(&name("mlp.fc2"), device)?,
                },
            })
        };
        Ok(Frame {
            embedding: Embedding { weight: source.matrix("embedding.weight", device)? },
            layers: (0..n_layers).map(block).collect::<Result<_, _>>()?,
            final_norm: source.norm("final_norm", MAMBA_NORM_EPS, device)?,
            output_head: source.linear("output_head", device)?,
            dropout,
        })
    }

    pub(super) fn hidden(&self, pass: Pass<'_>, tokens: &PackedTokens) -> Tensor<2> {
        let Pass { path, chunk_steps, training, .. } = pass;
        let PackedTokens { rows, games } = tokens;
        let dropout = training.and_then(|DropoutSeed { seed, step }| {
            Some(Dropout::at(self.dropout, seed, step, 0)?.from(games.first_row))
        });
        let mut x = self.embedding.forward(path, rows.clone(), dropout);
        for (index, block) in self.layers.iter().enumerate() {
            let normed = block.norm.forward(path, x.clone());
            pass.tap(index, Place::MixerIn, &normed);
            let mixed = block.mixer.forward(path, normed, games, chunk_steps);
            pass.tap(index, Place::MixerOut, &mixed);
            x = block.process(path, x, mixed);
            pass.tap(index, Place::LayerOut, &x);
        }
        self.final_norm.forward(path, x)
    }

    pub(super) fn start(&self, branches: usize, device: &Device) -> Vec<M::State> {
        self.layers.iter().map(|block| block.mixer.start(branches, device)).collect()
    }

    pub(super) fn step(&self, path: Path, rows: Arc<[u32]>, states: &mut [M::State]) -> Tensor<2> {
        let mut x = self.embedding.forward(path, rows, None);
        for (block, state) in self.layers.iter().zip(states) {
            let mixed = block.mixer.step(path, block.norm.forward(path, x.clone()), state);
            x = block.process(path, x, mixed);
        }
        self.final_norm.forward(path, x)
    }
}

impl<M: Module> MambaBlock<M> {
    /// The residual stream behind the block, from the one before it and what the mixer gave.
    fn process(&self, path: Path, x: Tensor<2>, mixed: Tensor<2>) -> Tensor<2> {
        let x = path.residual(x, mixed, None);
        let processed = self.mlp.forward(path, self.norm2.forward(path, x.clone()));
        path.residual(x, processed, None)
    }
}
