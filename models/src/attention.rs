//! The Transformer's mixer: causal self-attention (paper, section 3.2).

use burn::module::Module;
use burn::tensor::{Tensor, TensorData, activation};

use crate::{
    kernel::rope::RopeTable,
    linear::Linear,
    memory::KvCache,
    ops::{AttentionArgs, Path},
};

/// Multi-head causal self-attention with rotary positions.
#[derive(Module, Debug)]
pub struct Attention {
    /// D to 3 D: queries, keys and values, each head after head.
    pub qkv: Linear,
    /// D to D.
    pub out_proj: Linear,
}

impl Attention {
    /// # Shapes
    /// `[N, D]` to `[N, D]`
    pub fn forward(&self, path: Path, x: Tensor<2>, args: AttentionArgs) -> Tensor<2> {
        let mixed = path.attention(self.qkv.forward(path, x), args);
        self.out_proj.forward(path, mixed)
    }

    /// The last step's output, given a cache of the steps before it.
    ///
    /// # Shapes
    /// `[branches, D]` to `[branches, D]`
    pub(crate) fn step(
        &self,
        path: Path,
        x: Tensor<2>,
        heads: usize,
        step: usize,
        rope: &RopeTable,
        cache: &mut KvCache,
    ) -> Tensor<2> {
        let [branches, width] = x.dims();
        let head_width = width / heads;
        let qkv = self.qkv.forward(path, x).reshape([branches, 3, heads, head_width]);
        // [branches, H, 1, K]
        let part = |i: usize| qkv.clone().narrow(1, i, 1).swap_dims(1, 2);
        let query = turn(part(0), step, rope);
        let (keys, values) = cache.push(step, turn(part(1), step, rope), part(2));
        let scores = query.matmul(keys.swap_dims(2, 3)).div_scalar((head_width as f32).sqrt());
        let mixed = activation::softmax(scores, 3).matmul(values).reshape([branches, width]);
        self.out_proj.forward(path, mixed)
    }
}

/// The rotary map of `[branches, H, 1, K]` at step `step`.
fn turn(x: Tensor<4>, step: usize, rope: &RopeTable) -> Tensor<4> {
    let [branches, heads, _, width] = x.dims();
    let device = x.device();
    let row = |factors: &[f32]| {
        Tensor::<4>::from_data(TensorData::new(factors.to_vec(), [1, 1, 1, width]), &device)
    };
    let (cos, partner) = rope.at(step);
    let swapped = x
        .clone()
        .reshape([branches, heads, width / 2, 2])
        .flip([3])
        .reshape([branches, heads, 1, width]);
    x * row(cos) + swapped * row(partner)
}
