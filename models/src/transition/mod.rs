//! The transition machine: a network `f(state, move token) -> next state` whose recurrent state is the label vector
//! itself. It is trained on single transitions, with the true state before each, and runs on its own answers.
//!
//! What it is given, by its structure: a token names two of the 64 cells; cells share weights and see their own label,
//! their square and their position relative to the two named cells; the clocks are registers on which the network
//! chooses keep, +1 or reset. What it must learn: everything else, among it how pieces move along with castling rooks,
//! what en passant removes, when rights fall, whose turn it is, when clocks run, and even the initial position (START
//! is a token like any other, read in the state of all zeros).
//!
//! It is no sequence mixer: it has no memory but the state that it names, so its scores say nothing about how well
//! mixers learn to keep one.
//!
//! | shape letter | meaning |
//! |---|---|
//! | N | steps that run through the network together |
//! | K | cells of each step: all 64, or in training some of them |
//! | C | width of the two hidden layers of the context network |
//! | D | width of the context |
//! | H | width inside the cell network |
//!
//! All of it works on plain slices and compiles to wasm32.

#[cfg(feature = "train")]
mod backward;
pub mod config;
mod forward;
mod heads;
mod inputs;
mod network;
mod registers;
mod soft;
mod tracker;
#[cfg(feature = "train")]
mod trainer;

pub use config::{Clocks, TransitionConfig};
pub use network::Transition;
pub use tracker::{TransitionMemory, TransitionTracker};
#[cfg(feature = "train")]
pub use trainer::TransitionTrainer;
