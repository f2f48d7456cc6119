//! The page's main thread: rules, parsing, the game on screen, what differs. It holds no networks: those live in the
//! worker, which is spoken to in [`cwm_protocol`].
//!
//! JavaScript renders what this crate says, and carries messages; everything else is here, and is tested natively.

/// The version of cwm that the page was built from.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
