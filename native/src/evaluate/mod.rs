//! Grading on the command line: which trackers, on which games, and where the report goes.
//!
//! The numbers come from `cwm_core`; this module opens files, keeps the second core busy, and shows progress.

mod file;
pub mod games;
pub mod run;
pub mod save;
pub mod shipped;
pub mod subject;

pub use games::GameSource;
pub use run::{Job, grade_all};
pub use subject::Subject;
