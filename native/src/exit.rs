//! Exit codes, and the one error type that carries them.

use std::{fmt, process::ExitCode};

/// What the process's exit code means (listed in `cwm --help`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The work is done.
    Done = 0,
    /// A check or a threshold failed.
    CheckFailed = 1,
    /// The command line or a config is wrong.
    Usage = 2,
    /// Data or a checkpoint is unreadable, damaged or of another kind.
    BadData = 3,
    /// The device is unavailable or out of memory.
    Device = 4,
    /// Training diverged; the last good checkpoint is kept.
    Diverged = 5,
    /// Stopped by a signal after a checkpoint was written.
    Stopped = 75,
    /// Interrupted.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// An error with the exit code it leads to and, where there is one, the next thing to try.
#[derive(Debug)]
pub struct Failure {
    /// The process's exit code.
    pub exit: Exit,
    /// What is wrong and where: lower case, no full stop.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure with any exit code.
    pub fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Failure { exit, message: message.to_string(), hint: None }
    }

    /// A wrong command line or config (exit code 2).
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Bad data or a bad checkpoint (exit code 3).
    pub fn data(message: impl fmt::Display) -> Self {
        Self::new(Exit::BadData, message)
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Adds `did you mean` with the candidate nearest to `found`, if one is near.
    #[must_use]
    pub fn nearest<'a>(self, found: &str, candidates: impl IntoIterator<Item = &'a str>) -> Self {
        let alike = |c: &str| c.chars().zip(found.chars()).take_while(|(x, y)| x == y).count();
        // Of equally similar ones, the one that begins most alike: `d12` more likely means `d128` than `d512`.
        let best = candidates
            .into_iter()
            .map(|c| (strsim::jaro_winkler(found, c), c))
            .filter(|(score, _)| *score > 0.7)
            .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| alike(a.1).cmp(&alike(b.1))));
        match best {
            Some((_, candidate)) => self.hint(format!("did you mean `{candidate}`?")),
            None => self,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The exit code an error leads to: that of the [`Failure`] in its chain; full disks and the like are 3.
pub fn exit_of(error: &anyhow::Error) -> Exit {
    error
        .chain()
        .find_map(|cause| cause.downcast_ref::<Failure>())
        .map_or(Exit::BadData, |failure| failure.exit)
}

/// Whether the reader of our output went away (`cwm ... | head`), which is no failure.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_candidate_is_suggested() {
        let hint = |found: &str| {
            let names = ["transformer-d128", "transformer-d512", "slice-d128"];
            Failure::usage("unknown").nearest(found, names).hint
        };
        assert_eq!(hint("transformer-d12").as_deref(), Some("did you mean `transformer-d128`?"));
        assert_eq!(hint("slice-128").as_deref(), Some("did you mean `slice-d128`?"));
        assert_eq!(hint("xyzzy"), None);
    }
}
