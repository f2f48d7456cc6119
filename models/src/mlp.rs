//! The gated MLP of a block.

use burn::module::Module;
use burn::tensor::Tensor;

use crate::{linear::Linear, ops::Path};

/// SwiGLU: `out_proj(silu(gate) * value)`, gate and value the halves of `in_proj`.
#[derive(Module, Debug)]
pub struct SwiGluMlp {
    /// D to 2 F, the gate first.
    pub in_proj: Linear,
    /// F to D.
    pub out_proj: Linear,
}

impl SwiGluMlp {
    /// # Shapes
    /// `[N, D]` to `[N, D]`
    pub fn forward(&self, path: Path, x: Tensor<2>) -> Tensor<2> {
        let gated = path.swiglu(self.in_proj.forward(path, x));
        self.out_proj.forward(path, gated)
    }
}
