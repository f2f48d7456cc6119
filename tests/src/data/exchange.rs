//! The reference's JSON lines, out and in again.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
};

use cwm::data::Dataset;
use cwm_core::data::Split;
use cwm_tests::cwm::command;

use super::{data, fixture, manifest};

#[test]
fn exported_games_come_in_again() {
    for en_passant in ["always", "legal"] {
        let dir = tempfile::tempdir().unwrap();
        let random =
            ["random", "--games", "25", "--seed", "4", "--out", "a", "--en-passant", en_passant];
        data(dir.path(), random).expect_done();
        data(dir.path(), ["export", "a", "--out", "a.jsonl"]).expect_done();
        data(dir.path(), ["prepare", "a.jsonl", "--out", "b", "--en-passant", en_passant])
            .expect_done();
        let load =
            |name: &str| Dataset::open(dir.path().join(name)).unwrap().load(Split::All).unwrap();
        assert_eq!(load("a"), load("b"));
        data(dir.path(), ["export", "b", "--out", "b.jsonl"]).expect_done();
        let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
        assert!(read("a.jsonl") == read("b.jsonl"), "en passant {en_passant}");
        assert_eq!(manifest(&dir.path().join("a"))["spec"]["en_passant"], en_passant);
    }
}

#[test]
fn the_references_own_lines_are_read_and_tested() {
    let dir = tempfile::tempdir().unwrap();
    let lines = fixture("real_process/min_fullmoves_1.jsonl");
    data(dir.path(), ["prepare", lines.to_str().unwrap(), "--out", "out"]).expect_done();
    let skipped = &manifest(&dir.path().join("out"))["skipped"];
    // Four starts differ (Atomic and null moves begin like standard chess), five are short, and the two further games
    // under one missing Site and a repeated one have ids that were there before.
    assert_eq!(
        *skipped,
        serde_json::json!({
            "short": 5, "non_standard_start": 5, "illegal_move": 1, "labels_differ": 1, "duplicate": 4
        })
    );
    let text = fs::read_to_string(&lines).unwrap();
    let first = text.lines().next().unwrap();
    let changed = [
        first.replacen("[20480, 3980", "[20480, 3981", 1),
        first.replacen("[20480, 3980", "[3980, 20480", 1),
        first.replacen("[20480, 3980", "[20480, 99999999", 1),
        first.replacen("1, 1, 1, 1, 1, 5, 1", "1, 1, 1, 1, 1, 5, 2", 1),
        first.replacen("\"states\"", "\"stats\"", 1),
        first[..first.len() / 2].to_string(),
        "{}".to_string(),
        "[[[[".to_string(),
    ];
    fs::write(dir.path().join("changed.jsonl"), changed.join("\n")).unwrap();
    let said = data(dir.path(), ["prepare", "changed.jsonl", "--out", "none"]).expect_code(3);
    assert!(said.stderr.contains("none of the 8 games"), "{}", said.stderr);
}

#[test]
fn splits_add_up() {
    let dir = tempfile::tempdir().unwrap();
    data(dir.path(), ["random", "--games", "120", "--out", "out"]).expect_done();
    let lines = |split: &str| {
        let said =
            data(dir.path(), ["export", "out", "--split", split, "--out", "-"]).expect_done();
        said.stdout.lines().count() as u64
    };
    let counts = &manifest(&dir.path().join("out"))["counts"];
    assert_eq!(lines("all"), 120);
    assert_eq!(counts["validation_games"], lines("validation"));
    assert_eq!(counts["train_games"], lines("train"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    data(dir.path(), ["random", "--games", "50", "--out", "out"]).expect_done();
    let mut child = command(["--progress", "none", "data", "export", "out", "--out", "-"])
        .current_dir(dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("{\"example_id\": \"cwm_random_00000\""));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_one_clear_line() {
    let dir = tempfile::tempdir().unwrap();
    data(dir.path(), ["random", "--games", "5", "--out", "out"]).expect_done();
    let said = data(dir.path(), ["export", "out", "--out", "/dev/full"]).expect_code(3);
    assert!(said.stderr.contains("/dev/full"), "{}", said.stderr);
    assert!(said.stderr.to_lowercase().contains("no space"), "{}", said.stderr);
    assert!(fs::metadata("/dev/full").unwrap().len() == 0, "the device is still one");
    let file = dir.path().join("kept.jsonl");
    fs::write(&file, "old").unwrap();
    data(dir.path(), ["export", "out", "--out", "kept.jsonl"]).expect_code(2);
    assert_eq!(fs::read(&file).unwrap(), b"old");
}
