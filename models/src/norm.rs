//! RMSNorm with a learnt scale.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use crate::ops::Path;

/// `x / sqrt(mean(x^2) + eps) * weight`, over the last axis.
#[derive(Module, Debug)]
pub struct RmsNorm {
    /// `[D]`.
    pub weight: Param<Tensor<1>>,
    /// Added to the mean square.
    #[module(skip)]
    pub eps: f32,
}

impl RmsNorm {
    /// # Shapes
    /// `[N, D]` to `[N, D]`
    pub fn forward(&self, path: Path, x: Tensor<2>) -> Tensor<2> {
        path.rms_norm(x, self.weight.val(), self.eps)
    }
}
