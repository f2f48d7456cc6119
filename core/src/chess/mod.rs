//! Chess as the benchmark sees it: move tokens in, 75-label states out.

pub mod explain;
pub mod label;
pub mod mt19937;
pub mod order;
pub mod parse;
pub mod pgn;
pub mod policy;
pub mod random;
pub mod replay;
pub mod san;
pub mod state;
pub mod symmetry;
pub mod token;
pub mod trajectory;
pub mod write;

pub use policy::Policy;
pub use state::{EnPassant, State};
pub use token::MoveToken;
pub use trajectory::Trajectory;
