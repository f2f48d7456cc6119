//! A model as a tracker: whole games graded in parallel on packed rows, or followed move by move with a cache of keys
//! and values.

use burn::tensor::Tensor;
use cwm_core::{
    chess::{MoveToken, State, Trajectory, label::LABELS},
    tracker::{Prediction, TrackError, Tracker, ready},
};

use crate::{
    feedback::{Feedback, FeedbackError},
    memory::Memory,
    model::{Model, PackedTokens},
    ops::Grades,
    parallel,
    vocabulary::NoRow,
};

/// Rows that run through the network together: what fits a core's caches on the CPU.
const ROWS: usize = 512;

/// Games that are followed side by side where the network reads its own answers.
const GAMES: usize = 16;

/// States after one token a branch, and how sure a network is of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    /// The states named, one a branch.
    pub states: Vec<State>,
    /// Whether all logits of a branch were finite.
    pub finite: Vec<bool>,
    /// The probability of every class of every label, `[branches, 1878]`; label `j` owns the columns
    /// [`cwm_core::chess::label::logit_range`]`(j)`.
    pub probabilities: Vec<f32>,
}

/// A model that names states.
#[derive(Debug, Clone)]
pub struct Predictor {
    name: String,
    model: Model,
    rows_per_pass: usize,
    feedback: Feedback,
}

impl From<NoRow> for TrackErrorOf {
    fn from(error: NoRow) -> Self {
        TrackErrorOf(TrackError::Token(error.to_string()))
    }
}

/// Lets `?` turn this crate's errors into the core's.
struct TrackErrorOf(TrackError);

impl From<TrackErrorOf> for TrackError {
    fn from(error: TrackErrorOf) -> Self {
        error.0
    }
}

impl Predictor {
    /// A tracker of this name for tables.
    pub fn new(name: impl Into<String>, model: Model) -> Self {
        let name = name.into();
        Predictor { name, model, rows_per_pass: ROWS, feedback: Feedback::Argmax }
    }

    /// Lets `rows` steps run through the network together, instead of as many as suit a CPU.
    #[must_use]
    pub fn with_rows_per_pass(self, rows: usize) -> Self {
        Predictor { rows_per_pass: rows.max(1), ..self }
    }

