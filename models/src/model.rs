//! A model: a network of some family, the device it lives on, and how tokens and parameters get in and out.

use std::sync::Arc;

use burn::module::{ModuleVisitor, Param};
use burn::tensor::{Device, ExecutionError, Tensor, TensorData};
use cwm_core::chess::label::LOGITS;

use crate::{
    activations::{Activation, Taps},
    config::{ConfigError, ModelConfig},
    init::{initial_parameters, is_embedding},
    memory::Memory,
    network::{DropoutSeed, Network, Pass},
    ops::{Games, Grades, Path},
    parameters::{NamedTensor, ParameterError, Parameters, TensorSource},
    vocabulary::{NoRow, TokenRows},
};

/// A model that could not be built.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// A shape that cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Parameters of another shape.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// A family that is no [`Model`].
    #[error("a `{0}` is no network that reads sequences: build it as `ModelTracker`")]
    Family(&'static str),
}

/// A network on a device.
#[derive(Debug, Clone)]
pub struct Model {
    config: ModelConfig,
    tokens: Arc<TokenRows>,
    device: Device,
    path: Path,
    chunk_steps: Option<usize>,
    network: Network,
}

/// Move tokens of whole games as embedding rows, packed.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedTokens {
    /// `[N]`.
    pub rows: Arc<[u32]>,
    /// The games.
    pub games: Games,
}

impl Model {
    /// A new model with random parameters. Of the benchmark's vocabulary it embeds the reachable moves alone.
    ///
    /// # Errors
    /// [`ModelError`] if the configuration cannot be.
    pub fn new(config: &ModelConfig, seed: u64, device: &Device) -> Result<Self, ModelError> {
        config.validate()?;
        let rows = TokenRows::for_vocabulary(config.move_vocab());
        Self::from_parameters(config, &initial_parameters(config, seed, &rows), device)
    }

    /// A model with these parameters. An embedding of the benchmark's vocabulary may have all its rows or the reachable
    /// ones ([`crate::vocabulary`]); the model keeps the reachable ones.
    ///
    /// # Errors
    /// [`ModelError`] if the configuration cannot be or the parameters do not fit it.
    pub fn from_parameters(
        config: &ModelConfig,
        parameters: &Parameters,
        device: &Device,
    ) -> Result<Self, ModelError> {
        config.validate()?;
        let tokens = TokenRows::for_vocabulary(config.move_vocab());
        let source = TensorSource::new(config, parameters, &tokens)?;
        let network = Network::build(config, &source, device)?;
        Ok(Model {
            config: config.clone(),
            tokens: Arc::new(tokens),
            device: device.clone(),
            path: Path::of(device),
            chunk_steps: None,
            network,
        })
    }

    /// The shape.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The form of the operations in use.
    pub fn path(&self) -> Path {
        self.path
    }

    /// Uses the portable form of the operations even where there is a fused one.
    pub fn into_portable(mut self) -> Self {
        self.path = Path::Portable;
        self
    }

    /// Computes in chunks of this many steps, at least one, where a form is parallel over time, instead of the family's
    /// measured default. The answers are the same but for rounding.
    pub fn with_chunk_steps(mut self, steps: usize) -> Self {
        self.chunk_steps = Some(steps.max(1));
        self
    }

    /// How tokens find their embedding rows.
    pub fn tokens(&self) -> &TokenRows {
        &self.tokens
    }

    /// Embedding rows of packed games: `tokens` game after game, `lengths` steps each.
    ///
    /// # Errors
    /// [`NoRow`] if a token has none.
    pub fn pack(
        &self,
        tokens: impl IntoIterator<Item = u16>,
        lengths: impl Into<Arc<[u32]>>,
    ) -> Result<PackedTokens, NoRow> {
        let rows =
            tokens.into_iter().map(|token| self.tokens.row(token)).collect::<Result<_, _>>()?;
        Ok(PackedTokens { rows, games: Games::new(lengths) })
    }

    /// The input of the state head. With `training`, dropout is on.
    ///
    /// # Shapes
    /// packed tokens `[N]` to `[N, D]`
    pub fn hidden(&self, batch: &PackedTokens, training: Option<DropoutSeed>) -> Tensor<2> {
        let Model { path, chunk_steps, .. } = *self;
        self.network.hidden(Pass { path, chunk_steps, training, taps: None }, batch)
    }

    /// What flows between the layers, in the order of computation, without dropout.
    ///
    /// # Shapes
    /// packed tokens `[N]` to `[N, D]` each
    pub fn activations(&self, batch: &PackedTokens) -> Vec<Activation> {
        let taps = Taps::default();
        let Model { path, chunk_steps, .. } = *self;
        let pass = Pass { path, chunk_steps, training: None, taps: Some(&taps) };
        self.network.hidden(pass, batch);
        taps.into_activations()
    }

    /// All logits.
    ///
    /// # Shapes
    /// packed tokens `[N]` to `[N, 1878]`
    pub fn logits(&self, batch: &PackedTokens) -> Tensor<2> {
        let (weight, bias) = self.head();
        self.path.linear(self.hidden(batch, None), weight, bias)
    }

    /// Cross-entropy against `labels [N, 75]`, summed over rows and labels and multiplied by `scale`.
    pub fn loss(
        &self,
        batch: &PackedTokens,
        labels: Arc<[u8]>,
        scale: f32,
        training: Option<DropoutSeed>,
    ) -> Tensor<1> {
        let (weight, bias) = self.head();
        let hidden = self.hidden(batch, training);
        self.path.head_loss(hidden, weight, bias, labels, scale)
    }

