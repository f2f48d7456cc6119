//! One optimisation step after the other.

use burn::tensor::Device;
use cwm_core::{chess::label::LABELS, data::batch::Batch};

use super::{
    BatchError, OptimizerConfig, ScheduleConfig, SettingError, StateError,
    gradients::{GradientSum, Leaves, Values, Writer, add_lanes},
    microbatch::{MicroBatch, split},
    optimizer::{AdamW, Step, clip_factor, global_norm},
    state,
};
use crate::{
    ModelConfig, Predictor,
    device::{DeviceChoice, DeviceError},
    init::initial_embedding,
    model::{Model, ModelError, is_compact_embedding},
    network::DropoutSeed,
    parallel,
    parameters::Parameters,
};

/// A trainer that could not be made, or a step that could not be done.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TrainError {
    /// The model's shape.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The optimiser's or the schedule's settings.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The batch.
    #[error(transparent)]
    Batch(#[from] BatchError),
}

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepReport {
    /// Steps done so far, this one included.
    pub step: u64,
    /// Mean cross-entropy over valid steps and labels, before the update, in nats.
    pub loss: f64,
    /// Global norm of the gradients before clipping.
    pub grad_norm: f64,
    /// Learning rate of this step.
    pub lr: f64,
    /// Whether loss or gradients were not finite: then nothing was changed and the step does not count.
    pub skipped_non_finite: bool,
}

/// A model in training: parameters, moments and the count of steps.
///
/// Steps are deterministic: equal states and batches give equal states, bit for bit, however many threads there are.
#[derive(Debug)]
pub struct Trainer {
    model: Model,
    optimizer: OptimizerConfig,
    schedule: ScheduleConfig,
    seed: u64,
    step: u64,
    names: Vec<String>,
    parameters: Vec<Vec<f32>>,
    adam: AdamW,
    /// What weight decay has left of the embedding rows that a compact table does not hold.
    untouched_scale: f64,
}

impl Trainer {
    /// A trainer of a new model.
    ///
    /// # Errors
    /// [`TrainError`] if a setting cannot be or the device is not there.
    pub fn new(
        config: &ModelConfig,
        optimizer: &OptimizerConfig,
        schedule: &ScheduleConfig,
        seed: u64,
        device: &DeviceChoice,
    ) -> Result<Self, TrainError> {
        let device = device.open()?;
        Self::from_model(Model::new(config, seed, &device)?, optimizer, schedule, seed)
    }

    /// A trainer that begins with the parameters of `model`.
    ///
    /// # Errors
    /// [`TrainError`] if a setting cannot be.
    pub fn from_model(
        model: Model,
        optimizer: &OptimizerConfig,
        schedule: &ScheduleConfig,
        seed: u64,
    ) -> Result<Self, TrainError> {
        optimizer.validate()?;
        schedule.validate()?;
        let parameters = Values::of(&model);
        let names = model.config().parameter_shapes().into_iter().map(|(name, _)| name).collect();
        let adam = AdamW::new(parameters.iter().map(Vec::len));
        let mut optimizer = optimizer.clone();
        let exempt = model.config().shape().no_decay();
        optimizer.no_decay.extend(exempt.iter().map(|&ending| ending.to_string()));
        Ok(Trainer {
            model,
            optimizer,
            schedule: schedule.clone(),
            seed,
            step: 0,
            names,
            parameters,
            adam,
            untouched_scale: 1.0,
        })
    }

    /// One step: loss and gradients of `batch`, clipped, into the parameters.
    ///
    /// # Errors
    /// [`TrainError::Batch`] if the batch does not fit the model.
    pub fn step(&mut self, batch: &Batch) -> Result<StepReport, TrainError> {
        let (loss, gradients) = self.loss_and_gradients(batch)?;
        let grad_norm = global_norm(&gradients);
        let lr = self.optimizer.lr * self.schedule.factor(self.step);
        let skipped_non_finite = !(loss.is_finite() && grad_norm.is_finite());
        if !skipped_non_finite {
            self.step += 1;
            let clip = clip_factor(grad_norm, self.optimizer.grad_clip);
            let step = Step { config: &self.optimizer, lr, number: self.step, clip };
            self.adam.update(step, &self.names, &mut self.parameters, &gradients);
            self.untouched_scale *= 1.0 - lr * self.optimizer.decay_of(&self.names[0]);
            self.put_parameters();
        }
        Ok(StepReport { step: self.step, loss, grad_norm, lr, skipped_non_finite })
    }

