//! Checkpoints of the reference graded from end to end equal the reference's own evaluation.

use std::fs;

use cwm_core::report::{EvalReport, TrackerKind, tsv::SUMMARY_COLUMNS};
use cwm_tests::cwm::{cwm, fixture};
use serde_json::Value;

#[test]
fn a_transformer_gets_the_references_scores() {
    check("transformer", "transformer_d16");
}

#[test]
fn a_slice_gets_the_references_scores() {
    check("slice", "slice_d16");
}

fn check(family: &str, name: &str) {
    let folder = fixture(&format!("evaluation/{name}"));
    let golden: Value =
        serde_json::from_slice(&fs::read(folder.join("eval_golden.json")).unwrap()).unwrap();
    let golden = &golden["datasets"]["random_t100"];
    let expected = |name: &str| golden[name].as_f64().unwrap_or_else(|| panic!("no {name}"));

    let args = ["evaluate", folder.to_str().unwrap(), "--random", "100", "--format", "json"];
    let said = cwm(args).expect_done();
    let report = EvalReport::from_json(&said.stdout).unwrap();
    let TrackerKind::Model(model) = &report.trackers[0].kind else { panic!("a model") };
    assert_eq!((model.family.as_str(), model.size.as_str()), (family, "d16/l1"));
    assert_eq!(report.trackers[0].name, name);

    let found = &report.evaluations[0];
    // The golden hash of these games.
    assert_eq!(
        found.moves_sha256,
        "4751358b4108db0abaf4306df2169d0f9bd9a296cca9b88ec3068e62831b934f"
    );
    let loss = found.loss.unwrap().mean.unwrap();
    assert!((loss - expected("val/loss")).abs() < 5e-6, "{loss}");
    let close = |found: Option<f64>, name: &str| {
        let (found, expected) = (found.unwrap(), expected(name));
        assert!((found - expected).abs() < 1e-5, "{name}: {found}, expected {expected}");
    };
    close(found.exact_state_accuracy.value(), "val/overall/full_exact");
    close(found.labelwise_accuracy.value(), "val/overall/partial_exact");
    close(found.trajectory_exactness.value(), "val/game_exact");
    assert_eq!(found.prefix_bins.len(), 31);
    for bin in &found.prefix_bins {
        let name = format!("val/bin{:03}-{:03}", bin.from_step, bin.to_step);
        let steps = bin.exact_state_accuracy.denominator as f64;
        assert_eq!(steps, expected(&format!("{name}/n")));
        close(bin.exact_state_accuracy.value(), &format!("{name}/full_exact"));
        // One near tie that falls the other way moves a bin of n steps by 1 / (75 n).
        let labelwise = bin.labelwise_accuracy.value().unwrap();
        let reference = expected(&format!("{name}/partial_exact"));
        let tolerance = 1e-5 + 2.0 / (75.0 * steps);
        assert!((labelwise - reference).abs() < tolerance, "{name}: {labelwise}, {reference}");
    }
}

#[test]
fn a_checkpoint_and_baselines_stand_in_one_table() {
    let file = fixture("evaluation/transformer_d16/model.safetensors");
    let file = file.to_str().unwrap();
    let args = ["evaluate", file, "oracle", "--human-sample", "--limit", "4"];
    let text = cwm(args).expect_done().stdout;
    assert!(text.contains("transformer_d16") && text.contains("oracle"), "{text}");
    let tsv = cwm(args.iter().copied().chain(["--format", "tsv"])).expect_done().stdout;
    let model: Vec<&str> = tsv.lines().nth(1).unwrap().split('\t').collect();
    let cell = |name: &str| model[SUMMARY_COLUMNS.iter().position(|c| *c == name).unwrap()];
    assert_eq!((cell("arch"), cell("d_model"), cell("n_layers")), ("transformer", "16", "1"));
    assert_eq!(cell("checkpoint"), file);
    assert!(cell("loss").parse::<f64>().is_ok());
    // The oracle passes, but thresholds judge checkpoints where there are some.
    cwm(args.iter().copied().chain(["--min-exact", "50"])).expect_code(1);

    let out = tempfile::tempdir().unwrap();
    let dir = out.path().to_str().unwrap();
    cwm(args.iter().copied().chain(["--out", dir])).expect_done();
    let map = out.path().join("classics-error-map-transformer-d16.svg");
    let map = fs::read_to_string(map).unwrap();
    assert!(map.contains("<title>Wrong squares: transformer_d16 on classics</title>"));

    let said = cwm(["predict", file, "--uci", "e2e4 e7e5"]).expect_done();
    assert!(said.stdout.contains("of 3 states exact, first mistake at ply"), "{}", said.stdout);
}

#[test]
fn damaged_checkpoints_and_missing_devices_have_their_own_exit_codes() {
    let dir = tempfile::tempdir().unwrap();
    let folder = fixture("evaluation/transformer_d16");
    let bytes = fs::read(folder.join("model.safetensors")).unwrap();
    fs::copy(folder.join("config.json"), dir.path().join("config.json")).unwrap();
    let weights = dir.path().join("model.safetensors");
    fs::write(&weights, &bytes[..bytes.len() / 2]).unwrap();
    let path = dir.path().to_str().unwrap();
    let said = cwm(["evaluate", path, "--random", "1"]).expect_code(3);
    assert!(said.stderr.contains("model.safetensors`"), "{}", said.stderr);
    assert_eq!(said.stdout, "");
    let said = cwm(["evaluate", path, "--random", "1", "--device", "tpu"]).expect_code(2);
    assert!(said.stderr.contains("unknown device `tpu`"), "{}", said.stderr);
}

/// A network whose numbers overflow is graded as wrong, not refused, and says so.
#[test]
fn non_finite_logits_are_graded_as_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let folder = fixture("evaluation/transformer_d16");
    fs::copy(folder.join("config.json"), dir.path().join("config.json")).unwrap();
    let mut bytes = fs::read(folder.join("model.safetensors")).unwrap();
    let header_bytes = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + header_bytes]).unwrap();
    // The head's largest finite weights: every sum of products overflows.
    let offsets = &header["output_head.weight"]["data_offsets"];
    let range = |i: usize| 8 + header_bytes + offsets[i].as_u64().unwrap() as usize;
    for weight in bytes[range(0)..range(1)].chunks_exact_mut(4) {
        weight.copy_from_slice(&f32::MAX.to_le_bytes());
    }
    fs::write(dir.path().join("model.safetensors"), bytes).unwrap();
    let args = ["evaluate", dir.path().to_str().unwrap(), "--human-sample", "--limit", "2"];
    let text = cwm(args).expect_done().stdout;
    assert!(text.contains("non-finite logits at"), "{text}");
    let json = cwm(args.iter().copied().chain(["--format", "json"])).expect_done().stdout;
    let report = EvalReport::from_json(&json).unwrap();
    assert!(report.evaluations[0].non_finite_steps > 0);
    assert_eq!(report.evaluations[0].loss.and_then(|loss| loss.mean), None);
}
