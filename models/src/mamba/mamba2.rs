//! The mixer of Mamba-2, over packed games and step by step.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, activation};

use super::{
    Mamba2Config,
    frame::Mixer,
    portable::{Parts2, gate_and_norm, keys_and_values, taps},
};
use crate::{
    linear::Projection,
    ops::{Games, Mamba2Args, Mamba2Weights, Path},
    parameters::{ParameterError, TensorSource},
};

/// The mixer of Mamba-2.
#[derive(Module, Debug)]
pub(crate) struct Mamba2Mixer {
    /// `[H]`: added to dt before softplus.
    pub dt_bias: Param<Tensor<1>>,
    /// `[H]`: logarithm of the rates of decay.
    pub a_log: Param<Tensor<1>>,
    /// `[H]`: the skip.
    pub d: Param<Tensor<1>>,
    /// D to z, x, B, C, dt.
    pub in_proj: Projection,
    /// `[C, 1, W]`: the short convolution's weights.
    pub conv: Param<Tensor<3>>,
    /// `[C]`.
    pub conv_bias: Param<Tensor<1>>,
    /// `[H P]`: the scale of the norm behind the gate.
    pub norm: Param<Tensor<1>>,
    /// H P to D.
    pub out_proj: Projection,
    #[module(skip)]
    config: Mamba2Config,
}

/// What the mixer remembers of a batch of prefixes.
#[derive(Debug, Clone)]
pub(crate) struct Mamba2State {
    /// `[branches, W - 1, C]`: what the convolution saw last, oldest first.
    seen: Tensor<3>,
    /// `[branches, H, N, P]`: the recurrence's state.
    state: Tensor<4>,
}

impl Mamba2Mixer {
    fn args(&self, games: Games, chunk_steps: Option<usize>) -> Mamba2Args {
        Mamba2Args {
            heads: self.config.heads(),
            head_width: self.config.headdim,
            state_width: self.config.d_state,
            conv_width: self.config.d_conv,
            chunk_steps,
            games,
        }
    }

    fn weights(&self) -> Mamba2Weights {
        Mamba2Weights {
            conv: self.conv.val(),
            conv_bias: self.conv_bias.val(),
            dt_bias: self.dt_bias.val(),
            a_log: self.a_log.val(),
            d: self.d.val(),
            norm: self.norm.val(),
        }
    }
}

impl Mixer for Mamba2Mixer {
    type Config = Mamba2Config;
    type State = Mamba2State;

    fn build(
        config: &Mamba2Config,
        name: &str,
        source: &TensorSource,
        device: &Device,
    ) -> Result<Self, ParameterError> {
        let name = |parameter: &str| format!("{name}.{parameter}");
        Ok(Mamba2Mixer {
            dt_bias: source.vector(&name("dt_bias"), device)?,
            a_log: source.vector(&name("A_log"), device)?,
            d: source.vector(&name("D"), device)?,
            in_proj: source.projection(&name("in_proj"), device)?,
            conv: source.tensor(&name("conv1d.weight"), device)?,
            conv_bias: source.vector(&name("conv1d.bias"), device)?,
            norm: source.vector(&name("norm.weight"), device)?,
            out_proj: source.projection(&name("out_proj"), device)?,
            config: config.clone(),
        })
    }

    fn forward(
        &self,
        path: Path,
        x: Tensor<2>,
        games: &Games,
        chunk_steps: Option<usize>,
    ) -> Tensor<2> {
        let args = self.args(games.clone(), chunk_steps);
        let mixed = path.mamba2(self.in_proj.forward(path, x), self.weights(), args);
        self.out_proj.forward(path, mixed)
    }

    fn start(&self, branches: usize, device: &Device) -> Mamba2State {
        let Mamba2Config { d_state, d_conv, headdim, .. } = self.config;
        let heads = self.config.heads();
        let channels = heads * headdim + 2 * d_state;
        Mamba2State {
            seen: Tensor::zeros([branches, d_conv - 1, channels], device),
            state: Tensor::zeros([branches, heads, d_state, headdim], device),
        }
    }

    fn step(&self, path: Path, x: Tensor<2>, state: &mut Mamba2State) -> Tensor<2> {
        let args = self.args(Games::new([0; 0]), None);
        let Mamba2Args { heads, head_width, state_width, conv_width, .. } = args;
        let weights = self.weights();
        let parts = Parts2::of(self.in_proj.forward(path, x), &weights, &args);
        let [branches, channels] = parts.conv.dims();

        let now = parts.conv.unsqueeze_dim::<3>(1);
        let seen = match conv_width {
            1 => now,
            _ => Tensor::cat(vec![state.seen.clone(), now], 1),
        };
        if conv_width > 1 {
            state.seen = seen.clone().narrow(1, 1, conv_width - 1);
        }
        let conv = (seen * taps(&weights).unsqueeze()).sum_dim(1).reshape([branches, channels]);
        let conv = activation::silu(conv + weights.conv_bias.clone().unsqueeze());

        let (keys, queries, x) = keys_and_values(conv, &args);
        let keys = keys.reshape([branches, 1, state_width, 1]);
        let input = x.clone() * parts.dt.reshape([branches, heads, 1]);
        let decay = parts.log_decay.exp().reshape([branches, heads, 1, 1]);
        state.state = state.state.clone() * decay + keys * input.unsqueeze_dim::<4>(2);
        let queries = queries.reshape([branches, 1, state_width, 1]);
        let y = (state.state.clone() * queries).sum_dim(2);
        let y = y.reshape([branches, heads, head_width]);
        self.out_proj.forward(path, gate_and_norm(y, x, parts.z, &weights))
    }
}
