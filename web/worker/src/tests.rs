//! The engine against the crates below it, with a host that keeps what is said.

use std::{
    cell::{Cell, RefCell},
    future::{Future, poll_fn},
    path::Path,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use cwm_core::{
    chess::{MoveToken, Policy, Trajectory, random::RandomPlay},
    evaluate::{BatchBudget, evaluate},
    metrics::Resampling,
    report::Evaluation,
    tracker::{Tracker, ready},
};
use cwm_models::{ModelTracker, checkpoint::Checkpoint, device::Device};
use cwm_protocol::{
    Ask, CheckpointSource, Fault, GameSet, GradeJob, Reply, Request, Say, StepAnswer, code,
};

use crate::{Engine, Host, InputFile};

const SHIPPED: &str = "transformer-d128";

/// Keeps what is said, after a trip through JSON. The clock moves with every look at it.
#[derive(Clone, Default)]
struct Listener {
    said: Rc<RefCell<Vec<(u32, Say)>>>,
    looks: Rc<Cell<u32>>,
}

impl Host for Listener {
    fn say(&self, id: u32, say: Say) {
        let json = serde_json::to_string(&Reply { id, say }).unwrap();
        let reply: Reply = serde_json::from_str(&json).unwrap();
        self.said.borrow_mut().push((reply.id, reply.say));
    }

    fn now_millis(&self) -> f64 {
        self.looks.set(self.looks.get() + 1);
        f64::from(self.looks.get())
    }

    fn pause(&self) -> impl Future<Output = ()> {
        let mut paused = false;
        poll_fn(
            move |_| {
                if std::mem::replace(&mut paused, true) { Poll::Ready(()) } else { Poll::Pending }
            },
        )
    }

    async fn fetch(
        &self,
        path: &str,
        progress: impl Fn(u64, Option<u64>) + 'static,
    ) -> Result<Vec<u8>, Fault> {
        let path = path.strip_prefix("models/").unwrap();
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/checkpoints").join(path);
        let bytes = std::fs::read(file).map_err(|e| Fault::new(code::FETCH, e, "look again"))?;
        progress(bytes.len() as u64, None);
        Ok(bytes)
    }
}

struct Bench {
    engine: Engine<Listener>,
    host: Listener,
}

type Files = Vec<Box<dyn InputFile>>;

impl Bench {
    fn new() -> Self {
        let host = Listener::default();
        Bench { engine: Engine::new(host.clone()), host }
    }

    fn with_model() -> Self {
        let bench = Self::new();
        let source = CheckpointSource::Shipped;
        let said = bench.ask(1, Ask::Open { name: SHIPPED.into(), source }, Vec::new());
        assert!(matches!(said, Say::Opened { .. }), "{said:?}");
        bench
    }

    /// Runs requests in turns until all are answered; gives their last replies.
    fn ask_all(&self, requests: Vec<(u32, Ask, Files)>) -> Vec<Say> {
        let ids: Vec<u32> = requests.iter().map(|(id, ..)| *id).collect();
        let mut tasks: Vec<Pin<Box<dyn Future<Output = ()> + '_>>> = Vec::new();
        for (id, ask, files) in requests {
            let text = serde_json::to_string(&Request { id, ask }).unwrap();
            tasks.push(Box::pin(async move { self.engine.hear(&text, files).await }));
        }
        let mut context = Context::from_waker(Waker::noop());
        while !tasks.is_empty() {
            tasks.retain_mut(|task| task.as_mut().poll(&mut context).is_pending());
        }
        let last = |id: u32| {
            let said = self.host.said.borrow();
            let mut replies = said.iter().filter(|(to, _)| *to == id).map(|(_, say)| say);
            let last: Vec<_> = replies.by_ref().filter(|say| say.is_last()).collect();
            assert_eq!(last.len(), 1, "one last reply to request {id}");
            last[0].clone()
        };
        ids.into_iter().map(last).collect()
    }

    fn ask(&self, id: u32, ask: Ask, files: Files) -> Say {
        self.ask_all(vec![(id, ask, files)]).remove(0)
    }

    fn steps(&self, id: u32) -> Vec<StepAnswer> {
        let said = self.host.said.borrow();
        let step = |(to, say): &(u32, Say)| match say {
            Say::Step { answer } if *to == id => Some((**answer).clone()),
            _ => None,
        };
        said.iter().filter_map(step).collect()
    }
}

fn shipped() -> ModelTracker {
    let read = |part: &str| {
        ready(Listener::default().fetch(&format!("models/{SHIPPED}/{part}"), |_, _| ()))
    };
    let weights = read("model.safetensors").unwrap().unwrap();
    let checkpoint = Checkpoint::read(&weights, None).unwrap();
    ModelTracker::from_parameters(SHIPPED, &checkpoint.config, &checkpoint.tensors, &Device::flex())
        .unwrap()
}

fn moves(seed: u64, plies: usize) -> Vec<u16> {
    let game =
        RandomPlay::new(seed, plies as u32 / 2).find(|game| game.moves.len() >= plies).unwrap();
    game.moves[..plies].iter().map(|token| token.id()).collect()
}

fn predict(tokens: &[u16], from_step: u32) -> Ask {
    Ask::Predict { tokens: tokens.to_vec(), from_step }
}

#[test]
fn a_line_is_answered_as_the_network_answers_whole_games() {
    let bench = Bench::with_model();
    let tokens = moves(3, 70);
    let said = bench.ask(2, predict(&tokens, 0), Vec::new());
    assert!(matches!(said, Say::Predicted { steps: 71, .. }), "{said:?}");
    let steps = bench.steps(2);
    let mut line = vec![MoveToken::START];
    line.extend(tokens.iter().map(|&id| MoveToken::new(id.into()).unwrap()));
    let network = shipped();
    let mut memory = network.start(1);
    let stepped: Vec<f32> = line
        .iter()
        .flat_map(|&token| {
            ready(network.answer(&mut memory, &[token])).unwrap().unwrap().probabilities
        })
        .collect();
    // Reading a game at once rounds otherwise than reading it move by move.
    let whole = ready(network.probabilities(&line)).unwrap().unwrap();
    assert!(whole.iter().zip(&stepped).all(|(a, b)| (a - b).abs() < 1e-4));
    for (number, (step, row)) in steps.iter().zip(stepped.chunks_exact(1878)).enumerate() {
        assert_eq!((step.step as usize, step.finite, step.top.len()), (number, true, 75));
        for label in 0..75 {
            let row = &row[cwm_core::chess::label::logit_range(label)];
            let p = row[usize::from(step.classes[label])];
            let told = step.probabilities[label];
            assert!((p - told).abs() < 2e-5, "step {number}, label {label}: {p} and {told}");
            let best = row.iter().copied().fold(0.0, f32::max);
            let top = &step.top[label];
            assert!((top[0].1 - best).abs() < 2e-5 && top.is_sorted_by(|a, b| a.1 >= b.1));
            assert_eq!(top.len(), row.len().min(3));
        }
    }
    // Back by some plies and on along another line: as a fresh engine would have it.
    let mut branch = tokens[..41].to_vec();
    branch.extend(&tokens[43..60]);
    bench.ask(3, predict(&branch, 30), Vec::new());
    let fresh = Bench::with_model();
    fresh.ask(2, predict(&branch, 30), Vec::new());
    assert_eq!(bench.steps(3), fresh.steps(2));
    assert_eq!(bench.steps(3).len(), branch.len() + 1 - 30);
    // One move more is one step more.
    branch.push(tokens[60]);
    bench.ask(4, predict(&branch, branch.len() as u32), Vec::new());
    assert_eq!(bench.steps(4).len(), 1);
}

#[test]
fn a_later_line_supersedes_and_both_stay_right() {
    let bench = Bench::with_model();
    let (one, two) = (moves(1, 40), moves(2, 40));
    let said = bench.ask_all(vec![
        (2, predict(&one, 0), Vec::new()),
        (3, predict(&two, 0), Vec::new()),
        (4, predict(&one, 0), Vec::new()),
    ]);
    assert!(matches!(said[..2], [Say::Superseded, Say::Superseded]), "{said:?}");
    assert!(bench.steps(2).len() < 41 && bench.steps(4).len() == 41);
    let fresh = Bench::with_model();
    fresh.ask(9, predict(&one, 0), Vec::new());
    assert_eq!(bench.steps(4), fresh.steps(9));
}

/// A checkpoint of the reference as it comes: the names of its networks' states are the loaded model's.
#[test]
fn a_pytorch_checkpoint_is_read_as_it_is() {
    let packed = include_bytes!("../../../tests/fixtures/torch_checkpoint/slice_d16/latest.pt.zst");
    let bytes = zstd::decode_all(&packed[..]).unwrap();
    let checkpoint = Checkpoint::read(&bytes, None).unwrap();
    let tracker = ModelTracker::from_parameters(
        "x",
        &checkpoint.config,
        &checkpoint.tensors,
        &Device::flex(),
    )
    .unwrap();
    let bench = Bench::new();
    let ask = Ask::Open { name: "latest".into(), source: CheckpointSource::Files };
    let said = bench.ask(1, ask, vec![Box::new(bytes)]);
    assert!(matches!(&said, Say::Opened { facts } if facts.family == "slice"), "{said:?}");
    let tokens = moves(5, 30);
    bench.ask(2, predict(&tokens, 0), Vec::new());
    let line: Vec<_> = tokens.iter().map(|&id| MoveToken::new(id.into()).unwrap()).collect();
    let game = Trajectory::replay(&line);
    let expected = ready(tracker.grade(&[&game])).unwrap().unwrap();
    for (step, state) in bench.steps(2).iter().zip(&expected[0].states) {
        assert_eq!(step.classes, state.labels(), "step {}", step.step);
    }
}

#[test]
fn files_that_are_no_checkpoint_are_named_and_change_nothing() {
    let bench = Bench::with_model();
    let open = |id, bytes: &[u8]| {
        let ask = Ask::Open { name: "x".into(), source: CheckpointSource::Files };
        match bench.ask(id, ask, vec![Box::new(bytes.to_vec())]) {
            Say::Failed { fault } => fault.code,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(open(2, b""), "CKPT-TRUNCATED");
    assert_eq!(open(3, b"\xff\xff\xff\xff\xff\xff\xff\x7f{}"), "CKPT-HEADER-LENGTH");
    assert_eq!(open(4, b"\x02\0\0\0\0\0\0\0{}"), "CKPT-EMPTY");
    let none = Ask::Open { name: "x".into(), source: CheckpointSource::Files };
    assert!(
        matches!(bench.ask(5, none, Vec::new()), Say::Failed { fault } if fault.code == code::REQUEST)
    );
    let away = Ask::Open { name: "../x".into(), source: CheckpointSource::Shipped };
    assert!(
        matches!(bench.ask(6, away, Vec::new()), Say::Failed { fault } if fault.code == code::FETCH)
    );
    assert!(matches!(bench.ask(7, predict(&[], 0), Vec::new()), Say::Predicted { steps: 1, .. }));
}

#[test]
fn messages_of_another_version_are_refused_by_their_id() {
    let bench = Bench::new();
    ready(bench.engine.hear(r#"{"id":7,"ask":"dance"}"#, Vec::new())).unwrap();
    ready(bench.engine.hear("nonsense", Vec::new())).unwrap();
    let said = bench.host.said.borrow();
    let refused = |(id, say): &(u32, Say)| match say {
        Say::Failed { fault } => (*id, fault.code.clone()),
        other => panic!("{other:?}"),
    };
    let refused: Vec<_> = said.iter().map(refused).collect();
    assert_eq!(refused, [(7, code::REQUEST.to_string()), (0, code::REQUEST.to_string())]);
    drop(said);
    for ask in [predict(&[], 0), Ask::Grade(job(true, &[], vec![GameSet::Classics], None))] {
        let id = 10 + bench.host.said.borrow().len() as u32;
        assert!(
            matches!(bench.ask(id, ask, Vec::new()), Say::Failed { fault } if fault.code == code::NO_MODEL)
        );
    }
}

fn job(model: bool, baselines: &[&str], sets: Vec<GameSet>, limit: Option<u64>) -> GradeJob {
    let baselines = baselines.iter().map(|name| name.to_string()).collect();
    GradeJob { model, baselines, sets, limit, worst: 3 }
}

fn random(games: u64) -> GameSet {
    GameSet::Random { policy: Policy::Uniform, seed: 5, games, min_fullmoves: 10 }
}

#[test]
fn a_grade_is_what_the_core_makes_of_the_same_games() {
    let bench = Bench::with_model();
    let sets = vec![GameSet::Classics, random(12)];
    let said = bench.ask(2, Ask::Grade(job(true, &["naive-mover"], sets, Some(8))), Vec::new());
    let Say::Graded { report, worst, complete: true, .. } = said else { panic!("{said:?}") };
    assert_eq!((report.evaluations.len(), worst.len()), (4, 12));
    let games: Vec<Trajectory> =
        RandomPlay::new(5, 10).take(8).map(|game| Trajectory::replay(&game.moves)).collect();
    let tracker = shipped();
    let ours = games.iter().cloned().map(Ok::<_, std::convert::Infallible>);
    let run = evaluate(&tracker, "random-uniform", ours, None, BatchBudget::default(), |_| {
        std::ops::ControlFlow::Continue(())
    });
    let grading = ready(run).unwrap().unwrap();
    let model = Evaluation::new(SHIPPED, "random-uniform", &grading, Resampling::default());
    let mut found = report.evaluation(SHIPPED, "random-uniform").unwrap().clone();
    assert_eq!(found.worst_games.len(), 3);
    assert!(found.worst_games.iter().all(|game| game.name.as_deref().unwrap().starts_with("cwm_")));
    found.worst_games.iter_mut().for_each(|game| game.name = None);
    let mut model = model;
    model.worst_games.truncate(3);
    assert_eq!(found, model);
    assert!(report.datasets.iter().all(|set| set.limit == Some(8)));
    let worst: Vec<_> = worst
        .iter()
        .filter(|game| game.tracker == SHIPPED && game.dataset == "random-uniform")
        .collect();
    assert_eq!(worst.len(), 3);
    for game in worst {
        let tokens: Vec<u16> =
            games[game.game as usize].tokens()[1..].iter().map(|token| token.id()).collect();
        assert_eq!(game.tokens, tokens);
    }
}

#[test]
fn a_cancelled_grade_keeps_what_it_has_and_moves_are_answered_meanwhile() {
    let bench = Bench::with_model();
    let said = bench.ask_all(vec![
        (2, Ask::Grade(job(false, &["oracle"], vec![random(20_000)], None)), Vec::new()),
        (3, Ask::Grade(job(false, &["oracle"], vec![GameSet::Classics], None)), Vec::new()),
        (4, predict(&moves(1, 5), 0), Vec::new()),
        (5, Ask::Cancel { request: 2 }, Vec::new()),
    ]);
    let [
        Say::Graded { report, complete: false, .. },
        Say::Failed { fault },
        Say::Predicted { .. },
        Say::Cancelled,
    ] = &said[..]
    else {
        panic!("{said:?}")
    };
    assert_eq!((fault.code.as_str(), report.evaluations.len()), (code::BUSY, 0));
    let again = bench.ask(
        6,
        Ask::Grade(job(false, &["oracle"], vec![GameSet::Classics], None)),
        Vec::new(),
    );
    assert!(matches!(again, Say::Graded { complete: true, .. }), "{again:?}");
}

#[test]
fn a_pgn_is_read_as_the_command_line_reads_it() {
    let pgn = "[Event \"a\"]\n\n1. e4 e5 2. Nf3 *\n\n[Event \"b\"]\n\n1. e4 e5 2. Nf3 *\n\n[Event \"c\"]\n\n1. e4 Ke7 *\n\n[Event \"d\"]\n\n1. d4 *\n";
    let bench = Bench::new();
    let set = |min_fullmoves| GameSet::Pgn { name: "mine".into(), min_fullmoves };
    let grade = |id, min| {
        let ask = Ask::Grade(job(false, &["oracle"], vec![set(min)], None));
        bench.ask(id, ask, vec![Box::new(pgn.as_bytes().to_vec())])
    };
    let said = grade(1, 0);
    let Say::Graded { report, skipped, .. } = said else { panic!("{said:?}") };
    assert_eq!((report.evaluations[0].games, report.evaluations[0].steps), (3, 10));
    assert_eq!(skipped.iter().map(|(_, games)| games).collect::<Vec<_>>(), [1]);
    assert!(
        matches!(grade(2, 10), Say::Failed { fault } if fault.code == code::GAMES && fault.hint.contains("too few plies"))
    );
}
