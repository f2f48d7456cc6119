//! SLiCE, a structured linear controlled differential equation (paper, section 3.2): a recurrence whose transition is
//! block-diagonal, or, as an ablation, diagonal, and driven by the increments of its input.
//!
//! In a layer, `u_t` is the normed residual stream, `x_t = scale [1, u_t - u_{t-1}]` with `u_{-1} = 0` the increment of
//! the driving path, time first, and
//!
//! ```text
//! y_t = y_{t-1} + A(x_t) y_{t-1} + B(x_t),    y_{-1} learnt,
//! ```
//!
//! A and B linear without bias: Euler's method for the controlled differential equation. `y` is added to the residual
//! stream, then an MLP with GELU of the normed stream; there is no norm before the state head.

mod config;
mod network;
pub(crate) mod scan;

pub use config::SliceConfig;
pub use network::{GeluMlp, Slice, SliceLayer, SliceState};
