//! Shards and their manifest: what is written is read, and nothing that was changed is believed.

use std::fs;

use cwm::data::{Dataset, DatasetWriter, Replay, Row, Target, manifest::Origin};
use cwm_core::{
    chess::{EnPassant, MoveToken},
    data::{Game, GameResult, SkipCounts, Spec, Split, ids::KeyKind},
};
use proptest::prelude::*;

use super::data;

fn origin() -> Origin {
    Origin {
        command: "prepare".into(),
        inputs: Vec::new(),
        settings: Default::default(),
        id_key: KeyKind::None,
    }
}

fn write(dir: &std::path::Path, rows: &[Row], shard_games: u64, quirks: bool) {
    let target = Target::new(dir, false).unwrap();
    let spec = Spec::new(EnPassant::Always);
    let mut writer = DatasetWriter::new(target, spec, quirks, shard_games).unwrap();
    for row in rows {
        let Game { id, moves, result } = &row.game;
        writer.push(id, moves, *result, row.replay.as_ref()).unwrap();
    }
    writer.finish(origin(), SkipCounts::default()).unwrap();
}

fn tokens() -> impl Strategy<Value = Vec<MoveToken>> {
    proptest::collection::vec(0..MoveToken::GEOMETRIES as u32, 0..60)
        .prop_map(|ids| ids.into_iter().map(|id| MoveToken::new(id).unwrap()).collect())
}

fn row() -> impl Strategy<Value = Row> {
    let result = proptest::sample::select(GameResult::ALL.to_vec());
    let replay = proptest::option::weighted(
        0.3,
        ("[a-z0-9]{1,12}", proptest::option::of("\\PC{0,30}"))
            .prop_map(|(rules, start_fen)| Replay { rules, start_fen }),
    );
    ("\\PC{1,20}", tokens(), result, replay)
        .prop_map(|(id, moves, result, replay)| Row { game: Game { id, moves, result }, replay })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn rows_are_read_as_written(
        rows in proptest::collection::vec(row(), 1..80), shard_games in 1_u64..40, quirks in any::<bool>(),
    ) {
        let rows: Vec<Row> = rows
            .into_iter()
            .map(|row| if quirks { row } else { Row { replay: None, ..row } })
            .collect();
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        write(&out, &rows, shard_games, quirks);
        let dataset = Dataset::open(&out).unwrap();
        let found: Vec<Row> = dataset.rows(Split::All).map(Result::unwrap).collect();
        prop_assert_eq!(&found, &rows);
        let parts = [Split::Train, Split::Validation].map(|split| {
            let part: Vec<Row> = dataset.rows(split).map(Result::unwrap).collect();
            assert!(part.iter().all(|row| split.contains(&row.game.id)));
            part.len() as u64
        });
        let counts = &dataset.manifest().counts;
        prop_assert_eq!(parts, [counts.train_games, counts.validation_games]);
        prop_assert_eq!(dataset.manifest().shards.len() as u64, (rows.len() as u64).div_ceil(shard_games));
        if rows.iter().all(|row| row.replay.is_none()) {
            let games = dataset.load(Split::All).unwrap();
            prop_assert_eq!(games.total_plies(), counts.plies);
            for (index, row) in rows.iter().enumerate() {
                prop_assert_eq!(games.id(index), row.game.id.as_str());
                prop_assert_eq!(games.moves(index), row.game.moves.as_slice());
                prop_assert_eq!(games.result(index), row.game.result);
            }
        }
    }
}

#[test]
fn datasets_are_small() {
    // 18,600 bytes a human game in the reference's lines; 2 % of that is the limit. Random games are four times longer
    // and hardly compressible.
    let dir = tempfile::tempdir().unwrap();
    data(dir.path(), ["random", "--games", "300", "--out", "out"]).expect_done();
    let dataset = Dataset::open(dir.path().join("out")).unwrap();
    let plies = dataset.manifest().counts.plies;
    let bytes = dataset.manifest().shards[0].bytes;
    assert!(bytes < 2 * plies, "{bytes} bytes for {plies} plies");
    let mut jsonl = Vec::new();
    let quiet = cwm::progress::Progress::new(cwm::progress::ProgressMode::None);
    cwm::data::export::jsonl(&dataset, Split::All, &mut jsonl, &quiet).unwrap();
    assert!(bytes * 50 < jsonl.len() as u64, "{bytes} bytes, as lines {}", jsonl.len());
}

#[test]
fn a_dataset_replaces_only_a_dataset_and_only_when_told() {
    let dir = tempfile::tempdir().unwrap();
    let random = |seed: &str, force: &[&str]| {
        let args = [
            "--progress",
            "none",
            "data",
            "random",
            "--games",
            "3",
            "--out",
            "out",
            "--seed",
            seed,
        ];
        cwm_tests::cwm::cwm_in(dir.path(), args.iter().chain(force))
    };
    random("1", &[]).expect_done();
    let first = fs::read(dir.path().join("out/dataset.json")).unwrap();
    let said = random("2", &[]).expect_code(2);
    assert!(said.stderr.contains("--force"), "{}", said.stderr);
    assert_eq!(fs::read(dir.path().join("out/dataset.json")).unwrap(), first);
    random("2", &["--force"]).expect_done();
    assert_ne!(fs::read(dir.path().join("out/dataset.json")).unwrap(), first);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no scratch is left");

    fs::remove_file(dir.path().join("out/dataset.json")).unwrap();
    fs::write(dir.path().join("out/thesis.tex"), "precious").unwrap();
    random("3", &["--force"]).expect_code(2);
    assert!(dir.path().join("out/thesis.tex").exists());
}

#[test]
fn info_describes_and_checks() {
    let dir = tempfile::tempdir().unwrap();
    data(dir.path(), ["random", "--games", "40", "--seed", "3", "--out", "out"]).expect_done();
    let said = data(dir.path(), ["info", "out", "--verify"]).expect_done();
    for part in [
        "games        40 (train",
        "every game legal",
        "20480  in the vocabulary",
        "1968  in legal games",
        "plies  ",
    ] {
        assert!(said.stdout.contains(part), "{part:?} in\n{}", said.stdout);
    }
    let said = data(dir.path(), ["info", "out", "--format", "json"]).expect_done();
    let document: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(document["manifest"]["counts"]["games"], 40);
    let plies = document["survey"]["plies"].as_object().unwrap();
    assert_eq!(plies.values().map(|n| n.as_u64().unwrap()).sum::<u64>(), 40);
}
