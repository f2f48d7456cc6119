//! Mamba-2 and Mamba-3 (paper, section 3.2): linear recurrences whose state of N numbers a channel decays by a factor that
//! the input sets, and, with Mamba-3, turns by angles that it sets.
//!
//! Both stand in one frame: embedding, then blocks of norm, mixer, norm and a gated MLP on a residual stream, a norm and
//! the state head. Dropout is of embeddings alone, as in the reference. The mixers are worded in
//! [`crate::kernel::mamba::mamba2`] and [`crate::kernel::mamba::mamba3`]; the portable forms of both are here, as
//! compositions of Burn's operations: their parts in `portable`, the scan that they share in `scan`.
//!
//! Mamba-3 comes with one input a step (SISO) or R of them (MIMO). The paper's text says MIMO of rank 4 with states of 128
//! numbers, but the counts of its Table 4 and the presets of the reference are those of SISO; with MIMO of rank 4 the
//! four sizes would have 3.30, 8.67, 20.97 and 43.33 million parameters. Here `mamba3-*` are the presets of the table, and
//! `mamba3-mimo4-*` those of the text.

mod config;
mod frame;
mod mamba2;
mod mamba3;
mod network;
pub(crate) mod portable;
pub(crate) mod scan;

pub use config::{Mamba2Config, Mamba3Config};
pub(crate) use mamba2::Mamba2State;
pub(crate) use mamba3::Mamba3State;
pub(crate) use network::{Mamba2, Mamba3};
