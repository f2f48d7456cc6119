//! The network's operations on packed rows, each in two forms that tests hold together.
//!
//! *Fused*: on Burn's CPU backend (flex) every operation is one call into [`crate::kernel`], with a backward of its own,
//! plugged into Burn as a backend extension. *Portable*: a composition of Burn's own operations, for every other
//! backend, and the yardstick of the fused form. On GPUs, kernels of our own take the place of what is slow that way. The
//! functions of this module choose by [`Path`].
//!
//! Games of a batch are packed: row after row, game after game, without padding. Only attention looks at games.

#[cfg(feature = "train")]
mod autodiff;
mod flex;
mod gated_delta;
mod mamba;
mod portable;
mod product;
mod slice;
#[cfg(feature = "gpu")]
mod slice_scan;

use std::sync::Arc;

use burn::backend::{Dispatch, backend_extension, tensor::FloatTensor};
use burn::tensor::{Device, Tensor, TensorData};

use crate::kernel::{random::Dropout, rope::RopeTable};

pub use crate::kernel::head::Grades;
pub(crate) use flex::grade as grade_fused;
pub use gated_delta::{GatedDeltaArgs, GatedDeltaOps, GatedDeltaWeights};
pub(crate) use mamba::NORM_EPS as MAMBA_NORM_EPS;
pub use mamba::{Mamba2Args, Mamba2Weights, Mamba3Args, Mamba3Weights, MambaOps};
pub(crate) use portable::grade as grade_portable;
pub use product::ProductOps;
pub use slice::{SliceArgs, SliceOps};

/// Which form of the operations a model uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// Own loops; tensors must live on flex.
    Fused,
    /// Own kernels where there are some, else Burn's operations; tensors must live on a GPU.
    Gpu,
    /// Burn's operations, on any device.
    Portable,
}

/// The games of a batch, packed.
#[derive(Debug, Clone, PartialEq)]
pub struct Games {
    /// Steps of each game; they add up to the rows (N).
    pub lengths: Arc<[u32]>,
    /// Where the first game stands in a larger batch of which this is a part.
    pub first_game: u32,
    /// Where the first row stands in that batch.
    pub first_row: u32,
    /// Labels after each step `[N, 75]`, where the network reads those of the step before.
    pub labels: Option<Arc<[u8]>>,
}

impl Games {
    /// A batch of its own.
    pub fn new(lengths: impl Into<Arc<[u32]>>) -> Self {
        Games { lengths: lengths.into(), first_game: 0, first_row: 0, labels: None }
    }

    /// Rows in all (N).
    pub fn rows(&self) -> usize {
        self.lengths.iter().map(|&steps| steps as usize).sum()
    }

    /// Steps of the longest game (T).
    pub fn longest(&self) -> usize {
        self.lengths.iter().copied().max().unwrap_or(0) as usize
    }
}

/// What an attention needs besides its input.
#[derive(Debug, Clone)]
pub struct AttentionArgs {
    /// Heads (H).
    pub heads: usize,
    /// The games.
    pub games: Games,
    /// Rotary factors for at least as many positions as the longest game has steps.
    pub rope: Arc<RopeTable>,
    /// Dropout of the probabilities.
    pub dropout: Option<Dropout>,
}

/// The fused operations. Rows are packed; every tensor is `f32`.
#[backend_extension(Flex, Autodiff: cfg(feature = "train"))]
pub trait FusedOps: burn::backend::Backend {
    /// Rows of `table [V, D]` as `[N, D]`.
    fn fused_gather(table: FloatTensor<Self>, rows: Arc<[u32]>) -> FloatTensor<Self>;

    /// `x [N, in]`, `weight [out, in]`, `bias [out]` to `[N, out]`.
    fn fused_linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// RMSNorm of `x [N, D]` with `weight [D]`.
    fn fused_rms_norm(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        eps: f32,
    ) -> FloatTensor<Self>;

    /// `u [N, 2F]` to `[N, F]`.
    fn fused_swiglu(u: FloatTensor<Self>) -> FloatTensor<Self>;

    /// `x [N, D]` with elements dropped.
    fn fused_dropout(x: FloatTensor<Self>, dropout: Dropout) -> FloatTensor<Self>;

    /// `x + dropout(y)`, all `[N, D]`.
    fn fused_residual(
        x: FloatTensor<Self>,
        y: FloatTensor<Self>,
        dropout: Option<Dropout>,
    ) -> FloatTensor<Self>;

    /// `qkv [N, 3D]` to `[N, D]`.
    fn fused_attention(qkv: FloatTensor<Self>, args: AttentionArgs) -> FloatTensor<Self>;

