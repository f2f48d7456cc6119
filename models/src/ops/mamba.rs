//! The operations of Mamba-2 and Mamba-3: the mixers between their projections, and the gate of their MLP.
//!
//! The mixers' own parameters are small, and many. To the fused form they go as one row of numbers: those of
//! [`Mamba2Weights`] and [`Mamba3Weights`], one after the other.

use burn::backend::{Dispatch, backend_extension, tensor::FloatTensor};
use burn::tensor::{Tensor, activation};
use burn_flex::{Flex, FlexTensor};

use super::{
    Games, Path,
    flex::{Values, rows},
};
use crate::{
    kernel::{
        mamba::{mamba2, mamba3},
        swiglu,
    },
    mamba::portable,
};

/// The reference's epsilon in every norm.
pub(crate) const NORM_EPS: f32 = 1e-5;

/// What the mixer of Mamba-2 needs besides its input and weights.
#[derive(Debug, Clone)]
pub struct Mamba2Args {
    /// Heads H.
    pub heads: usize,
    /// Channels of a head P.
    pub head_width: usize,
    /// State width N.
    pub state_width: usize,
    /// Steps that the convolution sees W.
    pub conv_width: usize,
    /// Steps of a chunk; the form's measured default if absent.
    pub chunk_steps: Option<usize>,
    /// The games.
    pub games: Games,
}

/// What the mixer of Mamba-3 needs besides its input and weights.
#[derive(Debug, Clone)]
pub struct Mamba3Args {
    /// Heads H.
    pub heads: usize,
    /// Channels of a head P.
    pub head_width: usize,
    /// State width N.
    pub state_width: usize,
    /// Inputs a step R with MIMO; SISO if absent.
    pub mimo_rank: Option<usize>,
    /// Steps of a chunk; the form's measured default if absent.
    pub chunk_steps: Option<usize>,
    /// The games.
    pub games: Games,
}

/// Parameters of the mixer of Mamba-2.
#[derive(Debug, Clone)]
pub struct Mamba2Weights {
    /// `[C, 1, W]`, C = H P + 2 N.
    pub conv: Tensor<3>,
    /// `[C]`.
    pub conv_bias: Tensor<1>,
    /// `[H]`.
    pub dt_bias: Tensor<1>,
    /// `[H]`.
    pub a_log: Tensor<1>,
    /// `[H]`.
    pub d: Tensor<1>,
    /// `[H P]`.
    pub norm: Tensor<1>,
}

/// Parameters of the mixer of Mamba-3.
#[derive(Debug, Clone)]
pub struct Mamba3Weights {
    /// `[H]`.
    pub dt_bias: Tensor<1>,
    /// `[N]`.
    pub b_norm: Tensor<1>,
    /// `[N]`.
    pub c_norm: Tensor<1>,
    /// `[H, R, N]`.
    pub b_bias: Tensor<3>,
    /// `[H, R, N]`.
    pub c_bias: Tensor<3>,
    /// `[H]`.
    pub d: Tensor<1>,
    /// With MIMO, the factors of values, inside the gate and of outputs, `[H, R, P]` each.
    pub mimo: Option<[Tensor<3>; 3]>,
}

/// The fused operations of Mamba-2 and Mamba-3.
#[backend_extension(Flex, Autodiff: cfg(feature = "train"))]
pub trait MambaOps: burn::backend::Backend {
    /// `u [N, 2F]` to `[N, F]`, the gate in the second half.
    fn fused_swiglu_gate_last(u: FloatTensor<Self>) -> FloatTensor<Self>;

    /// `u [N, projected]` and parameters in a row to `[N, H P]`.
    fn fused_mamba2(
        u: FloatTensor<Self>,
        weights: FloatTensor<Self>,
        args: Mamba2Args,
    ) -> FloatTensor<Self>;

    /// `u [N, projected]` and parameters in a row to `[N, H P]`.
    fn fused_mamba3(
        u: FloatTensor<Self>,
        weights: FloatTensor<Self>,
        args: Mamba3Args,
    ) -> FloatTensor<Self>;
}

impl Mamba2Args {
    fn extents(&self) -> mamba2::Extents<'_> {
        mamba2::Extents {
            heads: self.heads,
            head_width: self.head_width,
            state_width: self.state_width,
            conv_width: self.conv_width,
            chunk: self.chunk_steps.unwrap_or(mamba2::CHUNK_STEPS),
            eps: NORM_EPS,
            lengths: &self.games.lengths,
        }
    }
}

