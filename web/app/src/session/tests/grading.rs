//! Grading and files, against a worker that grades with a baseline.

use cwm_core::{
    evaluate::{BatchBudget, evaluate},
    metrics::Resampling,
    report::{DatasetInfo, EvalReport, Evaluation, ModelInfo, Source, TrackerInfo, TrackerKind},
};

use super::*;
use crate::message::FileHead;

/// A report of one baseline on two random games, under the name of a network.
pub(super) fn graded(knows: Baseline, worst: Vec<WorstGame>) -> Say {
    let games = RandomPlay::new(0, 10)
        .take(2)
        .map(|game| Ok::<_, std::convert::Infallible>(Trajectory::replay(&game.moves)));
    let run = evaluate(&knows, "random-uniform", games, None, BatchBudget::default(), |_| {
        std::ops::ControlFlow::Continue(())
    });
    let grading = ready(run).unwrap().unwrap();
    let resampling = Resampling { resamples: 50, seed: 0 };
    let mut report = EvalReport::new("cwm test", resampling);
    report.datasets.push(DatasetInfo {
        name: "random-uniform".into(),
        source: Source::RandomUniform { seed: 0, min_fullmoves: 10 },
        en_passant: Default::default(),
        split: Some(cwm_core::paper::Split::RandomUniform),
        limit: Some(2),
    });
    let model = ModelInfo {
        family: "transformer".into(),
        size: "d128/l1".into(),
        d_model: 128,
        n_layers: 1,
        parameters: 3_126_870,
        sha256: String::new(),
        path: String::new(),
        train_steps: None,
        train_games: None,
        games_read: None,
        structured: false,
    };
    report.trackers.push(TrackerInfo { name: "net".into(), kind: TrackerKind::Model(model) });
    report.evaluations.push(Evaluation::new("net", "random-uniform", &grading, resampling));
    Say::Graded {
        report: Box::new(report),
        worst,
        skipped: Default::default(),
        timings: Vec::new(),
        complete: true,
    }
}

