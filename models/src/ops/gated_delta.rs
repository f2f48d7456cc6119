//! The mixer of Gated DeltaNet from projections to gated outputs, in both forms.

#[cfg(feature = "train")]
use std::sync::Arc;

use burn::backend::{Dispatch, backend_extension, tensor::FloatTensor};
use burn::tensor::Tensor;
use burn_flex::{Flex, FlexTensor};

use super::{
    Games, Path,
    flex::{Values, rows},
};
use crate::{
    gated_deltanet::portable,
    kernel::gated_delta::{self, Shape, Weights},
};

/// What the mixer needs besides tensors.
#[derive(Debug, Clone)]
pub struct GatedDeltaArgs {
    /// Heads (H).
    pub heads: usize,
    /// Key width of a head (K).
    pub key: usize,
    /// Value width of a head (V).
    pub value: usize,
    /// Steps of a chunk; each form's measured default if absent.
    pub chunk_steps: Option<usize>,
    /// What the strength of a correction is multiplied by: 2 for eigenvalues from -1 to 1, 1 for those from 0 to 1.
    pub beta_scale: f32,
    /// Added to the mean square in the gated norm.
    pub norm_eps: f32,
    /// The games.
    pub games: Games,
}

/// The mixer's parameters.
#[derive(Debug, Clone)]
pub struct GatedDeltaWeights {
    /// `[H (2 K + V), W]`: short convolutions of queries, keys and values.
    pub conv: Tensor<2>,
    /// `[H]`.
    pub a_log: Tensor<1>,
    /// `[H]`.
    pub dt_bias: Tensor<1>,
    /// `[V]`.
    pub norm: Tensor<1>,
}

/// Steps of a chunk in the fused form: the fastest at the benchmark's head width, though anything from 16 to 64 is close.
const FUSED_CHUNK_STEPS: usize = 32;

/// The fused form.
#[backend_extension(Flex, Autodiff: cfg(feature = "train"))]
pub trait GatedDeltaOps: burn::backend::Backend {
    /// See [`Path::gated_delta`].
    fn fused_gated_delta(
        u: FloatTensor<Self>,
        conv: FloatTensor<Self>,
        a_log: FloatTensor<Self>,
        dt_bias: FloatTensor<Self>,
        norm: FloatTensor<Self>,
        args: GatedDeltaArgs,
    ) -> FloatTensor<Self>;
}

impl Path {
    /// Projections `u [N, H (2 K + 2 V + 2)]` (queries, keys, values, output gates, `a`, `b`, each head after head) to
    /// `[N, H V]`.
    pub fn gated_delta(
        self,
        u: Tensor<2>,
        weights: GatedDeltaWeights,
        args: GatedDeltaArgs,
    ) -> Tensor<2> {
        match self {
            Path::Fused => Tensor::from_dispatch(Dispatch::fused_gated_delta(
                u.into_dispatch(),
                weights.conv.into_dispatch(),
                weights.a_log.into_dispatch(),
                weights.dt_bias.into_dispatch(),
                weights.norm.into_dispatch(),
                args,
            )),
            Path::Gpu | Path::Portable => portable::mix(u, weights, &args),
        }
    }
}

/// The parameters as plain numbers.
struct Parameters {
    conv: Values,
    a_log: Values,
    dt_bias: Values,
    norm: Values,
}

impl Parameters {
    fn of([conv, a_log, dt_bias, norm]: [&FlexTensor; 4]) -> Self {
        Parameters {
            conv: Values::of(conv),
            a_log: Values::of(a_log),
            dt_bias: Values::of(dt_bias),
            norm: Values::of(norm),
        }
    }

    fn weights(&self, args: &GatedDeltaArgs) -> Weights<'_> {
        Weights {
            conv: &self.conv,
            a_log: &self.a_log,
            dt_bias: &self.dt_bias,
            norm: &self.norm,
            norm_eps: args.norm_eps,
            beta_scale: args.beta_scale,
        }
    }

    fn shape<'a>(&self, args: &'a GatedDeltaArgs) -> Shape<'a> {
        Shape {
            heads: args.heads,
            key: args.key,
            value: args.value,
            taps: self.conv.extent(1),
            chunk: args.chunk_steps.unwrap_or(FUSED_CHUNK_STEPS),
            lengths: &args.games.lengths,
        }
    }
}

impl GatedDeltaOps for Flex {
    fn fused_gated_delta(
        u: FlexTensor,
        conv: FlexTensor,
        a_log: FlexTensor,
        dt_bias: FlexTensor,
        norm: FlexTensor,
        args: GatedDeltaArgs,
    ) -> FlexTensor {
        let u = Values::of(&u);
        let parameters = Parameters::of([&conv, &a_log, &dt_bias, &norm]);
        let shape = parameters.shape(&args);
        let (y, _) = gated_delta::forward(&u, parameters.weights(&args), shape, false);
        rows(y, shape.output())
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
    use crate::{
        kernel::gated_delta::Saved,
        ops::{
            autodiff::{Tracked, finish},
            flex::tensor,
        },
    };

    #[derive(Debug)]
    struct GatedDelta;

    /// The inputs, what the forward pass left, and the sizes.
    #[derive(Debug, Clone)]
    struct State {
        u: FlexTensor,
        parameters: [FlexTensor; 4],
        saved: Arc<Saved>,
        args: GatedDeltaArgs,
    }

    impl<C: CheckpointStrategy> GatedDeltaOps for Autodiff<Flex, C> {
        fn fused_gated_delta(
            u: Tracked<C>,
            conv: Tracked<C>,
            a_log: Tracked<C>,
            dt_bias: Tracked<C>,
            norm: Tracked<C>,
            args: GatedDeltaArgs,
        ) -> Tracked<C> {
            let parents = [u.node(), conv.node(), a_log.node(), dt_bias.node(), norm.node()];
            let u = u.into_primitive();
            let tensors = [conv, a_log, dt_bias, norm].map(|tensor| tensor.into_primitive());
            let [conv, a_log, dt_bias, norm] = &tensors;
            let parameters = Parameters::of([conv, a_log, dt_bias, norm]);
            let shape = parameters.shape(&args);
            let weights = parameters.weights(&args);
            let (y, saved) = gated_delta::forward(&Values::of(&u), weights, shape, true);
            let out = rows(y, shape.output());
            drop(parameters);
            let saved = Arc::new(saved.unwrap_or_default());
            finish!(GatedDelta, C, parents, State { u, parameters: tensors, saved, args }, out)
        }
    }

    impl Backward<Flex, 5> for GatedDelta {
        type State = State;
        fn backward(self, ops: Ops<Self::State, 5>, grads: &mut Gradients, _: &mut Checkpointer) {
            let dy = Values::of(&grads.consume::<Flex>(&ops.node));
            let State { u, parameters, saved, args } = ops.state;
            let [conv, a_log, dt_bias, norm] = &parameters;
            let parameters = Parameters::of([conv, a_log, dt_bias, norm]);
            let shape = parameters.shape(&args);
            let weights = parameters.weights(&args);
            let d = gated_delta::backward(&dy, &Values::of(&u), weights, shape, &saved);
            let vector = |numbers: Vec<f32>| {
                let len = numbers.len();
                tensor(numbers, [len])
            };
            let gradients = [
                rows(d.u, shape.input()),
                rows(d.conv, shape.taps),
                vector(d.a_log),
                vector(d.dt_bias),
                vector(d.norm),
            ];
            for (node, gradient) in ops.parents.into_iter().zip(gradients) {
                if let Some(node) = node {
                    grads.register::<Flex>(node.id, gradient);
                }
            }
        }
    }
}
