//! Which games go into which batch: length buckets, or the reference's order.

use std::ops::Range;

use rand::{SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

use crate::chess::mt19937::PythonRandom;

/// How games are put into batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Batching {
    /// Games are shuffled, then sorted by length within windows of [`WINDOW_BATCHES`] batches: little padding.
    #[default]
    Bucketed,
    /// Shards in a shuffled order, games as stored, as the reference does.
    Reference,
}

/// Batches in a window of the bucketed plan: wide enough that games of one length meet,
/// narrow enough that a batch stays a near-random sample over time.
pub const WINDOW_BATCHES: usize = 64;

/// One epoch's batches as indices into the dataset's games.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    order: Vec<u32>,
    batches: Vec<Range<u32>>,
}

impl Plan {
    /// Bucketed batches of `batch_size` games; `lengths` are the steps of each game. The same arguments give the same
    /// plan everywhere. The last batch of an epoch may be smaller; every game is in exactly one batch.
    pub fn bucketed(lengths: &[u32], batch_size: usize, seed: u64, epoch: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(epoch);
        let mut order: Vec<u32> = (0..lengths.len() as u32).collect();
        order.shuffle(&mut rng);
        for window in order.chunks_mut(batch_size * WINDOW_BATCHES) {
            window.sort_by_key(|&game| lengths[game as usize]);
        }
        let mut plan = Self::in_order(order, batch_size);
        // Short and long games alternate: without this the loss would swing once a window.
        plan.batches.shuffle(&mut rng);
        plan
    }

    /// The reference's batches: shards shuffled as Python's `random.Random(seed + 1009 * epoch)` would, games as stored.
    /// `shard_games` counts the games of each shard.
    pub fn reference(shard_games: &[usize], batch_size: usize, seed: u64, epoch: u64) -> Self {
        let mut first = 0;
        let mut shards = Vec::with_capacity(shard_games.len());
        for &games in shard_games {
            shards.push(first as u32..(first + games) as u32);
            first += games;
        }
        let seed = seed.wrapping_add(1009_u64.wrapping_mul(epoch));
        PythonRandom::new(seed).shuffle(&mut shards);
        Self::in_order(shards.into_iter().flatten().collect(), batch_size)
    }

    /// Games in the given order, cut into batches.
    pub fn in_order(order: Vec<u32>, batch_size: usize) -> Self {
        let games = order.len() as u32;
        let size = (batch_size as u32).max(1);
        let batches =
            (0..games.div_ceil(size)).map(|i| i * size..((i + 1) * size).min(games)).collect();
        Plan { order, batches }
    }

    /// Batches in the epoch.
    pub fn len(&self) -> usize {
        self.batches.len()
    }

    /// Whether the plan has no batch.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// The games of batch `index`.
    pub fn batch(&self, index: usize) -> &[u32] {
        let Range { start, end } = self.batches[index].clone();
        &self.order[start as usize..end as usize]
    }

    /// Valid and padded steps over the whole plan: the share `1 - valid / padded` is padding.
    pub fn steps(&self, lengths: &[u32]) -> (u64, u64) {
        let (mut valid, mut padded) = (0, 0);
        for index in 0..self.len() {
            let games = self.batch(index);
            let steps = |&game: &u32| u64::from(lengths[game as usize]);
            valid += games.iter().map(steps).sum::<u64>();
            padded += games.len() as u64 * games.iter().map(steps).max().unwrap_or(0);
        }
        (valid, padded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_game_is_in_exactly_one_batch(
            lengths in prop::collection::vec(1u32..600, 0..2000), batch_size in 1usize..40, epoch in 0u64..3,
        ) {
            let plan = Plan::bucketed(&lengths, batch_size, 5, epoch);
            prop_assert_eq!(&plan, &Plan::bucketed(&lengths, batch_size, 5, epoch));
            let mut seen: Vec<u32> = (0..plan.len()).flat_map(|i| plan.batch(i).to_vec()).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..lengths.len() as u32).collect::<Vec<_>>());
            prop_assert!((0..plan.len()).all(|i| (1..=batch_size).contains(&plan.batch(i).len())));
        }
    }

    #[test]
    fn the_references_order_shuffles_shards_and_keeps_games() {
        let plan = Plan::reference(&[2, 3, 1], 2, 7, 1);
        let order: Vec<u32> = (0..plan.len()).flat_map(|i| plan.batch(i).to_vec()).collect();
        let mut shards = [vec![0, 1], vec![2, 3, 4], vec![5]];
        PythonRandom::new(7 + 1009).shuffle(&mut shards);
        assert_eq!(order, shards.concat());
        assert_eq!(plan.len(), 3);
    }

    #[test]
    fn buckets_waste_little() {
        let lengths: Vec<u32> =
            (0..20_000u32).map(|i| 20 + i.wrapping_mul(2_654_435_761) % 180).collect();
        let (valid, padded) = Plan::bucketed(&lengths, 128, 0, 0).steps(&lengths);
        assert!((padded - valid) * 20 < padded, "over 5 % padding: {valid} of {padded}");
        let epochs: Vec<Plan> = (0..2).map(|e| Plan::bucketed(&lengths, 128, 0, e)).collect();
        assert_ne!(epochs[0], epochs[1]);
    }
}
