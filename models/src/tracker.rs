//! A network of any family as a tracker.

use burn::tensor::Device;
use cwm_core::{
    chess::{MoveToken, State, Trajectory},
    tracker::{Prediction, TrackError, Tracker},
};

use crate::{
    config::ModelConfig,
    feedback::{Feedback, FeedbackError},
    memory::Memory,
    model::{Model, ModelError},
    parameters::Parameters,
    predictor::{Answers, Predictor},
    transition::{Transition, TransitionMemory, TransitionTracker},
};

/// A network that names states.
#[derive(Debug, Clone)]
pub enum ModelTracker {
    /// One that reads a sequence of tokens.
    Sequence(Box<Predictor>),
    /// The transition machine, which computes on the CPU whatever the device.
    Transition(TransitionTracker),
}

/// What a [`ModelTracker`] remembers of a batch of prefixes.
#[derive(Debug, Clone)]
pub enum ModelMemory {
    /// Keys and values, or a recurrent state.
    Sequence(Memory),
    /// The states themselves.
    Transition(TransitionMemory),
}

impl ModelTracker {
    /// The network of this shape with these parameters, under a name for tables.
    ///
    /// # Errors
    /// [`ModelError`] if the shape cannot be or the parameters do not fit it.
    pub fn from_parameters(
        name: impl Into<String>,
        config: &ModelConfig,
        parameters: &Parameters,
        device: &Device,
    ) -> Result<Self, ModelError> {
        match config {
            ModelConfig::Transition(config) => {
                let network = Transition::from_parameters(config, parameters)?;
                Ok(Self::Transition(TransitionTracker::new(name, network)))
            }
            _ => {
                let model = Model::from_parameters(config, parameters, device)?;
                Ok(Self::Sequence(Box::new(Predictor::new(name, model))))
            }
        }
    }

    /// Lets `rows` steps run through a network on a GPU together, instead of as many as suit a CPU.
    #[must_use]
    pub fn with_rows_per_pass(self, rows: usize) -> Self {
        match self {
            Self::Sequence(predictor) => {
                Self::Sequence(Box::new(predictor.with_rows_per_pass(rows)))
            }
            other => other,
        }
    }

    /// The same network on other feedback than its own most probable answers.
    ///
    /// # Errors
    /// [`FeedbackError`] if the network does not read its own answers.
    pub fn with_feedback(self, feedback: Feedback) -> Result<Self, FeedbackError> {
        match self {
            _ if feedback == Feedback::Argmax => Ok(self),
            Self::Transition(tracker) => Ok(Self::Transition(tracker.with_feedback(feedback))),
            Self::Sequence(predictor) => {
                Ok(Self::Sequence(Box::new(predictor.with_feedback(feedback)?)))
            }
        }
    }

    /// The probability of every class of every label after each of `tokens` (START first), `[steps, 1878]`;
    /// label `j` owns the columns [`cwm_core::chess::label::logit_range`]`(j)`.
    ///
    /// # Errors
    /// [`TrackError`] if the game is too long, holds an impossible move, or the device fails.
    pub async fn probabilities(&self, tokens: &[MoveToken]) -> Result<Vec<f32>, TrackError> {
        match self {
            Self::Sequence(predictor) => predictor.probabilities(tokens).await,
            Self::Transition(tracker) => Ok(tracker.probabilities(tokens)),
        }
    }

    /// Reads one token a branch, like [`Tracker::push`], and says how sure the network is.
    ///
    /// # Errors
    /// [`TrackError`] as from [`Tracker::push`].
    pub async fn answer(
        &self,
        memory: &mut ModelMemory,
        tokens: &[MoveToken],
    ) -> Result<Answers, TrackError> {
        match (self, memory) {
            (Self::Sequence(predictor), ModelMemory::Sequence(memory)) => {
                predictor.answer(memory, tokens).await
            }
            (Self::Transition(tracker), ModelMemory::Transition(memory)) => {
                tracker.answer(memory, tokens)
            }
            _ => Err(other_family()),
        }
    }
}

impl Tracker for ModelTracker {
    type Memory = ModelMemory;

    fn name(&self) -> &str {
        match self {
            Self::Sequence(predictor) => predictor.name(),
            Self::Transition(tracker) => tracker.name(),
        }
    }

    fn start(&self, branches: usize) -> ModelMemory {
        match self {
            Self::Sequence(predictor) => ModelMemory::Sequence(predictor.start(branches)),
            Self::Transition(tracker) => ModelMemory::Transition(tracker.start(branches)),
        }
    }

    async fn push(
        &self,
        memory: &mut ModelMemory,
        tokens: &[MoveToken],
    ) -> Result<Vec<State>, TrackError> {
        match (self, memory) {
            (Self::Sequence(predictor), ModelMemory::Sequence(memory)) => {
                predictor.push(memory, tokens).await
            }
            (Self::Transition(tracker), ModelMemory::Transition(memory)) => {
                tracker.push(memory, tokens).await
            }
            _ => Err(other_family()),
        }
    }

    async fn grade(&self, games: &[&Trajectory]) -> Result<Vec<Prediction>, TrackError> {
        match self {
            Self::Sequence(predictor) => predictor.grade(games).await,
            Self::Transition(tracker) => tracker.grade(games).await,
        }
    }
}

fn other_family() -> TrackError {
    TrackError::Device("the memory is of a network of another family".into())
}
