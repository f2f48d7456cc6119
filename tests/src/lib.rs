//! Helpers of the integration tests.

pub mod cwm;
pub mod fuzz_bodies;
pub mod memory;
pub mod torch_file;
