//! The page's worker: it opens checkpoints, answers move by move, and grades.
//!
//! The engine is free of browsers and tested natively; `main.rs` lets it run inside a worker.
