//! Optimisation (paper, sections 3.3 and B.2): loss, gradients, AdamW, schedules, and the state that resumes them.

mod gradients;
mod microbatch;
pub(crate) mod optimizer;
mod schedule;
pub(crate) mod state;
mod trainer;

pub use microbatch::BatchError;
pub use optimizer::{AdamW, OptimizerConfig, Step, clip_factor, global_norm};
pub use schedule::{ScheduleConfig, ScheduleKind};
pub use state::StateError;
pub use trainer::{StepReport, TrainError, Trainer};

/// A setting outside its range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{key}` is {value}, expected {expected}")]
pub struct SettingError {
    /// The setting.
    pub key: &'static str,
    /// Its value.
    pub value: f64,
    /// What would do.
    pub expected: &'static str,
}

fn require(
    ok: bool,
    key: &'static str,
    value: f64,
    expected: &'static str,
) -> Result<(), SettingError> {
    if ok { Ok(()) } else { Err(SettingError { key, value, expected }) }
}
