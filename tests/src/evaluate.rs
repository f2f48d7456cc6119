//! `cwm`, `cwm evaluate` and `cwm predict`: results, exit codes, streams, files.

use std::{fs, path::Path};

use cwm_core::report::{EvalReport, tsv::SUMMARY_COLUMNS};
use cwm_tests::cwm::{command, cwm, cwm_with_stdin, finish};
use serde_json::Value;

const QUICK: [&str; 8] =
    ["--progress", "none", "evaluate", "naive-mover+rights", "--random", "20", "--seed", "3"];

fn evaluate(more: &[&str]) -> Vec<String> {
    QUICK.iter().chain(more).map(|s| s.to_string()).collect()
}

#[test]
fn the_default_job_prints_tables_and_what_to_do_next() {
    let said = cwm(["--progress", "none"]).expect_done();
    assert_eq!(said.stderr, "");
    for part in [
        "classics: 44 games",
        "random-uniform: 500 games, 165,460 steps",
        "naive-mover+rights+ep",
        "paper: mamba3 d512/l6",
        "rows marked `paper` are published figures",
        "cwm predict",
        "cwm evaluate",
    ] {
        assert!(said.stdout.contains(part), "`{part}` is missing in\n{}", said.stdout);
    }
    assert!(!said.stdout.contains('\x1b'), "no control characters");
}

#[test]
fn every_format_says_the_same() {
    let json = cwm(evaluate(&["--format", "json"])).expect_done();
    assert_eq!(json.stderr, "");
    let report = EvalReport::from_json(&json.stdout).expect("one valid document");
    let [evaluation] = &report.evaluations[..] else { panic!("one evaluation") };
    assert_eq!(evaluation.games, 20);
    let share = evaluation.exact_state_accuracy;
    assert!(share.interval.is_some_and(|i| i.low < i.high));

    let tsv = cwm(evaluate(&["--format", "tsv"])).expect_done().stdout;
    let rows: Vec<Vec<&str>> = tsv.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows[0], SUMMARY_COLUMNS);
    assert_eq!(rows[1][0], "naive-mover+rights");
    assert_eq!(rows[1][8].parse::<f64>().unwrap(), share.value().unwrap());

    let percent = format!("{:.2}", share.value().unwrap() * 100.0);
    for format in ["text", "markdown"] {
        let said = cwm(evaluate(&["--format", format, "--details", "--paper"])).expect_done();
        assert!(said.stdout.contains(&percent), "{percent} is missing in\n{}", said.stdout);
        assert!(said.stdout.contains("paper: gated_deltanet d512/l6 positive eigenvalues"));
        assert!(said.stdout.contains("By prefix bin"));
    }
}

#[test]
fn equal_commands_give_equal_bytes() {
    let runs = [(); 2].map(|()| cwm(evaluate(&["--baselines", "--format", "json"])).expect_done());
    assert!(runs[0].stdout == runs[1].stdout);
}

#[test]
fn files_are_written_beside_stdout() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("a/b");
    let said = cwm(evaluate(&["--format", "json", "--out", out.to_str().unwrap()])).expect_done();
    assert_eq!(fs::read_to_string(out.join("report.json")).unwrap(), said.stdout);
    let mut names: Vec<String> = fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "prefix_bins.tsv",
            "random-uniform-first-mistakes.svg",
            "random-uniform-label-groups.svg",
            "random-uniform-prefix-bins.svg",
            "report.json",
            "report.md",
            "summary.tsv",
        ]
    );
    for name in names.iter().filter(|name| name.ends_with(".svg")) {
        check_svg(&fs::read_to_string(out.join(name)).unwrap());
    }
}

/// A root with a title and a description, tags that balance, and numbers that are numbers.
#[track_caller]
fn check_svg(svg: &str) {
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
    let (title, desc) = (svg.find("<title>").unwrap(), svg.find("<desc>").unwrap());
    assert!(title < desc && svg.contains("role=\"img\""));
    assert!(!svg.contains("NaN") && !svg.contains("\"inf"), "{svg}");
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("tags end");
        let name = tag.split_whitespace().next().unwrap();
        if let Some(closed) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "tags nest");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} stay open");
}

