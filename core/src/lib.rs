//! Chess-World-Model without tensors: encoding, data rules, metrics, baselines, reports.
//!
//! Nothing here reads files, starts threads, looks at a clock or prints, and all of it compiles to wasm32:
//! the command line and the page are two faces of this crate.

pub mod baseline;
pub mod chess;
pub mod data;
pub mod evaluate;
pub mod event;
pub mod metrics;
pub mod paper;
#[cfg(feature = "plot")]
pub mod plot;
pub mod report;
pub mod trace;
pub mod tracker;
