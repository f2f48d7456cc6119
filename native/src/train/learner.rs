//! What is trained: a network that reads sequences, or the transition machine. The loop drives either.

use cwm_core::data::{batch::Batch, transition::Transitions};
use cwm_models::{
    ModelConfig, ModelTracker, Parameters,
    device::DeviceChoice,
    train::{ScheduleConfig, StateError, StepReport, TrainError, Trainer},
    transition::TransitionTrainer,
};

use super::settings::Settings;
use crate::exit::{Exit, Failure};

/// A network in training.
#[derive(Debug)]
pub enum Learner {
    /// Reads whole games.
    Sequence(Box<Trainer>),
    /// Reads single transitions.
    Transition(Box<TransitionTrainer>),
}

/// What one step learns from.
#[derive(Debug)]
pub enum Lesson {
    /// Whole games.
    Games(Batch),
    /// Single steps of many games.
    Transitions(Transitions),
}

impl Lesson {
    /// Steps that carry a state.
    pub fn valid_steps(&self) -> usize {
        match self {
            Lesson::Games(batch) => batch.valid_steps(),
            Lesson::Transitions(batch) => batch.steps(),
        }
    }
}

impl Learner {
    /// The trainer that the settings ask for.
    ///
    /// # Errors
    /// A [`Failure`] if the device cannot be used or a setting cannot be.
    pub fn new(
        settings: &Settings,
        schedule: &ScheduleConfig,
        device: &DeviceChoice,
    ) -> anyhow::Result<Self> {
        let (optimizer, seed) = (&settings.optimizer, settings.train.seed);
        let failure = |error: TrainError| {
            let exit = match error {
                TrainError::Device(_) => Exit::Device,
                _ => Exit::Usage,
            };
            Failure::new(exit, error)
        };
        match &settings.model {
            ModelConfig::Transition(config) => {
                if *device != DeviceChoice::CPU {
                    return Err(Failure::new(
                        Exit::Device,
                        "a transition machine trains on the CPU",
                    )
                    .hint("leave out `--device`")
                    .into());
                }
                let trainer = TransitionTrainer::new(config, optimizer, schedule, seed);
                Ok(Learner::Transition(Box::new(trainer.map_err(failure)?)))
            }
            model => {
                let trainer = Trainer::new(model, optimizer, schedule, seed, device);
                Ok(Learner::Sequence(Box::new(trainer.map_err(failure)?)))
            }
        }
    }

    /// One optimisation step.
    ///
    /// # Errors
    /// [`TrainError`] if the lesson does not fit the network, or is of the other kind.
    pub fn step(&mut self, lesson: &Lesson) -> anyhow::Result<StepReport> {
        match (self, lesson) {
            (Learner::Sequence(trainer), Lesson::Games(batch)) => Ok(trainer.step(batch)?),
            (Learner::Transition(trainer), Lesson::Transitions(batch)) => Ok(trainer.step(batch)?),
            _ => anyhow::bail!("the data feed and the network are of different kinds"),
        }
    }

    /// The network's shape.
    pub fn config(&self) -> &ModelConfig {
        match self {
            Learner::Sequence(trainer) => trainer.model().config(),
            Learner::Transition(trainer) => trainer.config(),
        }
    }

    /// Every parameter under its name.
    pub fn named_parameters(&self) -> Parameters {
        match self {
            Learner::Sequence(trainer) => trainer.model().named_parameters(),
            Learner::Transition(trainer) => trainer.named_parameters(),
        }
    }

    /// The network as it stands, as a tracker.
    pub fn tracker(&self) -> ModelTracker {
        match self {
            Learner::Sequence(trainer) => ModelTracker::Sequence(Box::new(trainer.predictor())),
            Learner::Transition(trainer) => ModelTracker::Transition(trainer.tracker()),
        }
    }

    /// All that a resumed run needs to equal an uninterrupted one.
    pub fn save_state(&self) -> Vec<u8> {
        match self {
            Learner::Sequence(trainer) => trainer.save_state(),
            Learner::Transition(trainer) => trainer.save_state(),
        }
    }

    /// Goes back to a saved state.
    ///
    /// # Errors
    /// [`StateError`] if the bytes are damaged or of another run; the learner is then as it was.
    pub fn load_state(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        match self {
            Learner::Sequence(trainer) => trainer.load_state(bytes),
            Learner::Transition(trainer) => trainer.load_state(bytes),
        }
    }
}
