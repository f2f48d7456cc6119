//! The page's worker: it opens checkpoints, answers move by move, and grades.
//!
//! The engine is free of browsers and tested natively; `browser` lets it run inside a worker.

#[cfg(target_arch = "wasm32")]
pub mod browser;
mod checkpoint;
pub mod engine;
mod faults;
mod games;
#[cfg(feature = "webgpu")]
mod gpu;
mod grade;
pub mod host;
mod line;
mod paced;

pub use engine::Engine;
pub use host::{Host, InputFile};

#[cfg(test)]
mod tests;
