//! Gated DeltaNet (paper, section 3.2): a recurrent state per head that is decayed, and corrected towards each new key and
//! value.
//!
//! With negative eigenvalues (the benchmark's main configuration) a correction may overshoot to the mirror image of what
//! the state said before, so that a transition can swap; without (the ablation) it can at most forget.

mod config;
mod mixer;
mod network;
pub(crate) mod portable;

pub use config::GatedDeltaNetConfig;
pub use mixer::{Mixer, MixerState};
pub use network::{Block, GatedDeltaNet, Mlp};
