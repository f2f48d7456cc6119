//! Short, seeded runs of the bodies that `tests/fuzz` runs for hours. `CWM_FUZZ_FACTOR` makes them longer.

use cwm_core::{
    chess::{EnPassant, Trajectory, parse::parse_games},
    evaluate::Grading,
    metrics::Resampling,
    paper::Split,
    report::{DatasetInfo, EvalReport, Evaluation, Source, TrackerInfo, TrackerKind},
    tracker::Prediction,
};
use cwm_models::checkpoint::{Checkpoint, Header};
use cwm_tests::{
    fuzz_bodies as bodies,
    memory::requested_by,
    torch_file::{Item, TorchFile, pickle},
};
use rand::{Rng, RngExt, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;

const GAMES: [&str; 4] = [
    "[Event \"A \\\" B\"]\n[Site \"?\"]\n[Result \"1-0\"]\n\n1. e4 {best} e5 2. Bc4 (2. f4 exf4) Nc6 $1 3. Qh5 Nf6?? 4. Qxf7# 1-0\n\n\
     [Event \"C\"]\n\n1. d4 d5 *\n",
    "e2e4 c7c5 g1f3 d7d6 d2d4 c5d4 f3d4 g8f6 b1c3 a7a6",
    "1.e4 e5 2.Nf3 Nc6 3.Bb5 a6 4.O-O ; comment\n Nf6 5. d4 1/2-1/2",
    "id1\tlichess\t1-0\t2000\t1990\te2e4 e7e5 d1h5 b8c6 f1c4 g8f6 h5f7\n",
];

/// Pieces that parsers take for structure.
const PIECES: [&[u8]; 26] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"(",
    b")",
    b"\"",
    b"\\",
    b":",
    b",",
    b"\n\n",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"-1",
    b"18446744073709551615",
    b"1e999",
    b"null",
    b"[[[[",
    b"{\"a\":",
    b"e8=Q#",
    b"O-O-O",
    b"1-0",
    b"--",
    b"0.",
    b"\\u0000",
];

/// A few random changes of `seed`.
fn mutated(seed: &[u8], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..rng.random_range(1..6) {
        let at = rng.random_range(0..=bytes.len());
        let end = (at + rng.random_range(0..24)).min(bytes.len());
        match rng.random_range(0..7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.random_range(0..8),
            1 if at < bytes.len() => bytes[at] = rng.random(),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let copy = bytes[at..end].to_vec();
                let to = rng.random_range(0..=bytes.len());
                drop(bytes.splice(to..to, copy));
            }
            _ => {
                let piece = *PIECES.choose(rng).expect("there are some");
                drop(bytes.splice(at..at, piece.iter().copied()));
            }
        }
    }
    bytes
}

/// Runs `body` on random bytes and on changes of the `seeds`.
fn run(cases: u32, seeds: &[Vec<u8>], body: impl Fn(&[u8])) {
    let factor = std::env::var("CWM_FUZZ_FACTOR").ok().and_then(|f| f.parse().ok()).unwrap_or(1);
    seeds.iter().for_each(|seed| body(seed));
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    for case in 0..cases.saturating_mul(factor) {
        let bytes = if case % 8 == 0 {
            let mut noise = vec![0; rng.random_range(0..200)];
            rng.fill_bytes(&mut noise);
            noise
        } else {
            mutated(seeds.choose(&mut rng).expect("there are some"), &mut rng)
        };
        body(&bytes);
    }
}

fn games() -> Vec<Vec<u8>> {
    GAMES.iter().map(|game| game.as_bytes().to_vec()).collect()
}

/// A valid file, and its header over a shortened body, so that more changes hit the header.
fn files() -> Vec<Vec<u8>> {
    let file = bodies::tiny_file();
    let head = Header::head_bytes(&file, file.len() as u64).unwrap() as usize;
    let small = |json: &str| {
        let mut file = (json.len() as u64).to_le_bytes().to_vec();
        file.extend(json.as_bytes());
        file.resize(file.len() + 16, 0);
        file
    };
    vec![
        file[..head].to_vec(),
        small(
            r#"{"__metadata__":{"a":"b"},"x":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}"#,
        ),
        small(
            r#"{"x":{"dtype":"F16","shape":[4],"data_offsets":[0,8]},"y":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}"#,
        ),
        file,
    ]
}

#[test]
fn headers() {
    run(6000, &files(), bodies::checkpoint_header);
}

#[test]
fn checkpoints() {
    run(2000, &files(), bodies::checkpoint);
}

