//! Own kernels for GPUs, in CubeCL: one source for CUDA, Vulkan and browsers.
//!
//! [`crate::ops`] plugs them into Burn. Tests hold each to the portable form of its operation, with its backward pass.

pub(crate) mod slice;
