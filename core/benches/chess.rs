//! Speed of the chess core on one thread: random play, replay to states, parsing of moves.
//!
//! `cargo bench -p cwm-core --bench chess`

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use cwm_core::chess::{MoveToken, State, random::RandomPlay, replay::Replayer};
use shakmaty::{Chess, san::SanPlus};

fn games(n: usize) -> Vec<Vec<MoveToken>> {
    RandomPlay::new(0, 10).take(n).map(|game| game.moves).collect()
}

fn random_play(c: &mut Criterion) {
    let mut group = c.benchmark_group("random play");
    group.throughput(Throughput::Elements(1));
    let mut play = RandomPlay::new(0, 10);
    group.bench_function("games", |b| b.iter(|| play.next()));
    group.finish();
}

fn tokens_to_states(c: &mut Criterion) {
    let games = games(100);
    let steps: usize = games.iter().map(|moves| moves.len() + 1).sum();
    let mut group = c.benchmark_group("tokens to states");
    group.throughput(Throughput::Elements(steps as u64));
    group.bench_function("steps", |b| {
        let mut labels = vec![0; 75 * 4096];
        b.iter(|| {
            for moves in &games {
                let mut state = State::start();
                labels[..75].copy_from_slice(state.labels());
                for (step, &token) in moves.iter().enumerate() {
                    state = state.after(token);
                    let at = 75 * (step + 1);
                    labels[at..at + 75].copy_from_slice(state.labels());
                }
            }
            labels[75]
        });
    });
    group.finish();
}

fn text_to_tokens(c: &mut Criterion) {
    let games = games(100);
    let plies: usize = games.iter().map(Vec::len).sum();
    let mut group = c.benchmark_group("text to tokens");
    group.throughput(Throughput::Elements(plies as u64));
    let mut sans = Vec::new();
    let mut ucis = Vec::new();
    for moves in &games {
        let mut position = Chess::default();
        let mut words = Vec::new();
        for token in moves {
            let m = token.to_uci().unwrap().to_move(&position).unwrap();
            words.push(SanPlus::from_move_and_play_unchecked(&mut position, m).to_string());
        }
        sans.push(words.join(" "));
        ucis.push(moves.iter().map(|m| m.to_string()).collect::<Vec<_>>().join(" "));
    }
    for (name, texts) in [("SAN plies", &sans), ("UCI plies", &ucis)] {
        group.bench_function(name, |b| {
            let mut replayer = Replayer::default();
            b.iter(|| {
                for text in texts {
                    replayer.reset();
                    for word in text.split(' ') {
                        replayer.push_written(word.as_bytes()).unwrap();
                    }
                }
                replayer.moves().len()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, random_play, tokens_to_states, text_to_tokens);
criterion_main!(benches);
