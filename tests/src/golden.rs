//! Models of every family, in every form, against golden data of the PyTorch reference ([`cwm_tests::reference`]).

use std::collections::BTreeMap;

use burn::tensor::Device;
use cwm_models::{
    Model,
    init::initial_parameters,
    train::{ScheduleConfig, ScheduleKind},
    vocabulary::TokenRows,
};
use cwm_tests::reference::{GOLDEN, Golden, json, max_difference, tensors};
use serde_json::Value;

/// A golden model in every form.
fn forms(golden: &Golden) -> [(&'static str, Model); 3] {
    let model = golden.model(&Device::flex());
    let portable = model.clone().into_portable();
    // No game is as long as a multiple of 9.
    [
        ("fused", model),
        ("in chunks of 9", portable.clone().with_chunk_steps(9)),
        ("portable", portable),
    ]
}

fn check_three_steps(golden: &Golden) {
    let batch = golden.batch();
    let after = tensors(&golden.path("after_steps.safetensors"));
    let steps = json(&golden.path("steps.json"));
    for (form, model) in forms(golden) {
        let mut trainer = golden.trainer(model);
        for step in steps["steps"].as_array().unwrap() {
            let report = trainer.step(&batch).unwrap();
            let number = |key: &str| step[key].as_f64().unwrap();
            assert!((report.loss - number("loss")).abs() < 5e-6, "{form}: {report:?}, {step}");
            let norm = number("grad_norm_preclip");
            assert!((report.grad_norm - norm).abs() < 1e-5 * norm, "{form}: {report:?}, {step}");
            assert!((report.lr - number("lr_used")).abs() < 1e-12, "{form}: {report:?}, {step}");
            assert!(!report.skipped_non_finite);
        }
        for (name, tensor) in trainer.model().named_parameters() {
            let worst = max_difference(&tensor.data, &after[&name].1);
            assert!(worst < 5e-5, "{form}: {name} is off by {worst:e} after three steps");
        }
    }
}

fn check_names_and_shapes(golden: &Golden) {
    let sizes = json(&golden.path("shapes.json"));
    for (size, (d, l, h)) in [("d128", (128, 1, 2)), ("d512", (512, 6, 8))] {
        let ours = (golden.sized)(d, l, h).parameter_shapes();
        let ours: BTreeMap<String, Vec<usize>> = ours.into_iter().collect();
        let theirs: BTreeMap<String, Vec<usize>> =
            serde_json::from_value(sizes[size].clone()).unwrap();
        assert_eq!(ours, theirs, "{size}");
    }
}

fn check_initial_statistics(golden: &Golden) {
    let sizes = json(&golden.path("init_stats.json"));
    for (size, (d, l, h)) in [("d128", (128, 1, 2)), ("d256", (256, 2, 4))] {
        let ours = initial_parameters(&(golden.sized)(d, l, h), 0, &TokenRows::Full(20_482));
        let theirs = sizes[size].as_object().unwrap();
        assert_eq!(theirs.len(), ours.len());
        for (parameter, theirs) in theirs {
            let data: Vec<f64> = ours[parameter].data.iter().map(|&x| f64::from(x)).collect();
            check_statistics(&format!("{size} {parameter}"), &data, theirs);
        }
    }
}

/// Both are samples of one distribution: each strays by a standard deviation over the root of their number.
fn check_statistics(place: &str, ours: &[f64], golden: &Value) {
    let n = ours.len() as f64;
    let mean = ours.iter().sum::<f64>() / n;
    let std = (ours.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    let [golden_mean, golden_std, golden_min, golden_max] =
        ["mean", "std", "min", "max"].map(|key| golden[key].as_f64().unwrap());
    let slack = 8.0 * golden_std / n.sqrt();
    assert!((mean - golden_mean).abs() <= slack, "{place}: mean {mean}, not {golden_mean}");
    assert!((std - golden_std).abs() <= slack, "{place}: deviation {std}, not {golden_std}");
    if n < 16.0 {
        return;
    }
    // Ends of a uniform distribution are sharp, those of a normal one are not, least of all in small samples.
    let half = (golden_max - golden_min) / 2.0;
    let sharp = half < 2.0 * golden_std && n >= 256.0;
    let reach = if sharp { 0.1 } else { 0.3 + 6.0 / n.sqrt() };
    let slack = reach * half + 1e-12;
    let min = ours.iter().copied().fold(f64::MAX, f64::min);
    let max = ours.iter().copied().fold(f64::MIN, f64::max);
    assert!((min - golden_min).abs() <= slack, "{place}: smallest {min}, not {golden_min}");
    assert!((max - golden_max).abs() <= slack, "{place}: largest {max}, not {golden_max}");
}

#[test]
fn schedules_equal_the_references() {
    let json = json("lr_schedules.json");
    let base = json["base_lr"].as_f64().unwrap();
    for (name, rates) in json["lr_used_by_step_1_to_14"].as_object().unwrap() {
        // Names are like `cosine_w2_d10`.
        let parts: Vec<&str> = name.split('_').collect();
        let number = |part: &str| part[1..].parse().unwrap();
        let schedule = ScheduleConfig {
            kind: if parts[0] == "linear" { ScheduleKind::Linear } else { ScheduleKind::Cosine },
            warmup_steps: number(parts[1]),
            decay_steps: number(parts[2]),
            floor_ratio: rates[13].as_f64().unwrap() / base,
        };
        for (done, rate) in rates.as_array().unwrap().iter().enumerate() {
            let ours = base * schedule.factor(done as u64);
            assert!((ours - rate.as_f64().unwrap()).abs() < 1e-15, "{name} step {}", done + 1);
        }
    }
}

/// A module of tests for each model, by its place among the golden ones.
macro_rules! golden {
    ($($folder:ident),*) => {
        $(mod $folder {
            use super::*;

            fn golden() -> &'static Golden {
                Golden::of(stringify!($folder))
            }

            #[test]
            fn outputs_of_every_layer_equal_the_references() {
                for (form, model) in forms(golden()) {
                    golden().check_outputs(form, &model, 1e-4);
                }
            }

            #[test]
            fn loss_and_gradients_equal_the_references() {
                for (form, model) in forms(golden()) {
                    golden().check_gradients(form, model, 5e-6, (5e-6, 1e-4));
                }
            }

            #[test]
            fn three_optimiser_steps_equal_the_references() {
                check_three_steps(golden());
            }

            #[test]
            fn names_and_shapes_are_the_references() {
                check_names_and_shapes(golden());
            }

            #[test]
            fn initial_statistics_are_the_references() {
                check_initial_statistics(golden());
            }
        })*

        #[test]
        fn every_golden_model_is_tested() {
            let tested = [$(stringify!($folder)),*];
            assert_eq!(GOLDEN.each_ref().map(|golden| golden.folder), tested);
        }
    };
}

golden! {
    transformer, slice_block, slice_diagonal, gated_deltanet_neg, gated_deltanet_pos, mamba2, mamba3_siso, mamba3_mimo
}