    /// The mean loss of a batch, with this step's dropout, and its gradients by parameter, in the order of
    /// [`ModelConfig::parameter_shapes`].
    ///
    /// # Errors
    /// [`TrainError::Batch`] if the batch does not fit the model.
    pub fn loss_and_gradients(&self, batch: &Batch) -> Result<(f64, Vec<Vec<f32>>), TrainError> {
        let count: usize = self.parameters.iter().map(Vec::len).sum();
        let parts = split(batch, &self.model, count)?;
        let scale = (1.0 / (LABELS * batch.valid_steps()) as f64) as f32;
        let dropout = DropoutSeed { seed: self.seed, step: self.step };

        // Lanes add up the gradients of every so-many-th micro-batch; then the lanes are added up in order.
        let lane_count = lane_count(count).min(parts.len());
        let mut lanes: Vec<Vec<MicroBatch>> = (0..lane_count).map(|_| Vec::new()).collect();
        for (i, part) in parts.into_iter().enumerate() {
            lanes[i % lane_count].push(part);
        }
        let sums = parallel::map(lanes, |parts| {
            let mut sum = GradientSum::default();
            for part in parts {
                self.add_gradients(part, scale, dropout, &mut sum);
            }
            sum
        });
        Ok(add_lanes(sums))
    }

    /// Runs one micro-batch forward and backward.
    fn add_gradients(
        &self,
        part: MicroBatch,
        scale: f32,
        dropout: DropoutSeed,
        sum: &mut GradientSum,
    ) {
        // Leaves of its own: micro-batches that shared leaves would share one graph, and wait for each other.
        let device: Device = self.model.device().clone().autodiff();
        let replica = self.model.mapped(device, &mut Leaves);
        let loss = replica.loss(&part.tokens, part.labels, scale, Some(dropout));
        let gradients = loss.backward();
        sum.add(loss, gradients, &replica);
    }

    /// Hands the updated numbers to the model.
    fn put_parameters(&mut self) {
        let device = self.model.device().clone();
        let mut writer = Writer::new(&self.parameters, &device);
        self.model = self.model.mapped(device.clone(), &mut writer);
    }

    /// The model as it stands.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The model as it stands, as a tracker.
    pub fn predictor(&self) -> Predictor {
        Predictor::new(self.model.config().name(), self.model.clone())
    }

    /// Steps done.
    pub fn steps_done(&self) -> u64 {
        self.step
    }

    /// The run's seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Every parameter with all embedding rows: those that no legal game reads are as a full table would have them,
    /// the initial numbers less their weight decay.
    pub fn full_parameters(&self) -> Parameters {
        let mut parameters = self.model.named_parameters();
        let config = self.model.config();
        for (name, tensor) in &mut parameters {
            if !is_compact_embedding(config, name) {
                continue;
            }
            let Some(mut full) = initial_embedding(config, self.seed) else { continue };
            let scale = self.untouched_scale as f32;
            full.data.iter_mut().for_each(|x| *x *= scale);
            if tensor.expand_rows_into(&mut full).is_some() {
                *tensor = full;
            }
        }
        parameters
    }

    /// Parameters, moments and counts: all that a resumed run needs to equal an uninterrupted one.
    pub fn save_state(&self) -> Vec<u8> {
        state::save(self.parts())
    }

    /// Goes back to a saved state.
    ///
    /// # Errors
    /// [`StateError`] if the bytes are damaged or of another model or seed; the trainer is then as it was.
    pub fn load_state(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        let loaded = state::load(self.parts(), bytes)?;
        self.parameters = loaded.parameters;
        self.adam = loaded.adam;
        self.step = loaded.step;
        self.untouched_scale = loaded.untouched_scale;
        self.put_parameters();
        Ok(())
    }

    fn parts(&self) -> state::Parts<'_> {
        state::Parts {
            model: self.model.config(),
            seed: self.seed,
            step: self.step,
            untouched_scale: self.untouched_scale,
            names: &self.names,
            parameters: &self.parameters,
            adam: &self.adam,
        }
    }
}

/// Lanes for a model of this many parameters: enough for many cores while their sums stay small.
fn lane_count(parameters: usize) -> usize {
    (64_000_000 / parameters.max(1)).clamp(4, 16)
}
