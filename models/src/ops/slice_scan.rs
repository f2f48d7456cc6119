//! SLiCE's recurrence on a GPU: Burn's products make the transitions, an own kernel takes the states through them.

use std::sync::Arc;

use burn::backend::{Dispatch, backend_extension, tensor::FloatTensor};
use burn::tensor::Tensor;
use burn_cubecl::{CubeBackend, tensor::CubeTensor};

use super::SliceArgs;
use crate::{cube::slice, slice::scan};

/// The kernels of the recurrence.
#[backend_extension(
    Cube,
    Autodiff: cfg(feature = "train"),
    Fusion: cfg(feature = "fusion"),
)]
pub trait SliceScanOps: burn::backend::Backend {
    /// States `[N, D]` from transitions `[N, D block]` (by column, row and block), inputs `[N, D]` and the first state
    /// `[D]`.
    #[fusion(dtype = inputs, shape = inputs)]
    fn slice_scan(
        transitions: FloatTensor<Self>,
        inputs: FloatTensor<Self>,
        init: FloatTensor<Self>,
        lengths: Arc<[u32]>,
        block: usize,
    ) -> FloatTensor<Self>;

    /// The gradient of the transitions, and `[N + games, D]` that of the inputs with each game's share of the first
    /// state's behind, from that of the states.
    #[fusion(meta = backward_specs)]
    fn slice_scan_backward(
        gradient: FloatTensor<Self>,
        states: FloatTensor<Self>,
        transitions: FloatTensor<Self>,
        init: FloatTensor<Self>,
        lengths: Arc<[u32]>,
        block: usize,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
}

#[cfg(feature = "fusion")]
use burn::backend::fusion::custom::TensorSpec;

/// What comes out of the backward pass.
#[cfg(feature = "fusion")]
fn backward_specs(
    _: &TensorSpec,
    states: &TensorSpec,
    transitions: &TensorSpec,
    _: &TensorSpec,
    lengths: &Arc<[u32]>,
    _: &usize,
) -> (TensorSpec, TensorSpec) {
    let [rows, width] = states.shape.dims();
    let to_states = TensorSpec::new([rows + lengths.len(), width].into(), states.dtype);
    (transitions.clone(), to_states)
}

impl SliceScanOps for CubeBackend {
    fn slice_scan(
        transitions: CubeTensor,
        inputs: CubeTensor,
        init: CubeTensor,
        lengths: Arc<[u32]>,
        block: usize,
    ) -> CubeTensor {
        slice::forward([transitions, inputs, init], &lengths, block)
    }

    fn slice_scan_backward(
        gradient: CubeTensor,
        states: CubeTensor,
        transitions: CubeTensor,
        init: CubeTensor,
        lengths: Arc<[u32]>,
        block: usize,
    ) -> (CubeTensor, CubeTensor) {
        slice::backward([gradient, states, transitions, init], &lengths, block)
    }
}

/// The states `[N, D]` over `u [N, D]`, from `a [D block, D + 1]`, `b [D, D + 1]` and `init [D]`.
pub(super) fn states(
    u: Tensor<2>,
    a: Tensor<2>,
    b: Tensor<2>,
    init: Tensor<1>,
    args: &SliceArgs,
) -> Tensor<2> {
    let [rows, width] = u.dims();
    let block = args.block;
    if rows == 0 || block > slice::BLOCK_MAX {
        return scan::states(u, a, b, init, args);
    }
    let increments = scan::increments(u, &args.games, args.scale);
    // From block, row, column to column, row, block.
    let by_column = a.reshape([width / block, block, block, width + 1]).permute([2, 1, 0, 3]);
    let by_column = by_column.reshape([width * block, width + 1]);
    let transitions = increments.clone().matmul(by_column.transpose());
    let inputs = increments.matmul(b.transpose());
    Tensor::from_dispatch(Dispatch::slice_scan(
        transitions.into_dispatch(),
        inputs.into_dispatch(),
        init.into_dispatch(),
        args.games.lengths.clone(),
        block,
    ))
}

#[cfg(feature = "train")]
mod tracked {
    use burn::backend::Autodiff;
    use burn::backend::autodiff::{
        checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
        grads::Gradients,
        ops::{Backward, Ops, OpsKind},
    };
    use burn::backend::{Backend, TensorMetadata};
    use burn::tensor::{Shape, Slice};

    use super::*;
    use crate::ops::autodiff::finish;

    type Tracked<B, C> = FloatTensor<Autodiff<B, C>>;

    #[derive(Debug)]
    struct Scan;

    /// The states and what made them.
    #[derive(Debug, Clone)]
    struct State<B: Backend> {
        states: FloatTensor<B>,
        transitions: FloatTensor<B>,
        init: FloatTensor<B>,
        lengths: Arc<[u32]>,
        block: usize,
    }

    impl<B: SliceScanOps, C: CheckpointStrategy> SliceScanOps for Autodiff<B, C> {
        fn slice_scan(
            transitions: Tracked<B, C>,
            inputs: Tracked<B, C>,
            init: Tracked<B, C>,
            lengths: Arc<[u32]>,
            block: usize,
        ) -> Tracked<B, C> {
            let parents = [transitions.node(), inputs.node(), init.node()];
            let (transitions, init) = (transitions.into_primitive(), init.into_primitive());
            let states = B::slice_scan(
                transitions.clone(),
                inputs.into_primitive(),
                init.clone(),
                lengths.clone(),
                block,
            );
            let state = State { states: states.clone(), transitions, init, lengths, block };
            finish!(Scan, C, parents, state, states)
        }

        fn slice_scan_backward(
            _: Tracked<B, C>,
            _: Tracked<B, C>,
            _: Tracked<B, C>,
            _: Tracked<B, C>,
            _: Arc<[u32]>,
            _: usize,
        ) -> (Tracked<B, C>, Tracked<B, C>) {
            unimplemented!("Burn has no gradients of gradients")
        }
    }

    impl<B: SliceScanOps> Backward<B, 3> for Scan {
        type State = State<B>;
        fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
            let gradient = grads.consume::<B>(&ops.node);
            let State { states, transitions, init, lengths, block } = ops.state;
            let [rows, width] = states.shape().dims();
            let games = lengths.len();
            let (to_transitions, to_states) =
                B::slice_scan_backward(gradient, states, transitions, init, lengths, block);
            let of_rows = |from: usize, to: usize| {
                let range = [Slice::from(from..to), Slice::from(0..width)];
                B::float_slice(to_states.clone(), &range)
            };
            let [transitions, inputs, init] = ops.parents;
            if let Some(node) = transitions {
                grads.register::<B>(node.id, to_transitions);
            }
            if let Some(node) = inputs {
                grads.register::<B>(node.id, of_rows(0, rows));
            }
            if let Some(node) = init {
                let sum = B::float_sum_dim(of_rows(rows, rows + games), 0);
                grads.register::<B>(node.id, B::float_reshape(sum, Shape::new([width])));
            }
        }
    }
}
