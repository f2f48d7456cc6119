//! `cwm predict`: one game, ply by ply: the truth, the prediction, and what differs.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use anyhow::Context;
use cwm_core::{
    chess::{MoveToken, Trajectory, parse::parse_games, replay::Replayer},
    trace::Trace,
};

use crate::{
    evaluate::{Subject, subject::device_of},
    exit::{Exit, Failure},
    output::{self, Format},
    progress::Progress,
    version,
};

const EXAMPLES: &str = "\
Examples:
  cwm predict naive-mover+rights --san '1. e4 e5 2. Nf3 Nc6 3. Bc4 Bc5 4. O-O'
  cwm predict models/checkpoints/transformer-d128 --uci 'e2e4 e7e5 g1f3'
  cwm predict best.safetensors --pgn games.pgn --game 3 --ply 40
  cwm predict oracle --pgn - --format json < game.pgn | jq '.steps[-1].truth'";

/// Arguments of `cwm predict`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("game-text").required(true).args(["uci", "san", "pgn"]))]
pub struct Args {
    /// A checkpoint (a folder, a safetensors file, a PyTorch file of the reference or the name of a shipped one) or a
    /// baseline, by name
    #[arg(value_name = "SUBJECT")]
    subject: String,

    /// Moves in UCI notation, e.g. "e2e4 e7e5 e1g1"
    #[arg(long, value_name = "MOVES")]
    uci: Option<String>,

    /// Moves as people write them, e.g. "1. e4 e5 2. Nf3"
    #[arg(long, value_name = "MOVES")]
    san: Option<String>,

    /// A PGN file; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    pgn: Option<PathBuf>,

    /// Which game of the PGN file, from 1
    #[arg(long = "game", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    game_number: u32,

    /// Show one ply alone; 0 is the start position
    #[arg(long, value_name = "PLY")]
    ply: Option<u32>,

    /// Where networks run: cpu, wgpu, vulkan or cuda, as far as the build has them
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,

    /// How the answer is printed
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
}

/// Bytes of a PGN file that are read at most: this command is for single games.
const PGN_BYTES_MAX: u64 = 64 << 20;

/// Runs `cwm predict`.
///
/// # Errors
/// If the subject or the game cannot be read, or the tracker fails.
pub fn run(args: Args, progress: &Progress) -> anyhow::Result<Exit> {
    let moves = moves(&args)?;
    let plies = moves.len();
    if let Some(ply) = args.ply.filter(|&ply| ply as usize > plies) {
        return Err(Failure::usage(format!("there is no ply {ply}: the game has {plies}")).into());
    }
    let subject = Subject::from_argument(&args.subject, device_of(&args.device)?)?;
    subject.tell(progress);
    let game = Trajectory::replay(&moves);
    let prediction = subject.predict(&game)?;
    let tool = format!("cwm {}", version::VERSION);
    let mut trace = Trace::new(&tool, &subject.info.name, &game, &prediction);
    if let Some(ply) = args.ply {
        trace.keep_ply(ply);
    }
    match args.format {
        Format::Text => output::print(trace.text())?,
        Format::Json => output::print_json(&trace)?,
    }
    Ok(Exit::Done)
}

fn moves(args: &Args) -> anyhow::Result<Vec<MoveToken>> {
    if let Some(text) = &args.uci {
        return uci_moves(text);
    }
    if let Some(text) = &args.san {
        return Ok(game(text, 1, "--san")?);
    }
    // The argument group demands one of the three.
    let path = args.pgn.as_deref().unwrap_or(Path::new("-"));
    let text = read_text(path)?;
    Ok(game(&text, args.game_number, &format!("`{}`", path.display()))?)
}

fn uci_moves(text: &str) -> anyhow::Result<Vec<MoveToken>> {
    let mut replayer = Replayer::default();
    for word in text.split_whitespace() {
        let ply = replayer.moves().len() + 1;
        replayer.push_uci(word.as_bytes()).map_err(|fault| {
            let failure = Failure::data(format!("--uci: `{word}` at ply {ply}: {fault}"));
            failure.hint("moves in SAN, such as `Nf3`, go to --san")
        })?;
    }
    Ok(replayer.moves().to_vec())
}

/// Game `number` of a text.
fn game(text: &str, number: u32, whence: &str) -> Result<Vec<MoveToken>, Failure> {
    let mut games =
        parse_games(text).map_err(|error| Failure::data(format!("{whence}: {error}")))?;
    let index = number as usize - 1;
    if index >= games.len() {
        let found = games.len();
        return Err(Failure::usage(format!("{whence} holds {found} games, not {number}")));
    }
    Ok(games.swap_remove(index).moves)
}

fn read_text(path: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let mut read = |reader: &mut dyn Read| reader.take(PGN_BYTES_MAX + 1).read_to_end(&mut bytes);
    let result = if path == Path::new("-") {
        read(&mut io::stdin().lock())
    } else {
        File::open(path).and_then(|mut file| read(&mut file))
    };
    result.with_context(|| format!("cannot read `{}`", path.display()))?;
    if bytes.len() as u64 > PGN_BYTES_MAX {
        return Err(Failure::data(format!("`{}` is larger than 64 MiB", path.display()))
            .hint("make a dataset of it with `cwm data prepare` and grade with `cwm evaluate`")
            .into());
    }
    if bytes.contains(&0) {
        return Err(Failure::data(format!("`{}` is no text", path.display()))
            .hint("unpack it first, or see `cwm data prepare` for compressed archives")
            .into());
    }
    // Old PGN files are in Latin-1; only names and comments can suffer.
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}