#[test]
fn a_report_that_cannot_be_saved_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "in the way").unwrap();
    let out = file.join("out");
    let said = cwm(evaluate(&["--out", out.to_str().unwrap()])).expect_code(3);
    assert!(said.stderr.starts_with("error: cannot write `"), "{}", said.stderr);
    assert_eq!(said.stdout, "", "no result is printed as if it were safe");
    assert_eq!(fs::read_to_string(&file).unwrap(), "in the way");
    if Path::new("/dev/full").exists() {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let said = finish(command(evaluate(&[])).stdout(full)).expect_code(3);
        assert!(said.stderr.contains("cannot write to stdout"), "{}", said.stderr);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    for args in [evaluate(&["--format", "json"]), predict(&["--uci", "e2e4"])] {
        let said = finish(command(args).stdout(writer.try_clone().unwrap())).expect_done();
        assert_eq!(said.stderr, "");
    }
}

#[test]
fn previews_are_marked() {
    let said = cwm(evaluate(&["--human-sample", "--limit", "5"])).expect_done();
    assert_eq!(said.stdout.matches("preview: at most the first 5 games").count(), 1);
    let json = cwm(evaluate(&["--limit", "5", "--format", "json"])).expect_done().stdout;
    let report = EvalReport::from_json(&json).unwrap();
    assert_eq!((report.datasets[0].limit, report.evaluations[0].games), (Some(5), 5));
}

#[test]
fn thresholds_decide_the_exit_code() {
    cwm(evaluate(&["--min-exact", "50"])).expect_done();
    let said = cwm(evaluate(&["--min-exact", "99.9"])).expect_code(1);
    assert!(said.stderr.contains("below --min-exact 99.9"), "{}", said.stderr);
    assert!(said.stdout.contains("naive-mover+rights"), "the report is printed all the same");
    let said = cwm(evaluate(&["--min-exact", "101"])).expect_code(2);
    assert!(said.stderr.contains("0 to 100"), "{}", said.stderr);
}

#[test]
fn wrong_commands_say_what_to_do() {
    let cases: [(&[&str], i32, &str); 8] = [
        (&["--random", "5"], 2, "name a checkpoint or a baseline"),
        (&["oracle"], 2, "use --random N or --human-sample"),
        (&["naive-moover", "--random", "5"], 2, "did you mean `naive-mover`?"),
        (&["oracle", "oracle", "--random", "5"], 2, "two subjects are called `oracle`"),
        (&["oracle", "--data", "here"], 2, "for example `--data real=here`"),
        (&["oracle", "--data", "x=/nonexistent"], 3, "`/nonexistent` does not exist"),
        (&["oracle", "--data", "x=."], 3, "it has no dataset.json"),
        (&["oracle", "--random", "0"], 2, "--random <N>"),
    ];
    for (args, code, part) in cases {
        let said = cwm(["evaluate"].iter().chain(args)).expect_code(code);
        assert!(said.stderr.contains(part), "`{part}` is missing in\n{}", said.stderr);
        assert_eq!(said.stdout, "");
    }
}

#[test]
fn datasets_are_graded_as_their_games_are() {
    let dir = tempfile::tempdir().unwrap();
    let lines = dir.path().join("games.uci");
    let games = [
        "e2e4 e7e5 g1f3 b8c6 f1c4 f8c5 e1g1 g8f6 d2d3 d7d6",
        "d2d4 d7d5 c2c4 e7e6 b1c3 g8f6 c1g5 f8e7 e2e3 e8g8",
    ];
    let text: String = games
        .iter()
        .enumerate()
        .map(|(i, moves)| format!("g{i}\tlichess\t1-0\t-\t-\t{moves}\n"))
        .collect();
    fs::write(&lines, text).unwrap();
    let data = dir.path().join("set");
    let args = ["data", "prepare", lines.to_str().unwrap(), "--min-fullmoves", "1", "--out"];
    cwm(args.iter().copied().chain([data.to_str().unwrap()])).expect_done();

    let named = format!("castled={}", data.display());
    let said =
        cwm(["evaluate", "oracle", "naive-mover+rights+ep", "--format", "json", "--data", &named])
            .expect_done();
    let report = EvalReport::from_json(&said.stdout).unwrap();
    let counts = |tracker: &str| {
        let evaluation = report.evaluation(tracker, "castled").unwrap();
        let exact = evaluation.exact_state_accuracy;
        (exact.numerator, exact.denominator, evaluation.trajectory_exactness.numerator)
    };
    assert_eq!(counts("oracle"), (22, 22, 2));
    // Castling is ply 7 of 10 in one game and ply 10 of 10 in the other.
    assert_eq!(counts("naive-mover+rights+ep"), (7 + 10, 22, 0));
    let said = cwm(["evaluate", "oracle", "--split", "validation", "--data", &named]);
    assert!(said.expect_code(3).stderr.contains("holds no games to grade"));
}

