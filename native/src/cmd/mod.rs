//! One file a command: its arguments and what it does.

pub mod completions;
pub mod data;
pub mod doctor;
pub mod evaluate;
pub mod export;
mod folder;
pub mod grade;
pub mod import;
pub mod inspect;
mod policy;
pub mod predict;
pub mod serve;
pub mod train;

use crate::{cli::Command, exit::Exit, progress::Progress};

/// Runs a command; `None` is the main job, the default grading.
pub fn dispatch(command: Option<Command>, progress: &Progress) -> anyhow::Result<Exit> {
    match command {
        Some(Command::Data(args)) => data::run(args, progress),
        Some(Command::Train(args)) => train::run(args, progress),
        Some(Command::Inspect(args)) => inspect::run(args),
        Some(Command::Export(args)) => export::run(args, progress),
        Some(Command::Import(args)) => import::run(args, progress),
        Some(Command::Doctor(args)) => doctor::run(args),
        Some(Command::Completions(args)) => completions::run(args),
        Some(Command::Evaluate(args)) => evaluate::run(args, progress),
        Some(Command::Predict(args)) => predict::run(args, progress),
        Some(Command::Serve(args)) => serve::run(args, progress),
        None => grade::run(progress),
    }
}
