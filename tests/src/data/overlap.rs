//! `cwm data overlap`: shared games are counted by their moves, whatever the ids.

use std::path::Path;

use cwm_tests::cwm::cwm;

fn random(dir: &Path, name: &str, games: &str, seed: &str) -> String {
    let path = dir.join(name).display().to_string();
    cwm(["data", "random", "--games", games, "--seed", seed, "--out", &path]).expect_done();
    path
}

#[test]
fn shared_games_are_found_by_their_moves() {
    let dir = tempfile::tempdir().unwrap();
    let train = random(dir.path(), "train", "30", "1");
    let prefix = random(dir.path(), "prefix", "7", "1");
    let other = random(dir.path(), "other", "5", "2");

    let output = cwm(["data", "overlap", &train, &other, "--split", "all"]).expect_done();
    assert!(output.stdout.contains("(5 games) is disjoint"), "{}", output.stdout);

    let args = ["data", "overlap", &train, &prefix, &other, "--split", "all", "--format", "json"];
    let output = cwm(args).expect_code(1);
    let found: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let shared: Vec<_> = (0..2).map(|i| found[i]["shared_games"].as_u64().unwrap()).collect();
    assert_eq!(shared, [7, 0]);

    let output = cwm(["data", "overlap", &train, "/nowhere"]).expect_code(3);
    assert!(output.stderr.contains("/nowhere"), "{}", output.stderr);
}
