//! The fused operations under automatic differentiation: what each keeps of its forward pass, and its backward.

use std::sync::Arc;

use burn::backend::Autodiff;
use burn::backend::autodiff::{
    checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
    grads::Gradients,
    ops::{Backward, Ops, OpsKind},
};
use burn_flex::{Flex, FlexTensor};

use super::flex::{Values, attention_dropout, attention_shape, linear_shape, rows, tensor};
use super::{AttentionArgs, FusedOps};
use crate::kernel::{
    attention, gather, head::Head, linear, norm, random::Dropout, residual, swiglu,
};

pub(super) type Tracked<C> = burn::backend::tensor::FloatTensor<Autodiff<Flex, C>>;

/// Registers a step with its state if one of its parents is tracked.
///
/// A family's operations have a file of their own beside this one: a trait with `#[backend_extension]`, and its
/// implementations for `Flex` and, with this macro, for `Autodiff<Flex, C>`.
macro_rules! finish {
    ($step:expr, $strategy:ty, $parents:expr, $state:expr, $output:expr) => {
        match $step.prepare::<$strategy>($parents).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => prepared.finish($state, $output),
            OpsKind::UnTracked(prepared) => prepared.finish($output),
        }
    };
}
pub(super) use finish;

#[derive(Debug)]
struct Gather;
#[derive(Debug)]
struct Linear;
#[derive(Debug)]
struct RmsNorm;
#[derive(Debug)]
struct SwiGlu;
#[derive(Debug)]
struct Drop;
#[derive(Debug)]
struct Residual;
#[derive(Debug)]
struct Attention;
#[derive(Debug)]
struct HeadLoss;

impl<C: CheckpointStrategy> FusedOps for Autodiff<Flex, C> {
    fn fused_gather(table: Tracked<C>, ids: Arc<[u32]>) -> Tracked<C> {
        let parents = [table.node()];
        let table = table.into_primitive();
        let size = table.layout().shape()[0];
        let out = Flex::fused_gather(table, ids.clone());
        finish!(Gather, C, parents, (ids, size), out)
    }

    fn fused_linear(x: Tracked<C>, weight: Tracked<C>, bias: Tracked<C>) -> Tracked<C> {
        let parents = [x.node(), weight.node(), bias.node()];
        let (x, weight) = (x.into_primitive(), weight.into_primitive());
        let out = Flex::fused_linear(x.clone(), weight.clone(), bias.into_primitive());
        finish!(Linear, C, parents, (x, weight), out)
    }

    fn fused_rms_norm(x: Tracked<C>, weight: Tracked<C>, eps: f32) -> Tracked<C> {
        let parents = [x.node(), weight.node()];
        let (x, weight) = (x.into_primitive(), weight.into_primitive());
        let out = Flex::fused_rms_norm(x.clone(), weight.clone(), eps);
        finish!(RmsNorm, C, parents, (x, weight, eps), out)
    }

    fn fused_swiglu(u: Tracked<C>) -> Tracked<C> {
        let parents = [u.node()];
        let u = u.into_primitive();
        let out = Flex::fused_swiglu(u.clone());
        finish!(SwiGlu, C, parents, u, out)
    }

    fn fused_dropout(x: Tracked<C>, dropout: Dropout) -> Tracked<C> {
        let parents = [x.node()];
        let out = Flex::fused_dropout(x.into_primitive(), dropout);
        finish!(Drop, C, parents, dropout, out)
    }

    fn fused_residual(x: Tracked<C>, y: Tracked<C>, dropout: Option<Dropout>) -> Tracked<C> {
        let parents = [x.node(), y.node()];
        let out = Flex::fused_residual(x.into_primitive(), y.into_primitive(), dropout);
        finish!(Residual, C, parents, dropout, out)
    }

    fn fused_attention(qkv: Tracked<C>, args: AttentionArgs) -> Tracked<C> {
        let parents = [qkv.node()];
        let qkv = qkv.into_primitive();
        let values = Values::of(&qkv);
        let shape = attention_shape(&values, &args);
        let dropout = attention_dropout(&args);
        let (out, probabilities) = attention::forward(&values, shape, &args.rope, dropout, true);
        let out = rows(out, shape.width);
        drop(values);
        finish!(Attention, C, parents, (qkv, Arc::new(probabilities), args), out)
    }

    fn fused_head_loss(
        hidden: Tracked<C>,
        weight: Tracked<C>,
        bias: Tracked<C>,
        labels: Arc<[u8]>,
        scale: f32,
    ) -> Tracked<C> {
        let parents = [hidden.node(), weight.node(), bias.node()];
        let hidden = Values::of(&hidden.into_primitive());
        let weight = Values::of(&weight.into_primitive());
        let bias = Values::of(&bias.into_primitive());
        let width = weight.extent(1);
        let head = Head { width, weight: &weight, bias: &bias };
        // The logits are gone when the backward pass comes, so the gradients are made along with the loss.
        let (loss, gradients) = head.loss(&hidden, &labels, scale, true);
        let out = tensor(vec![loss as f32], [1]);
        let state = gradients.map(|gradients| {
            let outputs = gradients.bias.len();
            [
                rows(gradients.hidden, width),
                rows(gradients.weight, width),
                tensor(gradients.bias, [outputs]),
            ]
        });
        finish!(HeadLoss, C, parents, state, out)
    }
}

