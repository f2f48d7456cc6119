//! What a model remembers of prefixes that it follows token by token.

use burn::tensor::{Device, Tensor};

use crate::network::State;

/// Keys and values of one attention for every step so far, with room for more.
///
/// A clone shares storage; whichever of the two is written first copies it.
#[derive(Debug, Clone)]
pub(crate) struct KvCache {
    /// `[branches, H, capacity, K]`, after the rotary map.
    keys: Tensor<4>,
    /// The same for values.
    values: Tensor<4>,
}

/// Steps that a new cache has room for; room doubles as it runs out.
const FIRST_CAPACITY: usize = 64;

impl KvCache {
    pub(crate) fn new(branches: usize, heads: usize, width: usize, device: &Device) -> Self {
        let empty = Tensor::zeros([branches, heads, FIRST_CAPACITY, width], device);
        KvCache { keys: empty.clone(), values: empty }
    }

    /// Adds the key and value `[branches, H, 1, K]` of step `step` (from 0); gives those of steps `0..=step`.
    pub(crate) fn push(
        &mut self,
        step: usize,
        key: Tensor<4>,
        value: Tensor<4>,
    ) -> (Tensor<4>, Tensor<4>) {
        let place = |cache: &mut Tensor<4>, new: Tensor<4>| {
            let [branches, heads, capacity, width] = cache.dims();
            let device = cache.device();
            let mut old = std::mem::replace(cache, Tensor::zeros([1, 1, 1, 1], &device));
            if step >= capacity {
                let more = Tensor::zeros([branches, heads, capacity, width], &device);
                old = Tensor::cat(vec![old, more], 2);
            }
            let range = [0..branches, 0..heads, step..step + 1, 0..width];
            *cache = old.slice_assign(range, new);
            cache.clone().narrow(2, 0, step + 1)
        };
        (place(&mut self.keys, key), place(&mut self.values, value))
    }
}

/// A batch of prefixes, as far as a model has read them. A clone is a fork: from there on the two go their own ways.
#[derive(Debug, Clone)]
pub struct Memory {
    pub(crate) steps: usize,
    pub(crate) state: State,
}

impl Memory {
    /// Steps read so far.
    pub fn steps(&self) -> usize {
        self.steps
    }
}
