//! `--keep-reference-quirks` against what the reference made of the same file.

use std::fs;

use cwm_tests::cwm::{command, finish};

use super::{data, fixture, json, manifest};

fn prepare(dir: &std::path::Path, min_fullmoves: &str) -> cwm_tests::cwm::Output {
    let games = fixture("real_process/games.pgn");
    let args = ["--keep-reference-quirks", "--min-fullmoves", min_fullmoves, "--out", "out"];
    let mut command = command(["--progress", "none", "data", "prepare"]);
    command.arg(games).args(args).env("CHESS_WORLD_MODEL_ID_KEY", "test-key").current_dir(dir);
    finish(&mut command)
}

#[test]
fn the_references_lines_come_out_byte_for_byte() {
    for min_fullmoves in ["1", "10"] {
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path(), min_fullmoves).expect_done();
        data(dir.path(), ["export", "out", "--out", "out.jsonl"]).expect_done();
        let expected =
            fs::read(fixture(&format!("real_process/min_fullmoves_{min_fullmoves}.jsonl")))
                .unwrap();
        let found = fs::read(dir.path().join("out.jsonl")).unwrap();
        for (i, (found, expected)) in
            found.split(|&b| b == b'\n').zip(expected.split(|&b| b == b'\n')).enumerate()
        {
            assert!(found == expected, "line {} at min-fullmoves {min_fullmoves}", i + 1);
        }
        assert_eq!(found.len(), expected.len());
    }
}

#[test]
fn skipped_games_are_those_of_the_references_table() {
    let table = json("real_process/table.json");
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path(), "10").expect_done();
    let manifest = manifest(&dir.path().join("out"));
    let fates = |fate: &str| {
        table.as_array().unwrap().iter().filter(|game| game["fate_min10"] == fate).count() as u64
    };
    assert_eq!(manifest["counts"]["games"], fates("kept"));
    let skipped = &manifest["skipped"];
    assert_eq!(skipped["short"], fates("skipped_short"));
    let errors = skipped["variant"].as_u64().unwrap() + skipped["bad_fen"].as_u64().unwrap();
    assert_eq!(errors, fates("skipped_err"));
    assert_eq!(skipped.as_object().unwrap().len(), 3);
    assert_eq!(manifest["origin"]["id_key"], "private");
}

#[test]
fn an_empty_site_stops_the_run_as_it_stops_the_reference() {
    let dir = tempfile::tempdir().unwrap();
    let games = fixture("real_process/crash_empty_site.pgn");
    let games = games.to_str().unwrap();
    let args = ["prepare", games, "--min-fullmoves", "1", "--out", "out"];
    data(dir.path(), args).expect_done();
    assert_eq!(
        manifest(&dir.path().join("out"))["counts"]["games"],
        1,
        "without quirks it is kept"
    );
    let quirky =
        ["prepare", games, "--min-fullmoves", "1", "--keep-reference-quirks", "--out", "quirky"];
    let said = data(dir.path(), quirky).expect_code(3);
    assert!(said.stderr.contains("empty Site"), "{}", said.stderr);
    assert!(!dir.path().join("quirky").exists());
}

#[test]
fn games_that_moves_alone_do_not_replay_are_not_trained_on() {
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path(), "10").expect_done();
    let dataset = cwm::data::Dataset::open(dir.path().join("out")).unwrap();
    let error = dataset.load(cwm_core::data::Split::All).unwrap_err().to_string();
    assert!(error.contains("only `cwm data export` can replay"), "{error}");
    assert_eq!(dataset.rows(cwm_core::data::Split::All).filter(|row| row.is_ok()).count(), 30);
    data(dir.path(), ["info", "out", "--verify"]).expect_done();
}

#[test]
fn quirks_and_another_en_passant_label_exclude_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["prepare", "x", "--keep-reference-quirks", "--en-passant", "legal", "--out", "out"];
    data(dir.path(), args).expect_code(2);
}
