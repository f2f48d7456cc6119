//! Training on single transitions, with the true state before each.

use cwm_core::{
    chess::label::{LABELS, SQUARES, class_count},
    data::transition::Transitions,
};

use super::{
    TransitionTracker,
    backward::{Sums, Targets},
    config::TransitionConfig,
    forward::{Activations, Steps},
    inputs::Move,
    network::Transition,
};
use crate::{
    ModelConfig,
    config::Shape,
    parallel,
    parameters::Parameters,
    train::{
        AdamW, BatchError, OptimizerConfig, ScheduleConfig, StateError, StepReport, TrainError,
        optimizer::{Step, clip_factor, global_norm},
        state::{self, Parts},
    },
};

/// Steps that run through the network together: their activations fit a core's second-level cache.
const PART_STEPS: usize = 64;
/// Sums of gradients that are made side by side, whatever the number of threads, so that results do not depend on it.
const LANES: usize = 8;
/// What the reported loss is divided by: 64 cells, seven labels and two clocks.
const FACTORS: f64 = 73.0;

/// A transition machine in training: parameters, moments and the count of steps.
///
/// Steps are deterministic: equal states and batches give equal states, bit for bit, however many threads there are.
#[derive(Debug)]
pub struct TransitionTrainer {
    config: ModelConfig,
    network: Transition,
    optimizer: OptimizerConfig,
    schedule: ScheduleConfig,
    seed: u64,
    step: u64,
    names: Vec<String>,
    parameters: Vec<Vec<f32>>,
    adam: AdamW,
}

impl TransitionTrainer {
    /// A trainer of a new network.
    ///
    /// # Errors
    /// [`TrainError`] if a setting cannot be.
    pub fn new(
        config: &TransitionConfig,
        optimizer: &OptimizerConfig,
        schedule: &ScheduleConfig,
        seed: u64,
    ) -> Result<Self, TrainError> {
        optimizer.validate()?;
        schedule.validate()?;
        let network = Transition::new(config, seed)?;
        let parameters = network.parameters().to_vec();
        Ok(TransitionTrainer {
            config: ModelConfig::Transition(config.clone()),
            names: config.parameter_shapes().into_iter().map(|(name, _)| name).collect(),
            adam: AdamW::new(parameters.iter().map(Vec::len)),
            optimizer: optimizer.clone(),
            schedule: schedule.clone(),
            seed,
            step: 0,
            network,
            parameters,
        })
    }

    /// One step: loss and gradients of `batch`, clipped, into the parameters. The reported loss is the mean
    /// cross-entropy of the 64 cells, the seven labels of side, rights and en passant, and the two clocks.
    ///
    /// # Errors
    /// [`TrainError::Batch`] if the batch contradicts itself.
    pub fn step(&mut self, batch: &Transitions) -> Result<StepReport, TrainError> {
        let (loss, gradients) = self.loss_and_gradients(batch)?;
        let grad_norm = global_norm(&gradients);
        let lr = self.optimizer.lr * self.schedule.factor(self.step);
        let skipped_non_finite = !(loss.is_finite() && grad_norm.is_finite());
        if !skipped_non_finite {
            self.step += 1;
            let clip = clip_factor(grad_norm, self.optimizer.grad_clip);
            let step = Step { config: &self.optimizer, lr, number: self.step, clip };
            self.adam.update(step, &self.names, &mut self.parameters, &gradients);
            self.network.set_parameters(&self.parameters);
        }
        let loss = loss / FACTORS;
        Ok(StepReport { step: self.step, loss, grad_norm, lr, skipped_non_finite })
    }

    /// The loss of a batch, summed over the factors of a step and averaged over steps, and its gradients by parameter.
    ///
    /// # Errors
    /// [`TrainError::Batch`] if the batch contradicts itself.
    pub fn loss_and_gradients(
        &self,
        batch: &Transitions,
    ) -> Result<(f64, Vec<Vec<f32>>), TrainError> {
        check(batch)?;
        let n = batch.steps();
        let k = batch.cells_per_step;
        let scale = 1.0 / n as f32;
        let moves: Vec<Move> = batch.tokens.iter().map(|&token| Move::of(token)).collect();
        let lanes: Vec<usize> = (0..LANES.min(n.div_ceil(PART_STEPS))).collect();
        let sums = parallel::map(lanes, |lane| {
            let mut sums = Sums::new(&self.network);
            let mut activations = Activations::default();
            for first in (lane * PART_STEPS..n).step_by(LANES * PART_STEPS) {
                let steps = first..n.min(first + PART_STEPS);
                let labels = steps.start * LABELS..steps.end * LABELS;
                let cells = steps.start * k..steps.end * k;
                let inputs = Steps {
                    moves: &moves[steps.clone()],
                    before: &batch.before[labels.clone()],
                    cells_per_step: k,
                    cells: &batch.cells[cells.clone()],
                };
                let targets = Targets {
                    after: &batch.after[labels],
                    swapped: &batch.swapped[steps],
                    weights: &batch.weights[cells],
                };
                self.network.forward(inputs, &mut activations);
                self.network.backward(inputs, targets, scale, &mut activations, &mut sums);
            }
            sums
        });
        let mut sums = sums.into_iter();
        let Some(mut total) = sums.next() else { return Ok((0.0, Vec::new())) };
        for other in sums {
            total.loss += other.loss;
            for (sum, gradient) in total.gradients.iter_mut().zip(&other.gradients) {
                sum.iter_mut().zip(gradient).for_each(|(sum, x)| *sum += x);
            }
        }
        Ok((total.loss, total.gradients))
    }

    /// The shape.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The network as it stands, as a tracker.
    pub fn tracker(&self) -> TransitionTracker {
        TransitionTracker::new(self.config.name(), self.network.clone())
    }

    /// Every parameter under its name.
    pub fn named_parameters(&self) -> Parameters {
        self.network.named_parameters()
    }

    /// Steps done.
    pub fn steps_done(&self) -> u64 {
        self.step
    }

    /// Parameters, moments and counts: all that a resumed run needs to equal an uninterrupted one.
    pub fn save_state(&self) -> Vec<u8> {
        state::save(self.parts())
    }

    fn parts(&self) -> Parts<'_> {
        Parts {
            model: &self.config,
            seed: self.seed,
            step: self.step,
            untouched_scale: 1.0,
            names: &self.names,
            parameters: &self.parameters,
            adam: &self.adam,
        }
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
        self.network.set_parameters(&self.parameters);
        Ok(())
    }
}

fn check(batch: &Transitions) -> Result<(), BatchError> {
    let (n, k) = (batch.steps(), batch.cells_per_step);
    let malformed = |what| Err(BatchError::Malformed(what));
    if n == 0 {
        return malformed("it has no steps");
    }
    if batch.before.len() != n * LABELS || batch.after.len() != n * LABELS {
        return malformed("it does not hold 75 labels a step, before and after");
    }
    if !(1..=SQUARES).contains(&k) || batch.cells.len() != n * k || batch.weights.len() != n * k {
        return malformed("it does not hold its number of cells and weights a step");
    }
    if batch.swapped.len() != n || batch.cells.iter().any(|&cell| usize::from(cell) >= SQUARES) {
        return malformed("a cell is none of the 64, or not every step says whether it is swapped");
    }
    for labels in [&batch.before, &batch.after] {
        for (row, labels) in labels.chunks_exact(LABELS).enumerate() {
            for (label, &class) in labels.iter().enumerate() {
                if usize::from(class) >= class_count(label) {
                    return Err(BatchError::Label { row, label, class });
                }
            }
        }
    }
    Ok(())
}