impl Mamba3Args {
    /// Inputs a step R.
    pub fn rank(&self) -> usize {
        self.mimo_rank.unwrap_or(1)
    }

    fn extents(&self) -> mamba3::Extents<'_> {
        mamba3::Extents {
            heads: self.heads,
            head_width: self.head_width,
            state_width: self.state_width,
            rank: self.rank(),
            mimo: self.mimo_rank.is_some(),
            chunk: self.chunk_steps.unwrap_or_else(|| mamba3::chunk_steps(self.rank())),
            eps: NORM_EPS,
            lengths: &self.games.lengths,
        }
    }
}

impl MambaOps for Flex {
    fn fused_swiglu_gate_last(u: FlexTensor) -> FlexTensor {
        let u = Values::of(&u);
        let width = u.extent(1) / 2;
        rows(swiglu::forward_gate_last(&u, width), width)
    }

    fn fused_mamba2(u: FlexTensor, weights: FlexTensor, args: Mamba2Args) -> FlexTensor {
        let (u, weights) = (Values::of(&u), Values::of(&weights));
        let extents = args.extents();
        let weights = mamba2::Weights::split(&weights, &extents);
        rows(mamba2::forward(&u, weights, extents, false).0, extents.inner())
    }

    fn fused_mamba3(u: FlexTensor, weights: FlexTensor, args: Mamba3Args) -> FlexTensor {
        let (u, weights) = (Values::of(&u), Values::of(&weights));
        let extents = args.extents();
        let weights = mamba3::Weights::split(&weights, &extents);
        rows(mamba3::forward(&u, weights, extents, false).0, extents.inner())
    }
}

impl Path {
    /// `u [N, 2F]` to `[N, F]`, the gate in the second half.
    pub fn swiglu_gate_last(self, u: Tensor<2>) -> Tensor<2> {
        match self {
            Path::Fused => {
                Tensor::from_dispatch(Dispatch::fused_swiglu_gate_last(u.into_dispatch()))
            }
            Path::Gpu | Path::Portable => {
                let width = u.dims()[1] / 2;
                let (value, gate) = (u.clone().narrow(1, 0, width), u.narrow(1, width, width));
                value * activation::silu(gate)
            }
        }
    }

    /// The mixer of Mamba-2 between its projections: `u [N, projected]` to `[N, H P]`.
    pub fn mamba2(self, u: Tensor<2>, weights: Mamba2Weights, args: Mamba2Args) -> Tensor<2> {
        match self {
            Path::Fused => {
                let Mamba2Weights { conv, conv_bias, dt_bias, a_log, d, norm } = weights;
                let row = vec![conv.flatten(0, 2), conv_bias, dt_bias, a_log, d, norm];
                Tensor::from_dispatch(Dispatch::fused_mamba2(
                    u.into_dispatch(),
                    Tensor::cat(row, 0).into_dispatch(),
                    args,
                ))
            }
            Path::Gpu | Path::Portable => portable::mamba2(u, weights, &args),
        }
    }

    /// The mixer of Mamba-3 between its projections: `u [N, projected]` to `[N, H P]`.
    pub fn mamba3(self, u: Tensor<2>, weights: Mamba3Weights, args: Mamba3Args) -> Tensor<2> {
        match self {
            Path::Fused => {
                let Mamba3Weights { dt_bias, b_norm, c_norm, b_bias, c_bias, d, mimo } = weights;
                let (b_bias, c_bias) = (b_bias.flatten(0, 2), c_bias.flatten(0, 2));
                let mut row = vec![dt_bias, b_norm, c_norm, b_bias, c_bias, d];
                row.extend(mimo.into_iter().flatten().map(|factors| factors.flatten(0, 2)));
                Tensor::from_dispatch(Dispatch::fused_mamba3(
                    u.into_dispatch(),
                    Tensor::cat(row, 0).into_dispatch(),
                    args,
                ))
            }
            Path::Gpu | Path::Portable => portable::mamba3(u, weights, &args),
        }
    }
}

#[cfg(feature = "train")]
mod tracked {
    use std::sync::Arc;

    use burn::backend::Autodiff;
    use burn::backend::autodiff::{
        NodeId,
        checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
        grads::Gradients,
        ops::{Backward, Ops, OpsKind},
    };

    use super::*;
    use crate::{
        kernel::mamba::mamba3_backward,
        ops::{
            autodiff::{Tracked, finish},
            flex::tensor,
        },
    };

