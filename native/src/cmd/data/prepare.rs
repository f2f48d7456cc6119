//! `cwm data prepare`.

use std::path::PathBuf;

use cwm_core::{chess::EnPassant, data::IdKey};

use crate::{
    data::{
        Manifest, Target,
        prepare::{Job, Rules, prepare},
        writer::SHARD_GAMES,
    },
    exit::Exit,
    progress::Progress,
};

/// Arguments of `cwm data prepare`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Lines of UCI moves, plain or compressed; `-` reads stdin
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,

    /// Directory of the dataset; must not exist or be empty
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Replace the dataset at --out
    #[arg(long)]
    force: bool,

    /// Keep games of at least this many full moves, i.e. twice as many plies
    #[arg(long, value_name = "MOVES", default_value_t = 10)]
    min_fullmoves: u32,

    /// Games per shard
    #[arg(long, value_name = "GAMES", default_value_t = SHARD_GAMES, value_parser = clap::value_parser!(u64).range(1..))]
    shard_games: u64,

    /// Parsing threads [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Runs `cwm data prepare`.
///
/// # Errors
/// If an input cannot be read or the dataset cannot be written.
pub fn run(args: Args, progress: &Progress) -> anyhow::Result<Exit> {
    let target = Target::new(&args.out, args.force)?;
    let key = std::env::var("CHESS_WORLD_MODEL_ID_KEY").unwrap_or_default();
    let job = Job {
        inputs: args.inputs,
        rules: Rules {
            min_fullmoves: args.min_fullmoves,
            en_passant: EnPassant::Always,
            id_key: IdKey::new(key.as_bytes()),
        },
        shard_games: args.shard_games,
        threads: args.threads,
    };
    let manifest = prepare(&job, target, progress)?;
    print!("{}", summary(&manifest));
    Ok(Exit::Done)
}

/// What was kept and skipped, for a reader.
fn summary(manifest: &Manifest) -> String {
    let counts = &manifest.counts;
    let bytes: u64 = manifest.shards.iter().map(|s| s.bytes).sum();
    let mut text = format!(
        "kept {} games, {} plies, {:.1} bytes a game, in {} shards\n",
        counts.games,
        counts.plies,
        bytes as f64 / counts.games.max(1) as f64,
        manifest.shards.len()
    );
    for (reason, games) in manifest.skipped.iter() {
        text += &format!("skipped {games} games: {reason}\n");
    }
    text
}
