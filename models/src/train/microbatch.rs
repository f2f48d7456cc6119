//! A batch in micro-batches: runs of whole games, small enough for a core's caches, independent of each other.
//!
//! How a batch is cut depends on the batch and the model alone, never on the number of threads, so neither do results.

use std::{ops::Range, sync::Arc};

use cwm_core::{
    chess::label::{LABELS, class_count},
    data::batch::Batch,
};

use crate::{Model, model::PackedTokens, ops::Games, vocabulary::NoRow};

/// A batch that a model cannot train on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// Extents that contradict each other.
    #[error("malformed batch: {0}")]
    Malformed(&'static str),
    /// A token that the model has no embedding for.
    #[error("game {game} of the batch, step {step}: {source}")]
    Token {
        /// The game, from 0.
        game: usize,
        /// The step, from 0.
        step: usize,
        /// Why.
        source: NoRow,
    },
    /// A label beyond its classes.
    #[error("row {row} of the batch: label {label} is {class}")]
    Label {
        /// The valid step, counted over the whole batch.
        row: usize,
        /// The label.
        label: usize,
        /// Its class.
        class: u8,
    },
}

/// Games that run through the network together.
pub(super) struct MicroBatch {
    pub(super) tokens: PackedTokens,
    pub(super) labels: Arc<[u8]>,
}

/// Rows of a micro-batch at which its activations are about as large as the gradients it leaves behind: with fewer,
/// adding up gradients would cost more than the network itself.
fn target_rows(parameters: usize) -> usize {
    (parameters / 1500).clamp(512, 2048)
}

/// Cuts a batch, after checking it.
pub(super) fn split(
    batch: &Batch,
    model: &Model,
    parameters: usize,
) -> Result<Vec<MicroBatch>, BatchError> {
    check(batch)?;
    let rows = batch.valid_steps();
    // A multiple of four loads a few threads evenly.
    let count = rows.div_ceil(target_rows(parameters)).next_multiple_of(4);
    let target = rows.div_ceil(count).max(1);
    let mut parts = Vec::new();
    let (mut game, mut row) = (0, 0);
    while game < batch.games {
        let first = game;
        let mut end = row;
        // A game goes where most of it lies.
        let limit = (parts.len() + 1) * target;
        while game < batch.games && (end == row || end + batch.lengths[game] as usize / 2 <= limit)
        {
            end += batch.lengths[game] as usize;
            game += 1;
        }
        parts.push(micro_batch(batch, model, first..game, row..end)?);
        row = end;
    }
    Ok(parts)
}

fn micro_batch(
    batch: &Batch,
    model: &Model,
    games: Range<usize>,
    rows: Range<usize>,
) -> Result<MicroBatch, BatchError> {
    let lengths: Arc<[u32]> = batch.lengths[games.clone()].into();
    let mut tokens = Vec::with_capacity(rows.len());
    for (game, &length) in games.clone().zip(&*lengths) {
        let first = game * batch.steps;
        for (step, &token) in batch.tokens[first..first + length as usize].iter().enumerate() {
            let row = model.tokens().row(token);
            tokens.push(row.map_err(|source| BatchError::Token { game, step, source })?);
        }
    }
    let labels: Arc<[u8]> = batch.labels[rows.start * LABELS..rows.end * LABELS].into();
    let read = model.config().reads_labels().then(|| labels.clone());
    let (first_game, first_row) = (games.start as u32, rows.start as u32);
    let games = Games { lengths, first_game, first_row, labels: read };
    Ok(MicroBatch { tokens: PackedTokens { rows: tokens.into(), games }, labels })
}

fn check(batch: &Batch) -> Result<(), BatchError> {
    let malformed = |what| Err(BatchError::Malformed(what));
    let rows = batch.valid_steps();
    if batch.games == 0 || batch.lengths.len() != batch.games {
        return malformed("it has no games, or not as many lengths as games");
    }
    if Some(batch.tokens.len()) != batch.games.checked_mul(batch.steps) {
        return malformed("it does not hold games x steps tokens");
    }
    if batch.lengths.iter().any(|&length| length == 0 || length as usize > batch.steps) {
        return malformed("a game has no step, or more than the batch");
    }
    if batch.steps > Model::MAX_STEPS {
        return malformed("a game has more than 65536 steps");
    }
    if batch.labels.len() != rows * LABELS {
        return malformed("it does not hold 75 labels a valid step");
    }
    for (row, labels) in batch.labels.chunks_exact(LABELS).enumerate() {
        for (label, &class) in labels.iter().enumerate() {
            if usize::from(class) >= class_count(label) {
                return Err(BatchError::Label { row, label, class });
            }
        }
    }
    Ok(())
}
