//! The `cwm` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    cwm::run(std::env::args_os())
}
