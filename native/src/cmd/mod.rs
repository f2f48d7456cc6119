//! One file a command: its arguments and what it does.

pub mod data;

use crate::{cli::Command, exit::Exit, progress::Progress};

/// Runs a command; `None` is the main job, the default grading.
pub fn dispatch(command: Option<Command>, progress: &Progress) -> anyhow::Result<Exit> {
    match command {
        Some(Command::Data(args)) => data::run(args, progress),
        None => Ok(Exit::Done),
    }
}
