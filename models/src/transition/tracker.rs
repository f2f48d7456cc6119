//! The machine as a tracker: it runs on its own answers, whole games side by side.

use std::sync::Arc;

use cwm_core::{
    chess::{
        MoveToken, State, Trajectory,
        label::{LABELS, LOGIT_OFFSETS, LOGITS, SIDE, SQUARES},
    },
    tracker::{Prediction, TrackError, Tracker},
};

use super::{
    forward::{Activations, Steps},
    heads,
    inputs::Move,
    network::Transition,
    soft::SoftState,
};
use crate::{feedback::Feedback, parallel, predictor::Answers};

/// Games that run side by side on one thread: their activations fit a core's second-level cache.
const GAMES: usize = 16;

/// A transition machine that names states.
#[derive(Debug, Clone)]
pub struct TransitionTracker {
    name: String,
    network: Arc<Transition>,
    feedback: Feedback,
}

/// The states that a batch of games is in, as the machine has named them; all zeros before START.
#[derive(Debug, Clone, PartialEq)]
pub struct TransitionMemory {
    /// `[branches, 75]`.
    labels: Vec<u8>,
    /// With soft feedback, the probabilities behind them, of each branch.
    soft: Vec<SoftState>,
}

/// The same cells, all 64, for every step of a batch.
fn all_cells(steps: usize) -> Vec<u8> {
    (0..steps).flat_map(|_| 0..SQUARES as u8).collect()
}

/// What is kept from step to step for its memory.
#[derive(Default)]
struct Workspace {
    activations: Activations,
    cells: Vec<u8>,
}

impl TransitionTracker {
    /// A tracker of this name for tables.
    pub fn new(name: impl Into<String>, network: Transition) -> Self {
        let (name, network) = (name.into(), Arc::new(network));
        TransitionTracker { name, network, feedback: Feedback::Argmax }
    }

    /// The same on other feedback: an experiment. Move by move, the truth is not at hand, and the machine's own answer
    /// stands for it.
    #[must_use]
    pub fn with_feedback(self, feedback: Feedback) -> Self {
        TransitionTracker { feedback, ..self }
    }

    /// The network.
    pub fn network(&self) -> &Transition {
        &self.network
    }

    fn forward(&self, moves: &[Move], before: &[u8], space: &mut Workspace) {
        if space.cells.len() < moves.len() * SQUARES {
            space.cells = all_cells(moves.len());
        }
        let cells = &space.cells[..moves.len() * SQUARES];
        let steps = Steps { moves, before, cells_per_step: SQUARES, cells };
        self.network.forward(steps, &mut space.activations);
    }

    /// Reads one token for each state `[n, 75]`, and puts the next states in their place. `each` hears for every one
    /// whether all logits were finite, and the activations, before the old state is gone.
    fn advance(
        &self,
        moves: &[Move],
        labels: &mut [u8],
        space: &mut Workspace,
        mut each: impl FnMut(usize, bool, &[u8], &Activations),
    ) {
        self.forward(moves, labels, space);
        let rows = moves.len() * SQUARES;
        let clocks = self.network.config().clocks;
        let columns = heads::columns(clocks);
        for (i, labels) in labels.chunks_exact_mut(LABELS).enumerate() {
            let act = &space.activations;
            let logits = &act.heads[i * columns..(i + 1) * columns];
            let mut after = [0; LABELS];
            let finite = heads::decode_cells(&act.logits, rows, i * SQUARES, &mut after)
                && logits.iter().all(|x| x.is_finite());
            heads::decode(logits, clocks, labels, &mut after);
            each(i, finite, labels, act);
            labels.copy_from_slice(&after);
        }
    }