    #[derive(Debug)]
    struct SwiGluGateLast;
    #[derive(Debug)]
    struct Mamba2;
    #[derive(Debug)]
    struct Mamba3;

    impl<C: CheckpointStrategy> MambaOps for Autodiff<Flex, C> {
        fn fused_swiglu_gate_last(u: Tracked<C>) -> Tracked<C> {
            let parents = [u.node()];
            let u = u.into_primitive();
            let out = Flex::fused_swiglu_gate_last(u.clone());
            finish!(SwiGluGateLast, C, parents, u, out)
        }

        fn fused_mamba2(u: Tracked<C>, weights: Tracked<C>, args: Mamba2Args) -> Tracked<C> {
            let parents = [u.node(), weights.node()];
            let inputs = [u.into_primitive(), weights.into_primitive()];
            let [u, weights] = [0, 1].map(|i| Values::of(&inputs[i]));
            let extents = args.extents();
            let weights = mamba2::Weights::split(&weights, &extents);
            let (y, saved) = mamba2::forward(&u, weights, extents, true);
            let out = rows(y, extents.inner());
            finish!(Mamba2, C, parents, (inputs, Arc::new(saved), args), out)
        }

        fn fused_mamba3(u: Tracked<C>, weights: Tracked<C>, args: Mamba3Args) -> Tracked<C> {
            let parents = [u.node(), weights.node()];
            let inputs = [u.into_primitive(), weights.into_primitive()];
            let [u, weights] = [0, 1].map(|i| Values::of(&inputs[i]));
            let extents = args.extents();
            let weights = mamba3::Weights::split(&weights, &extents);
            let (y, saved) = mamba3::forward(&u, weights, extents, true);
            let out = rows(y, extents.inner());
            finish!(Mamba3, C, parents, (inputs, Arc::new(saved), args), out)
        }
    }

    impl Backward<Flex, 1> for SwiGluGateLast {
        type State = FlexTensor;
        fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
            let dy = Values::of(&grads.consume::<Flex>(&ops.node));
            let u = Values::of(&ops.state);
            if let [Some(node)] = ops.parents {
                let width = u.extent(1) / 2;
                let d = swiglu::backward_gate_last(&dy, &u, width);
                grads.register::<Flex>(node.id, rows(d, 2 * width));
            }
        }
    }

    /// Hands the gradients of input and parameters to the parents.
    fn register(
        grads: &mut Gradients,
        [u, weights]: [Option<NodeId>; 2],
        d_u: Vec<f32>,
        projected: usize,
        d_weights: Vec<f32>,
    ) {
        if let Some(node) = u {
            grads.register::<Flex>(node, rows(d_u, projected));
        }
        if let Some(node) = weights {
            let count = d_weights.len();
            grads.register::<Flex>(node, tensor(d_weights, [count]));
        }
    }

    impl Backward<Flex, 2> for Mamba2 {
        type State = ([FlexTensor; 2], Arc<Vec<f32>>, Mamba2Args);
        fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
            let dy = Values::of(&grads.consume::<Flex>(&ops.node));
            let (inputs, saved, args) = ops.state;
            let [u, weights] = [0, 1].map(|i| Values::of(&inputs[i]));
            let extents = args.extents();
            let weights = mamba2::Weights::split(&weights, &extents);
            let d = mamba2::backward(&dy, &saved, &u, weights, extents);
            let row = [d.conv, d.conv_bias, d.dt_bias, d.a_log, d.d, d.norm].concat();
            let parents = ops.parents.map(|node| node.map(|node| node.id));
            register(grads, parents, d.u, extents.projected(), row);
        }
    }

    impl Backward<Flex, 2> for Mamba3 {
        type State = ([FlexTensor; 2], Arc<Vec<f32>>, Mamba3Args);
        fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
            let dy = Values::of(&grads.consume::<Flex>(&ops.node));
            let (inputs, saved, args) = ops.state;
            let [u, weights] = [0, 1].map(|i| Values::of(&inputs[i]));
            let extents = args.extents();
            let weights = mamba3::Weights::split(&weights, &extents);
            let d = mamba3_backward::backward(&dy, &saved, &u, weights, extents);
            let mut row = [d.dt_bias, d.b_norm, d.c_norm, d.b_bias, d.c_bias, d.d].concat();
            row.extend(d.mimo.concat());
            let parents = ops.parents.map(|node| node.map(|node| node.id));
            register(grads, parents, d.u, extents.projected(), row);
        }
    }
}
