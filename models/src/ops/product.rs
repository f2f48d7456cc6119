//! `y = x W^T`: a linear map without bias, in both forms.

use burn::backend::{Dispatch, backend_extension, tensor::FloatTensor};
use burn::tensor::Tensor;
use burn_flex::{Flex, FlexTensor};

use super::{
    Path,
    flex::{Values, linear_shape, rows},
};
use crate::kernel::linear;

/// The fused form.
#[backend_extension(Flex, Autodiff: cfg(feature = "train"))]
pub trait ProductOps: burn::backend::Backend {
    /// `x [N, in]`, `weight [out, in]` to `[N, out]`.
    fn fused_product(x: FloatTensor<Self>, weight: FloatTensor<Self>) -> FloatTensor<Self>;
}

impl ProductOps for Flex {
    fn fused_product(x: FlexTensor, weight: FlexTensor) -> FlexTensor {
        let (x, weight) = (Values::of(&x), Values::of(&weight));
        let shape = linear_shape(&x, &weight);
        rows(linear::product(&x, &weight, shape), shape.outputs)
    }
}

impl Path {
    /// `x [N, in]`, `weight [out, in]` to `[N, out]`.
    pub fn product(self, x: Tensor<2>, weight: Tensor<2>) -> Tensor<2> {
        match self {
            Path::Fused => Tensor::from_dispatch(Dispatch::fused_product(
                x.into_dispatch(),
                weight.into_dispatch(),
            )),
            Path::Gpu | Path::Portable => x.matmul(weight.transpose()),
        }
    }
}

#[cfg(feature = "train")]
mod autodiff {
    use burn::backend::Autodiff;
    use burn::backend::autodiff::{
        checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
        grads::Gradients,
        ops::{Backward, Ops, OpsKind},
    };

    use super::*;
    use crate::ops::autodiff::{Tracked, finish};

    #[derive(Debug)]
    struct Product;

    impl<C: CheckpointStrategy> ProductOps for Autodiff<Flex, C> {
        fn fused_product(x: Tracked<C>, weight: Tracked<C>) -> Tracked<C> {
            let parents = [x.node(), weight.node()];
            let (x, weight) = (x.into_primitive(), weight.into_primitive());
            let out = Flex::fused_product(x.clone(), weight.clone());
            finish!(Product, C, parents, (x, weight), out)
        }
    }

    impl Backward<Flex, 2> for Product {
        type State = (FlexTensor, FlexTensor);
        fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
            let dy = Values::of(&grads.consume::<Flex>(&ops.node));
            let (x, weight) = (Values::of(&ops.state.0), Values::of(&ops.state.1));
            let shape = linear_shape(&x, &weight);
            let [to_x, to_weight] = ops.parents;
            if let Some(node) = to_x {
                let dx = rows(linear::input_gradient(&dy, &weight, shape), shape.inputs);
                grads.register::<Flex>(node.id, dx);
            }
            if let Some(node) = to_weight {
                let dw = rows(linear::weight_gradient(&dy, &x, shape), shape.inputs);
                grads.register::<Flex>(node.id, dw);
            }
        }
    }
}
