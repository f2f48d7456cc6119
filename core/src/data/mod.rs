//! Rules of datasets and batches that need no files.

pub mod batch;
pub mod plan;
