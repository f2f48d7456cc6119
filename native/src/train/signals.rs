//! Stop requests: the first signal asks for a checkpoint and an orderly end, a second Ctrl-C quits at once.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::Context;
use signal_hook::{consts, flag};

use crate::exit::Exit;

/// Set once a signal has come.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens for SIGINT, SIGTERM and, where it exists, SIGUSR1 (batch systems send it ahead of the time limit).
    pub fn listen() -> anyhow::Result<Self> {
        let stop = Stop::default();
        let register = |signal| {
            // The order matters: the shutdown looks at the flag that the second line sets.
            flag::register_conditional_shutdown(
                signal,
                Exit::Interrupted as i32,
                Arc::clone(&stop.0),
            )
            .and_then(|_| flag::register(signal, Arc::clone(&stop.0)))
            .context("cannot listen for signals")
        };
        register(consts::SIGINT)?;
        for signal in quiet_signals() {
            flag::register(signal, Arc::clone(&stop.0)).context("cannot listen for signals")?;
        }
        Ok(stop)
    }

    /// Whether to stop.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

fn quiet_signals() -> impl Iterator<Item = i32> {
    #[cfg(unix)]
    let signals = [consts::SIGTERM, consts::SIGUSR1];
    #[cfg(not(unix))]
    let signals = [consts::SIGTERM];
    signals.into_iter()
}
