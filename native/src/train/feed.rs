//! Batches made on another core while the model computes, in an order that depends on seed and epoch alone.

use std::thread::{Scope, ScopedJoinHandle};

use crossbeam_channel::{Receiver, bounded};
use cwm_core::{
    chess::{EnPassant, MoveToken},
    data::{
        Games,
        batch::Batch,
        plan::{Batching, Plan},
        transition::TransitionSampler,
    },
};

use super::learner::Lesson;

/// The next batch to train on: the data position that a checkpoint remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Position {
    /// Passes over the data begun before, 0 in the first.
    pub epoch: u64,
    /// Batch within the epoch.
    pub batch: u64,
}

/// What decides the order and the labels of batches.
#[derive(Debug, Clone)]
pub struct FeedOptions {
    /// Games in a batch.
    pub batch_size: usize,
    /// How games are put together.
    pub batching: Batching,
    /// Seed of the order.
    pub seed: u64,
    /// When the en passant label is set.
    pub en_passant: EnPassant,
    /// Games in each shard, in order (the reference's order shuffles shards).
    pub shard_games: Vec<usize>,
}

/// A lesson, the games it was made of, and the position after it.
#[derive(Debug)]
pub struct Fed {
    /// The lesson.
    pub lesson: Lesson,
    /// Indices into the dataset of the games that it was made of.
    pub games: Vec<u32>,
    /// Games read; single steps count as the share of an epoch that they are.
    pub games_read: u64,
    /// Where the next batch stands.
    pub next: Position,
}

/// Batches held ready: enough to bridge a long game, few enough to cost no memory.
const READY_BATCHES: usize = 4;

impl FeedOptions {
    /// The plan of one epoch.
    pub fn plan(&self, lengths: &[u32], epoch: u64) -> Plan {
        match self.batching {
            Batching::Bucketed => Plan::bucketed(lengths, self.batch_size, self.seed, epoch),
            Batching::Reference => {
                Plan::reference(&self.shard_games, self.batch_size, self.seed, epoch)
            }
        }
    }

    /// Makes the batch of these games.
    pub fn batch(&self, games: &Games, indices: &[u32]) -> Batch {
        let moves: Vec<&[MoveToken]> = indices.iter().map(|&i| games.moves(i as usize)).collect();
        Batch::new(&moves, self.en_passant)
    }
}

/// Steps of every game: plies + 1.
pub fn lengths(games: &Games) -> Vec<u32> {
    (0..games.len()).map(|i| games.plies(i) as u32 + 1).collect()
}

/// Where lessons come from.
#[derive(Debug)]
pub enum Source<'a> {
    /// Whole games, each once in an epoch.
    Games {
        /// The games.
        games: &'a Games,
        /// Their steps.
        lengths: &'a [u32],
        /// Order and labels.
        options: &'a FeedOptions,
    },
    /// Single steps, drawn with repetition; an epoch is as many as there are.
    Transitions {
        /// Draws them.
        sampler: Box<TransitionSampler<'a>>,
        /// Steps in a batch.
        batch_steps: usize,
        /// Games that they are drawn from.
        games: u64,
    },
}

impl Source<'_> {
    /// Lessons in an epoch.
    pub fn epoch_batches(&self) -> u64 {
        match self {
            Source::Games { lengths, options, .. } => options.plan(lengths, 0).len() as u64,
            Source::Transitions { sampler, batch_steps, .. } => {
                sampler.total_steps().div_ceil(*batch_steps as u64)
            }
        }
    }

    /// Makes lessons from `start` on for as long as `take` wants them.
    fn make(&self, start: Position, mut take: impl FnMut(Fed) -> bool) {
        let mut position = start;
        match self {
            Source::Games { games, lengths, options } => loop {
                let plan = options.plan(lengths, position.epoch);
                if plan.is_empty() {
                    return;
                }
                while position.batch < plan.len() as u64 {
                    let indices = plan.batch(position.batch as usize).to_vec();
                    position.batch += 1;
                    let lesson = Lesson::Games(options.batch(games, &indices));
                    let games_read = indices.len() as u64;
                    if !take(Fed { lesson, games: indices, games_read, next: position }) {
                        return;
                    }
                }
                position = Position { epoch: position.epoch + 1, batch: 0 };
            },
            Source::Transitions { sampler, batch_steps, games } => {
                let epoch_batches = self.epoch_batches();
                if epoch_batches == 0 {
                    return;
                }
                let games_until = |batch: u64| games * batch / epoch_batches;
                loop {
                    let number = position.epoch * epoch_batches + position.batch;
                    let (batch, indices) = sampler.draw(number, *batch_steps);
                    position.batch += 1;
                    let games_read = games_until(position.batch) - games_until(position.batch - 1);
                    if position.batch == epoch_batches {
                        position = Position { epoch: position.epoch + 1, batch: 0 };
                    }
                    let lesson = Lesson::Transitions(batch);
                    if !take(Fed { lesson, games: indices, games_read, next: position }) {
                        return;
                    }
                }
            }
        }
    }
}

/// Starts making lessons from `start` on; the thread ends when the receiver is dropped.
pub fn feed<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    source: &'env Source<'env>,
    start: Position,
) -> (Receiver<Fed>, ScopedJoinHandle<'scope, ()>) {
    let (sender, receiver) = bounded(READY_BATCHES);
    let handle = scope.spawn(move || source.make(start, |fed| sender.send(fed).is_ok()));
    (receiver, handle)
}
