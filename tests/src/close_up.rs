//! Evaluations looked at closely: games from files, the worst games, and what follows the moves that a policy seeks.

use std::{fs, io::Write};

use cwm_core::{
    report::{EvalReport, Evaluation, Source},
    trace::Trace,
};
use cwm_tests::cwm::{cwm, cwm_in, root};

fn report(args: &str) -> EvalReport {
    let args = args.split(' ').chain(["--format", "json"]);
    EvalReport::from_json(&cwm(args).expect_done().stdout).unwrap()
}

/// Grades without the names of tracker, dataset and games.
fn nameless(evaluation: &Evaluation) -> Evaluation {
    let mut evaluation = evaluation.clone();
    (evaluation.tracker, evaluation.dataset) = Default::default();
    evaluation.worst_games.iter_mut().for_each(|game| game.name = None);
    evaluation
}

#[test]
fn games_from_a_file_are_graded_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let pgn = fs::read(root().join("models/splits/classics/classics.pgn")).unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    // An illegal game among them is left out, and counted.
    let broken = [&b"[White \"x\"]\n\n1. e4 e5 2. Ke3 *\n\n"[..], &pgn].concat();
    fs::write(path("broken.pgn"), &broken).unwrap();
    fs::write(path("classics.pgn.zst"), zstd::encode_all(&pgn[..], 3).unwrap()).unwrap();
    let sample = report("evaluate naive-mover --human-sample");
    let expected = nameless(&sample.evaluations[0]);
    for (name, left_out) in [("classics.pgn.zst", 0), ("broken.pgn", 1)] {
        let found = report(&format!("evaluate naive-mover --data mine={}", path(name)));
        assert_eq!(nameless(&found.evaluations[0]), expected);
        let Source::File { skipped, .. } = found.datasets[0].source else { panic!("a file") };
        assert_eq!(skipped, left_out, "{name}");
    }
    let text = cwm(["evaluate", "oracle", "--data", &format!("mine={}", path("broken.pgn"))]);
    let text = text.expect_done().stdout;
    assert!(text.contains("mine: 44 games") && text.contains("1 games left out"), "{text}");
    let few = report(&format!("evaluate oracle --data mine={} --limit 3", path("broken.pgn")));
    assert_eq!(few.evaluations[0].games, 3);

    // Lines of UCI moves, one game of them at its own length.
    let mut uci = fs::File::create(path("games.uci")).unwrap();
    let worst = &sample.evaluations[0].worst_games[0];
    writeln!(uci, "{}\ne2e4 e7e5", worst.moves).unwrap();
    drop(uci);
    let found = report(&format!("evaluate naive-mover --data lines={}", path("games.uci")));
    assert_eq!((found.evaluations[0].games, found.evaluations[0].steps), (2, worst.steps + 3));
}

#[test]
fn files_that_cannot_be_graded_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &str, code| {
        let args: Vec<&str> = args.split(' ').collect();
        cwm_in(dir.path(), args).expect_code(code).stderr
    };
    fs::write(dir.path().join("none.pgn"), "1. e4 e5 2. Ke3 *\n").unwrap();
    let error = run("evaluate oracle --data a=none.pgn", 3);
    assert!(
        error.contains("holds no games to grade") && error.contains("hint: left out: 1"),
        "{error}"
    );
    fs::write(dir.path().join("empty.pgn"), "").unwrap();
    assert!(run("evaluate oracle --data a=empty.pgn", 3).contains("holds no games to grade"));
    fs::write(dir.path().join("noise.pgn"), [0_u8; 500]).unwrap();
    assert!(run("evaluate oracle --data a=noise.pgn", 3).contains("noise.pgn"));
    fs::write(dir.path().join("one.pgn"), "1. e4 e5 *\n").unwrap();
    let error = run("evaluate oracle --data a=one.pgn --split train", 2);
    assert!(error.contains("it has no splits"), "{error}");
    assert!(run("evaluate oracle --data a=absent.pgn", 3).contains("absent.pgn"));
    assert!(run("evaluate oracle --data a=one.pgn --worst 21", 2).contains("from 0 to 20"));
}

