//! Bad input gets one clear line, the listed exit code, and leaves nothing behind.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use cwm_tests::cwm::{Output, cwm_in, root};
use tempfile::TempDir;

/// A scratch directory whose contents are compared after the command.
struct Scratch {
    dir: TempDir,
}

impl Scratch {
    fn new() -> Self {
        Scratch { dir: tempfile::tempdir().expect("a scratch directory") }
    }

    fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().expect("inside the scratch directory")).expect("a folder");
        fs::write(path, content).expect("a scratch file");
        self
    }

    fn files(&self) -> Vec<PathBuf> {
        fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(dir).expect("a directory") {
                let path = entry.expect("an entry").path();
                found.push(path.clone());
                if path.is_dir() {
                    walk(&path, found);
                }
            }
        }
        let mut found = Vec::new();
        walk(self.dir.path(), &mut found);
        found.sort();
        found
    }

    /// Runs `cwm` here and checks that it refuses as it should: `code`, one error line that says `says`, nothing on
    /// stdout, no file more or less than before.
    #[track_caller]
    fn refuses(&self, args: &[&str], code: i32, says: &str) {
        let before = self.files();
        let args: Vec<&str> = args.iter().copied().chain(["--progress", "none"]).collect();
        let said = cwm_in(self.dir.path(), &args);
        let shown = format!("cwm {}\n{}{}", args.join(" "), said.stdout, said.stderr);
        assert_eq!(said.code, code, "{shown}");
        assert_eq!(said.stdout, "", "{shown}");
        assert!(said.stderr.contains(says), "expected {says:?} from {shown}");
        let errors = said.stderr.lines().filter(|line| line.starts_with("error: ")).count();
        let hints = said.stderr.lines().filter(|line| line.starts_with("hint: ")).count();
        assert!(errors == 1 && hints <= 1, "{shown}");
        assert_eq!(said.stderr.lines().count(), errors + hints, "more than that: {shown}");
        assert!(!said.stderr.contains("panicked"), "{shown}");
        assert_eq!(self.files(), before, "left behind by {shown}");
    }

    fn runs(&self, args: &[&str]) -> Output {
        cwm_in(self.dir.path(), args).expect_done()
    }
}

fn classics() -> String {
    let path = root().join("models/splits/classics/classics.pgn");
    fs::read_to_string(path).expect("the classics")
}

fn zstd(text: &str) -> Vec<u8> {
    zstd::encode_all(text.as_bytes(), 3).expect("compression in memory")
}

