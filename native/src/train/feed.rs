//! Batches made on another core while the model computes, in an order that depends on seed and epoch alone.

use std::thread::{Scope, ScopedJoinHandle};

use crossbeam_channel::{Receiver, bounded};
use cwm_core::{
    chess::{EnPassant, MoveToken},
    data::{
        Games,
        batch::Batch,
        plan::{Batching, Plan},
    },
};

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

/// A batch, the games it was made of, and the position after it.
#[derive(Debug)]
pub struct Fed {
    /// The batch.
    pub batch: Batch,
    /// Indices into the dataset.
    pub games: Vec<u32>,
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

/// Starts making batches from `start` on, for `batches` batches; the thread ends when the receiver is dropped.
pub fn feed<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    games: &'env Games,
    lengths: &'env [u32],
    options: &'env FeedOptions,
    start: Position,
    batches: u64,
) -> (Receiver<Fed>, ScopedJoinHandle<'scope, ()>) {
    let (sender, receiver) = bounded(READY_BATCHES);
    let handle = scope.spawn(move || {
        let mut position = start;
        let mut plan = options.plan(lengths, position.epoch);
        for _ in 0..batches {
            while position.batch >= plan.len() as u64 {
                if plan.is_empty() {
                    return;
                }
                position = Position { epoch: position.epoch + 1, batch: 0 };
                plan = options.plan(lengths, position.epoch);
            }
            let indices = plan.batch(position.batch as usize).to_vec();
            position.batch += 1;
            let batch = options.batch(games, &indices);
            if sender.send(Fed { batch, games: indices, next: position }).is_err() {
                return;
            }
        }
    });
    (receiver, handle)
}