fn predict(more: &[&str]) -> Vec<String> {
    ["predict", "naive-mover+rights"].iter().chain(more).map(|s| s.to_string()).collect()
}

const CASTLING: &str = "1. g3 g6 2. Bg2 Bg7 3. Nf3 Nf6 4. O-O *";

#[test]
fn prediction_shows_the_first_mistake_on_the_board() {
    let said = cwm(predict(&["--san", CASTLING])).expect_done();
    for part in [
        "naive-mover+rights: 7 of 8 states exact, first mistake at ply 7\n",
        "    0  start  exact\n",
        "    7  e1g1   2 of 75 wrong: f1, h1\n",
        "  1  R  N  B  Q  . [R] K [.]   1  R  N  B  Q  . [.] K [R]\n",
    ] {
        assert!(said.stdout.contains(part), "`{part}` is missing in\n{}", said.stdout);
    }
    let right = cwm(predict(&["--uci", "e2e3 e7e6"])).expect_done();
    assert!(right.stdout.contains("3 of 3 states exact, no mistake"), "{}", right.stdout);
    assert!(right.stdout.contains("After ply 2 (e7e6):"), "the last ply is drawn");
}

#[test]
fn notations_and_sources_of_a_game_agree() {
    let san = cwm(predict(&["--format", "json", "--san", CASTLING])).expect_done();
    let uci = "g2g3 g7g6 f1g2 f8g7 g1f3 g8f6 e1g1";
    let other = cwm(predict(&["--format", "json", "--uci", uci])).expect_done();
    assert_eq!(san, other);
    let pgn = format!("[Event \"a\"]\n\n1. e4 *\n\n[Event \"b\"]\n\n{CASTLING}\n");
    let args = predict(&["--format", "json", "--pgn", "-", "--game", "2"]);
    assert_eq!(cwm_with_stdin(args, pgn.as_bytes()).expect_done(), san);

    let trace: Value = serde_json::from_str(&san.stdout).unwrap();
    assert_eq!((&trace["schema"], &trace["version"]), (&"cwm-trace".into(), &1.into()));
    assert_eq!(trace["steps"].as_array().unwrap().len(), 8);
    assert_eq!(trace["steps"][7]["wrong"][0]["label"], "f1");
    let one = cwm(predict(&["--format", "json", "--san", CASTLING, "--ply", "7"])).expect_done();
    let one: Value = serde_json::from_str(&one.stdout).unwrap();
    assert_eq!(one["steps"].as_array().unwrap(), &[trace["steps"][7].clone()]);
}

#[test]
fn games_that_cannot_be_read_are_told_where() {
    let cases: [(&[&str], i32, &str); 7] = [
        (&["--san", "1. e4 e5 2. Qh6"], 3, "column 13: illegal move: `Qh6`"),
        (&["--uci", "e2e4 e7e5 Nf3"], 3, "`Nf3` at ply 3: not a move"),
        (&["--pgn", "/nonexistent.pgn"], 3, "cannot read `/nonexistent.pgn`"),
        (&["--san", "e4", "--ply", "2"], 2, "there is no ply 2: the game has 1"),
        (&["--san", "e4", "--uci", "e2e4"], 2, "cannot be used with"),
        (&[], 2, "required"),
        (&["--san", "hello"], 3, "not a move: `hello`"),
    ];
    for (args, code, part) in cases {
        let said = cwm(predict(args)).expect_code(code);
        assert!(said.stderr.contains(part), "`{part}` is missing in\n{}", said.stderr);
        assert_eq!(said.stdout, "");
    }
    for (bytes, part) in [
        (&b"\x28\xb5\x2f\xfd\x00\x00"[..], "is no text"),
        (b"", "no moves found"),
        (b"[FEN \"8/8/8/8/8/8/8/K1k5 w - - 0 1\"]\n\n1. Ka2 *", "another position"),
    ] {
        let said = cwm_with_stdin(predict(&["--pgn", "-"]), bytes).expect_code(3);
        assert!(said.stderr.contains(part), "`{part}` is missing in\n{}", said.stderr);
    }
    let said = cwm_with_stdin(predict(&["--pgn", "-", "--game", "2"]), b"1. e4 *").expect_code(2);
    assert!(said.stderr.contains("holds 1 games, not 2"), "{}", said.stderr);
}
