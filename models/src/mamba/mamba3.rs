//! The mixer of Mamba-3, over packed games and step by step.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::{
    Mamba3Config,
    frame::Mixer,
    portable::{Parts3, gate, less_turns, turn},
};
use crate::{
    linear::Projection,
    ops::{Games, Mamba3Args, Mamba3Weights, Path},
    parameters::{ParameterError, TensorSource},
};

/// The factors of MIMO, `[H, R, P]` each.
#[derive(Module, Debug)]
pub(crate) struct MimoFactors {
    /// Of the values.
    pub x: Param<Tensor<3>>,
    /// Inside the gate.
    pub z: Param<Tensor<3>>,
    /// Of the outputs.
    pub o: Param<Tensor<3>>,
}

/// The mixer of Mamba-3.
#[derive(Module, Debug)]
pub(crate) struct Mamba3Mixer {
    /// `[H]`: added to dt before softplus.
    pub dt_bias: Param<Tensor<1>>,
    /// `[H, R, N]`: added to keys before the rotation.
    pub b_bias: Param<Tensor<3>>,
    /// `[H, R, N]`: added to queries before the rotation.
    pub c_bias: Param<Tensor<3>>,
    /// With MIMO.
    pub mimo: Option<MimoFactors>,
    /// `[H]`: the skip.
    pub d: Param<Tensor<1>>,
    /// D to z, x, B, C, dt, A, trap, angles.
    pub in_proj: Projection,
    /// `[N]`: the scale of the norm of keys.
    pub b_norm: Param<Tensor<1>>,
    /// `[N]`: the scale of the norm of queries.
    pub c_norm: Param<Tensor<1>>,
    /// H P to D.
    pub out_proj: Projection,
    #[module(skip)]
    config: Mamba3Config,
}

/// What the mixer remembers of a batch of prefixes.
#[derive(Debug, Clone)]
pub(crate) struct Mamba3State {
    /// `[branches, H, N, P]`: the recurrence's state.
    state: Tensor<4>,
    /// `[branches, H, R, N]`: the last step's keys, turned.
    keys: Tensor<4>,
    /// `[branches, H, R, P]`: the last step's values.
    values: Tensor<4>,
    /// `[branches, H, N / 4]`: the angles, less whole turns.
    angles: Tensor<3>,
}

impl Mamba3Mixer {
    fn args(&self, games: Games, chunk_steps: Option<usize>) -> Mamba3Args {
        Mamba3Args {
            heads: self.config.heads(),
            head_width: self.config.headdim,
            state_width: self.config.d_state,
            mimo_rank: self.config.mimo_rank,
            chunk_steps,
            games,
        }
    }

    fn weights(&self) -> Mamba3Weights {
        Mamba3Weights {
            dt_bias: self.dt_bias.val(),
            b_norm: self.b_norm.val(),
            c_norm: self.c_norm.val(),
            b_bias: self.b_bias.val(),
            c_bias: self.c_bias.val(),
            d: self.d.val(),
            mimo: self.mimo.as_ref().map(|mimo| [mimo.x.val(), mimo.z.val(), mimo.o.val()]),
        }
    }
}

impl Mixer for Mamba3Mixer {
    type Config = Mamba3Config;
    type State = Mamba3State;

    fn build(
        config: &Mamba3Config,
        name: &str,
        source: &TensorSource,
        device: &Device,
    ) -> Result<Self, ParameterError> {
        let name = |parameter: &str| format!("{name}.{parameter}");
        let mimo = match config.mimo_rank {
            None => None,
            Some(_) => Some(MimoFactors {
                x: source.tensor(&name("mimo_x"), device)?,
                z: source.tensor(&name("mimo_z"), device)?,
                o: source.tensor(&name("mimo_o"), device)?,
            }),
        };
        Ok(Mamba3Mixer {
            dt_bias: source.vector(&name("dt_bias"), device)?,
            b_bias: source.tensor(&name("B_bias"), device)?,
            c_bias: source.tensor(&name("C_bias"), device)?,
            mimo,
            d: source.vector(&name("D"), device)?,
            in_proj: source.projection(&name("in_proj"), device)?,
            b_norm: source.vector(&name("B_norm.weight"), device)?,
            c_norm: source.vector(&name("C_norm.weight"), device)?,
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
        let mixed = path.mamba3(self.in_proj.forward(path, x), self.weights(), args);
        self.out_proj.forward(path, mixed)
    }

    fn start(&self, branches: usize, device: &Device) -> Mamba3State {
        let Mamba3Config { d_state, headdim, .. } = self.config;
        let (heads, rank) = (self.config.heads(), self.config.rank());
        Mamba3State {
            state: Tensor::zeros([branches, heads, d_state, headdim], device),
            keys: Tensor::zeros([branches, heads, rank, d_state], device),
            values: Tensor::zeros([branches, heads, rank, headdim], device),
            angles: Tensor::zeros([branches, heads, d_state / 4], device),
        }
    }

    fn step(&self, path: Path, x: Tensor<2>, state: &mut Mamba3State) -> Tensor<2> {
        let args = self.args(Games::new([0; 0]), None);
        let weights = self.weights();
        let parts = Parts3::of(self.in_proj.forward(path, x), &weights, &args);
        let [branches, heads] = parts.dt.dims();

        state.angles = less_turns(state.angles.clone() + parts.turns.clone());
        let [keys, queries] = [&parts.keys, &parts.queries]
            .map(|rows| turn(rows.clone(), state.angles.clone(), args.mimo_rank.is_some()));
        // `S = decay (S + before KV') + now KV`: the last step's input decays with the state.
        let outer = |keys: Tensor<4>, values: Tensor<4>, weight: Tensor<2>| {
            let values = values * weight.reshape([branches, heads, 1, 1]);
            keys.swap_dims(2, 3).matmul(values)
        };
        let before = outer(state.keys.clone(), state.values.clone(), parts.before.clone());
        let now = outer(keys.clone(), parts.values.clone(), parts.now.clone());
        let decay = parts.log_decay.clone().exp().reshape([branches, heads, 1, 1]);
        state.state = (state.state.clone() + before) * decay + now;
        state.keys = keys;
        state.values = parts.values.clone();
        let y = queries.matmul(state.state.clone());
        self.out_proj.forward(path, gate(y, parts, &weights))
    }
}
