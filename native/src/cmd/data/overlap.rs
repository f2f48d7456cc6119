//! `cwm data overlap`: whether datasets share games, by their moves.

use std::{collections::HashSet, path::PathBuf};

use anyhow::Context;
use cwm_core::{chess::MoveToken, data::Split};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::SplitArg;
use crate::{
    data::Dataset,
    exit::Exit,
    output::{self, Format},
    progress::Progress,
};

/// Arguments of `cwm data overlap`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The dataset that was trained on
    #[arg(value_name = "TRAIN")]
    train: PathBuf,

    /// The datasets that are tested on
    #[arg(value_name = "TEST", required = true)]
    tests: Vec<PathBuf>,

    /// The part of TRAIN to compare with
    #[arg(long, value_enum, value_name = "SPLIT", default_value_t = SplitArg::Train)]
    split: SplitArg,

    /// How to say it
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: Format,
}

const EXAMPLES: &str = "\
Two games are the same if their moves are, whatever their ids. The exit code is 1 if a test set shares a game with TRAIN.

Examples:
  cwm data overlap data/march data/april data/random
  cwm data overlap data/march data/march-validation --split all --format json";

/// What two sets have in common.
#[derive(Debug, Serialize)]
struct Overlap {
    train: String,
    train_games: usize,
    test: String,
    test_games: u64,
    shared_games: u64,
}

/// Runs `cwm data overlap`.
///
/// # Errors
/// If a dataset cannot be read.
pub fn run(args: Args, progress: &Progress) -> anyhow::Result<Exit> {
    let train = Dataset::open(&args.train)?;
    let task = progress.task("reading", train.manifest().counts.games, "games");
    let mut known = HashSet::new();
    for game in train.games(Split::from(args.split))? {
        known.insert(fingerprint(&game?.moves));
        task.advance(1);
    }
    drop(task);

    let mut found = Vec::new();
    for path in &args.tests {
        let test = Dataset::open(path)?;
        let mut overlap = Overlap {
            train: args.train.display().to_string(),
            train_games: known.len(),
            test: path.display().to_string(),
            test_games: 0,
            shared_games: 0,
        };
        let games = test.games(Split::All).with_context(|| format!("`{}`", path.display()))?;
        for game in games {
            overlap.test_games += 1;
            overlap.shared_games += u64::from(known.contains(&fingerprint(&game?.moves)));
        }
        found.push(overlap);
    }
    match args.format {
        Format::Json => output::print_json(&found)?,
        Format::Text => output::print(found.iter().map(line).collect::<String>())?,
    }
    let disjoint = found.iter().all(|overlap| overlap.shared_games == 0);
    Ok(if disjoint { Exit::Done } else { Exit::CheckFailed })
}

fn line(overlap: &Overlap) -> String {
    let Overlap { train, train_games, test, test_games, shared_games } = overlap;
    match shared_games {
        0 => format!(
            "`{test}` ({test_games} games) is disjoint from `{train}` ({train_games} games)\n"
        ),
        n => format!(
            "`{test}` shares {n} of its {test_games} games with `{train}` ({train_games} games)\n"
        ),
    }
}

/// Sixteen bytes that stand for a game's moves: no two of ten million games meet by chance.
fn fingerprint(moves: &[MoveToken]) -> u128 {
    let mut hash = Sha256::new();
    for token in moves {
        hash.update(token.id().to_le_bytes());
    }
    let mut head = [0; 16];
    head.copy_from_slice(&hash.finalize()[..16]);
    u128::from_le_bytes(head)
}