    /// The same with the truth fed back instead of the network's own answers, when whole games are graded.
    ///
    /// # Errors
    /// [`FeedbackError`] if the network does not read labels, or is to read probabilities.
    pub fn with_feedback(self, feedback: Feedback) -> Result<Self, FeedbackError> {
        let config = self.model.config();
        match feedback {
            Feedback::Argmax => Ok(self),
            Feedback::Truth if config.reads_labels() => Ok(Predictor { feedback, ..self }),
            _ => Err(FeedbackError { family: config.family(), feedback }),
        }
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The probability of every class of every label after each of `tokens` (START first), `[steps, 1878]`;
    /// label `j` owns the columns [`cwm_core::chess::label::logit_range`]`(j)`.
    ///
    /// # Errors
    /// [`TrackError`] if the game is too long, holds an impossible move, or the device fails.
    pub async fn probabilities(&self, tokens: &[MoveToken]) -> Result<Vec<f32>, TrackError> {
        if self.model.config().reads_labels() {
            let mut memory = self.start(1);
            let mut probabilities = Vec::new();
            for &token in tokens {
                probabilities.extend(self.answer(&mut memory, &[token]).await?.probabilities);
            }
            return Ok(probabilities);
        }
        let packed = self.pack(tokens.iter().copied(), vec![tokens.len() as u32])?;
        self.model.probabilities(&packed).await.map_err(device_error)
    }

    /// Reads one token a branch, like [`Tracker::push`], and says how sure the network is.
    ///
    /// # Errors
    /// [`TrackError`] as from [`Tracker::push`].
    pub async fn answer(
        &self,
        memory: &mut Memory,
        tokens: &[MoveToken],
    ) -> Result<Answers, TrackError> {
        let hidden = self.step(memory, tokens)?;
        let grades = self.model.grade_hidden(hidden.clone(), None).await.map_err(device_error)?;
        self.model.feed_back(memory, &grades.classes);
        Ok(Answers {
            states: grades.classes.chunks_exact(LABELS).map(state).collect::<Result<_, _>>()?,
            finite: grades.non_finite.iter().map(|bad| !bad).collect(),
            probabilities: self.model.probabilities_of(hidden).await.map_err(device_error)?,
        })
    }

    /// Reads one token a branch; gives the input `[branches, D]` of the state head.
    fn step(&self, memory: &mut Memory, tokens: &[MoveToken]) -> Result<Tensor<2>, TrackError> {
        if memory.steps() >= Model::MAX_STEPS {
            return Err(TrackError::TooLong { steps: memory.steps() + 1, limit: Model::MAX_STEPS });
        }
        let packed = self.pack(tokens.iter().copied(), vec![1; tokens.len()])?;
        Ok(self.model.step(memory, packed.rows))
    }

    fn pack(
        &self,
        tokens: impl Iterator<Item = MoveToken>,
        lengths: Vec<u32>,
    ) -> Result<PackedTokens, TrackError> {
        if let Some(&steps) =
            lengths.iter().max().filter(|&&steps| steps as usize > Model::MAX_STEPS)
        {
            return Err(TrackError::TooLong { steps: steps as usize, limit: Model::MAX_STEPS });
        }
        let packed = self.model.pack(tokens.map(MoveToken::id), lengths);
        Ok(packed.map_err(TrackErrorOf::from)?)
    }

    fn part(&self, games: &[&Trajectory]) -> Result<Part, TrackError> {
        let lengths: Vec<u32> = games.iter().map(|game| game.steps() as u32).collect();
        let tokens = games.iter().flat_map(|game| game.tokens()).copied();
        let rows: usize = games.iter().map(|game| game.steps()).sum();
        let mut labels = Vec::with_capacity(rows * LABELS);
        for state in games.iter().flat_map(|game| game.states()) {
            labels.extend_from_slice(state.labels());
        }
        let mut tokens = self.pack(tokens, lengths)?;
        if self.model.config().reads_labels() {
            tokens.games.labels = Some(labels.as_slice().into());
        }
        Ok(Part { tokens, labels })
    }

    /// Grades games side by side, step by step, on the network's own answers.
    async fn grade_following(&self, games: &[&Trajectory]) -> Result<Vec<Prediction>, TrackError> {
        let mut predictions: Vec<Prediction> = games
            .iter()
            .map(|game| Prediction {
                states: Vec::with_capacity(game.steps()),
                loss_sum: Some(0.0),
                non_finite_steps: Vec::new(),
            })
            .collect();
        let mut memory = self.start(games.len());
        let longest = games.iter().map(|game| game.steps()).max().unwrap_or(0);
        for step in 0..longest {
            // Games that are over read on, and nobody listens.
            let tokens: Vec<MoveToken> = games
                .iter()
                .map(|game| game.tokens().get(step).copied().unwrap_or(MoveToken::PAD))
                .collect();
            let labels: Vec<u8> = games
                .iter()
                .flat_map(|game| game.states()[step.min(game.steps() - 1)].labels())
                .copied()
                .collect();
            let hidden = self.step(&mut memory, &tokens)?;
            let grades = self.model.grade_hidden(hidden, Some(labels.into())).await;
            let grades = grades.map_err(device_error)?;
            self.model.feed_back(&mut memory, &grades.classes);
            for (i, (game, prediction)) in games.iter().zip(&mut predictions).enumerate() {
                if step < game.steps() {
                    prediction.states.push(state(&grades.classes[i * LABELS..(i + 1) * LABELS])?);
                    *prediction.loss_sum.get_or_insert(0.0) += grades.losses[i];
                    if grades.non_finite[i] {
                        prediction.non_finite_steps.push(step);
                    }
                }
            }
        }
        Ok(predictions)
    }

    /// Grades games that run through the network together, on the calling thread.
    fn grade_fused(&self, games: &[&Trajectory]) -> Result<Vec<Prediction>, TrackError> {
        let part = self.part(games)?;
        predictions(games, &self.model.grade_fused(&part.tokens, &part.labels))
    }

    async fn grade_portable(&self, games: &[&Trajectory]) -> Result<Vec<Prediction>, TrackError> {
        let part = self.part(games)?;
        let hidden = self.model.hidden(&part.tokens, None);
        let grades = self.model.grade_hidden(hidden, Some(part.labels.into())).await;
        predictions(games, &grades.map_err(device_error)?)
    }
}

/// Games that run through the network together.
struct Part {
    tokens: PackedTokens,
    labels: Vec<u8>,
}

/// Cuts games into runs of about `most` steps.
fn runs<'g, 't>(games: &'g [&'t Trajectory], most: usize) -> Vec<&'g [&'t Trajectory]> {
    let mut runs = Vec::new();
    let mut first = 0;
    let mut rows = 0;
    for (i, game) in games.iter().enumerate() {
        if rows > 0 && rows + game.steps() > most {
            runs.push(&games[first..i]);
            (first, rows) = (i, 0);
        }
        rows += game.steps();
    }
    if first < games.len() {
        runs.push(&games[first..]);
    }
    runs
}

