//! Reports there and back, and the documents that must be refused.

use std::convert::Infallible;

use proptest::prelude::*;

use super::*;
use crate::{
    baseline::Baseline,
    chess::{MoveToken, State, Trajectory},
    evaluate::{BatchBudget, Grading, evaluate},
    metrics::{Aftermath, Counts},
    tracker::{Prediction, ready},
};

/// Baselines on knight moves of the given lengths, and a made-up model whose loss and gaps are arbitrary.
fn report(plies: &[usize], loss_sums: &[f64]) -> EvalReport {
    let resampling = Resampling { resamples: 20, seed: 5 };
    let mut report = EvalReport::new("cwm 0.0.0", resampling);
    report.datasets.push(DatasetInfo {
        name: "knights".into(),
        source: Source::RandomUniform { seed: 3, min_fullmoves: 0 },
        en_passant: EnPassant::Always,
        split: Some(Split::RandomUniform),
        limit: Some(plies.len() as u64),
    });
    let games: Vec<Trajectory> = plies
        .iter()
        .map(|&n| {
            let moves = [(6, 21), (62, 45), (21, 6), (45, 62)];
            let token = |&(a, b): &(u32, u32)| MoveToken::new((a * 64 + b) * 5).unwrap();
            Trajectory::replay(&moves.iter().map(token).cycle().take(n).collect::<Vec<_>>())
        })
        .collect();
    for baseline in [Baseline::StartBoard, Baseline::NaiveMover] {
        let source = games.iter().map(|g| Ok::<_, Infallible>(g.clone()));
        let budget = BatchBudget::default();
        let run = evaluate(&baseline, "knights", source, None, budget, |_| {
            std::ops::ControlFlow::Continue(())
        });
        let grading = ready(run).unwrap().unwrap();
        report
            .trackers
            .push(TrackerInfo { name: baseline.name().into(), kind: TrackerKind::Baseline });
        report.evaluations.push(Evaluation::new(baseline.name(), "knights", &grading, resampling));
    }
    let mut counts = Counts::default();
    let records: Vec<_> = games
        .iter()
        .zip(loss_sums.iter().cycle())
        .map(|(game, &sum)| {
            let prediction = Prediction {
                states: vec![State::start(); game.steps()],
                loss_sum: Some(sum),
                non_finite_steps: vec![0],
            };
            counts.add(game, &prediction)
        })
        .collect();
    let places = (0..records.len()).collect();
    let grading = Grading {
        counts,
        games: records,
        places,
        moves_sha256: "00".into(),
        aftermath: Some(Aftermath::default()),
        ..Grading::default()
    };
    report.trackers.push(TrackerInfo {
        name: "a|model".into(),
        kind: TrackerKind::Model(ModelInfo {
            family: "transformer".into(),
            size: "d128/l1".into(),
            d_model: 128,
            n_layers: 1,
            parameters: 3_130_000,
            sha256: "ff".into(),
            path: "a\tb".into(),
            train_steps: Some(7),
            train_games: Some(1000),
            games_read: Some(64_000),
            structured: false,
        }),
    });
    report.evaluations.push(Evaluation::new("a|model", "knights", &grading, resampling));
    report
}

proptest! {
    #[test]
    fn json_gives_the_report_back(
        plies in proptest::collection::vec(0..70usize, 1..9),
        loss_sums in proptest::collection::vec(0.0..1e9f64, 1..9),
    ) {
        let report = report(&plies, &loss_sums);
        let json = report.to_json();
        let back = EvalReport::from_json(&json).unwrap();
        prop_assert_eq!(&back, &report);
        prop_assert_eq!(back.to_json(), json);
    }
}

