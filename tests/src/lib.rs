//! Helpers of the integration tests.

pub mod cwm;
pub mod families;
pub mod fuzz_bodies;
pub mod memory;
pub mod reference;
pub mod torch_file;
