//! Loops over plain `f32` slices: the CPU's side of every fused operation, forward and backward.
//!
//! Each function here runs on the calling thread alone. Parallelism lies one level up: a batch is cut into micro-batches
//! of whole games, and these run side by side ([`crate::train`], [`crate::predictor`]). One micro-batch fits the caches
//! of a core, no result depends on the number of threads, and no loop here needs to know about any other.
//!
//! Matrix products go to `gemm`. Everything else is written so that compilers vectorise it: long inner loops without
//! branches, over whichever axis is contiguous. No fused multiply-add is asked for, so results do not depend on the
//! instruction set that `multiversion` picks.

pub mod attention;
pub mod gated_delta;
pub mod gather;
pub mod gelu;
pub mod head;
pub mod lanes;
pub mod linear;
pub mod mamba;
pub mod math;
pub mod matrix;
pub mod norm;
pub mod random;
pub mod residual;
pub mod rope;
pub mod slice;
pub mod swiglu;