    /// Grades games side by side; those that are over drop out.
    fn grade_part(&self, games: &[&Trajectory]) -> Result<Vec<Prediction>, TrackError> {
        let mut predictions: Vec<Prediction> = games
            .iter()
            .map(|game| Prediction {
                states: Vec::with_capacity(game.steps()),
                loss_sum: None,
                non_finite_steps: Vec::new(),
            })
            .collect();
        let clocks = self.network.config().clocks;
        let columns = heads::columns(clocks);
        let mut losses = vec![0.0; games.len()];
        let mut running: Vec<usize> = (0..games.len()).collect();
        let mut labels = vec![0; games.len() * LABELS];
        let mut space = Workspace::default();
        for step in 0.. {
            // Games that are over leave; the states of the others move up.
            let mut kept = 0;
            for place in 0..running.len() {
                if games[running[place]].steps() > step {
                    running[kept] = running[place];
                    labels.copy_within(place * LABELS..(place + 1) * LABELS, kept * LABELS);
                    kept += 1;
                }
            }
            running.truncate(kept);
            labels.truncate(kept * LABELS);
            if running.is_empty() {
                break;
            }
            let moves: Vec<Move> =
                running.iter().map(|&game| Move::of(games[game].tokens()[step].id())).collect();
            let rows = moves.len() * SQUARES;
            self.advance(&moves, &mut labels, &mut space, |i, finite, before, act| {
                let game = running[i];
                let truth = games[game].states()[step].labels();
                let logits = &act.heads[i * columns..(i + 1) * columns];
                losses[game] += heads::cell_loss(&act.logits, rows, i * SQUARES, truth)
                    + heads::loss(logits, clocks, before, truth);
                if !finite {
                    predictions[game].non_finite_steps.push(step);
                }
            });
            for (&game, labels) in running.iter().zip(labels.chunks_exact_mut(LABELS)) {
                predictions[game].states.push(state(labels)?);
                if self.feedback == Feedback::Truth {
                    labels.copy_from_slice(games[game].states()[step].labels());
                }
            }
        }
        for (prediction, loss) in predictions.iter_mut().zip(losses) {
            prediction.loss_sum = Some(loss);
        }
        Ok(predictions)
    }

    /// Grades one game on soft feedback.
    fn grade_soft(&self, game: &Trajectory) -> Result<Prediction, TrackError> {
        let clocks = self.network.config().clocks;
        let mut act = Activations::default();
        let mut soft = SoftState::new();
        let mut loss = 0.0;
        let mut prediction = Prediction {
            states: Vec::with_capacity(game.steps()),
            loss_sum: None,
            non_finite_steps: Vec::new(),
        };
        for (step, (token, truth)) in game.tokens().iter().zip(game.states()).enumerate() {
            let before = soft.labels;
            if !self.network.soft_step(Move::of(token.id()), &mut soft, &mut act) {
                prediction.non_finite_steps.push(step);
            }
            loss += heads::cell_loss(&act.logits, SQUARES, 0, truth.labels())
                + heads::loss(&act.heads, clocks, &before, truth.labels());
            prediction.states.push(state(&soft.labels)?);
        }
        prediction.loss_sum = Some(loss);
        Ok(prediction)
    }

    /// The probability of every class of every label after each of `tokens` (START first), `[steps, 1878]`, given the
    /// machine's own state before; label `j` owns the columns [`cwm_core::chess::label::logit_range`]`(j)`.
    pub fn probabilities(&self, tokens: &[MoveToken]) -> Vec<f32> {
        let clocks = self.network.config().clocks;
        let mut out = vec![0.0; tokens.len() * LOGITS];
        let mut labels = vec![0; LABELS];
        let mut space = Workspace::default();
        for (&token, out) in tokens.iter().zip(out.chunks_exact_mut(LOGITS)) {
            let (cells, others) = out.split_at_mut(LOGIT_OFFSETS[SIDE]);
            self.advance(&[Move::of(token.id())], &mut labels, &mut space, |_, _, before, act| {
                heads::cell_probabilities(&act.logits, SQUARES, 0, cells);
                heads::probabilities(&act.heads, clocks, before, others);
            });
        }
        out
    }