#[test]
fn torch_files() {
    run(1000, &[bodies::tiny_torch()], bodies::checkpoint);
}

#[test]
fn torch_pickles() {
    let tensors = Checkpoint::read_any_vocabulary(&bodies::tiny_file(), None).unwrap().tensors;
    let payload = TorchFile::new(&bodies::tiny_config(), &tensors).payload;
    run(3000, &[pickle(&Item::Dict(payload))], bodies::torch_pickle);
}

#[test]
fn configs() {
    let config = bodies::tiny_config().to_json().into_bytes();
    run(2000, &[config], bodies::checkpoint_config);
}

#[test]
fn pgn() {
    run(6000, &games(), bodies::pgn);
}

#[test]
fn move_lists() {
    run(4000, &games(), bodies::move_list);
}

#[test]
fn reports() {
    let games = parse_games(GAMES[1]).unwrap();
    let game = Trajectory::replay(&games[0].moves);
    let mut states = game.states().to_vec();
    states[3] = states[2];
    let prediction = Prediction { states, loss_sum: Some(0.5), non_finite_steps: vec![] };
    let mut grading = Grading { complete: true, ..Grading::default() };
    grading.games.push(grading.counts.add(&game, &prediction));
    let resampling = Resampling { resamples: 10, seed: 0 };
    let mut report = EvalReport::new("cwm test", resampling);
    report.datasets.push(DatasetInfo {
        name: "d".into(),
        source: Source::BuiltIn,
        en_passant: EnPassant::Always,
        split: Some(Split::HeldOutReal),
        limit: None,
    });
    report.trackers.push(TrackerInfo { name: "t".into(), kind: TrackerKind::Baseline });
    report.evaluations.push(Evaluation::new("t", "d", &grading, resampling));
    run(1000, &[report.to_json().into_bytes()], bodies::eval_report);
}

#[test]
fn refusing_a_checkpoint_costs_little_memory() {
    let (_, counted) = requested_by(|| vec![0_u8; 4096]);
    assert!(counted >= 4096, "the counting allocator is not in place");
    run(4000, &files(), |bytes| {
        let (_, header) = requested_by(|| Header::parse(bytes).is_ok());
        let (_, whole) = requested_by(|| Checkpoint::read_any_vocabulary(bytes, None).is_ok());
        let limit = 16 * bytes.len() as u64 + 16_384;
        assert!(header <= limit && whole <= limit, "{header} and {whole} of {limit} bytes");
    });
}

#[test]
fn headers_made_to_be_costly_cost_little_memory() {
    let framed = |json: String| {
        let mut file = (json.len() as u64).to_le_bytes().to_vec();
        file.extend(json.into_bytes());
        file
    };
    let many = |entry: fn(usize) -> String, n| (0..n).map(entry).collect::<Vec<_>>().join(",");
    let costly = [
        // Lengths that promise what is not there.
        u64::MAX.to_le_bytes().to_vec(),
        (1_u64 << 20).to_le_bytes().to_vec(),
        // Shapes of exabytes.
        framed(r#"{"a":{"dtype":"F32","shape":[4294967296,1073741823],"data_offsets":[0,18446744069414584320]}}"#.into()),
        // As many entries, keys and numbers as the header may hold.
        framed(format!("{{{}}}", many(|i| format!(r#""{i}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}"#), 9000))),
        framed(format!(r#"{{"__metadata__":{{{}}}}}"#, many(|i| format!(r#""{i}":"""#), 60_000))),
        framed(format!(r#"{{"a":{{"dtype":"F32","shape":[{}]"#, "1,".repeat(400_000))),
        // Nesting, and names and values as long as they can be.
        framed("[".repeat(1_000_000)),
        framed(format!("{{\"{}\":{{}}}}", "n".repeat(1_000_000))),
        framed(format!(r#"{{"a":{{"dtype":"{}"}}}}"#, "\\n".repeat(500_000))),
        // A config of a thousand blocks in a file of none.
        framed(
            r#"{"__metadata__":{"cwm.config":"{\"family\":\"transformer\",\"d_model\":65536,\"n_layers\":1024,\"n_heads\":1}"},
            "a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}"#
                .into(),
        ),
    ];
    for file in costly {
        let (result, requested) = requested_by(|| Checkpoint::read(&file, None));
        let error = result.unwrap_err();
        let limit = 12 * file.len() as u64 + 16_384;
        assert!(requested <= limit, "{error}: {requested} of {limit} bytes");
        assert!(error.to_string().len() < 600, "{error}");
    }
}
