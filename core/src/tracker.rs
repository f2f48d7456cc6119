//! What every evaluation talks to: something that names a state after every prefix.
//!
//! Trained networks and the baselines that need no network are trackers alike. Methods are async because a GPU in a
//! browser can only be read asynchronously; on the CPU the futures are ready at once.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use crate::chess::{MoveToken, State, Trajectory};

/// A tracker that could not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrackError {
    /// The device failed or ran out of memory.
    #[error("device failure: {0}")]
    Device(String),
    /// A move that the tracker does not know.
    #[error("{0}")]
    Token(String),
    /// The game is longer than the tracker can take.
    #[error("a game of {steps} steps is longer than the {limit} that this tracker can take")]
    TooLong {
        /// Steps in the game.
        steps: usize,
        /// The most the tracker takes.
        limit: usize,
    },
}

/// The answer for one game.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The most probable class of each label after each step (as many as the game has steps).
    pub states: Vec<State>,
    /// Cross-entropy against the truth, summed over the game's steps and 75 labels, in nats;
    /// `None` from trackers that give no probabilities.
    pub loss_sum: Option<f64>,
    /// Steps, ascending, at which some logit was not finite: graded as wrong in all 75 labels.
    pub non_finite_steps: Vec<usize>,
}

/// Names a state after every prefix, for whole games at once or token by token.
pub trait Tracker {
    /// What the tracker remembers of a batch of prefixes: a recurrent state or a KV cache. Cloning it forks the games.
    type Memory: Clone;

    /// A short name for tables.
    fn name(&self) -> &str;

    /// Memory of `branches` games before their first token (START has yet to be pushed).
    fn start(&self, branches: usize) -> Self::Memory;

    /// Reads one token a branch and names the state after it.
    fn push(
        &self,
        memory: &mut Self::Memory,
        tokens: &[MoveToken],
    ) -> impl Future<Output = Result<Vec<State>, TrackError>>;

    /// Names every state of whole games, in the order given. The truth serves the loss alone.
    fn grade(
        &self,
        games: &[&Trajectory],
    ) -> impl Future<Output = Result<Vec<Prediction>, TrackError>>;
}

/// The result of a future that is ready at once, as every tracker's is on the CPU; `None` if it would have to wait.
pub fn ready<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
