//! Linear maps with and without bias, the weight as `[out, in]`: PyTorch's layout, so that checkpoints need no transposing.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use crate::ops::Path;

/// `y = x W^T + b`.
#[derive(Module, Debug)]
pub struct Linear {
    /// `[out, in]`.
    pub weight: Param<Tensor<2>>,
    /// `[out]`.
    pub bias: Param<Tensor<1>>,
}

impl Linear {
    /// # Shapes
    /// `[N, in]` to `[N, out]`
    pub fn forward(&self, path: Path, x: Tensor<2>) -> Tensor<2> {
        path.linear(x, self.weight.val(), self.bias.val())
    }
}

/// `y = x W^T`.
#[derive(Module, Debug)]
pub struct Projection {
    /// `[out, in]`.
    pub weight: Param<Tensor<2>>,
}

impl Projection {
    /// # Shapes
    /// `[N, in]` to `[N, out]`
    pub fn forward(&self, path: Path, x: Tensor<2>) -> Tensor<2> {
        path.product(x, self.weight.val())
    }
}

/// Several maps of one input as one product.
///
/// # Shapes
/// `[N, in]` to `[N, out_1 + out_2 + ..]`
pub(crate) fn project<const M: usize>(
    path: Path,
    x: Tensor<2>,
    maps: [&Projection; M],
) -> Tensor<2> {
    path.product(x, Tensor::cat(maps.map(|map| map.weight.val()).to_vec(), 0))
}