#[test]
fn grading_runs_tells_its_progress_and_ends_in_a_report() {
    let mut bench = Bench::started("");
    bench.json(r#"{"do":"tab","tab":"grade"}"#);
    assert_eq!(bench.view()["grade"]["blocked"], "the checkpoint is still being loaded");
    bench.serve();
    let view = bench.view();
    assert_eq!(
        (&view["grade"]["blocked"], &view["grade"]["subject"]),
        (&Value::Null, &"transition".into())
    );
    assert_eq!(view["grade"]["check"][0]["value"], "transformer");
    assert!(view["grade"]["check"].as_array().unwrap().iter().any(|row| row["warning"] == true));
    assert_eq!(
        view["grade"]["command_line"],
        "cwm evaluate models/checkpoints/transition --baselines --random 1000 --seed 0 --limit 100"
    );
    bench.json(r#"{"do":"grade","grade":"seed","seed":"5"}"#);
    bench.json(r#"{"do":"grade","grade":"run"}"#);
    let (lane, request, _) = bench.posted.pop().unwrap();
    let Ask::Grade(job) = &request.ask else { panic!() };
    assert_eq!((job.limit, job.baselines.len(), lane), (Some(100), 5, Lane::Grade));
    let event = |json: Value| serde_json::from_value(json).unwrap();
    bench.reply(lane, request.id, Say::Grading {
        event: event(serde_json::json!({"event": "started", "tracker": "net", "dataset": "random-uniform", "games_total": 100})),
        millis: 0.0,
    });
    bench.reply(
        lane,
        request.id,
        Say::Grading {
            event: event(
                serde_json::json!({"event": "graded", "games": 25, "exact_games": 0, "steps": 5000,
            "exact_steps": 2500, "labels_right": 0}),
            ),
            millis: 1000.0,
        },
    );
    let run = &bench.view()["grade"]["run"];
    assert_eq!((&run["fraction"], &run["rows"][0]["exact"]), (&0.25.into(), &"50.00 %".into()));
    assert_eq!(run["text"], "25 / 100 games, 5,000 steps / about 20,000, 5,000 steps/s, 3 s left");
    assert_eq!(bench.view()["busy"], true);
    bench.json(r#"{"do":"grade","grade":"cancel"}"#);
    let (_, cancel, _) = bench.posted.pop().unwrap();
    assert_eq!(cancel.ask, Ask::Cancel { request: request.id });
    bench.reply(lane, request.id, graded(Baseline::NaiveMoverRights, Vec::new()));
    let view = bench.view();
    let table = &view["result"]["tables"][0];
    assert_eq!(table["rows"][0]["name"], "net");
    assert_eq!(table["rows"][0]["exact"]["interval"].as_str().unwrap().split(", ").count(), 2);
    assert!(table["rows"].as_array().unwrap().iter().any(|row| row["kind"] == "paper"));
    assert!(table["notes"].to_string().contains("preview"));
    let mut charts = 0;
    while let Some(at) = bench.others.iter().position(|e| matches!(e, Effect::Later { .. })) {
        let Effect::Later { command } = bench.others.remove(at) else { panic!() };
        bench.json(command);
        let Some(Effect::Chart { first, chart }) =
            bench.others.iter().rfind(|e| matches!(e, Effect::Chart { .. }))
        else {
            panic!()
        };
        assert_eq!(*first, charts == 0);
        assert!(!chart.rows.is_empty() && chart.svg.starts_with("<svg"), "{}", chart.name);
        charts += 1;
    }
    assert_eq!(charts, 4);
    assert_eq!(serde_json::to_value(bench.session.view(0, 1)).unwrap()["result"], Value::Null);
    bench.json(r#"{"do":"grade","grade":"export","what":"json"}"#);
    let Some(Effect::Save { text, .. }) = bench.others.last() else { panic!() };
    assert_eq!(EvalReport::from_json(text).unwrap().evaluations.len(), 1);
    bench.json(r#"{"do":"grade","grade":"export","what":{"svg":"random-uniform-prefix-bins"}}"#);
    assert!(
        matches!(bench.others.last(), Some(Effect::Save { name, .. }) if name.ends_with(".svg"))
    );
}

#[test]
fn dropped_files_go_where_they_belong() {
    let mut bench = Bench::started("");
    let file = |name: &str, head: &[u8], text: Option<&str>| FileHead {
        key: name.into(),
        name: name.into(),
        bytes: 1000,
        head: head.into(),
        text: text.map(str::to_string),
    };
    let weights = file("m.safetensors", b"\x40\0\0\0\0\0\0\0{\"a", None);
    let config = file("config.json", b"{\n", Some("{}"));
    bench.run(Command::Files { files: vec![config, weights] });
    let (lane, request, files) = bench.posted.pop().unwrap();
    assert_eq!((lane, files), (Lane::Grade, vec!["m.safetensors".into(), "config.json".into()]));
    assert_eq!(request.ask, Ask::Open { name: "m".into(), source: CheckpointSource::Files });
    assert_eq!(bench.session.tab, Tab::Grade);
    let fault = Fault::new("CKPT-HEADER", "the header is cut short", "download it again");
    bench.reply(Lane::Grade, request.id, Say::Failed { fault });
    assert_eq!(bench.view()["grade"]["fault"]["code"], "CKPT-HEADER");
    let pgn = file("my.pgn", b"1. e4 e5", Some("1. e4 e5"));
    bench.run(Command::Files { files: vec![pgn.clone()] });
    assert_eq!(bench.view()["grade"]["pgn"], "my.pgn, 1 kB");
    bench.json(r#"{"do":"tab","tab":"explore"}"#);
    bench.run(Command::Files { files: vec![pgn] });
    assert_eq!(bench.uci(), "e2e4 e7e5");
    bench.run(Command::Files { files: vec![file("x.jpg", b"\xff\xd8\xff\0", None)] });
    assert!(bench.toasts.last().unwrap().contains("nothing that this page reads"));
    bench.posted.clear();
    bench.run(Command::Files { files: vec![file("latest.pt", b"PK\x03\x04", None)] });
    let (_, request, files) = bench.posted.pop().unwrap();
    assert_eq!(files, ["latest.pt"], "a PyTorch checkpoint holds its config");
    assert_eq!(request.ask, Ask::Open { name: "latest".into(), source: CheckpointSource::Files });
    let Say::Graded { report, .. } = graded(Baseline::NaiveMover, Vec::new()) else { panic!() };
    let report = file("eval.json", b"{\n", Some(&report.to_json()));
    bench.run(Command::Files { files: vec![report] });
    assert_eq!(bench.view()["result"]["tables"][0]["rows"][0]["name"], "net");
}
