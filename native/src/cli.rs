//! The command line's grammar.

use clap::{Parser, Subcommand};

use crate::{cmd, progress::ProgressMode, version};

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    a check or threshold failed
  2    wrong command line or config
  3    bad data or checkpoint
  4    device unavailable or out of memory
  5    training diverged
  75   stopped by a signal, checkpoint written
  130  interrupted";

/// Chess-World-Model: exact state tracking from chess moves.
///
/// Without a command: grades the shipped checkpoints and the baselines on human and on random play.
#[derive(Debug, Parser)]
#[command(name = "cwm", version = version::SHORT.as_str(), long_version = version::LONG.as_str())]
#[command(after_help = EXIT_CODES, max_term_width = 120)]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Option<Command>,

    /// How progress is shown on stderr
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "MODE",
        env = "CWM_PROGRESS",
        hide_env_values = true,
        help_heading = "Everywhere"
    )]
    pub progress: ProgressMode,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make, convert and describe datasets
    Data(cmd::data::Args),
    /// Train a model, or go on with a run
    Train(cmd::train::Args),
    /// Grade checkpoints and baselines on games
    Evaluate(cmd::evaluate::Args),
    /// Follow one game ply by ply: the truth, the prediction, what differs
    Predict(cmd::predict::Args),
    /// Explain a checkpoint, a run or a dataset
    Inspect(cmd::inspect::Args),
    /// Read a PyTorch checkpoint of the reference, without running its code
    Import(cmd::import::Args),
    /// Turn a checkpoint or a run into a folder to share
    Export(cmd::export::Args),
    /// Serve the page: look at predictions and grade checkpoints in a browser
    Serve(cmd::serve::Args),
    /// Say what this build can use on this machine, and why not what it cannot
    Doctor(cmd::doctor::Args),
    /// Print a script that lets a shell complete commands and flags
    Completions(cmd::completions::Args),
}