    /// Classes, finiteness and losses of whole games by the fused form, on the calling thread.
    ///
    /// # Panics
    /// If the model uses the portable form.
    pub(crate) fn grade_fused(&self, batch: &PackedTokens, labels: &[u8]) -> Grades {
        let (weight, bias) = self.head();
        crate::ops::grade_fused(self.hidden(batch, None), weight, bias, Some(labels))
    }

    /// Classes, finiteness and, given `labels [N, 75]`, losses of `hidden [N, D]`.
    pub(crate) async fn grade_hidden(
        &self,
        hidden: Tensor<2>,
        labels: Option<Arc<[u8]>>,
    ) -> Result<Grades, ExecutionError> {
        let (weight, bias) = self.head();
        match self.path {
            Path::Fused => Ok(crate::ops::grade_fused(hidden, weight, bias, labels.as_deref())),
            Path::Gpu | Path::Portable => {
                crate::ops::grade_portable(hidden, weight, bias, labels).await
            }
        }
    }

    /// The probability of every class of every label.
    ///
    /// # Shapes
    /// packed tokens `[N]` to `[N, 1878]`
    pub(crate) async fn probabilities(
        &self,
        batch: &PackedTokens,
    ) -> Result<Vec<f32>, ExecutionError> {
        self.probabilities_of(self.hidden(batch, None)).await
    }

    /// The probability of every class of every label, from the input `[N, D]` of the state head: `[N, 1878]`.
    pub(crate) async fn probabilities_of(
        &self,
        hidden: Tensor<2>,
    ) -> Result<Vec<f32>, ExecutionError> {
        let (weight, bias) = self.head();
        let logits = self.path.linear(hidden, weight, bias);
        let mut logits = numbers(logits.into_data_async().await?);
        logits.chunks_exact_mut(LOGITS).for_each(crate::kernel::head::softmax_row);
        Ok(logits)
    }

    /// Whether the operations are the fused ones, which run on the calling thread.
    pub fn is_fused(&self) -> bool {
        self.path == Path::Fused
    }

    /// A memory of `branches` games before their first token.
    pub fn start(&self, branches: usize) -> Memory {
        Memory { steps: 0, state: self.network.start(branches, &self.device) }
    }

    /// Reads one token a branch, given as embedding rows `[branches]`; gives the input of the state head,
    /// `[branches, D]`.
    ///
    /// # Panics
    /// If the memory is of a model of another family.
    pub fn step(&self, memory: &mut Memory, rows: Arc<[u32]>) -> Tensor<2> {
        let hidden = self.network.step(self.path, rows, memory.steps, &mut memory.state);
        memory.steps += 1;
        hidden
    }

    /// Hands the labels `[branches, 75]` that were named last to the next step, where the network reads them.
    pub fn feed_back(&self, memory: &mut Memory, labels: &[u8]) {
        Network::feed_back(&mut memory.state, labels);
    }

    /// Weight `[1878, D]` and bias `[1878]` of the state head.
    pub fn head(&self) -> (Tensor<2>, Tensor<1>) {
        let head = self.network.head();
        (head.weight.val(), head.bias.val())
    }

    /// Every parameter under the reference's name, the embedding with the rows that the model has.
    pub fn named_parameters(&self) -> Parameters {
        let names = self.config.parameter_shapes().into_iter().map(|(name, _)| name);
        let mut reader = Reader { names, parameters: Parameters::new() };
        self.visit(&mut reader);
        reader.parameters
    }

    /// Replaces every parameter.
    ///
    /// # Errors
    /// [`ModelError`] if they do not fit; the model is then as it was.
    pub fn load_named_parameters(&mut self, parameters: &Parameters) -> Result<(), ModelError> {
        let source = TensorSource::new(&self.config, parameters, &self.tokens)?;
        self.network = Network::build(&self.config, &source, &self.device)?;
        Ok(())
    }

    /// Visits every parameter, in the order of [`ModelConfig::parameter_shapes`].
    pub fn visit(&self, visitor: &mut impl ModuleVisitor) {
        self.network.visit(visitor);
    }

    /// A copy with other parameter tensors: the same storage, seen through `mapper`.
    #[cfg(feature = "train")]
    pub(crate) fn mapped(
        &self,
        device: Device,
        mapper: &mut impl burn::module::ModuleMapper,
    ) -> Self {
        Model {
            config: self.config.clone(),
            tokens: self.tokens.clone(),
            device,
            path: self.path,
            chunk_steps: self.chunk_steps,
            network: self.network.mapped(mapper),
        }
    }

    /// The most steps a game may have: dropout and scores index steps by 16 bits.
    pub const MAX_STEPS: usize = 1 << 16;
}

/// Collects parameters, which come in the order of their names.
struct Reader<Names> {
    names: Names,
    parameters: Parameters,
}

impl<Names: Iterator<Item = String>> ModuleVisitor for Reader<Names> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = param.val();
        let shape = tensor.dims().to_vec();
        let data = numbers(tensor.into_data());
        if let Some(name) = self.names.next() {
            self.parameters.insert(name, NamedTensor { shape, data });
        }
    }
}

/// A tensor's numbers.
pub(crate) fn numbers(data: TensorData) -> Vec<f32> {
    data.convert::<f32>().try_into_vec().unwrap_or_else(|_| unreachable!("converted to `f32`"))
}

/// Whether the parameter is the embedding and the model holds it compactly.
pub fn is_compact_embedding(config: &ModelConfig, name: &str) -> bool {
    is_embedding(name)
        && matches!(TokenRows::for_vocabulary(config.move_vocab()), TokenRows::Compact(_))
}
