//! Both families as networks.

use std::sync::Arc;

use burn::tensor::{Device, Tensor};

use super::{
    Mamba2Config, Mamba3Config,
    frame::Frame,
    mamba2::{Mamba2Mixer, Mamba2State},
    mamba3::{Mamba3Mixer, Mamba3State},
};
use crate::{
    linear::Linear,
    model::PackedTokens,
    network::{Pass, SequenceNetwork},
    ops::Path,
    parameters::{ParameterError, TensorSource},
};

/// A Mamba-2.
pub(crate) type Mamba2 = Frame<Mamba2Mixer>;

/// A Mamba-3.
pub(crate) type Mamba3 = Frame<Mamba3Mixer>;

macro_rules! sequence_network {
    ($network:ty, $config:ty, $state:ty) => {
        impl SequenceNetwork for $network {
            type Config = $config;
            type State = Vec<$state>;

            fn build(
                config: &$config,
                source: &TensorSource,
                device: &Device,
            ) -> Result<Self, ParameterError> {
                Frame::build(config, config.n_layers, config.dropout, source, device)
            }

            fn hidden(&self, pass: Pass<'_>, tokens: &PackedTokens) -> Tensor<2> {
                Frame::hidden(self, pass, tokens)
            }

            fn start(&self, branches: usize, device: &Device) -> Vec<$state> {
                Frame::start(self, branches, device)
            }

            fn step(
                &self,
                path: Path,
                rows: Arc<[u32]>,
                _: usize,
                states: &mut Vec<$state>,
            ) -> Tensor<2> {
                Frame::step(self, path, rows, states)
            }

            fn head(&self) -> &Linear {
                &self.output_head
            }
        }
    };
}

sequence_network!(Mamba2, Mamba2Config, Mamba2State);
sequence_network!(Mamba3, Mamba3Config, Mamba3State);
