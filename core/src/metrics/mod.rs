//! Grading: integer counts that merge exactly, and intervals over games (paper, sections 2.4, B.1 and F).
//!
//! One game becomes one [`GameRecord`]; games add up to [`Counts`]. A ratio appears only where it is printed.

mod aftermath;
mod counts;
pub mod interval;
mod loss;
mod record;
mod worst;

pub use aftermath::{Aftermath, Errors, LAGS, LagCounts};
pub use counts::{BIN_STEPS, BinCounts, Counts, FirstMistakes};
pub use interval::{Interval, IntervalMethod, Intervals, Resampling};
pub use loss::Loss;
pub use record::GameRecord;
pub use worst::{WorstGame, WorstGames};
