//! The page's main thread: rules, parsing, the game on screen, what differs. It holds no networks: those live in the
//! worker, which is spoken to in [`cwm_protocol`].
//!
//! JavaScript renders what this crate says, and carries messages; everything else is here, and is tested natively.
//! A [`session::Session`] takes [`message::Command`]s and replies of workers, and gives [`message::Effect`]s and a view.

pub mod answers;
#[cfg(target_arch = "wasm32")]
mod bindings;
pub mod gallery;
pub mod grade;
pub mod input;
pub mod keys;
pub mod labels;
pub mod line;
pub mod link;
pub mod message;
pub mod seat;
pub mod session;
pub mod view;

/// The version of cwm that the page was built from.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
