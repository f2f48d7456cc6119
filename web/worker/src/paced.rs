//! A tracker that pauses before every batch, so that messages get in.

use cwm_core::{
    chess::{MoveToken, State, Trajectory},
    tracker::{Prediction, TrackError, Tracker},
};

use crate::host::Host;

/// `tracker` with pauses.
pub(crate) struct Paced<'a, T, H> {
    pub(crate) tracker: &'a T,
    pub(crate) host: &'a H,
}

impl<T: Tracker, H: Host> Tracker for Paced<'_, T, H> {
    type Memory = T::Memory;

    fn name(&self) -> &str {
        self.tracker.name()
    }

    fn start(&self, branches: usize) -> T::Memory {
        self.tracker.start(branches)
    }

    async fn push(
        &self,
        memory: &mut T::Memory,
        tokens: &[MoveToken],
    ) -> Result<Vec<State>, TrackError> {
        self.tracker.push(memory, tokens).await
    }

    async fn grade(&self, games: &[&Trajectory]) -> Result<Vec<Prediction>, TrackError> {
        self.host.pause().await;
        self.tracker.grade(games).await
    }
}
