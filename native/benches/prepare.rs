//! Speed of dataset preparation end to end, on all cores: PGN and UCI lines to Parquet, random games to Parquet.
//!
//! `cargo bench -p cwm --bench prepare`; `CWM_BENCH_GAMES` names a file of UCI lines (plain or compressed) whose games
//! are used instead of the first 80 plies of random games, `CWM_BENCH_COUNT` how many (20,000 otherwise), and
//! `CWM_BENCH_KEEP` a file to keep the PGN in.

use std::{fmt::Write as _, fs, io::Read, path::Path, sync::Arc};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use cwm::{
    data::{
        Target,
        input::source::Source,
        prepare::{Job, Rules, prepare},
        random,
        writer::SHARD_GAMES,
    },
    progress::{Progress, ProgressMode},
};
use cwm_core::{
    chess::{EnPassant, MoveToken, Policy, random::RandomPlay},
    data::IdKey,
};
use shakmaty::{Chess, san::SanPlus};

fn count() -> usize {
    std::env::var("CWM_BENCH_COUNT").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000)
}

/// Games as UCI lines.
fn uci_lines() -> String {
    let Some(path) = std::env::var_os("CWM_BENCH_GAMES") else {
        let mut text = String::new();
        for game in RandomPlay::new(1, 40).take(count()) {
            let moves: Vec<_> = game.moves[..80].iter().map(MoveToken::to_string).collect();
            let _ =
                writeln!(text, "{}\trandom\t{}\t-\t-\t{}", game.id, game.result, moves.join(" "));
        }
        return text;
    };
    let mut source = Source::open(Path::new(&path), Arc::default()).expect("the games open");
    let mut text = String::new();
    source.text.read_to_string(&mut text).expect("the games are text");
    text.lines().take(count()).map(|line| format!("{line}\n")).collect()
}

/// The same games as PGN like that of a server: a dozen tags, a clock comment at every move.
fn pgn_of(lines: &str) -> String {
    let mut text = String::new();
    for (number, line) in lines.lines().enumerate() {
        let fields: Vec<&str> = line.split('\t').collect();
        let (result, moves) = (fields[2], fields[5]);
        let _ = write!(
            text,
            "[Event \"Rated Blitz game\"]\n[Site \"https://example.org/{number:08}\"]\n[Date \"2025.03.01\"]\n\
             [Round \"-\"]\n[White \"player{}\"]\n[Black \"player{}\"]\n[Result \"{result}\"]\n\
             [UTCDate \"2025.03.01\"]\n[UTCTime \"00:00:{:02}\"]\n[WhiteElo \"1650\"]\n[BlackElo \"1644\"]\n\
             [WhiteRatingDiff \"+6\"]\n[BlackRatingDiff \"-6\"]\n[ECO \"B01\"]\n\
             [Opening \"Scandinavian Defense: Mieses-Kotrc Variation\"]\n[TimeControl \"180+0\"]\n\
             [Termination \"Normal\"]\n\n",
            number % 971,
            number % 1013,
            number % 60
        );
        let mut position = Chess::default();
        for (ply, uci) in moves.split(' ').enumerate() {
            let uci: shakmaty::uci::UciMove = uci.parse().expect("a UCI move");
            let m = uci.to_move(&position).expect("a legal move");
            let san = SanPlus::from_move_and_play_unchecked(&mut position, m);
            let dots = if ply % 2 == 0 { "." } else { "..." };
            let secs = 180_usize.saturating_sub(ply);
            let _ = write!(
                text,
                "{}{dots} {san} {{ [%clk 0:{:02}:{:02}] }} ",
                ply / 2 + 1,
                secs / 60,
                secs % 60
            );
        }
        let _ = write!(text, "{result}\n\n");
    }
    text
}

fn bench(c: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let quiet = Progress::new(ProgressMode::None);
    let lines = uci_lines();
    let games = lines.lines().count();
    let pgn = pgn_of(&lines);
    if let Some(path) = std::env::var_os("CWM_BENCH_KEEP") {
        fs::write(path, &pgn).expect("the PGN is kept");
    }
    let mut group = c.benchmark_group("prepare");
    group.sample_size(10).throughput(Throughput::Elements(games as u64));
    for (name, text) in [("PGN games", &pgn), ("UCI line games", &lines)] {
        let input = dir.path().join("games");
        fs::write(&input, text).expect("the games are written");
        group.bench_function(name, |b| {
            b.iter(|| {
                let job = Job {
                    inputs: vec![input.clone()],
                    rules: Rules {
                        min_fullmoves: 10,
                        en_passant: EnPassant::Always,
                        id_key: IdKey::default(),
                        quirks: false,
                    },
                    max_games: None,
                    shard_games: SHARD_GAMES,
                    threads: None,
                };
                let target = Target::new(&dir.path().join("out"), true).expect("a target");
                let manifest = prepare(&job, target, &quiet).expect("the games are prepared");
                assert_eq!(manifest.counts.games, games as u64);
            });
        });
    }
    group.throughput(Throughput::Elements(1000));
    group.bench_function("random games", |b| {
        b.iter(|| {
            let job = random::Job {
                policy: Policy::Uniform,
                games: 1000,
                seed: 0,
                min_fullmoves: 10,
                en_passant: EnPassant::Always,
                shard_games: SHARD_GAMES,
            };
            let target = Target::new(&dir.path().join("random"), true).expect("a target");
            random::generate(&job, target, &quiet).expect("the games are played");
        });
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
