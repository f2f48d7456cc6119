//! What flows between the layers of a network: for probes, and for comparison with the reference layer by layer.

use std::cell::RefCell;

use burn::tensor::Tensor;

/// A place in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The normed input of the sequence mixer.
    MixerIn,
    /// What the sequence mixer gives, before it is added to the residual stream.
    MixerOut,
    /// The residual stream behind the layer.
    LayerOut,
}

impl Place {
    /// A name for tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Place::MixerIn => "mixer_in",
            Place::MixerOut => "mixer_out",
            Place::LayerOut => "layer_out",
        }
    }
}

/// What was seen at one place of one layer.
#[derive(Debug, Clone)]
pub struct Activation {
    /// The layer, from 0.
    pub layer: usize,
    /// The place in it.
    pub place: Place,
    /// `[N, D]`.
    pub values: Tensor<2>,
}

/// Where a pass leaves its activations, in the order of computation.
#[derive(Debug, Default)]
pub struct Taps(RefCell<Vec<Activation>>);

impl Taps {
    /// Keeps a tensor.
    pub(crate) fn keep(&self, layer: usize, place: Place, values: &Tensor<2>) {
        self.0.borrow_mut().push(Activation { layer, place, values: values.clone() });
    }

    /// All that was kept.
    pub(crate) fn into_activations(self) -> Vec<Activation> {
        self.0.into_inner()
    }
}
