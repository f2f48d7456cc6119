//! Rule-stratified play: goldens, and what every policy promises, tested by the effects of moves.

use std::{collections::HashSet, fmt::Write as _, fs, path::Path};

use cwm_core::{
    chess::{
        MoveToken, Policy,
        random::{RandomGame, RandomPlay, Referee, Termination},
    },
    report::{EvalReport, Source},
};
use cwm_tests::cwm::cwm;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use shakmaty::{Chess, Color, EnPassantMode, Move, Position, san::San};

/// SHA-256 over the first 100 games of seed 0 with at least 20 plies, and their plies. `python tests/peers/policies.py`
/// finds the same with python-chess.
const GOLDEN: [(Policy, &str, usize); 8] = [
    (Policy::Uniform, "4751358b4108db0abaf4306df2169d0f9bd9a296cca9b88ec3068e62831b934f", 32_989),
    (Policy::Castling, "21ed0e336e2d5059fd602cd16a1fdd395599f348923667a48431805f96eac151", 32_146),
    (Policy::EnPassant, "4a58b96fbc4a2299365e808711dec00fadc2bb5a1c6acc390c4fa80f44a4dd40", 33_311),
    (Policy::Promotion, "f1d818b8f4098c9048e656568766c5aaf574734ccb577f7ed6e5c4445e505416", 34_453),
    (
        Policy::Underpromotion,
        "d84023367093ed71979d4f775fa04907ef10c066303b16250651774409b00e1d",
        31_258,
    ),
    (
        Policy::HomeRookCapture,
        "0e6e4882685bdda1fae7f78480f2c7d72802a51065a78fadb85c6251cbcc382a",
        32_569,
    ),
    (Policy::Quiet, "0c411a12100bdf39ba121e8037b74e369900f787f68cfac75f61cfbb78f66cb1", 15_435),
    (Policy::Long, "7907e205e0611e583eac9d37e3c2d2b9d2760a55d964183eaaeb5a8cb28b7817", 33_890),
];

#[test]
fn a_hundred_games_of_every_policy_stay_what_they_are() {
    assert_eq!(GOLDEN.map(|(policy, ..)| policy), Policy::ALL);
    for (policy, sha256, plies) in GOLDEN {
        let (mut hash, mut played) = (Sha256::new(), 0);
        for game in RandomPlay::with_policy(policy, 0, 10).take(100) {
            let mut line = MoveToken::START.id().to_string();
            game.moves.iter().for_each(|token| write!(line, " {}", token.id()).unwrap());
            hash.update(line + "\n");
            played += game.moves.len();
        }
        let found: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!((found.as_str(), played), (sha256, plies), "{policy}");
    }
}

fn rights(position: &Chess, color: Color) -> usize {
    position
        .castles()
        .castling_rights()
        .into_iter()
        .filter(|square| square.rank() == color.backrank())
        .count()
}

/// How much a policy wants a move, 0 for not at all: told from its notation and from the position behind it.
fn want(policy: Policy, before: &Chess, m: Move) -> u8 {
    let san = || San::from_move(before, m).to_string();
    let after = || before.clone().play(m).expect("a legal move");
    match policy {
        Policy::Uniform | Policy::Long => 0,
        Policy::Castling => san().starts_with("O-O").into(),
        Policy::Promotion => san().contains('=').into(),
        Policy::Underpromotion => ["=R", "=B", "=N"].iter().any(|to| san().contains(to)).into(),
        // Nothing else that a side does takes a right from the other.
        Policy::HomeRookCapture => {
            let other = !before.turn();
            (rights(&after(), other) < rights(before, other)).into()
        }
        Policy::Quiet => (after().halfmoves() == before.halfmoves() + 1).into(),
        Policy::EnPassant => {
            // A capture onto an empty square.
            if m.is_capture() && before.board().piece_at(m.to()).is_none() {
                2
            } else {
                after().ep_square(EnPassantMode::Legal).is_some().into()
            }
        }
    }
}

/// What a policy's games are full of, counted in one game.
#[derive(Default)]
struct Counted {
    events: usize,
    highest_clock: u32,
}

