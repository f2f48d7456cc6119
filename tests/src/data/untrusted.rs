//! Datasets that somebody damaged or made up: clear errors with exit code 3, no panic.

use std::{fs, path::Path, sync::Arc};

use arrow_array::{
    ArrayRef, Int64Array, RecordBatch, StringArray, UInt16Array,
    builder::{ListBuilder, UInt16Builder},
};
use arrow_schema::{DataType, Field, Schema};
use cwm::data::Dataset;
use cwm_core::data::Split;
use parquet::arrow::ArrowWriter;
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::data;

fn sound(dir: &Path) {
    data(dir, ["random", "--games", "6", "--out", "out"]).expect_done();
}

/// Makes the manifest vouch for what lies in the first shard now.
fn vouch(dir: &Path, rows: Option<(u64, u64)>) {
    let path = dir.join("out/dataset.json");
    let mut manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let bytes = fs::read(dir.join("out/shard-00000.parquet")).unwrap();
    let digest: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    let shard = &mut manifest["shards"][0];
    shard["bytes"] = bytes.len().into();
    shard["sha256"] = digest.into();
    if let Some((games, plies)) = rows {
        shard["games"] = games.into();
        shard["plies"] = plies.into();
        manifest["counts"]["games"] = games.into();
        manifest["counts"]["plies"] = plies.into();
    }
    fs::write(path, manifest.to_string()).unwrap();
}

/// The message of the first error in reading everything.
fn error_of(dir: &Path) -> String {
    let dataset = match Dataset::open(dir.join("out")) {
        Ok(dataset) => dataset,
        Err(e) => return format!("{e:#}"),
    };
    let by_load = dataset.load(Split::All).map(|_| ()).expect_err("accepted by load");
    let by_rows = dataset.rows(Split::All).find_map(Result::err).expect("accepted by rows");
    assert_eq!(format!("{by_load:#}"), format!("{by_rows:#}"));
    assert_eq!(cwm::exit::exit_of(&by_load), cwm::exit::Exit::BadData);
    format!("{by_load:#}")
}

type Change = fn(&Path);

#[derive(Clone)]
struct Columns {
    id: ArrayRef,
    moves: ArrayRef,
    result: ArrayRef,
    plies: ArrayRef,
}

impl Columns {
    fn sound() -> Self {
        Columns {
            id: Arc::new(StringArray::from(vec!["a", "b"])),
            moves: moves([Some(vec![Some(3980), Some(16820)]), Some(vec![])]),
            result: Arc::new(StringArray::from(vec!["1-0", "*"])),
            plies: Arc::new(UInt16Array::from(vec![2, 0])),
        }
    }

    /// Puts the columns into a dataset that is sound but for them, and reads it.
    fn error(&self) -> String {
        let dir = tempfile::tempdir().unwrap();
        self.put(dir.path());
        error_of(dir.path())
    }

