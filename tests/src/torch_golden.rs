//! The reference's own `latest.pt`: graded as it is and imported, it gets the reference's scores and predictions.

use std::{
    fs,
    path::{Path, PathBuf},
};

use cwm_core::{
    chess::{
        MoveToken, State, Trajectory,
        label::{LABELS, label_name},
    },
    report::EvalReport,
    trace::Trace,
    tracker::Prediction,
};
use cwm_tests::cwm::{cwm, cwm_in, fixture};
use safetensors::SafeTensors;
use serde_json::Value;

/// Unpacks a checkpoint of the reference into `dir/NAME/latest.pt`, as its training leaves it.
fn unpack(name: &str, dir: &Path) -> PathBuf {
    let packed = fs::read(fixture(&format!("torch_checkpoint/{name}/latest.pt.zst"))).unwrap();
    let folder = dir.join(name);
    fs::create_dir(&folder).unwrap();
    let file = folder.join("latest.pt");
    fs::write(&file, zstd::decode_all(&packed[..]).unwrap()).unwrap();
    file
}

fn golden(path: &str) -> Value {
    serde_json::from_slice(&fs::read(fixture(path)).unwrap()).unwrap()
}

/// Compares a grading of the first 100 random games with the reference's evaluation of them.
fn check_scores(report: &EvalReport, golden: &Value) {
    let scores = &golden["datasets"]["random_t100"];
    let expected = |name: &str| scores[name].as_f64().unwrap_or_else(|| panic!("no {name}"));
    let found = &report.evaluations[0];
    let loss = found.loss.unwrap().mean.unwrap();
    assert!((loss - expected("val/loss")).abs() < 5e-6, "{loss}");
    let close = |found: f64, name: &str, tolerance: f64| {
        let expected = expected(name);
        assert!((found - expected).abs() < tolerance, "{name}: {found}, expected {expected}");
    };
    close(found.exact_state_accuracy.value().unwrap(), "val/overall/full_exact", 1e-9);
    close(found.labelwise_accuracy.value().unwrap(), "val/overall/partial_exact", 1e-6);
    close(found.trajectory_exactness.value().unwrap(), "val/game_exact", 1e-9);
    let bins = scores
        .as_object()
        .unwrap()
        .keys()
        .filter(|key| key.ends_with("/n") && key.contains("/bin"));
    assert_eq!(found.prefix_bins.len(), bins.count());
    for bin in &found.prefix_bins {
        let name = format!("val/bin{:03}-{:03}", bin.from_step, bin.to_step);
        let steps = bin.exact_state_accuracy.denominator as f64;
        assert_eq!(steps, expected(&format!("{name}/n")));
        close(bin.exact_state_accuracy.value().unwrap(), &format!("{name}/full_exact"), 1e-9);
        // One near tie that falls the other way moves a bin of n steps by 1 / (75 n).
        let tolerance = 1e-6 + 1.01 / (75.0 * steps);
        close(bin.labelwise_accuracy.value().unwrap(), &format!("{name}/partial_exact"), tolerance);
    }
}

/// Compares what `cwm predict` says of the first two games with the reference's predictions, label by label.
fn check_predictions(file: &Path, predictions: &str, golden: &Value) {
    let bytes = fs::read(fixture(predictions)).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    for game in 0..2 {
        let get = |name: &str| tensors.tensor(&format!("game{game}_{name}")).unwrap();
        let tokens = get("moves")
            .data()
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| MoveToken::new(u32::from_le_bytes(*b)).unwrap());
        let moves: Vec<MoveToken> = tokens.skip(1).collect();
        let truth = Trajectory::replay(&moves);
        let uci = moves.iter().map(MoveToken::to_string).collect::<Vec<_>>().join(" ");
        let args = ["predict", file.to_str().unwrap(), "--uci", &uci, "--format", "json"];
        let said = cwm(args).expect_done();
        assert!(said.stderr.contains("imported from a PyTorch checkpoint"), "{}", said.stderr);
        let trace: Trace = serde_json::from_str(&said.stdout).unwrap();
        let ties = golden["first_two_games"][game]["near_ties_step_label_gap_lt_1e4"].as_array();
        let ties: Vec<(u64, usize)> = ties
            .unwrap()
            .iter()
            .map(|tie| (tie[0].as_u64().unwrap(), tie[1].as_u64().unwrap() as usize))
            .collect();
        let pred = get("pred");
        let states =
            pred.data().as_chunks::<LABELS>().0.iter().map(|labels| State::new(*labels).unwrap());
        let prediction =
            Prediction { states: states.collect(), loss_sum: None, non_finite_steps: Vec::new() };
        let expected = Trace::new("", "reference", &truth, &prediction);
        assert_eq!(trace.steps.len(), expected.steps.len());
        for (found, expected) in trace.steps.iter().zip(&expected.steps) {
            let wrong = found.wrong.iter().filter(|wrong| !expected.wrong.contains(wrong));
            let missed = expected.wrong.iter().filter(|wrong| !found.wrong.contains(wrong));
            for differing in wrong.chain(missed) {
                let tie = ties.iter().any(|&(step, label)| {
                    (step, label_name(label).to_string())
                        == (u64::from(found.ply), differing.label.clone())
                });
                assert!(tie, "game {game}, ply {}: {differing:?}", found.ply);
            }
        }
    }
}

