//! The network's parameters, as the forward and the backward pass read them.

use super::{
    config::{TransitionConfig, place},
    inputs::{NO_SQUARE, SQUARE, relative_rows},
};
use crate::{
    config::{ModelConfig, Shape},
    init::initial_parameters,
    model::ModelError,
    parameters::{NamedTensor, ParameterError, Parameters, TensorSource},
    vocabulary::TokenRows,
};

/// A transition machine's parameters.
#[derive(Debug, Clone)]
pub struct Transition {
    config: TransitionConfig,
    parameters: Vec<Vec<f32>>,
    /// What a cell reads besides its label and the context, for either named cell: `[2, 65, 64, H]`, by the named cell and
    /// the cell itself. The first also holds the row of the cell's square.
    positions: Vec<f32>,
}

impl Transition {
    /// A network with random parameters.
    ///
    /// # Errors
    /// [`ModelError`] if the shape cannot be.
    pub fn new(config: &TransitionConfig, seed: u64) -> Result<Self, ModelError> {
        config.validate()?;
        let family = ModelConfig::Transition(config.clone());
        Self::from_parameters(config, &initial_parameters(&family, seed, &TokenRows::Full(0)))
    }

    /// A network with these parameters.
    ///
    /// # Errors
    /// [`ModelError`] if the shape cannot be or the parameters do not fit it.
    pub fn from_parameters(
        config: &TransitionConfig,
        parameters: &Parameters,
    ) -> Result<Self, ModelError> {
        config.validate()?;
        let family = ModelConfig::Transition(config.clone());
        let source = TensorSource::new(&family, parameters, &TokenRows::Full(0))?;
        let shapes = config.parameter_shapes();
        let numbers: Result<_, ParameterError> =
            shapes.iter().map(|(name, _)| source.numbers(name)).collect();
        Ok(Self::of(config.clone(), numbers?))
    }

    fn of(config: TransitionConfig, parameters: Vec<Vec<f32>>) -> Self {
        let mut network = Transition { config, parameters, positions: Vec::new() };
        network.fill_positions();
        network
    }

    /// Replaces every parameter; they have the lengths of the old ones.
    #[cfg(feature = "train")]
    pub(super) fn set_parameters(&mut self, parameters: &[Vec<f32>]) {
        for (old, new) in self.parameters.iter_mut().zip(parameters) {
            old.copy_from_slice(new);
        }
        self.fill_positions();
    }

    fn fill_positions(&mut self) {
        let width = self.config.cell_hidden;
        let table = &self.parameters[place::CELL_INPUTS];
        let row = |index: usize| &table[index * width..(index + 1) * width];
        let relative = self.config.relative_positions;
        let nothing = vec![0.0; width];
        let mut positions = Vec::with_capacity(2 * 65 * 64 * width);
        for which in 0..2 {
            for named in 0..=NO_SQUARE {
                for cell in 0..64 {
                    let [file, rank] = relative_rows(cell, named, which);
                    let [file, rank] =
                        if relative { [row(file), row(rank)] } else { [&nothing[..]; 2] };
                    let sums = file.iter().zip(rank).map(|(a, b)| a + b);
                    if which == 0 {
                        positions.extend(sums.zip(row(SQUARE + cell)).map(|(a, b)| a + b));
                    } else {
                        positions.extend(sums);
                    }
                }
            }
        }
        self.positions = positions;
    }

    /// The shape.
    pub fn config(&self) -> &TransitionConfig {
        &self.config
    }

    /// A parameter by its place.
    pub(super) fn parameter(&self, place: usize) -> &[f32] {
        &self.parameters[place]
    }

    /// All parameters in the order of their names' places.
    #[cfg(feature = "train")]
    pub(super) fn parameters(&self) -> &[Vec<f32>] {
        &self.parameters
    }

    /// What the 64 cells read of their position towards the first (`which` 0) or second named cell: `[64, H]`.
    #[inline]
    pub(super) fn positions(&self, which: usize, named: usize) -> &[f32] {
        let len = 64 * self.config.cell_hidden;
        &self.positions[(which * 65 + named) * len..][..len]
    }

    /// Every parameter under its name.
    pub fn named_parameters(&self) -> Parameters {
        let shapes = self.config.parameter_shapes().into_iter();
        let named = shapes
            .zip(&self.parameters)
            .map(|((name, shape), numbers)| (name, NamedTensor { shape, data: numbers.clone() }));
        named.collect()
    }
}