    fn put(&self, dir: &Path) {
        sound(dir);
        let columns = [
            ("id", &self.id),
            ("moves", &self.moves),
            ("result", &self.result),
            ("plies", &self.plies),
        ];
        let fields: Vec<Field> = columns
            .iter()
            .map(|(name, c)| Field::new(*name, c.data_type().clone(), true))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let batch =
            RecordBatch::try_new(schema.clone(), columns.map(|(_, c)| c.clone()).to_vec()).unwrap();
        let file = fs::File::create(dir.join("out/shard-00000.parquet")).unwrap();
        let mut writer = ArrowWriter::try_new(file, schema, None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        vouch(dir, Some((2, 2)));
    }
}

fn moves(lists: [Option<Vec<Option<u16>>>; 2]) -> ArrayRef {
    let mut builder = ListBuilder::new(UInt16Builder::new()).with_field(Field::new(
        "item",
        DataType::UInt16,
        true,
    ));
    builder.extend(lists);
    Arc::new(builder.finish())
}

#[test]
fn made_up_rows_are_refused_with_the_reason() {
    let sound = Columns::sound();
    let dir = tempfile::tempdir().unwrap();
    sound.put(dir.path());
    let games = Dataset::open(dir.path().join("out")).unwrap().load(Split::All).unwrap();
    assert_eq!((games.len(), games.moves(0).len()), (2, 2), "the test's own shard is sound");

    let strings = |values: Vec<Option<&str>>| -> ArrayRef { Arc::new(StringArray::from(values)) };
    let moved = |list: Vec<Option<u16>>| moves([Some(list), Some(vec![])]);
    for (columns, says) in [
        (
            Columns { moves: moved(vec![Some(20_482), Some(1)]), ..sound.clone() },
            "outside the vocabulary",
        ),
        (
            Columns { moves: moved(vec![Some(20_480), Some(1)]), ..sound.clone() },
            "<START> at ply 1",
        ),
        (Columns { moves: moved(vec![Some(1), Some(20_481)]), ..sound.clone() }, "<PAD> at ply 2"),
        (
            Columns { moves: moved(vec![Some(1)]), ..sound.clone() },
            "has 1 moves, but `plies` says 2",
        ),
        (Columns { moves: moved(vec![None, Some(1)]), ..sound.clone() }, "`moves` holds 1 nulls"),
        (
            Columns { moves: moves([Some(vec![Some(1), Some(2)]), None]), ..sound.clone() },
            "`moves` holds 1 nulls",
        ),
        (Columns { id: strings(vec![Some("a"), None]), ..sound.clone() }, "`id` holds 1 nulls"),
        (
            Columns { result: strings(vec![Some("1-0"), Some("2-0")]), ..sound.clone() },
            "result `2-0`",
        ),
        (
            Columns { plies: Arc::new(Int64Array::from(vec![2, 0])), ..sound.clone() },
            "`plies` is of type Int64",
        ),
        (
            Columns { moves: Arc::new(UInt16Array::from(vec![1, 2])), ..sound.clone() },
            "`moves` is of type UInt16",
        ),
    ] {
        let error = columns.error();
        assert!(error.contains(says), "expected {says:?} in {error:?}");
    }
}

#[test]
fn changed_files_are_found_out() {
    let changes: [(&str, Change, &str); 8] = [
        (
            "cut off",
            |dir| {
                let path = dir.join("out/shard-00000.parquet");
                let bytes = fs::read(&path).unwrap();
                fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
            },
            "but the manifest says",
        ),
        (
            "one bit",
            |dir| {
                let path = dir.join("out/shard-00000.parquet");
                let mut bytes = fs::read(&path).unwrap();
                bytes[200] ^= 1;
                fs::write(path, bytes).unwrap();
            },
            "SHA-256",
        ),
        (
            "absent",
            |dir| fs::remove_file(dir.join("out/shard-00000.parquet")).unwrap(),
            "is missing",
        ),
        (
            "no Parquet",
            |dir| {
                fs::write(dir.join("out/shard-00000.parquet"), "hello").unwrap();
                vouch(dir, None);
            },
            "no readable Parquet",
        ),
        ("fewer rows", |dir| vouch(dir, Some((7, 2000))), "holds 6 rows, but the manifest says 7"),
        (
            "another directory",
            |dir| {
                let path = dir.join("out/dataset.json");
                let text =
                    fs::read_to_string(&path).unwrap().replace("shard-00000", "../shard-00000");
                fs::write(path, text).unwrap();
            },
            "no plain file name",
        ),
        (
            "no shards",
            |dir| {
                let path = dir.join("out/dataset.json");
                let mut manifest: serde_json::Value =
                    serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
                manifest["shards"] = serde_json::json!([]);
                fs::write(path, manifest.to_string()).unwrap();
            },
            "has no shards",
        ),
        (
            "another spec",
            |dir| {
                let path = dir.join("out/dataset.json");
                let text = fs::read_to_string(&path).unwrap().replace("20482", "4674");
                fs::write(path, text).unwrap();
            },
            "move_vocab is 4674",
        ),
    ];
    for (name, change, says) in changes {
        let dir = tempfile::tempdir().unwrap();
        sound(dir.path());
        change(dir.path());
        let error = error_of(dir.path());
        assert!(error.contains(says), "{name}: expected {says:?} in {error:?}");
        let said = data(dir.path(), ["info", "out"]).expect_code(3);
        assert_eq!(said.stdout, "", "{name}");
        let said = data(dir.path(), ["export", "out", "--out", "out.jsonl"]).expect_code(3);
        assert!(said.stderr.starts_with("error: "), "{name}: {}", said.stderr);
        assert!(!dir.path().join("out.jsonl").exists(), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Behind a checksum that agrees, any byte may be anything.
    #[test]
    fn shards_of_any_bytes_do_no_harm(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        footer in any::<bool>(),
    ) {
        static SHARD: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let sound_bytes = SHARD.get_or_init(|| {
            let dir = tempfile::tempdir().unwrap();
            sound(dir.path());
            fs::read(dir.path().join("out/shard-00000.parquet")).unwrap()
        });
        static MANIFEST: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let manifest = MANIFEST.get_or_init(|| {
            let dir = tempfile::tempdir().unwrap();
            sound(dir.path());
            fs::read(dir.path().join("out/dataset.json")).unwrap()
        });
        let mut bytes = sound_bytes.clone();
        let length = bytes.len();
        // Half of the time in the footer, where the structure is.
        let from = if footer { length - length.min(1200) } else { 0 };
        for (at, byte) in edits {
            bytes[from + at.index(length - from)] = byte;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("out")).unwrap();
        fs::write(dir.path().join("out/dataset.json"), manifest).unwrap();
        fs::write(dir.path().join("out/shard-00000.parquet"), bytes).unwrap();
        vouch(dir.path(), None);
        let dataset = Dataset::open(dir.path().join("out")).unwrap();
        let _ = dataset.load(Split::All);
        let _ = dataset.rows(Split::All).count();
    }
}
