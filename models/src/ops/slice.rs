//! SLiCE's operations: the recurrence and GELU.

use burn::backend::{Dispatch, backend_extension, tensor::FloatTensor};
use burn::tensor::{Tensor, activation};
use burn_flex::{Flex, FlexTensor};

use super::{
    Games, Path,
    flex::{Values, rows},
};
use crate::{
    kernel::{
        gelu,
        slice::{self, Shape, Weights},
    },
    slice::scan,
};

/// What a recurrence needs besides its input and weights.
#[derive(Debug, Clone)]
pub struct SliceArgs {
    /// Rows and columns of a block of A.
    pub block: usize,
    /// What the increments are multiplied by.
    pub scale: f32,
    /// The games.
    pub games: Games,
    /// Steps of a chunk in the portable form.
    pub chunk_steps: usize,
}

/// The fused operations of SLiCE.
#[backend_extension(Flex, Autodiff: cfg(feature = "train"))]
pub trait SliceOps: burn::backend::Backend {
    /// The states `[N, D]` over `u [N, D]`, from `a [D block, D + 1]`, `b [D, D + 1]` and `init [D]`.
    fn fused_slice(
        u: FloatTensor<Self>,
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        init: FloatTensor<Self>,
        args: SliceArgs,
    ) -> FloatTensor<Self>;

    /// `x P(x)` of `x [N, F]`, with the normal distribution P.
    fn fused_gelu(x: FloatTensor<Self>) -> FloatTensor<Self>;
}

fn shape<'a>(init: &Values, args: &'a SliceArgs) -> Shape<'a> {
    let SliceArgs { block, scale, .. } = *args;
    Shape { width: init.len(), block, scale, lengths: &args.games.lengths }
}

impl SliceOps for Flex {
    fn fused_slice(
        u: FlexTensor,
        a: FlexTensor,
        b: FlexTensor,
        init: FlexTensor,
        args: SliceArgs,
    ) -> FlexTensor {
        let [u, a, b, init] = [u, a, b, init].map(|tensor| Values::of(&tensor));
        let weights = Weights { a: &a, b: &b, init: &init };
        rows(slice::forward(&u, weights, shape(&init, &args)).states, init.len())
    }

    fn fused_gelu(x: FlexTensor) -> FlexTensor {
        let x = Values::of(&x);
        rows(gelu::forward(&x), x.extent(1))
    }
}

impl Path {
    /// The states `[N, D]` over `u [N, D]`, from `a [D block, D + 1]`, `b [D, D + 1]` and `init [D]`.
    pub fn slice(
        self,
        u: Tensor<2>,
        a: Tensor<2>,
        b: Tensor<2>,
        init: Tensor<1>,
        args: SliceArgs,
    ) -> Tensor<2> {
        match self {
            Path::Fused => Tensor::from_dispatch(Dispatch::fused_slice(
                u.into_dispatch(),
                a.into_dispatch(),
                b.into_dispatch(),
                init.into_dispatch(),
                args,
            )),
            #[cfg(feature = "gpu")]
            Path::Gpu => super::slice_scan::states(u, a, b, init, &args),
            _ => scan::states(u, a, b, init, &args),
        }
    }

    /// `x P(x)` of `x [N, F]`, with the normal distribution P.
    pub fn gelu(self, x: Tensor<2>) -> Tensor<2> {
        match self {
            Path::Fused => Tensor::from_dispatch(Dispatch::fused_gelu(x.into_dispatch())),
            Path::Gpu | Path::Portable => activation::gelu(x),
        }
    }
}

#[cfg(feature = "train")]
mod tracked {
    use std::sync::Arc;

    use burn::backend::Autodiff;
    use burn::backend::autodiff::{
        checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
        grads::Gradients,
        ops::{Backward, Ops, OpsKind},
    };

    use super::*;
    use crate::ops::{
        autodiff::{Tracked, finish},
        flex::tensor,
    };

    #[derive(Debug)]
    struct Slice;
    #[derive(Debug)]
    struct Gelu;

    /// The inputs, and what the forward pass left.
    type SliceState = ([FlexTensor; 4], Arc<slice::Saved>, SliceArgs);

    impl<C: CheckpointStrategy> SliceOps for Autodiff<Flex, C> {
        fn fused_slice(
            u: Tracked<C>,
            a: Tracked<C>,
            b: Tracked<C>,
            init: Tracked<C>,
            args: SliceArgs,
        ) -> Tracked<C> {
            let parents = [u.node(), a.node(), b.node(), init.node()];
            let inputs = [u, a, b, init].map(|tensor| tensor.into_primitive());
            let [u, a, b, init] = [0, 1, 2, 3].map(|i| Values::of(&inputs[i]));
            let weights = Weights { a: &a, b: &b, init: &init };
            let saved = slice::forward(&u, weights, shape(&init, &args));
            let out = rows(saved.states.clone(), init.len());
            finish!(Slice, C, parents, (inputs, Arc::new(saved), args), out)
        }

        fn fused_gelu(x: Tracked<C>) -> Tracked<C> {
            let parents = [x.node()];
            let x = x.into_primitive();
            let out = Flex::fused_gelu(x.clone());
            finish!(Gelu, C, parents, x, out)
        }
    }

    impl Backward<Flex, 4> for Slice {
        type State = SliceState;
        fn backward(self, ops: Ops<Self::State, 4>, grads: &mut Gradients, _: &mut Checkpointer) {
            let dy = Values::of(&grads.consume::<Flex>(&ops.node));
            let (inputs, saved, args) = ops.state;
            let [u, a, b, init] = [0, 1, 2, 3].map(|i| Values::of(&inputs[i]));
            let weights = Weights { a: &a, b: &b, init: &init };
            let width = init.len();
            let d = slice::backward(&dy, &u, weights, &saved, shape(&init, &args));
            let d = [
                rows(d.u, width),
                rows(d.a, width + 1),
                rows(d.b, width + 1),
                tensor(d.init, [width]),
            ];
            for (node, gradient) in ops.parents.into_iter().zip(d) {
                if let Some(node) = node {
                    grads.register::<Flex>(node.id, gradient);
                }
            }
        }
    }

    impl Backward<Flex, 1> for Gelu {
        type State = FlexTensor;
        fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
            let dy = Values::of(&grads.consume::<Flex>(&ops.node));
            let x = Values::of(&ops.state);
            if let [Some(node)] = ops.parents {
                grads.register::<Flex>(node.id, rows(gelu::backward(&dy, &x), x.extent(1)));
            }
        }
    }
}