/// Replays a game and checks that each move is legal and as wanted as any; counts what `about` is about.
fn check(policy: Policy, about: Policy, game: &RandomGame) -> Counted {
    let mut counted = Counted::default();
    let mut referee = Referee::default();
    referee.reset(Chess::default());
    for (ply, token) in game.moves.iter().enumerate() {
        let position = referee.position().clone();
        let context = format!("{policy} {}, ply {ply}", game.id);
        let m = token.to_uci().and_then(|uci| uci.to_move(&position).ok()).expect(&context);
        assert!(position.is_legal(m), "{context}");
        let legal = position.legal_moves();
        let verdict = if policy == Policy::Long {
            assert!(ply < 600, "{context}");
            referee.verdict_without_claims(&legal, position.is_check())
        } else {
            referee.verdict(&legal, position.is_check())
        };
        assert_eq!(verdict, None, "{context}: played on");
        let most = legal.iter().map(|&m| want(policy, &position, m)).max();
        assert_eq!(Some(want(policy, &position, m)), most, "{context}: {m}");
        let event = about.is_event(&position, m);
        let least = if about == Policy::EnPassant { 2 } else { 1 };
        assert_eq!(event, want(about, &position, m) >= least, "{context}: {m}");
        counted.events += usize::from(event);
        referee.play(m);
        counted.highest_clock = counted.highest_clock.max(referee.position().halfmoves());
    }
    let position = referee.position();
    let legal = position.legal_moves();
    let end = if policy == Policy::Long {
        let end = referee.verdict_without_claims(&legal, position.is_check());
        end.or((game.moves.len() == 600).then_some(Termination::PlyLimit))
    } else {
        referee.verdict(&legal, position.is_check())
    };
    assert_eq!(end, Some(game.termination), "{policy} {}", game.id);
    counted
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn wanted_moves_are_taken_wherever_they_exist(seed: u64, policy in 0..Policy::ALL.len()) {
        let policy = Policy::ALL[policy];
        let game = RandomPlay::with_policy(policy, seed, 0).next().expect("play never ends");
        check(policy, policy, &game);
        prop_assert_eq!(RandomPlay::with_policy(policy, seed, 0).next(), Some(game));
    }
}

#[test]
fn policies_meet_their_rules_far_more_often_than_uniform_play() {
    const GAMES: usize = 60;
    let count = |policy: Policy, about: Policy| {
        let games = RandomPlay::with_policy(policy, 1, 10).take(GAMES);
        games.fold((0, 0), |(events, clocks), game| {
            let counted = check(policy, about, &game);
            (events + counted.events, clocks + counted.highest_clock as usize)
        })
    };
    for (policy, times) in
        [(Policy::Castling, 5), (Policy::EnPassant, 10), (Policy::HomeRookCapture, 5)]
    {
        let (played, uniform) = (count(policy, policy).0, count(Policy::Uniform, policy).0);
        println!("{policy}: {played} in {GAMES} games, {uniform} in uniform play");
        assert!(played >= GAMES / 3, "{policy}: {played} in {GAMES} games");
        assert!(played >= times * uniform, "{policy}: {played}, in uniform play {uniform}");
    }
    // Uniform play promotes most pawns that get so far as well, every fourth of them to a queen.
    let promoted = count(Policy::Promotion, Policy::Promotion).0;
    let uniform = count(Policy::Uniform, Policy::Promotion).0;
    let under = count(Policy::Underpromotion, Policy::Underpromotion).0;
    let queens = count(Policy::Underpromotion, Policy::Promotion).0 - under;
    let under_uniform = count(Policy::Uniform, Policy::Underpromotion).0;
    println!("promotion: {promoted}, {uniform}; underpromotion: {under}, {under_uniform}");
    assert!(promoted >= 2 * GAMES, "{promoted} promotions in {GAMES} games");
    assert!(under >= 2 * GAMES, "{under} underpromotions in {GAMES} games");
    assert_eq!(queens, 0, "whoever may promote may underpromote");
    // Quiet moves are common in any play; what is rare is one after the other, early in the game.
    let (quiet, clocks) = count(Policy::Quiet, Policy::Quiet);
    println!("quiet: {quiet}, clocks {clocks}");
    let plies: usize = RandomPlay::with_policy(Policy::Quiet, 1, 10)
        .take(GAMES)
        .map(|game| game.moves.len())
        .sum();
    assert!(quiet * 100 >= plies * 95, "{quiet} quiet moves in {plies} plies");
    assert!(clocks >= 30 * GAMES, "the clock reaches {clocks} in {GAMES} games");
}

#[test]
fn long_games_ignore_claims_and_end_all_the_same() {
    let (mut ends, mut claimable, mut past_255) = (HashSet::new(), 0, 0);
    for game in RandomPlay::with_policy(Policy::Long, 0, 0).take(400) {
        ends.insert(game.termination);
        let broken_off = game.termination == Termination::PlyLimit;
        assert_eq!(game.result.as_str() == "*", broken_off, "{}", game.id);
        // The 600th ply may also end a game by itself.
        assert!(game.moves.len() == 600 || !broken_off && game.moves.len() < 600, "{}", game.id);
        let mut referee = Referee::default();
        referee.reset(Chess::default());
        let mut passed = false;
        for token in &game.moves {
            let m = token.to_uci().unwrap().to_move(referee.position()).unwrap();
            let legal = referee.position().legal_moves();
            passed |= referee.verdict(&legal, referee.position().is_check()).is_some();
            referee.play(m);
        }
        claimable += u32::from(passed);
        past_255 += u32::from(referee.position().fullmoves().get() > 255);
    }
    for end in [
        Termination::Checkmate,
        Termination::Stalemate,
        Termination::InsufficientMaterial,
        Termination::SeventyFiveMoves,
        Termination::PlyLimit,
    ] {
        assert!(ends.contains(&end), "none of {ends:?} is {end:?}");
    }
    for end in [Termination::FiftyMoves, Termination::ThreefoldRepetition] {
        assert!(!ends.contains(&end), "{end:?} was claimed");
    }
    println!("claims passed over in {claimable} games, {past_255} past full move 255");
    assert!(claimable >= 100, "claims were passed over in {claimable} of 400 games");
    assert!(past_255 >= 12, "{past_255} of 400 games pass full move 255");
}

