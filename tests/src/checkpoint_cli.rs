//! `cwm inspect` and `cwm export` as they are typed.

use std::{fs, path::Path};

use cwm_models::{
    ModelConfig, NamedTensor, TransformerConfig,
    checkpoint::{Checkpoint, CurvePoint, TrainingFacts, WriteOptions, write},
};
use cwm_tests::cwm::{cwm, cwm_in};
use serde_json::Value;

/// A small checkpoint of the benchmark's vocabulary.
fn file(options: WriteOptions) -> Vec<u8> {
    let config = ModelConfig::Transformer(TransformerConfig::new(4, 1, 2));
    let shapes = config.parameter_shapes().into_iter();
    let tensors = shapes.map(|(name, shape)| {
        let data = (0..shape.iter().product::<usize>()).map(|i| (i % 100) as f32 * 0.125);
        let data = data.collect();
        (name, NamedTensor { shape, data })
    });
    let facts = TrainingFacts {
        steps: 1234,
        games_seen: Some(99_000),
        device: Some("cpu\u{1b}[2J".into()),
        curve: vec![CurvePoint { step: 1000, validation_loss: Some(0.25), ..Default::default() }],
        ..Default::default()
    };
    write(&config, &tensors.collect(), Some(&facts), options).unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> =
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn inspect_explains_a_lone_file() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.safetensors"), file(WriteOptions::SMALL)).unwrap();
    let text = cwm_in(dir.path(), ["inspect", "a.safetensors"]).expect_done().stdout;
    for line in [
        "family      transformer\n",
        "size        d4/l1 (no size of the paper's)\n",
        "dtype       f16\n",
        "embedding   pruned: rows of the reachable moves, START and PAD\n",
        "trained     1,234 steps, 99,000 games read\n",
        "device      cpu\\u{1b}[2J\n",
        "validation  loss 0.25000 at step 1,000\n",
        "tok_emb            1       81,928        7,880\n",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    let json = cwm_in(dir.path(), ["inspect", "a.safetensors", "--format", "json"]);
    let json: Value = serde_json::from_str(&json.expect_done().stdout).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(json["kind"], "checkpoint");
    assert_eq!(json["checkpoint"]["training"]["steps"], 1234);
    assert_eq!(json["checkpoint"]["config"]["d_model"], 4);
}

#[test]
fn export_changes_form_and_keeps_the_weights() {
    let dir = tempfile::tempdir().unwrap();
    let source = file(WriteOptions::EXACT);
    fs::write(dir.path().join("a.safetensors"), &source).unwrap();
    let run = |args: &str| cwm_in(dir.path(), args.split(' ')).expect_done();
    run("export a.safetensors --out small --dtype f16 --prune --name Tiny");
    assert_eq!(names(&dir.path().join("small")), ["README.md", "config.json", "model.safetensors"]);
    let weights = |name: &str| fs::read(dir.path().join(name).join("model.safetensors")).unwrap();
    assert_eq!(weights("small"), file(WriteOptions::SMALL));
    let card = fs::read_to_string(dir.path().join("small/README.md")).unwrap();
    assert!(card.contains("# Tiny\n") && card.contains("| optimiser steps | 1,234 |"), "{card}");
    // These weights are exact in f16: full f32 from the small form is full f32 from the source, but for rows that no
    // game reads.
    run("export small --out full --dtype f32 --full");
    run("export full --out back --prune");
    assert_eq!(weights("back"), source);
    let full = Checkpoint::read(&weights("full"), None).unwrap();
    assert_eq!(full.tensors["tok_emb.weight"].shape, [20_482, 4]);
    // In place, and with nothing left behind.
    run("export small --out small --force --dtype f32");
    assert_eq!(names(dir.path()), ["a.safetensors", "back", "full", "small"]);
    assert_eq!(weights("small"), source);
}

#[test]
fn export_overwrites_nothing_by_accident() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.safetensors"), file(WriteOptions::SMALL)).unwrap();
    let run = |args: &str, code| cwm_in(dir.path(), args.split(' ')).expect_code(code).stderr;
    run("export a.safetensors --out out", 0);
    assert!(run("export a.safetensors --out out", 2).contains("hint: choose another folder"));
    fs::write(dir.path().join("out/thesis.txt"), "years of work").unwrap();
    assert!(run("export a.safetensors --out out --force", 2).contains("`thesis.txt`"));
    fs::write(dir.path().join("eval.json"), "{}").unwrap();
    let error = run("export a.safetensors --out new --eval eval.json", 3);
    assert!(error.contains("not an evaluation report"), "{error}");
    assert!(!dir.path().join("new").exists());
}

#[test]
fn damaged_and_foreign_files_say_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let run = |bytes: &[u8], name: &str| {
        fs::write(dir.path().join(name), bytes).unwrap();
        cwm_in(dir.path(), ["inspect", name]).expect_code(3).stderr
    };
    let good = file(WriteOptions::SMALL);
    let cut = run(&good[..good.len() - 1], "cut.safetensors");
    assert!(cut.contains("[CKPT-RANGE]") && cut.contains("hint: the file is incomplete"), "{cut}");
    let zip = run(b"PK\x03\x04", "latest.pt");
    assert!(zip.contains("[CKPT-PT-ZIP]") && zip.contains("hint: the file is incomplete"), "{zip}");
    let text = run(b"hello, this is no checkpoint", "a.txt");
    assert!(text.contains("[CKPT-HEADER-LENGTH]"), "{text}");
    let nothing = cwm(["inspect", "/nonexistent"]).expect_code(3).stderr;
    assert!(nothing.contains("hint: give a .safetensors file"), "{nothing}");
}