fn device_error(error: impl std::fmt::Display) -> TrackError {
    TrackError::Device(error.to_string())
}

fn state(classes: &[u8]) -> Result<State, TrackError> {
    let labels: [u8; LABELS] = classes.try_into().map_err(device_error)?;
    State::new(labels).map_err(device_error)
}

fn predictions(games: &[&Trajectory], grades: &Grades) -> Result<Vec<Prediction>, TrackError> {
    let mut first = 0;
    let mut predictions = Vec::with_capacity(games.len());
    for game in games {
        let rows = first..first + game.steps();
        first = rows.end;
        let classes = &grades.classes[rows.start * LABELS..rows.end * LABELS];
        let non_finite = grades.non_finite[rows.clone()].iter().enumerate();
        predictions.push(Prediction {
            states: classes.chunks_exact(LABELS).map(state).collect::<Result<_, _>>()?,
            loss_sum: Some(grades.losses[rows].iter().sum()),
            non_finite_steps: non_finite.filter(|(_, bad)| **bad).map(|(step, _)| step).collect(),
        });
    }
    Ok(predictions)
}

impl Tracker for Predictor {
    type Memory = Memory;

    fn name(&self) -> &str {
        &self.name
    }

    fn start(&self, branches: usize) -> Memory {
        self.model.start(branches)
    }

    async fn push(
        &self,
        memory: &mut Memory,
        tokens: &[MoveToken],
    ) -> Result<Vec<State>, TrackError> {
        let hidden = self.step(memory, tokens)?;
        let grades = self.model.grade_hidden(hidden, None).await.map_err(device_error)?;
        self.model.feed_back(memory, &grades.classes);
        grades.classes.chunks_exact(LABELS).map(state).collect()
    }

    async fn grade(&self, games: &[&Trajectory]) -> Result<Vec<Prediction>, TrackError> {
        let mut all = Vec::with_capacity(games.len());
        if self.model.config().reads_labels() && self.feedback == Feedback::Argmax {
            let parts: Vec<&[&Trajectory]> = games.chunks(GAMES).collect();
            if self.model.is_fused() {
                // Fused operations are ready at once.
                for graded in parallel::map(parts, |games| ready(self.grade_following(games))) {
                    all.extend(graded.ok_or_else(|| device_error("the CPU had to wait"))??);
                }
            } else {
                for games in parts {
                    all.extend(self.grade_following(games).await?);
                }
            }
            return Ok(all);
        }
        let runs = runs(games, self.rows_per_pass);
        if self.model.is_fused() {
            for graded in parallel::map(runs, |games| self.grade_fused(games)) {
                all.extend(graded?);
            }
        } else {
            for games in runs {
                all.extend(self.grade_portable(games).await?);
            }
        }
        Ok(all)
    }
}