    /// Cross-entropy of `hidden [N, D]` through the head `weight [1878, D]`, `bias [1878]` against `labels [N, 75]`,
    /// summed and multiplied by `scale`, as `[1]`.
    fn fused_head_loss(
        hidden: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        labels: Arc<[u8]>,
        scale: f32,
    ) -> FloatTensor<Self>;
}

impl Path {
    /// The fused form on flex, else the GPU's.
    pub fn of(device: &Device) -> Self {
        if *device == Device::flex() { Path::Fused } else { Path::Gpu }
    }

    /// Rows of `table [V, D]` as `[N, D]`.
    pub fn gather(self, table: Tensor<2>, rows: Arc<[u32]>) -> Tensor<2> {
        match self {
            Path::Fused => {
                Tensor::from_dispatch(Dispatch::fused_gather(table.into_dispatch(), rows))
            }
            Path::Gpu | Path::Portable => portable::gather(table, &rows),
        }
    }

    /// `x [N, in]`, `weight [out, in]`, `bias [out]` to `[N, out]`.
    pub fn linear(self, x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
        match self {
            Path::Fused => Tensor::from_dispatch(Dispatch::fused_linear(
                x.into_dispatch(),
                weight.into_dispatch(),
                bias.into_dispatch(),
            )),
            Path::Gpu | Path::Portable => portable::linear(x, weight, bias),
        }
    }

    /// RMSNorm of `x [N, D]` with `weight [D]`.
    pub fn rms_norm(self, x: Tensor<2>, weight: Tensor<1>, eps: f32) -> Tensor<2> {
        match self {
            Path::Fused => Tensor::from_dispatch(Dispatch::fused_rms_norm(
                x.into_dispatch(),
                weight.into_dispatch(),
                eps,
            )),
            Path::Gpu | Path::Portable => portable::rms_norm(x, weight, eps),
        }
    }

    /// `u [N, 2F]` to `[N, F]`.
    pub fn swiglu(self, u: Tensor<2>) -> Tensor<2> {
        match self {
            Path::Fused => Tensor::from_dispatch(Dispatch::fused_swiglu(u.into_dispatch())),
            Path::Gpu | Path::Portable => portable::swiglu(u),
        }
    }

    /// `x [N, D]` with elements dropped.
    pub fn dropout(self, x: Tensor<2>, dropout: Option<Dropout>) -> Tensor<2> {
        match (self, dropout) {
            (_, None) => x,
            (Path::Fused, Some(dropout)) => {
                Tensor::from_dispatch(Dispatch::fused_dropout(x.into_dispatch(), dropout))
            }
            (Path::Gpu | Path::Portable, Some(dropout)) => portable::dropout(x, dropout),
        }
    }

    /// `x + dropout(y)`, all `[N, D]`.
    pub fn residual(self, x: Tensor<2>, y: Tensor<2>, dropout: Option<Dropout>) -> Tensor<2> {
        match self {
            Path::Fused => Tensor::from_dispatch(Dispatch::fused_residual(
                x.into_dispatch(),
                y.into_dispatch(),
                dropout,
            )),
            Path::Gpu | Path::Portable => x + self.dropout(y, dropout),
        }
    }

    /// `qkv [N, 3D]` to `[N, D]`.
    pub fn attention(self, qkv: Tensor<2>, args: AttentionArgs) -> Tensor<2> {
        match self {
            Path::Fused => {
                Tensor::from_dispatch(Dispatch::fused_attention(qkv.into_dispatch(), args))
            }
            Path::Gpu | Path::Portable => portable::attention(qkv, &args),
        }
    }

    /// Cross-entropy of `hidden [N, D]` through the head `weight [1878, D]`, `bias [1878]` against `labels [N, 75]`,
    /// summed and multiplied by `scale`.
    pub fn head_loss(
        self,
        hidden: Tensor<2>,
        weight: Tensor<2>,
        bias: Tensor<1>,
        labels: Arc<[u8]>,
        scale: f32,
    ) -> Tensor<1> {
        match self {
            Path::Fused => Tensor::from_dispatch(Dispatch::fused_head_loss(
                hidden.into_dispatch(),
                weight.into_dispatch(),
                bias.into_dispatch(),
                labels,
                scale,
            )),
            Path::Gpu | Path::Portable => {
                let logits = portable::linear(hidden, weight, bias);
                crate::loss::cross_entropy(logits, &labels).mul_scalar(scale)
            }
        }
    }
}

/// A tensor of `rows x cols` numbers.
pub(crate) fn matrix(data: Vec<f32>, rows: usize, cols: usize, device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(data, [rows, cols]), device)
}
