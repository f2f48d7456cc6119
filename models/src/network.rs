//! What a network of any family can do, and the choice among families.
//!
//! To add a family: implement `SequenceNetwork` for its module and name it in the call of `networks!` below, by the
//! variant of [`ModelConfig`] that describes it. Everything else of the crate, training and checkpoints included, works
//! through this trait.

use burn::module::{Module, ModuleVisitor};
use burn::tensor::{Device, Tensor};

use crate::{
    activations::{Place, Taps},
    config::{ModelConfig, TransformerConfig},
    gated_deltanet::{GatedDeltaNet, GatedDeltaNetConfig, MixerState},
    linear::Linear,
    mamba::{Mamba2, Mamba2Config, Mamba2State, Mamba3, Mamba3Config, Mamba3State},
    model::{ModelError, PackedTokens},
    ops::Path,
    parameters::{ParameterError, TensorSource},
    slice::{Slice, SliceConfig, SliceState},
    transformer::{Transformer, TransformerState},
};

/// Names the dropout of one training step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DropoutSeed {
    /// The run's seed.
    pub seed: u64,
    /// The step of the run.
    pub step: u64,
}

/// How a network computes.
#[derive(Debug, Clone, Copy)]
pub struct Pass<'a> {
    /// The form of the operations.
    pub path: Path,
    /// Steps of a chunk in forms that are parallel over time; a family's own measured default if absent.
    pub chunk_steps: Option<usize>,
    /// Dropout is on where this is given.
    pub training: Option<DropoutSeed>,
    /// Where activations are left, if anybody wants them.
    pub taps: Option<&'a Taps>,
}

impl Pass<'_> {
    /// Leaves `values [N, D]` of a layer's place, if anybody wants them.
    pub(crate) fn tap(&self, layer: usize, place: Place, values: &Tensor<2>) {
        if let Some(taps) = self.taps {
            taps.keep(layer, place, values);
        }
    }
}

/// A network that reads packed games.
///
/// Parameters are visited in the order of [`ModelConfig::parameter_shapes`]; their names come from there, too.
pub(crate) trait SequenceNetwork: Module {
    /// The shape.
    type Config;
    /// What is remembered of a batch of prefixes, from layer to layer. A clone is a fork.
    type State: Clone + std::fmt::Debug;

    /// Builds the network from its parameters.
    fn build(
        config: &Self::Config,
        source: &TensorSource,
        device: &Device,
    ) -> Result<Self, ParameterError>;

    /// The input of the state head.
    ///
    /// # Shapes
    /// packed tokens `[N]` to `[N, D]`
    fn hidden(&self, pass: Pass<'_>, tokens: &PackedTokens) -> Tensor<2>;

    /// The state of `branches` games before their first token.
    fn start(&self, branches: usize, device: &Device) -> Self::State;

    /// Reads one token a branch, the `step`th from 0.
    ///
    /// # Shapes
    /// embedding rows `[branches]` to `[branches, D]`
    fn step(
        &self,
        path: Path,
        rows: std::sync::Arc<[u32]>,
        step: usize,
        state: &mut Self::State,
    ) -> Tensor<2>;

    /// Hands the labels `[branches, 75]` that were named last to the next step, where the network reads them.
    fn feed_back(state: &mut Self::State, labels: &[u8]) {
        let _ = (state, labels);
    }

    /// The state head, D to 1,878.
    fn head(&self) -> &Linear;
}

/// The enums of networks and of their states, by family.
macro_rules! networks {
    ($($family:ident($config:ty): $network:ty => $state:ty),* $(,)?) => {
        /// A network, by family.
        #[derive(Debug, Clone)]
        pub(crate) enum Network {
            $($family($network)),*
        }

        /// The state of a network, by family.
        #[derive(Debug, Clone)]
        pub(crate) enum State {
            $($family($state)),*
        }

        impl Network {
            /// The network of `config` from its parameters.
            pub(crate) fn build(
                config: &ModelConfig,
                source: &TensorSource,
                device: &Device,
            ) -> Result<Self, ModelError> {
                match config {
                    $(ModelConfig::$family(config) => {
                        let config: &$config = config;
                        let network = <$network as SequenceNetwork>::build(config, source, device)?;
                        Ok(Network::$family(network))
                    })*
                    _ => Err(ModelError::Family(config.family())),
                }
            }

            /// See [`SequenceNetwork::hidden`].
            pub(crate) fn hidden(&self, pass: Pass<'_>, tokens: &PackedTokens) -> Tensor<2> {
                match self {
                    $(Network::$family(network) => network.hidden(pass, tokens)),*
                }
            }

            /// See [`SequenceNetwork::start`].
            pub(crate) fn start(&self, branches: usize, device: &Device) -> State {
                match self {
                    $(Network::$family(network) => State::$family(network.start(branches, device))),*
                }
            }

            /// See [`SequenceNetwork::step`].
            ///
            /// # Panics
            /// If the state is of another family.
            pub(crate) fn step(
                &self,
                path: Path,
                rows: std::sync::Arc<[u32]>,
                step: usize,
                state: &mut State,
            ) -> Tensor<2> {
                match (self, state) {
                    $((Network::$family(network), State::$family(state)) => {
                        network.step(path, rows, step, state)
                    })*
                    #[allow(unreachable_patterns)]
                    _ => panic!("the memory is of a network of another family"),
                }
            }

            /// See [`SequenceNetwork::feed_back`].
            pub(crate) fn feed_back(state: &mut State, labels: &[u8]) {
                match state {
                    $(State::$family(state) => {
                        <$network as SequenceNetwork>::feed_back(state, labels);
                    })*
                }
            }

            /// See [`SequenceNetwork::head`].
            pub(crate) fn head(&self) -> &Linear {
                match self {
                    $(Network::$family(network) => network.head()),*
                }
            }

            /// Visits every parameter in order.
            pub(crate) fn visit(&self, visitor: &mut impl ModuleVisitor) {
                match self {
                    $(Network::$family(network) => Module::visit(network, visitor)),*
                }
            }

            /// A copy with other parameter tensors: the same storage, seen through `mapper`.
            #[cfg(feature = "train")]
            pub(crate) fn mapped(&self, mapper: &mut impl burn::module::ModuleMapper) -> Self {
                match self {
                    $(Network::$family(network) => {
                        Network::$family(Module::map(network.clone(), mapper))
                    }),*
                }
            }
        }
    };
}

networks! {
    Transformer(TransformerConfig): Transformer => TransformerState,
    Slice(SliceConfig): Slice => Vec<SliceState>,
    GatedDeltaNet(GatedDeltaNetConfig): GatedDeltaNet => Vec<MixerState>,
    Mamba2(Mamba2Config): Mamba2 => Vec<Mamba2State>,
    Mamba3(Mamba3Config): Mamba3 => Vec<Mamba3State>,
}
