//! A linear map with bias, its weight as `[out, in]`: PyTorch's layout, so that checkpoints need no transposing.

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
