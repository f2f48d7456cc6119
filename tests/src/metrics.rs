//! Grades equal to the reference's on its own predictions.

use std::fs;

use cwm_core::{
    chess::{
        MoveToken, State, Trajectory,
        label::{LABELS, class_count},
    },
    metrics::{BIN_STEPS, Counts},
    tracker::Prediction,
};
use cwm_tests::cwm::fixture;
use safetensors::{SafeTensors, tensor::TensorView};
use serde_json::Value;

fn rows(view: &TensorView<'_>) -> Vec<State> {
    let chunks = view.data().chunks_exact(LABELS);
    chunks.map(|labels| State::new(labels.try_into().unwrap()).unwrap()).collect()
}

/// Cross-entropy of logits that are 4.0 at the predicted class and 0.0 elsewhere.
fn loss_of(truth: &State, predicted: &State) -> f64 {
    let labels = truth.labels().iter().zip(predicted.labels()).enumerate();
    let label_loss = |(label, (t, p)): (usize, (&u8, &u8))| {
        let others = (class_count(label) - 1) as f64;
        (4f64.exp() + others).ln() - if t == p { 4.0 } else { 0.0 }
    };
    labels.map(label_loss).sum()
}

/// The games of batch `b`: trajectories and predictions, padding cut off.
fn batch(tensors: &SafeTensors<'_>, b: usize) -> Vec<(Trajectory, Prediction)> {
    let get = |name: &str| tensors.tensor(&format!("b{b}_{name}")).unwrap();
    let ints = |name: &str| -> Vec<i64> {
        let view = get(name);
        view.data().chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect()
    };
    let steps = get("moves").shape()[1];
    let (states, predicted) = (rows(&get("states")), rows(&get("pred")));
    let cut = |game: usize, length: i64| {
        let range = game * steps..game * steps + length as usize;
        let truth = states[range.clone()].to_vec();
        let predicted = predicted[range].to_vec();
        let loss = truth.iter().zip(&predicted).map(|(t, p)| loss_of(t, p)).sum();
        // The moves are of another vocabulary; grading looks at states alone.
        let mut tokens = vec![MoveToken::PAD; length as usize];
        tokens[0] = MoveToken::START;
        (
            Trajectory::from_aligned(tokens, truth).unwrap(),
            Prediction { states: predicted, loss_sum: Some(loss), non_finite_steps: vec![] },
        )
    };
    ints("lengths").into_iter().enumerate().map(|(game, length)| cut(game, length)).collect()
}

#[test]
fn summary_equals_the_references_accumulator() {
    let bytes = fs::read(fixture("metrics/inputs.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let golden: Value =
        serde_json::from_slice(&fs::read(fixture("metrics/golden.json")).unwrap()).unwrap();
    let mut all = Counts::default();
    for b in 0..2 {
        let mut counts = Counts::default();
        for (game, prediction) in batch(&tensors, b) {
            counts.add(&game, &prediction);
        }
        let expected = &golden["batch_loss_metrics"][b];
        let close = |found: f64, name: &str, tolerance: f64| {
            let expected = expected[name].as_f64().unwrap();
            assert!((found - expected).abs() < tolerance, "{name} of batch {b}: {found}");
        };
        close(counts.loss.mean().unwrap(), "loss", 5e-6);
        close(counts.loss.sum(), "loss_sum", 1e-2);
        close(counts.loss.labels() as f64, "valid_state_tokens", 0.5);
        all.merge(&counts);
    }

    let summary = golden["summary"].as_object().unwrap();
    let mut found = vec![
        ("val/loss".to_string(), all.loss.mean().unwrap()),
        ("val/overall/full_exact".into(), all.exact_steps as f64 / all.steps as f64),
        ("val/overall/partial_exact".into(), all.labels_right() as f64 / all.labels() as f64),
        ("val/game_exact".into(), all.exact_games as f64 / all.games as f64),
        ("val/game_exact_num".into(), all.exact_games as f64),
        ("val/game_exact_denom".into(), all.games as f64),
    ];
    for (i, bin) in all.bins.iter().enumerate() {
        let name = format!("val/bin{:03}-{:03}", i * BIN_STEPS, (i + 1) * BIN_STEPS);
        let steps = bin.steps as f64;
        found.push((format!("{name}/n"), steps));
        found.push((format!("{name}/full_exact"), bin.exact_steps as f64 / steps));
        found.push((format!("{name}/partial_exact"), bin.labels_right as f64 / (75.0 * steps)));
    }
    assert_eq!(found.len(), summary.len(), "{summary:?}");
    for (name, value) in found {
        let expected = summary[&name].as_f64().unwrap();
        let tolerance = if name == "val/loss" { 5e-6 } else { 1e-6 };
        assert!((value - expected).abs() < tolerance, "{name}: {value}, expected {expected}");
    }
}

#[test]
fn a_real_models_predictions_get_the_references_counts() {
    let bytes = fs::read(fixture("metrics/predictions_first2.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    // Steps and labels right from the reference's own evaluation of these games.
    for (game, steps, labels_right) in [(0, 608, 37_660), (1, 139, 6_899)] {
        let get = |name: &str| tensors.tensor(&format!("game{game}_{name}")).unwrap();
        let moves: Vec<MoveToken> = get("moves")
            .data()
            .chunks_exact(4)
            .map(|b| MoveToken::new(u32::from_le_bytes(b.try_into().unwrap())).unwrap())
            .collect();
        let truth = Trajectory::replay(&moves[1..]);
        assert_eq!(truth.states(), rows(&get("states")));
        let states = rows(&get("pred"));
        let mut counts = Counts::default();
        let record =
            counts.add(&truth, &Prediction { states, loss_sum: None, non_finite_steps: vec![] });
        assert_eq!((record.steps, record.exact_steps), (steps, 0));
        assert_eq!(record.labels_right(), labels_right);
        assert_eq!(counts.loss.mean(), None);
    }
}
