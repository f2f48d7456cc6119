//! `cwm data random`.

use std::path::PathBuf;

use cwm_core::chess::{EnPassant, Policy};

use super::{EnPassantArg, summary};
use crate::{
    cmd::policy,
    data::{
        Target,
        random::{Job, generate},
        writer::SHARD_GAMES,
    },
    exit::Exit,
    output,
    progress::Progress,
};

/// Arguments of `cwm data random`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Games to keep
    #[arg(long, value_name = "GAMES", value_parser = clap::value_parser!(u64).range(1..))]
    games: u64,

    /// Seed of the random numbers; the same seed gives the same games everywhere
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,

    /// What the moves are picked from: all legal moves, or those wanted wherever there are any
    #[arg(long, value_name = "POLICY", default_value_t, value_parser = policy::one())]
    policy: Policy,

    /// Directory of the dataset; must not exist or be empty
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Replace the dataset at --out
    #[arg(long)]
    force: bool,

    /// Keep games of at least this many full moves, i.e. twice as many plies (at most 300, and 150 for quiet games: longer ones are rare)
    #[arg(long, value_name = "MOVES", default_value_t = 10, value_parser = clap::value_parser!(u32).range(..=300))]
    min_fullmoves: u32,

    /// When the en passant label is set: after every double push (the benchmark), or only where the capture is legal
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    en_passant: EnPassantArg,

    /// Games per shard
    #[arg(long, value_name = "GAMES", default_value_t = SHARD_GAMES, value_parser = clap::value_parser!(u64).range(1..))]
    shard_games: u64,
}

const EXAMPLES: &str = "\
A game ends by mate, stalemate, insufficient material, or as soon as a draw may be claimed. \
Under the uniform policy seed 0 with 10000 games is the benchmark's random-uniform split, bit for bit.

Examples:
  cwm data random --games 10000 --out data/random-uniform
  cwm data random --games 500 --seed 7 --min-fullmoves 100 --out data/long-random
  cwm data random --games 1000 --policy en-passant --out data/en-passant";

/// Runs `cwm data random`.
///
/// # Errors
/// If the dataset cannot be written.
pub fn run(args: Args, progress: &Progress) -> anyhow::Result<Exit> {
    policy::check_length(args.policy, args.min_fullmoves)?;
    let target = Target::new(&args.out, args.force)?;
    let en_passant: EnPassant = args.en_passant.into();
    let job = Job {
        policy: args.policy,
        games: args.games,
        seed: args.seed,
        min_fullmoves: args.min_fullmoves,
        en_passant,
        shard_games: args.shard_games,
    };
    let manifest = generate(&job, target, progress)?;
    output::print(summary(&manifest, &args.out))?;
    Ok(Exit::Done)
}
