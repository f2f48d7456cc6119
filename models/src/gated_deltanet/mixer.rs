//! The mixer: projections, short convolutions, the gated delta rule, the gated norm, and the way back to the model's width.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, activation};

use super::GatedDeltaNetConfig;
use crate::{
    linear::{Projection, project},
    ops::{Games, GatedDeltaArgs, GatedDeltaWeights, Path},
    parameters::{ParameterError, TensorSource},
};

use super::portable::{gated_norm, scalars, unit};

/// The parameters of a mixer.
#[derive(Module, Debug)]
pub struct Mixer {
    /// `[H]`: the logarithm of the decay rate.
    pub a_log: Param<Tensor<1>>,
    /// `[H]`: added to `a` before softplus.
    pub dt_bias: Param<Tensor<1>>,
    /// D to H K.
    pub queries: Projection,
    /// D to H K.
    pub keys: Projection,
    /// D to H V.
    pub values: Projection,
    /// D to H: how fast the recurrent state fades.
    pub a: Projection,
    /// D to H: how strongly it is corrected.
    pub b: Projection,
    /// `[H K, 1, W]`.
    pub query_conv: Param<Tensor<3>>,
    /// `[H K, 1, W]`.
    pub key_conv: Param<Tensor<3>>,
    /// `[H V, 1, W]`.
    pub value_conv: Param<Tensor<3>>,
    /// D to H V.
    pub gates: Projection,
    /// `[V]`: the gated norm's weight, the same for every head.
    pub norm: Param<Tensor<1>>,
    /// H V to D.
    pub output: Projection,
}

/// What a mixer remembers of a batch of prefixes.
#[derive(Debug, Clone)]
pub struct MixerState {
    /// `[branches, W - 1, H (2 K + V)]`: what the short convolutions still see.
    window: Tensor<3>,
    /// `[branches, H, K, V]`: the recurrent state.
    recurrent: Tensor<4>,
}

impl Mixer {
    pub(super) fn build(
        prefix: &str,
        source: &TensorSource,
        device: &Device,
    ) -> Result<Self, ParameterError> {
        let projection = |name: &str| source.projection(&format!("{prefix}.{name}"), device);
        let conv = |name: &str| source.tensor(&format!("{prefix}.{name}.weight"), device);
        let vector = |name: &str| source.vector(&format!("{prefix}.{name}"), device);
        Ok(Mixer {
            a_log: vector("A_log")?,
            dt_bias: vector("dt_bias")?,
            queries: projection("q_proj")?,
            keys: projection("k_proj")?,
            values: projection("v_proj")?,
            a: projection("a_proj")?,
            b: projection("b_proj")?,
            query_conv: conv("q_conv1d")?,
            key_conv: conv("k_conv1d")?,
            value_conv: conv("v_conv1d")?,
            gates: projection("g_proj")?,
            norm: vector("o_norm.weight")?,
            output: projection("o_proj")?,
        })
    }

    /// # Shapes
    /// `[N, D]` to `[N, D]`
    pub(super) fn forward(
        &self,
        path: Path,
        x: Tensor<2>,
        config: &GatedDeltaNetConfig,
        chunk_steps: Option<usize>,
        games: &Games,
    ) -> Tensor<2> {
        let args = GatedDeltaArgs {
            heads: config.n_heads,
            key: config.head_dim,
            value: config.value_width(),
            chunk_steps,
            beta_scale: config.beta_scale(),
            norm_eps: config.norm_eps as f32,
            games: games.clone(),
        };
        let mixed = path.gated_delta(self.project(path, x), self.weights(), args);
        self.output.forward(path, mixed)
    }

    /// All that a step contributes, `[N, H (2 K + 2 V + 2)]`.
    fn project(&self, path: Path, x: Tensor<2>) -> Tensor<2> {
        let maps = [&self.queries, &self.keys, &self.values, &self.gates, &self.a, &self.b];
        project(path, x, maps)
    }

    fn weights(&self) -> GatedDeltaWeights {
        let convs = [&self.query_conv, &self.key_conv, &self.value_conv];
        let conv = Tensor::cat(convs.map(|conv| conv.val()).to_vec(), 0);
        let [channels, _, taps] = conv.dims();
        GatedDeltaWeights {
            conv: conv.reshape([channels, taps]),
            a_log: self.a_log.val(),
            dt_bias: self.dt_bias.val(),
            norm: self.norm.val(),
        }
    }

    pub(super) fn start(
        config: &GatedDeltaNetConfig,
        branches: usize,
        device: &Device,
    ) -> MixerState {
        let (heads, key, value) = (config.n_heads, config.head_dim, config.value_width());
        MixerState {
            window: Tensor::zeros(
                [branches, config.conv_size - 1, heads * (2 * key + value)],
                device,
            ),
            recurrent: Tensor::zeros([branches, heads, key, value], device),
        }
    }

    /// Reads one step a branch.
    ///
    /// # Shapes
    /// `[branches, D]` to `[branches, D]`
    pub(super) fn step(
        &self,
        path: Path,
        x: Tensor<2>,
        config: &GatedDeltaNetConfig,
        state: &mut MixerState,
    ) -> Tensor<2> {
        let (heads, key, value) = (config.n_heads, config.head_dim, config.value_width());
        let [branches, _] = x.dims();
        let channels = heads * (2 * key + value);
        let u = self.project(path, x);
        let weights = self.weights();

        let taps = config.conv_size;
        let newest = u.clone().narrow(1, 0, channels).reshape([branches, 1, channels]);
        let window = Tensor::cat(vec![state.window.clone(), newest], 1);
        state.window = window.clone().narrow(1, 1, taps - 1);
        let conv = weights.conv.clone().transpose().reshape([1, taps, channels]);
        let convolved = activation::silu((window * conv).sum_dim(1));
        // [branches, H, 1, width]
        let part = |first: usize, width: usize| {
            convolved.clone().narrow(2, first, heads * width).reshape([branches, heads, 1, width])
        };
        let queries = unit(part(0, key)).div_scalar((key as f32).sqrt());
        let keys = unit(part(heads * key, key));
        let values = part(2 * heads * key, value);

        let rest = |first: usize, width: usize| u.clone().narrow(1, channels + first, width);
        let (log_decay, beta) = scalars(
            rest(heads * value, heads),
            rest(heads * value + heads, heads),
            &weights,
            config.beta_scale(),
        );
        let each = |x: Tensor<2>| x.reshape([branches, heads, 1, 1]);
        let decayed = state.recurrent.clone() * each(log_decay.exp());
        let error = values - keys.clone().matmul(decayed.clone());
        state.recurrent = decayed + keys.swap_dims(2, 3).matmul(error * each(beta));
        let outputs = queries.matmul(state.recurrent.clone()).reshape([branches, heads, value]);
        let mixed = gated_norm(outputs, rest(0, heads * value), weights.norm, config.norm_eps);
        self.output.forward(path, mixed)
    }
}