impl Backward<Flex, 1> for Gather {
    type State = (Arc<[u32]>, usize);
    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = Values::of(&grads.consume::<Flex>(&ops.node));
        let (ids, size) = ops.state;
        if let [Some(table)] = ops.parents {
            let width = dy.extent(1);
            let d = rows(gather::backward(&dy, &ids, width, size), width);
            grads.register::<Flex>(table.id, d);
        }
    }
}

impl Backward<Flex, 3> for Linear {
    type State = (FlexTensor, FlexTensor);
    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = Values::of(&grads.consume::<Flex>(&ops.node));
        let (x, weight) = (Values::of(&ops.state.0), Values::of(&ops.state.1));
        let shape = linear_shape(&x, &weight);
        let [to_x, to_weight, to_bias] = ops.parents;
        if let Some(node) = to_x {
            let dx = rows(linear::input_gradient(&dy, &weight, shape), shape.inputs);
            grads.register::<Flex>(node.id, dx);
        }
        if let Some(node) = to_weight {
            let dw = rows(linear::weight_gradient(&dy, &x, shape), shape.inputs);
            grads.register::<Flex>(node.id, dw);
        }
        if let Some(node) = to_bias {
            let db = linear::bias_gradient(&dy, shape.outputs);
            grads.register::<Flex>(node.id, tensor(db, [shape.outputs]));
        }
    }
}

impl Backward<Flex, 2> for RmsNorm {
    type State = (FlexTensor, FlexTensor, f32);
    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = Values::of(&grads.consume::<Flex>(&ops.node));
        let (x, weight) = (Values::of(&ops.state.0), Values::of(&ops.state.1));
        let (dx, dw) = norm::backward(&dy, &x, &weight, ops.state.2);
        let [to_x, to_weight] = ops.parents;
        if let Some(node) = to_x {
            grads.register::<Flex>(node.id, rows(dx, weight.len()));
        }
        if let Some(node) = to_weight {
            grads.register::<Flex>(node.id, tensor(dw, [weight.len()]));
        }
    }
}

impl Backward<Flex, 1> for SwiGlu {
    type State = FlexTensor;
    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = Values::of(&grads.consume::<Flex>(&ops.node));
        let u = Values::of(&ops.state);
        if let [Some(node)] = ops.parents {
            let width = u.extent(1) / 2;
            grads.register::<Flex>(node.id, rows(swiglu::backward(&dy, &u, width), 2 * width));
        }
    }
}

impl Backward<Flex, 1> for Drop {
    type State = Dropout;
    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = grads.consume::<Flex>(&ops.node);
        if let [Some(node)] = ops.parents {
            grads.register::<Flex>(node.id, Flex::fused_dropout(dy, ops.state));
        }
    }
}

impl Backward<Flex, 2> for Residual {
    type State = Option<Dropout>;
    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = Values::of(&grads.consume::<Flex>(&ops.node));
        let width = dy.extent(1);
        let [to_x, to_y] = ops.parents;
        if let Some(node) = to_y {
            let d = match ops.state {
                None => dy.to_vec(),
                Some(dropout) => residual::mask(&dy, width, dropout),
            };
            grads.register::<Flex>(node.id, rows(d, width));
        }
        if let Some(node) = to_x {
            grads.register::<Flex>(node.id, dy.into_tensor());
        }
    }
}

impl Backward<Flex, 1> for Attention {
    type State = (FlexTensor, Arc<Vec<f32>>, AttentionArgs);
    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let dy = Values::of(&grads.consume::<Flex>(&ops.node));
        let (qkv, probabilities, args) = ops.state;
        let qkv = Values::of(&qkv);
        let shape = attention_shape(&qkv, &args);
        if let [Some(node)] = ops.parents {
            let dropout = attention_dropout(&args);
            let d = attention::backward(&dy, &qkv, &probabilities, shape, &args.rope, dropout);
            grads.register::<Flex>(node.id, rows(d, 3 * shape.width));
        }
    }
}

impl Backward<Flex, 3> for HeadLoss {
    type State = Option<[FlexTensor; 3]>;
    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let factor = Values::of(&grads.consume::<Flex>(&ops.node))[0];
        let gradients = ops.state.into_iter().flatten();
        for (node, gradient) in ops.parents.into_iter().zip(gradients) {
            let Some(node) = node else { continue };
            // As a rule the loss is the root of the backward pass, and the factor one.
            let gradient = if factor == 1.0 {
                gradient
            } else {
                use burn::backend::ops::FloatTensorOps;
                Flex::float_mul_scalar(gradient, factor.into())
            };
            grads.register::<Flex>(node.id, gradient);
        }
    }
}
