//! Stopping long work on Ctrl-C or SIGTERM without leaving anything half-written.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::exit::{Exit, Failure};

/// Set by the first signal; a second one ends the process at once.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens for signals from now on.
    ///
    /// # Errors
    /// If the handlers cannot be registered.
    pub fn listen() -> std::io::Result<Interrupt> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(
                signal,
                Exit::Interrupted as i32,
                flag.clone(),
            )?;
            signal_hook::flag::register(signal, flag.clone())?;
        }
        Ok(Interrupt(flag))
    }

    /// Fails once a signal has come.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 130.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.0.load(Ordering::Relaxed) {
            return Err(Failure::new(Exit::Interrupted, "interrupted; nothing was written").into());
        }
        Ok(())
    }
}
