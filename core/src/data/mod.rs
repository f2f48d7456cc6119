//! Rules of datasets and batches that need no files: ids, split, filters, the spec, how texts come apart into games, and
//! how batches are planned.

pub mod batch;
pub mod blocks;
pub mod games;
pub mod ids;
pub mod pgn;
pub mod plan;
pub mod quirks;
pub mod result;
pub mod skip;
pub mod spec;
pub mod split;
pub mod transition;

pub use games::{Game, Games};
pub use ids::IdKey;
pub use result::GameResult;
pub use skip::{SkipCounts, SkipReason};
pub use spec::Spec;
pub use split::Split;
