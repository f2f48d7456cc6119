//! The fused operations on flex: tensors to slices, [`crate::kernel`], and back.

use std::sync::Arc;

use burn::tensor::{PrimitiveConversionError, Tensor, TensorData};
use burn_flex::{Flex, FlexTensor};

use super::{AttentionArgs, FusedOps};
use crate::kernel::{
    attention, gather,
    head::{Grades, Head},
    linear, norm,
    random::Dropout,
    residual, swiglu,
};

/// A tensor's numbers in row-major order; copies only if the tensor is a strided view.
pub(super) struct Values(FlexTensor);

impl Values {
    pub(super) fn of(tensor: &FlexTensor) -> Self {
        Values(tensor.to_contiguous())
    }

    /// The tensor itself.
    #[cfg(feature = "train")]
    pub(super) fn into_tensor(self) -> FlexTensor {
        self.0
    }

    /// Extent of axis `axis`.
    pub(super) fn extent(&self, axis: usize) -> usize {
        self.0.layout().shape()[axis]
    }
}

impl std::ops::Deref for Values {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        self.0.storage()
    }
}

/// Wraps numbers into a tensor, without copying them.
pub(super) fn tensor<const D: usize>(data: Vec<f32>, shape: [usize; D]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(data, shape))
}

/// `[N, width]`.
pub(super) fn rows(data: Vec<f32>, width: usize) -> FlexTensor {
    let rows = data.len() / width;
    tensor(data, [rows, width])
}

/// Sizes of the linear map of `x [N, in]` by `weight [out, in]`.
pub(super) fn linear_shape(x: &Values, weight: &Values) -> linear::Shape {
    linear::Shape { rows: x.extent(0), inputs: weight.extent(1), outputs: weight.extent(0) }
}

/// Sizes of an attention over `qkv [N, 3D]`.
pub(super) fn attention_shape<'a>(qkv: &Values, args: &'a AttentionArgs) -> attention::Shape<'a> {
    attention::Shape { width: qkv.extent(1) / 3, heads: args.heads, lengths: &args.games.lengths }
}

/// The dropout of an attention, counted from its first game.
pub(super) fn attention_dropout(args: &AttentionArgs) -> Option<Dropout> {
    args.dropout.map(|dropout| dropout.from(args.games.first_game))
}

/// Classes, finiteness and, given `labels [N, 75]`, losses of `hidden [N, D]` through a state head; every tensor on flex.
pub(crate) fn grade(
    hidden: Tensor<2>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    labels: Option<&[u8]>,
) -> Grades {
    let values = |tensor: Result<FlexTensor, PrimitiveConversionError>| match tensor {
        Ok(tensor) => Values::of(&tensor),
        Err(error) => panic!("the fused form is for tensors on flex: {error:?}"),
    };
    let hidden = values(hidden.try_into_primitive::<Flex>());
    let weight = values(weight.try_into_primitive::<Flex>());
    let bias = values(bias.try_into_primitive::<Flex>());
    Head { width: weight.extent(1), weight: &weight, bias: &bias }.grade(&hidden, labels)
}

impl FusedOps for Flex {
    fn fused_gather(table: FlexTensor, ids: Arc<[u32]>) -> FlexTensor {
        let table = Values::of(&table);
        let width = table.extent(1);
        rows(gather::forward(&table, &ids, width), width)
    }

    fn fused_linear(x: FlexTensor, weight: FlexTensor, bias: FlexTensor) -> FlexTensor {
        let (x, weight, bias) = (Values::of(&x), Values::of(&weight), Values::of(&bias));
        let shape = linear_shape(&x, &weight);
        rows(linear::forward(&x, &weight, &bias, shape), shape.outputs)
    }

    fn fused_rms_norm(x: FlexTensor, weight: FlexTensor, eps: f32) -> FlexTensor {
        let (x, weight) = (Values::of(&x), Values::of(&weight));
        rows(norm::forward(&x, &weight, eps), weight.len())
    }

    fn fused_swiglu(u: FlexTensor) -> FlexTensor {
        let u = Values::of(&u);
        let width = u.extent(1) / 2;
        rows(swiglu::forward(&u, width), width)
    }

    fn fused_dropout(x: FlexTensor, dropout: Dropout) -> FlexTensor {
        let x = Values::of(&x);
        let width = x.extent(1);
        rows(residual::mask(&x, width, dropout), width)
    }

    fn fused_residual(x: FlexTensor, y: FlexTensor, dropout: Option<Dropout>) -> FlexTensor {
        let (x, y) = (Values::of(&x), Values::of(&y));
        let width = x.extent(1);
        rows(residual::forward(&x, &y, width, dropout), width)
    }

    fn fused_attention(qkv: FlexTensor, args: AttentionArgs) -> FlexTensor {
        let qkv = Values::of(&qkv);
        let shape = attention_shape(&qkv, &args);
        let (y, _) = attention::forward(&qkv, shape, &args.rope, attention_dropout(&args), false);
        rows(y, shape.width)
    }

    fn fused_head_loss(
        hidden: FlexTensor,
        weight: FlexTensor,
        bias: FlexTensor,
        labels: Arc<[u8]>,
        scale: f32,
    ) -> FlexTensor {
        let (hidden, weight, bias) = (Values::of(&hidden), Values::of(&weight), Values::of(&bias));
        let head = Head { width: weight.extent(1), weight: &weight, bias: &bias };
        let (loss, _) = head.loss(&hidden, &labels, scale, false);
        tensor(vec![loss as f32], [1])
    }
}