fn check(name: &str, predictions: &str, golden: &Value, family: &str) {
    let dir = tempfile::tempdir().unwrap();
    let file = unpack(name, dir.path());
    let path = file.to_str().unwrap();
    let said = cwm(["evaluate", path, "--random", "100", "--format", "json"]).expect_done();
    assert!(said.stderr.contains("imported from a PyTorch checkpoint"), "{}", said.stderr);
    let report = EvalReport::from_json(&said.stdout).unwrap();
    assert_eq!(report.trackers[0].name, name);
    check_scores(&report, golden);
    check_predictions(&file, predictions, golden);

    // Imported, it is the same network: the same grades, but for the hash of the file and where it lies.
    let run = |args: &str| cwm_in(dir.path(), args.split(' ')).expect_done();
    let said = run(&format!("import {name}/latest.pt --out ours --prune"));
    assert!(said.stderr.contains(&format!("imported {family} d16/l1")), "{}", said.stderr);
    let again = run("evaluate ours --random 100 --format json").stdout;
    let mut again = EvalReport::from_json(&again).unwrap().evaluations.swap_remove(0);
    again.tracker = name.into();
    assert_eq!(again, report.evaluations[0]);

    // There and back: the tensors that the reference's load_state_dict asks for, to the last bit.
    run("export ours --out pruned --format torch-names");
    run(&format!("export {name}/latest.pt --out whole --format torch-names"));
    let read = |folder: &str| fs::read(dir.path().join(folder).join("model.safetensors")).unwrap();
    let (pruned, whole) = (read("pruned"), read("whole"));
    let (pruned, whole) =
        (SafeTensors::deserialize(&pruned).unwrap(), SafeTensors::deserialize(&whole).unwrap());
    assert_eq!(pruned.names().len(), whole.names().len());
    for (tensor, view) in whole.tensors() {
        assert_eq!(view.dtype(), safetensors::Dtype::F32);
        let other = pruned.tensor(&tensor).unwrap();
        assert_eq!(view.shape(), other.shape(), "{tensor}");
        // Rows that no game reads are all that may differ.
        assert!(view.shape()[0] == MoveToken::VOCAB || view.data() == other.data(), "{tensor}");
    }
}

#[test]
fn a_transformer_gets_the_references_scores() {
    let golden = golden("evaluation/transformer_d16/eval_golden.json");
    check("transformer_d16", "metrics/predictions_first2.safetensors", &golden, "transformer");
}

#[test]
fn a_slice_gets_the_references_scores() {
    let golden = golden("torch_checkpoint/slice_d16/eval_golden.json");
    check(
        "slice_d16",
        "torch_checkpoint/slice_d16/predictions_first2.safetensors",
        &golden,
        "slice",
    );
}

#[test]
fn an_imported_checkpoint_says_where_it_comes_from() {
    let dir = tempfile::tempdir().unwrap();
    let file = unpack("transformer_d16", dir.path());
    // The same weights as the fixture that was taken out with safetensors.
    let ours = fixture("evaluation/transformer_d16");
    let tensors = |path: &Path| cwm::checkpoint::load(path).unwrap().tensors;
    assert!(tensors(&file) == tensors(&ours));

    let run = |args: &str| cwm_in(dir.path(), args.split(' ')).expect_done().stdout;
    let text = run("inspect transformer_d16");
    for line in [
        "format      a PyTorch checkpoint of the reference; `cwm import` translates it\n",
        "trained     96 steps\n",
        "imported    from latest.pt, epoch 8, PyTorch 2.15.0+cu132, sha256 ",
        "args        arch transformer, batch_size 16, beta2 0.95, ",
        "lr_scheduler cosine",
        "data        rand123\n",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    assert!(
        !text.contains("warning") && !text.contains("wandb") && !text.contains("slice_"),
        "{text}"
    );
    run("import transformer_d16/latest.pt --out ours --dtype f16 --prune --name Imported");
    let text = run("inspect ours");
    assert!(text.contains("imported    from latest.pt, epoch 8"), "{text}");
    assert!(!text.contains("warning") && text.contains("dtype       f16\n"), "{text}");
    let json: Value = serde_json::from_str(&run("inspect ours --format json")).unwrap();
    let imported = &json["checkpoint"]["training"]["imported"];
    assert_eq!((&imported["file"], &imported["epoch"]), (&"latest.pt".into(), &8.into()));
    let card = fs::read_to_string(dir.path().join("ours/README.md")).unwrap();
    for line in [
        "# Imported\n",
        "| optimiser steps | 96 |\n",
        "| imported from | latest.pt, a PyTorch checkpoint of the reference (epoch 8, PyTorch 2.15.0+cu132), SHA-256 ",
        "| `args.weight_decay` | 0.01 |\n",
    ] {
        assert!(card.contains(line), "{line:?} is not in\n{card}");
    }
    let error = cwm_in(dir.path(), ["import", "ours", "--out", "new"]).expect_code(2).stderr;
    assert!(error.contains("nothing to import"), "{error}");
    assert!(!dir.path().join("new").exists());
    let error = cwm_in(dir.path(), ["import", "transformer_d16/latest.pt", "--out", "ours"]);
    assert!(error.expect_code(2).stderr.contains("exists already"));
    let error = cwm_in(
        dir.path(),
        ["export", "ours", "--out", "new", "--format", "torch-names", "--prune"],
    );
    assert!(error.expect_code(2).stderr.contains("f32 and all rows"));
}
