//! `cwm`: Chess-World-Model on the command line.
//!
//! Results go to stdout, everything else to stderr; each command lives in one file under [`cmd`].

pub mod atomic;
pub mod checkpoint;
pub mod cli;
pub mod cmd;
pub mod data;
pub mod evaluate;
pub mod exit;
pub mod output;
pub mod progress;
pub mod serve;
pub mod train;
pub mod version;

use std::{ffi::OsString, process::ExitCode};

use clap::Parser;

/// Runs the command line `args` (program name first) and says how the process should end.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match cli::Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are results; a reader that went away is not our concern.
            let _ = error.print();
            return if error.use_stderr() { exit::Exit::Usage } else { exit::Exit::Done }.into();
        }
    };
    let progress = progress::Progress::new(cli.progress);
    match cmd::dispatch(cli.command, &progress) {
        Ok(exit) => exit.into(),
        Err(error) if exit::is_closed_pipe(&error) => exit::Exit::Done.into(),
        Err(error) => {
            eprintln!("error: {error:#}");
            let failure = error.chain().find_map(|e| e.downcast_ref::<exit::Failure>());
            if let Some(hint) = failure.and_then(|f| f.hint.as_deref()) {
                eprintln!("hint: {hint}");
            }
            exit::exit_of(&error).into()
        }
    }
}