#[test]
fn policies_number_their_own_games() {
    let first = |policy| RandomPlay::with_policy(policy, 4, 0).next().unwrap();
    assert_eq!(first(Policy::Uniform), RandomPlay::new(4, 0).next().unwrap());
    let ids: HashSet<String> = Policy::ALL.into_iter().map(|policy| first(policy).id).collect();
    assert_eq!(ids.len(), Policy::ALL.len());
    assert!(ids.contains("cwm_random_00000") && ids.contains("cwm_en-passant_00000"));
}

fn report(args: &[&str]) -> EvalReport {
    let said =
        cwm(["--progress", "none", "evaluate"].iter().chain(args).chain(&["--format", "json"]));
    EvalReport::from_json(&said.expect_done().stdout).unwrap()
}

#[test]
fn one_command_grades_every_stratum() {
    let args = ["oracle", "naive-mover+rights+ep", "--random", "20", "--policy", "all"];
    let all = report(&args);
    let names: Vec<&str> = all.datasets.iter().map(|dataset| dataset.name.as_str()).collect();
    let expected = [
        "random-uniform",
        "stratum:castling",
        "stratum:en-passant",
        "stratum:promotion",
        "stratum:underpromotion",
        "stratum:home-rook-capture",
        "stratum:quiet",
        "stratum:long",
    ];
    assert_eq!(names, expected);
    for name in expected {
        let exact = all.evaluation("oracle", name).unwrap().exact_state_accuracy;
        assert_eq!(exact.numerator, exact.denominator, "{name}");
    }
    // Castling and en passant captures are what the mover does not know.
    let naive = |name| {
        let evaluation = all.evaluation("naive-mover+rights+ep", name).unwrap();
        evaluation.exact_state_accuracy.value().unwrap()
    };
    let uniform = naive("random-uniform");
    assert!(naive("stratum:castling") < uniform && naive("stratum:en-passant") < uniform);

    let two = ["oracle", "--random", "20", "--policy", "quiet,castling", "--policy", "quiet"];
    let two = report(&two);
    let names: Vec<&str> = two.datasets.iter().map(|dataset| dataset.name.as_str()).collect();
    assert_eq!(names, ["stratum:quiet", "stratum:castling"]);
    let source = Source::RuleStratum { policy: Policy::Quiet, seed: 0, min_fullmoves: 10 };
    assert_eq!(two.datasets[0].source, source);
    let hash = |report: &EvalReport| {
        report.evaluation("oracle", "stratum:quiet").unwrap().moves_sha256.clone()
    };
    assert_eq!(hash(&two), hash(&all));
}

#[test]
fn a_dataset_of_a_policy_says_so_and_holds_the_same_games() {
    let dir = tempfile::tempdir().unwrap();
    let out = |policy: &str| dir.path().join(policy).to_str().unwrap().to_string();
    for policy in ["castling", "uniform"] {
        let args = ["data", "random", "--games", "20", "--policy", policy, "--out", &out(policy)];
        cwm(args).expect_done();
        let manifest = fs::read_to_string(Path::new(&out(policy)).join("dataset.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        assert_eq!(manifest["origin"]["settings"]["policy"], policy);
        cwm(["data", "info", "--verify", &out(policy)]).expect_done();
    }
    let (castling, uniform) = (format!("c={}", out("castling")), format!("u={}", out("uniform")));
    let report = report(&[
        "oracle", "--data", &castling, "--data", &uniform, "--random", "20", "--policy", "castling",
    ]);
    let hash = |name| report.evaluation("oracle", name).unwrap().moves_sha256.clone();
    assert_eq!(hash("c"), hash("stratum:castling"));
    assert_ne!(hash("c"), hash("u"));
    // The paper's figures on uniform play stand beside uniform play alone.
    let beside = |name: &str| {
        report.datasets.iter().find(|dataset| dataset.name == name).unwrap().split.is_some()
    };
    assert!(beside("u") && !beside("c") && !beside("stratum:castling"));
}

#[test]
fn policies_that_cannot_be_are_usage_errors() {
    let cases: [(&[&str], &str); 4] = [
        (&["evaluate", "oracle", "--random", "5", "--policy", "castle"], "castling"),
        (&["evaluate", "oracle", "--human-sample", "--policy", "castling"], "--random <N>"),
        (
            &["evaluate", "oracle", "--random", "5", "--policy", "all", "--min-fullmoves", "151"],
            "--min-fullmoves 150 or less",
        ),
        (&["data", "random", "--games", "5", "--policy", "all", "--out", "x"], "possible values"),
    ];
    for (args, part) in cases {
        let said = cwm(args).expect_code(2);
        assert!(said.stderr.contains(part), "`{part}` is missing in\n{}", said.stderr);
        assert_eq!(said.stdout, "");
    }
}