#[test]
fn every_face_names_every_tracker() {
    let report = report(&[3, 30, 50], &[10.0, 700.0]);
    let detail = Detail { breakdown: true, ..Detail::default() };
    let text = text(&report, detail);
    for part in [
        "knights: 3 games, 86 steps (random-uniform, seed 3",
        "start-board",
        "a|model (partial)",
        "paper: transformer d128/l1",
        "paper: mamba3 d512/l6",
        "games read in training: by models here 64,000, by the paper's 39.8 M",
        "rows marked `paper` are published figures",
        "preview: at most the first 3 games",
        "`a|model` gave non-finite logits at 3 steps",
        "By label group",
        "First mistakes",
        "Worst games",
        "naive-mover: none is wrong",
    ] {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    let markdown = markdown(&report, Detail { all_paper_rows: true, ..detail });
    assert!(markdown.contains("a\\|model (partial)"), "{markdown}");
    assert!(markdown.contains("| 64,000 |") && markdown.contains("| 39.8 M |"), "{markdown}");
    assert_eq!(
        markdown.matches("paper: ").count(),
        crate::paper::ROWS.len() + crate::paper::BINS_D512.len()
    );
    assert!(markdown.contains("| 480-500 |"), "{markdown}");
    let tsv = tsv::summary(&report);
    let lines: Vec<Vec<&str>> = tsv.lines().map(|l| l.split('\t').collect()).collect();
    assert_eq!(lines.len(), 4);
    assert!(lines.iter().all(|l| l.len() == tsv::SUMMARY_COLUMNS.len()), "{tsv}");
    assert_eq!(lines[3][..6], ["a|model", "transformer", "128", "1", "7", "knights"]);
    assert_eq!(lines[3][12], "a b");
    assert_eq!(tsv::prefix_bins(&report).lines().count(), 1 + 3 * 3);
}

#[test]
fn structured_models_are_marked() {
    let mut report = report(&[3, 30, 50], &[10.0, 700.0]);
    let detail = Detail { breakdown: true, ..Detail::default() };
    assert!(!markdown(&report, detail).contains("structured"));
    for tracker in &mut report.trackers {
        if let TrackerKind::Model(model) = &mut tracker.kind {
            model.structured = true;
        }
    }
    let marked = markdown(&report, detail);
    assert!(marked.contains("| a\\|model (structured) (partial) "), "{marked}");
    assert!(marked.contains("trackers marked `structured` carry a state"), "{marked}");
    assert!(tsv::summary(&report).lines().nth(3).unwrap().ends_with("\ttrue"));
    let read = EvalReport::from_json(&report.to_json()).unwrap();
    assert_eq!(read.trackers[2].label(), "a|model (structured)");
}

#[test]
fn other_documents_are_refused_by_name() {
    let good = report(&[5, 9], &[1.0]);
    let refuse = |edit: &dyn Fn(&mut serde_json::Value)| {
        let mut document = serde_json::to_value(&good).unwrap();
        edit(&mut document);
        EvalReport::from_json(&document.to_string()).unwrap_err().to_string()
    };
    assert_eq!(
        refuse(&|d| d["version"] = 3.into()),
        "evaluation report of version 3; this version of the tool reads versions 1 to 2"
    );
    assert!(refuse(&|d| d["schema"] = "other".into()).contains("`schema` is \"other\""));
    assert!(refuse(&|d| *d = serde_json::json!([1])).contains("`schema` is missing"));
    assert!(refuse(&|d| d["version"] = "1".into()).contains("not a valid evaluation report"));
    assert!(
        refuse(&|d| d["evaluations"][0]["tracker"] = "ghost".into())
            .contains("grades of `ghost`, which is not listed")
    );
    assert!(
        refuse(&|d| d["evaluations"][1]["exact_state_accuracy"]["numerator"] = 9999.into())
            .contains("not a valid evaluation report")
    );
    assert!(
        refuse(&|d| d["evaluations"][1]["labels_right"][0] = 0.into()).contains("do not add up")
    );
    assert!(
        refuse(&|d| d["evaluations"][0]["worst_games"][0]["moves"] = "e2e4".into())
            .contains("the worst games do not add up")
    );
    assert!(
        refuse(&|d| d["evaluations"][2]["aftermath"]["games"] = 1.into())
            .contains("the aftermath do not add up")
    );
    assert!(EvalReport::from_json("{").is_err());
}

#[test]
fn reports_of_the_first_version_are_read() {
    let new = report(&[5, 9], &[1.0]);
    let mut document = serde_json::to_value(&new).unwrap();
    document["version"] = 1.into();
    for evaluation in document["evaluations"].as_array_mut().unwrap() {
        let evaluation = evaluation.as_object_mut().unwrap();
        evaluation.remove("worst_games");
        evaluation.remove("aftermath");
    }
    let old = EvalReport::from_json(&document.to_string()).unwrap();
    assert_eq!((old.version, &old.trackers), (VERSION, &new.trackers));
    assert!(old.evaluations.iter().all(|e| e.worst_games.is_empty() && e.aftermath.is_none()));
}