#[test]
fn inputs_that_hold_no_games() {
    let noise: Vec<u8> =
        (0..100_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let scratch = Scratch::new()
        .with("empty.pgn", "")
        .with("blank.pgn", "\n\n \n")
        .with("noise.pgn", &noise)
        .with("zeros.pgn", vec![0; 100_000])
        .with("prose.pgn", "Dear reader, this file holds no chess at all.\n")
        .with("folder/notes.txt", "nothing to see");
    for input in ["empty.pgn", "blank.pgn", "noise.pgn", "zeros.pgn", "prose.pgn", "folder"] {
        scratch.refuses(&["data", "prepare", input, "--out", "out"], 3, input);
    }
    scratch.refuses(&["data", "prepare", "missing.pgn", "--out", "out"], 3, "missing.pgn");
}

#[test]
fn compressed_inputs_that_break_off() {
    let whole = zstd(&classics().repeat(20));
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x55;
    flipped[middle + 1] ^= 0x55;
    let mut gz = stored_gzip(&classics());
    gz.truncate(gz.len() / 2);
    let scratch = Scratch::new()
        .with("cut.pgn.zst", &whole[..whole.len() / 2])
        .with("flipped.pgn.zst", flipped)
        .with("cut.pgn.gz", gz);
    for input in ["cut.pgn.zst", "flipped.pgn.zst", "cut.pgn.gz"] {
        scratch.refuses(&["data", "prepare", input, "--out", "out"], 3, input);
    }
}

/// A gzip file of stored (uncompressed) blocks, without a library for it here.
fn stored_gzip(text: &str) -> Vec<u8> {
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    for chunk in text.as_bytes().chunks(60_000) {
        let length = chunk.len() as u16;
        bytes.push(0);
        bytes.extend(length.to_le_bytes());
        bytes.extend((!length).to_le_bytes());
        bytes.write_all(chunk).expect("in memory");
    }
    bytes
}

#[test]
fn an_existing_target_is_not_overwritten() {
    let scratch = Scratch::new().with("games.pgn", classics()).with("out/precious.txt", "mine");
    scratch.refuses(&["data", "prepare", "games.pgn", "--out", "out"], 2, "out");
    scratch.refuses(&["data", "random", "--games", "1", "--out", "out"], 2, "out");
}

#[test]
fn directories_that_are_no_datasets() {
    let scratch = Scratch::new().with("folder/notes.txt", "nothing").with("file", "x");
    for place in ["folder", "file", "missing"] {
        let data = format!("x={place}");
        scratch.refuses(&["evaluate", "naive-mover", "--data", &data], 3, place);
    }
}

#[test]
fn damaged_datasets() {
    let scratch = Scratch::new().with("games.pgn", classics());
    scratch.runs(&["data", "prepare", "games.pgn", "--out", "good"]);
    let manifest_path = scratch.dir.path().join("good/dataset.json");
    let manifest = fs::read_to_string(&manifest_path).expect("the manifest");
    let evaluate = ["evaluate", "naive-mover", "--data", "x=good"];

    fs::write(&manifest_path, manifest.replace("20482", "4674")).expect("a changed manifest");
    scratch.refuses(&evaluate, 3, "4674");
    fs::write(&manifest_path, &manifest[..manifest.len() / 2]).expect("half a manifest");
    scratch.refuses(&evaluate, 3, "dataset.json");
    fs::write(&manifest_path, &manifest).expect("the manifest as it was");

    let shard = fs::read_dir(scratch.dir.path().join("good"))
        .expect("the dataset")
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.extension().is_some_and(|extension| extension == "parquet"))
        .expect("a shard");
    let bytes = fs::read(&shard).expect("the shard");
    fs::write(&shard, &bytes[..bytes.len() / 2]).expect("half a shard");
    scratch.refuses(&evaluate, 3, "parquet");
    fs::remove_file(&shard).expect("the shard goes");
    scratch.refuses(&evaluate, 3, "parquet");
}

#[test]
fn moves_that_are_none() {
    let scratch = Scratch::new();
    scratch.refuses(&["predict", "naive-mover", "--uci", "e2e4 e7e5 e1e3"], 3, "ply 3");
    scratch.refuses(&["predict", "naive-mover", "--san", "e4 e5 Ke3"], 3, "Ke3");
    scratch.refuses(&["predict", "naive-mover", "--pgn", "missing.pgn"], 3, "missing.pgn");
}

#[test]
fn a_limit_keeps_the_first_games_whatever_the_threads() {
    let scratch = Scratch::new().with("games.pgn", classics());
    for (out, threads) in [("one", "1"), ("three", "3")] {
        scratch.runs(&[
            "data",
            "prepare",
            "games.pgn",
            "--max-games",
            "7",
            "--threads",
            threads,
            "--out",
            out,
        ]);
    }
    let read = |name: &str| fs::read_to_string(scratch.dir.path().join(name)).expect("a manifest");
    assert_eq!(read("one/dataset.json"), read("three/dataset.json"));
    let manifest: serde_json::Value =
        serde_json::from_str(&read("one/dataset.json")).expect("JSON");
    assert_eq!(manifest["counts"]["games"], 7);
    assert_eq!(manifest["origin"]["settings"]["max-games"], 7);
}
#[test]
fn models_that_are_none() {
    let scratch = Scratch::new()
        .with("model.safetensors", "no tensors here")
        .with("weights.pt", "PK\x03\x04")
        .with("folder/notes.txt", "nothing");
    for path in ["model.safetensors", "weights.pt", "folder"] {
        scratch.refuses(&["evaluate", path, "--random", "2"], 3, path);
    }
}
