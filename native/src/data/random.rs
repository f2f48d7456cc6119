//! `cwm data random`: a dataset of random legal games, uniform or by another policy.

use std::{collections::BTreeMap, thread};

use crossbeam_channel::{RecvTimeoutError, bounded};
use cwm_core::{
    chess::{EnPassant, Policy, random::RandomPlay},
    data::{Games, SkipCounts, SkipReason, Spec, ids::KeyKind},
};

use super::{DatasetWriter, Manifest, Target, interrupt::Interrupt, manifest::Origin};
use crate::progress::Progress;

/// Games that travel together from the player to the writer.
const CHUNK_GAMES: u64 = 256;

/// One run of `cwm data random`.
#[derive(Debug, Clone)]
pub struct Job {
    /// What the mover wants.
    pub policy: Policy,
    /// Games to keep.
    pub games: u64,
    /// Seed of the stream of random numbers.
    pub seed: u64,
    /// Games below twice as many plies are played and left out.
    pub min_fullmoves: u32,
    /// When the en passant label is set.
    pub en_passant: EnPassant,
    /// Games in a shard.
    pub shard_games: u64,
}

/// Plays the games into `target`: one thread plays (a game depends on all before it), another writes.
///
/// # Errors
/// If the dataset cannot be written; nothing is left at the target then.
pub fn generate(job: &Job, target: Target, progress: &Progress) -> anyhow::Result<Manifest> {
    let interrupt = Interrupt::listen()?;
    let mut writer = DatasetWriter::new(target, Spec::new(job.en_passant), false, job.shard_games)?;
    let mut skipped = SkipCounts::default();
    let task = progress.task("playing", job.games, "games");
    let (chunks_in, chunks_out) = bounded::<(Games, u64)>(4);
    let wanted = job.games;
    let mut play = RandomPlay::with_policy(job.policy, job.seed, job.min_fullmoves);
    thread::spawn(move || {
        let mut kept = 0;
        while kept < wanted {
            let (mut games, mut short) = (Games::new(), 0);
            // Short games count too, so that a minimum that is hardly ever reached still shows signs of life.
            while kept < wanted && games.len() as u64 + short < CHUNK_GAMES {
                match play.play() {
                    Some(game) => {
                        games.push(&game.id, &game.moves, game.result);
                        kept += 1;
                    }
                    None => short += 1,
                }
            }
            // A closed channel means that the writer gave up.
            if chunks_in.send((games, short)).is_err() {
                return;
            }
        }
    });
    loop {
        interrupt.check()?;
        let (games, short) = match chunks_out.recv_timeout(std::time::Duration::from_millis(100)) {
            Ok(chunk) => chunk,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        for (index, (id, moves)) in games.iter().enumerate() {
            writer.push(id, moves, games.result(index), None)?;
        }
        (0..short).for_each(|_| skipped.add(SkipReason::Short));
        task.advance(games.len() as u64);
        if skipped.total() > 0 {
            task.message(format!("{} too short", skipped.total()));
        }
    }
    drop(task);
    let settings = BTreeMap::from([
        ("games".to_string(), job.games.into()),
        ("seed".to_string(), job.seed.into()),
        ("min-fullmoves".to_string(), job.min_fullmoves.into()),
        ("policy".to_string(), job.policy.name().into()),
    ]);
    let origin =
        Origin { command: "random".into(), inputs: Vec::new(), settings, id_key: KeyKind::None };
    writer.finish(origin, skipped)
}