#[test]
fn the_worst_games_can_be_looked_at() {
    let report = report("evaluate naive-mover+rights oracle --random 40 --seed 3 --worst 20");
    let [naive, oracle] = &report.evaluations[..] else { panic!("two") };
    assert!(oracle.worst_games.is_empty());
    assert_eq!(naive.worst_games.len(), 20);
    let share = |g: &cwm_core::report::WorstGame| g.exact_steps as f64 / g.steps as f64;
    assert!(naive.worst_games.is_sorted_by(|a, b| share(a) <= share(b)));
    for game in naive.worst_games.iter().step_by(7) {
        assert_eq!(game.name, Some(format!("cwm_random_{:05}", game.game)));
        // `cwm predict` finds the same mistakes in the moves that the report gives.
        let said = cwm(["predict", "naive-mover+rights", "--uci", &game.moves, "--format", "json"]);
        let trace: Trace = serde_json::from_str(&said.expect_done().stdout).unwrap();
        assert_eq!(u64::from(trace.plies) + 1, game.steps);
        assert_eq!(u64::from(trace.exact_steps), game.exact_steps);
        assert_eq!(trace.first_mistake.map(u64::from), Some(game.first_mistake));
        let wrong: usize = trace.steps.iter().map(|step| step.wrong.len()).sum();
        assert_eq!(wrong as u64, game.labels_wrong);
    }
    let details =
        cwm(["evaluate", "naive-mover", "--random", "5", "--details"]).expect_done().stdout;
    assert!(
        details.contains("Worst games\n") && details.contains("  cwm_random_0000"),
        "{details}"
    );
    let json =
        cwm(["evaluate", "naive-mover", "--random", "5", "--worst", "0", "--format", "json"]);
    assert!(!json.expect_done().stdout.contains("worst_games"));
}

#[test]
fn what_follows_a_policys_moves_is_counted() {
    let report = report(
        "evaluate naive-mover+rights+ep oracle --random 60 --policy castling,en-passant,uniform",
    );
    let of = |tracker: &str, dataset: &str| report.evaluation(tracker, dataset).unwrap();
    assert!(of("oracle", "random-uniform").aftermath.is_none());
    for dataset in ["stratum:castling", "stratum:en-passant"] {
        let oracle = of("oracle", dataset).aftermath.as_ref().unwrap();
        assert!(oracle.events > 5, "{}", oracle.events);
        let lags: Vec<u64> = oracle.lags.iter().map(|lag| lag.after_steps).collect();
        assert_eq!(lags, [0, 1, 2, 4, 8, 16, 32]);
        for lag in &oracle.lags {
            let share = lag.exact_state_accuracy;
            assert_eq!(share.numerator, share.denominator);
        }
        assert!(oracle.errors.iter().all(|group| group.errors == 0));
        // It moves no rook when a king castles and leaves the pawn that falls en passant: each such move is a mistake,
        // unless there was one before.
        let naive = of("naive-mover+rights+ep", dataset).aftermath.as_ref().unwrap();
        assert_eq!(naive.events, oracle.events);
        assert_eq!(naive.lags[0].exact_state_accuracy.numerator, 0);
        let pieces = &naive.errors[0];
        assert!(pieces.errors > 0 && pieces.corrected <= pieces.errors);
        let side = &naive.errors[1];
        assert_eq!((side.errors, side.half_life_steps), (0, None));
    }
    let text = cwm(["evaluate", "oracle", "--random", "40", "--policy", "promotion", "--details"]);
    let text = text.expect_done().stdout;
    assert!(text.contains("moves that the policy seeks (steps)"), "{text}");
    assert!(text.contains("Half-life of an error"), "{text}");
}
