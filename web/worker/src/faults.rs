//! Errors of the crates below as faults with stable codes.

use cwm_core::tracker::TrackError;
use cwm_models::{ModelError, checkpoint::CheckpointError};
use cwm_protocol::{Fault, code};

/// A fault of a checkpoint's file.
pub(crate) fn of_checkpoint(error: &CheckpointError) -> Fault {
    Fault::new(error.code(), error, error.hint())
}

/// A checkpoint whose network cannot be built.
pub(crate) fn of_model(error: &ModelError) -> Fault {
    Fault::new(code::MODEL, error, "check the file with `cwm inspect`")
}

/// A network that could not answer.
pub(crate) fn of_tracker(error: &TrackError) -> Fault {
    match error {
        TrackError::Device(_) => Fault::new(
            code::DEVICE,
            error,
            "restart the engine, or open the page with ?backend=cpu",
        ),
        TrackError::Token(_) => Fault::new(code::TOKEN, error, "play a legal move"),
        TrackError::TooLong { .. } => Fault::new(code::TOO_LONG, error, "take a shorter game"),
    }
}

/// A file that cannot be read.
pub(crate) fn of_read(error: &std::io::Error) -> Fault {
    Fault::new(
        code::READ,
        format!("the file cannot be read: {error}"),
        "choose it again: it may have been moved or changed since",
    )
}
