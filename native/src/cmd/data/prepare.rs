//! `cwm data prepare`.

use std::path::PathBuf;

use cwm_core::data::IdKey;

use super::{EnPassantArg, summary};

use crate::{
    data::{
        Target,
        prepare::{Job, Rules, prepare},
        writer::SHARD_GAMES,
    },
    exit::{Exit, Failure},
    output,
    progress::Progress,
};

/// Arguments of `cwm data prepare`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files or directories of games; `-` reads stdin
    ///
    /// PGN, lines of UCI moves, or the reference's JSON lines; plain or compressed with zstd, gzip or bzip2. Content
    /// decides, not the name; of a directory, files called *.pgn, *.uci or *.jsonl (and .zst, .gz, .bz2) are read.
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

    /// Stop once this many games are kept [default: read everything]
    #[arg(long, value_name = "GAMES", value_parser = clap::value_parser!(u64).range(1..))]
    max_games: Option<u64>,

    /// When the en passant label is set: after every double push (the benchmark), or only where the capture is legal
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    en_passant: EnPassantArg,

    /// Read PGN exactly as the reference does, oddities included
    ///
    /// Other starts, Chess960 and known variants are kept, errors in the main line cut a game short, null moves are
    /// packed as 0, ids may repeat. Such a dataset may hold games that only `cwm data export` can replay.
    #[arg(long)]
    keep_reference_quirks: bool,

    /// Games per shard
    #[arg(long, value_name = "GAMES", default_value_t = SHARD_GAMES, value_parser = clap::value_parser!(u64).range(1..))]
    shard_games: u64,

    /// Parsing threads [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

const EXAMPLES: &str = "\
Kept are legal games of standard chess from the standard start; every other game is counted by reason. Ids are keyed \
hashes of the game's address (Site or Link tag), or of the moves where there is none; CHESS_WORLD_MODEL_ID_KEY gives a \
private key.

Examples:
  cwm data prepare lichess_db_standard_rated_2025-03.pgn.zst --out data/lichess-2025-03
  zstdcat games.pgn.zst | cwm data prepare - --min-fullmoves 20 --out data/long-games";

/// Runs `cwm data prepare`.
///
/// # Errors
/// If an input cannot be read or the dataset cannot be written.
pub fn run(args: Args, progress: &Progress) -> anyhow::Result<Exit> {
    if args.keep_reference_quirks && matches!(args.en_passant, EnPassantArg::Legal) {
        return Err(Failure::usage(
            "--keep-reference-quirks labels en passant after every double push",
        )
        .hint("leave --en-passant away")
        .into());
    }
    let target = Target::new(&args.out, args.force)?;
    let key = std::env::var_os("CHESS_WORLD_MODEL_ID_KEY").unwrap_or_default();
    let key = key.to_string_lossy();
    let job = Job {
        inputs: args.inputs,
        rules: Rules {
            min_fullmoves: args.min_fullmoves,
            en_passant: args.en_passant.into(),
            id_key: IdKey::new(key.as_bytes()),
            quirks: args.keep_reference_quirks,
        },
        max_games: args.max_games,
        shard_games: args.shard_games,
        threads: args.threads,
    };
    let manifest = prepare(&job, target, progress)?;
    output::print(summary(&manifest, &args.out))?;
    Ok(Exit::Done)
}
