//! `cwm completions`: a script that lets the shell complete commands and flags.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::{cli::Cli, exit::Exit, output};

const EXAMPLES: &str = "\
Examples:
  cwm completions bash > ~/.local/share/bash-completion/completions/cwm
  cwm completions fish > ~/.config/fish/completions/cwm.fish";

/// Arguments of `cwm completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Name,
}

/// The shells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Name {
    Bash,
    Zsh,
    Fish,
    Powershell,
}

impl From<Name> for Shell {
    fn from(name: Name) -> Shell {
        match name {
            Name::Bash => Shell::Bash,
            Name::Zsh => Shell::Zsh,
            Name::Fish => Shell::Fish,
            Name::Powershell => Shell::PowerShell,
        }
    }
}

/// Runs `cwm completions`.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(Shell::from(args.shell), &mut Cli::command(), "cwm", &mut script);
    output::print(String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