    /// Reads one token a branch, like [`Tracker::push`], and says how sure the machine is, given its own states before.
    ///
    /// # Errors
    /// [`TrackError`] as from [`Tracker::push`].
    pub fn answer(
        &self,
        memory: &mut TransitionMemory,
        tokens: &[MoveToken],
    ) -> Result<Answers, TrackError> {
        let clocks = self.network.config().clocks;
        let columns = heads::columns(clocks);
        let branches = memory.labels.len() / LABELS;
        let mut finite = vec![true; branches];
        let mut probabilities = vec![0.0; branches * LOGITS];
        self.push_each(memory, tokens, |branch, rows, cell, all_finite, before, act| {
            finite[branch] = all_finite;
            let out = &mut probabilities[branch * LOGITS..(branch + 1) * LOGITS];
            let (cells, others) = out.split_at_mut(LOGIT_OFFSETS[SIDE]);
            heads::cell_probabilities(&act.logits, rows, cell, cells);
            let row = cell / SQUARES;
            let logits = &act.heads[row * columns..(row + 1) * columns];
            heads::probabilities(logits, clocks, before, others);
        })?;
        let states = memory.labels.chunks_exact(LABELS).map(state).collect::<Result<_, _>>()?;
        Ok(Answers { states, finite, probabilities })
    }

    /// Reads one token a branch. `each` hears of every branch: its number, the rows of the cell logits, the first of
    /// them that is its own, whether all logits were finite, the state before, and the activations.
    fn push_each(
        &self,
        memory: &mut TransitionMemory,
        tokens: &[MoveToken],
        mut each: impl FnMut(usize, usize, usize, bool, &[u8], &Activations),
    ) -> Result<(), TrackError> {
        let branches = memory.labels.len() / LABELS;
        if tokens.len() != branches {
            let message = format!("{} tokens for {branches} branches", tokens.len());
            return Err(TrackError::Token(message));
        }
        let moves: Vec<Move> = tokens.iter().map(|token| Move::of(token.id())).collect();
        let mut space = Workspace::default();
        if self.feedback == Feedback::Soft {
            let labels = memory.labels.chunks_exact_mut(LABELS);
            let branches = moves.iter().zip(&mut memory.soft).zip(labels).enumerate();
            for (branch, ((&step, soft), labels)) in branches {
                let finite = self.network.soft_step(step, soft, &mut space.activations);
                each(branch, SQUARES, 0, finite, labels, &space.activations);
                labels.copy_from_slice(&soft.labels);
            }
            return Ok(());
        }
        let parts = moves.chunks(GAMES).zip(memory.labels.chunks_mut(GAMES * LABELS));
        for (part, (moves, labels)) in parts.enumerate() {
            let rows = moves.len() * SQUARES;
            self.advance(moves, labels, &mut space, |i, finite, before, act| {
                each(part * GAMES + i, rows, i * SQUARES, finite, before, act);
            });
        }
        Ok(())
    }
}

fn state(labels: &[u8]) -> Result<State, TrackError> {
    let fault = |error: &dyn std::fmt::Display| TrackError::Device(error.to_string());
    let labels: [u8; LABELS] = labels.try_into().map_err(|error| fault(&error))?;
    State::new(labels).map_err(|error| fault(&error))
}

impl Tracker for TransitionTracker {
    type Memory = TransitionMemory;

    fn name(&self) -> &str {
        &self.name
    }

    fn start(&self, branches: usize) -> TransitionMemory {
        let soft = match self.feedback {
            Feedback::Soft => vec![SoftState::new(); branches],
            Feedback::Argmax | Feedback::Truth => Vec::new(),
        };
        TransitionMemory { labels: vec![0; branches * LABELS], soft }
    }

    async fn push(
        &self,
        memory: &mut TransitionMemory,
        tokens: &[MoveToken],
    ) -> Result<Vec<State>, TrackError> {
        self.push_each(memory, tokens, |_, _, _, _, _, _| {})?;
        memory.labels.chunks_exact(LABELS).map(state).collect()
    }

    async fn grade(&self, games: &[&Trajectory]) -> Result<Vec<Prediction>, TrackError> {
        if self.feedback == Feedback::Soft {
            let graded = parallel::map(games.to_vec(), |game| self.grade_soft(game));
            return graded.into_iter().collect();
        }
        let parts: Vec<&[&Trajectory]> = games.chunks(GAMES).collect();
        let graded = parallel::map(parts, |games| self.grade_part(games));
        let mut predictions = Vec::with_capacity(games.len());
        for part in graded {
            predictions.extend(part?);
        }
        Ok(predictions)
    }
}
