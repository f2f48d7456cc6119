//! The session against workers that are played by baselines.

use cwm_core::{
    baseline::Baseline,
    chess::{MoveToken, Trajectory, label::LABELS, random::RandomPlay},
    evaluate::predict,
    tracker::ready,
};
use cwm_protocol::{
    Backend, BackendKind, CheckpointSource, Fault, ModelFacts, Reply, Say, StepAnswer, WorstGame,
};
use serde_json::Value;

use self::grading::graded;
use super::*;

mod grading;
mod screen;

/// A session with workers whose networks know what a baseline knows.
struct Bench {
    session: Session,
    knows: Baseline,
    posted: Vec<(Lane, Request, Vec<String>)>,
    hashes: Vec<(String, bool)>,
    said: Vec<String>,
    toasts: Vec<String>,
    others: Vec<Effect>,
}

impl Bench {
    fn new() -> Self {
        Bench {
            session: Session::default(),
            knows: Baseline::NaiveMoverRightsEp,
            posted: Vec::new(),
            hashes: Vec::new(),
            said: Vec::new(),
            toasts: Vec::new(),
            others: Vec::new(),
        }
    }

    /// The page as a first visitor sees it, models loaded.
    fn started(hash: &str) -> Self {
        let mut bench = Self::new();
        bench.start(hash);
        bench.serve();
        bench
    }

    fn start(&mut self, hash: &str) {
        let shipped = ["transition", "transformer-d128"]
            .map(|name| Shipped { name: name.into(), bytes: 1_500_000 })
            .to_vec();
        self.run(Command::Start { hash: hash.into(), shipped, entropy: 7 });
    }

    fn run(&mut self, command: Command) {
        let effects = self.session.command(command);
        self.take(effects);
    }

    /// A command as the scripts write it.
    fn json(&mut self, command: &str) {
        self.run(serde_json::from_str(command).unwrap());
    }

    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Post { lane, text, files } => {
                    self.posted.push((lane, serde_json::from_str(&text).unwrap(), files));
                }
                Effect::History { hash, push } => self.hashes.push((hash, push)),
                Effect::Announce { text } => self.said.push(text),
                Effect::Toast { text, .. } => self.toasts.push(text),
                other => self.others.push(other),
            }
        }
    }

    fn reply(&mut self, lane: Lane, id: u32, say: Say) {
        let text = serde_json::to_string(&Reply { id, say }).unwrap();
        let effects = self.session.hear(lane, &text);
        self.take(effects);
    }

    /// Lets the workers answer all that was posted.
    fn serve(&mut self) {
        while let Some((lane, request, _)) =
            (!self.posted.is_empty()).then(|| self.posted.remove(0))
        {
            match request.ask {
                Ask::Open { name, .. } => {
                    self.reply(lane, request.id, Say::Opened { facts: Box::new(facts(&name)) });
                }
                Ask::Predict { tokens, from_step } => {
                    // The default network makes no mistakes.
                    let knows = match self.session.seat_of(lane).name() {
                        Some("transition") => Baseline::ALL[4],
                        _ => self.knows,
                    };
                    for answer in answers(knows, &tokens, from_step) {
                        self.reply(lane, request.id, Say::Step { answer: Box::new(answer) });
                    }
                    let steps = tokens.len() as u32 + 1 - from_step;
                    self.reply(lane, request.id, Say::Predicted { steps, millis: 1.0 });
                }
                Ask::Grade(_) | Ask::Cancel { .. } => {}
            }
        }
    }

    fn view(&self) -> Value {
        serde_json::to_value(self.session.view(0, 0)).unwrap()
    }

    fn uci(&self) -> String {
        self.session.line.uci()
    }

    fn enter(&mut self, text: &str) {
        self.run(Command::Enter { text: text.into() });
        self.serve();
    }

    fn play(&mut self, from: &str, to: &str) {
        self.run(Command::Move { from: from.into(), to: to.into() });
        self.serve();
    }

    fn key(&mut self, key: &str) {
        self.run(Command::Key { key: key.into() });
    }
}

fn facts(name: &str) -> ModelFacts {
    ModelFacts {
        name: name.into(),
        family: "transformer".into(),
        size: "d128/l1".into(),
        preset: None,
        parameters: 3_126_870,
        stored_parameters: 758_358,
        dtype: "f16".into(),
        labels: 75,
        file_bytes: 1_522_332,
        sha256: "ab".repeat(32),
        train_steps: Some(46_000),
        warnings: vec!["trained on few games".into()],
        fetch_millis: 1.0,
        build_millis: 1.0,
        steps_per_sec: 9000.0,
    }
}

fn answers(knows: Baseline, tokens: &[u16], from_step: u32) -> Vec<StepAnswer> {
    let moves: Vec<MoveToken> = tokens.iter().map(|&id| MoveToken::try_from(id).unwrap()).collect();
    let named = ready(predict(&knows, &Trajectory::replay(&moves))).unwrap().unwrap().states;
    let answer = |(step, state): (usize, &cwm_core::chess::State)| StepAnswer {
        step: step as u32,
        finite: true,
        classes: state.labels().to_vec(),
        probabilities: vec![0.75; LABELS],
        top: state
            .labels()
            .iter()
            .map(|&class| vec![(class, 0.75), (1 - class.min(1), 0.25)])
            .collect(),
    };
    named.iter().enumerate().skip(from_step as usize).map(answer).collect()
}

#[test]
fn a_first_visitor_sees_a_right_board_and_one_that_drifts() {
    let mut bench = Bench::new();
    bench.start("");
    let before = bench.view();
    assert_eq!(before["explore"]["guided"], true);
    assert!(before["explore"]["destinations"].as_array().is_some(), "playable before any model");
    assert_eq!(before["explore"]["main"]["exact"], Value::Null);
    let opened: Vec<String> = bench
        .posted
        .iter()
        .filter_map(|(lane, request, _)| match &request.ask {
            Ask::Open { name, source: CheckpointSource::Shipped } => {
                Some(format!("{lane:?} {name}"))
            }
            _ => None,
        })
        .collect();
    assert_eq!(opened, ["Main transition", "Second transformer-d128"]);
    bench.serve();
    let view = bench.view();
    let (main, second) = (&view["explore"]["main"], &view["explore"]["second"]);
    assert_eq!((&main["exact"], &second["exact"]), (&Value::Bool(true), &Value::Bool(false)));
    assert!(second["squares"] != view["explore"]["squares"], "its board itself is wrong");
    assert_eq!(second["summary"], "15 of 22 states exact, first mistake at ply 15 (8. O-O-O)");
    assert!(bench.hashes.is_empty(), "the address stays clean until something is done");
    bench.key("ArrowRight");
    assert_eq!(bench.view()["explore"]["guided"], false);
}

#[test]
fn moves_are_played_refused_and_promoted() {
    let mut bench = Bench::started("");
    bench.enter("1. e4 d5 2. exd5 c6 3. dxc6 Nf6 4. cxb7 Nbd7");
    let before = bench.uci();
    assert_eq!(bench.session.ply, 0, "games are shown from their start");
    bench.run(Command::Go { to: Target::Last });
    bench.play("a1", "a4");
    assert_eq!(bench.uci(), before);
    assert!(bench.said.last().unwrap().contains("the way from a1 to a4 is blocked"));
    bench.play("b7", "a8");
    let view = bench.view();
    assert_eq!(view["dialog"], "promotion");
    assert_eq!(view["explore"]["promotion"], serde_json::json!(["white", "b7", "a8"]));
    bench.run(Command::Promote { piece: None });
    assert_eq!((bench.uci(), &bench.view()["dialog"]), (before, &Value::Null));
    bench.play("b7", "a8");
    bench.run(Command::Promote { piece: Some('n') });
    bench.serve();
    assert!(bench.uci().ends_with("b7a8n"));
    let view = bench.view();
    assert_eq!(view["explore"]["spoken"], "5. bxa8=N: exact");
    assert_eq!(view["explore"]["main"]["wrong"].as_array().unwrap().len(), 10);
    bench.enter("Nb6");
    assert!(bench.uci().ends_with("d7b6"), "a typed move goes on from the board");
}

#[test]
fn only_missing_steps_are_asked_for_and_stale_answers_are_dropped() {
    let mut bench = Bench::started("");
    bench.enter("e2e4 e7e5 g1f3");
    bench.run(Command::Go { to: Target::Last });
    bench.run(Command::Move { from: "b8".into(), to: "c6".into() });
    let (_, request, _) =
        bench.posted.iter().find(|(lane, ..)| *lane == Lane::Main).unwrap().clone();
    assert!(matches!(&request.ask, Ask::Predict { tokens, from_step: 4 } if tokens.len() == 4));
    // The line changes before the answer comes.
    bench.run(Command::Go { to: Target::Ply(3) });
    bench.run(Command::Move { from: "g8".into(), to: "f6".into() });
    let stale = answers(Baseline::StartBoard, &[], 0).remove(0);
    let answer = Box::new(StepAnswer { step: 4, ..stale });
    bench.reply(Lane::Main, request.id, Say::Step { answer });
    bench.reply(Lane::Main, request.id, Say::Superseded);
    bench.posted.retain(|(_, known, _)| known.id != request.id);
    bench.serve();
    let main = &bench.view()["explore"]["main"];
    assert_eq!(main["wrong"], serde_json::json!([0, 0, 0, 0, 0]));
    assert_eq!(bench.uci(), "e2e4 e7e5 g1f3 g8f6");
}

#[test]
fn texts_of_every_kind_are_opened_and_errors_keep_the_legal_part() {
    let mut bench = Bench::started("");
    let game = "e2e4 c7c5 g1f3";
    for text in [
        game,
        "1. e4 c5 2. Nf3",
        "[White \"A\"]\n[Black \"B\"]\n\n1. e4 {hm} c5 $1 (1... e5) 2. Nf3 *",
    ] {
        bench.enter("1. a3 a6 2. a4");
        bench.enter(text);
        assert_eq!(bench.uci(), game, "{text}");
    }
    assert_eq!(bench.view()["line"]["title"], "A \u{2013} B");
    bench.run(Command::Typed { text: "1. d4 d5 2. Ke3".into() });
    assert_eq!(bench.view()["explore"]["trouble"]["ply"], 3);
    bench.enter("1. d4 d5 2. Ke3");
    assert_eq!(bench.uci(), game, "nothing changed");
    bench.run(Command::EnterLegal);
    assert_eq!((bench.uci().as_str(), bench.session.ply), ("d2d4 d7d5", 2));
    bench.enter("[Event \"x\"]\n\n1. e4 *\n\n[Event \"y\"]\n\n1. e5 *\n\n[Event \"z\"]\n\n1. c4 *");
    let view = bench.view();
    assert_eq!(
        (&view["dialog"], view["games"].as_array().unwrap().len()),
        (&Value::from("games"), 3)
    );
    assert_eq!(view["games"][1]["damaged"], true);
    bench.run(Command::Pick { game: 2 });
    assert_eq!(bench.uci(), "c2c4");
    bench.enter(&"1. e4 *\n\n".repeat(1001));
    assert_eq!((bench.session.tab, bench.uci().as_str()), (Tab::Grade, "c2c4"));
    assert!(bench.toasts.last().unwrap().contains("more than 1000 games"));
}

#[test]
fn a_failing_or_dying_engine_leaves_the_game_alone() {
    let mut bench = Bench::new();
    bench.start("");
    let fault = Fault::new("CKPT-1", "the file is cut short", "download it again");
    let request = bench.posted[0].1.id;
    bench.reply(Lane::Main, request, Say::Failed { fault });
    bench.posted.remove(0);
    bench.serve();
    let game = bench.uci();
    assert_eq!(bench.view()["explore"]["main"]["fault"]["code"], "CKPT-1");
    bench.json(r#"{"do":"model","lane":"main","name":"transition"}"#);
    bench.serve();
    assert_eq!(bench.view()["explore"]["main"]["exact"], true, "tried again");
    bench.json(r#"{"do":"crashed","lane":"main","message":"unreachable"}"#);
    let view = bench.view();
    assert_eq!(
        (&view["explore"]["main"]["crashed"], bench.uci()),
        (&Value::Bool(true), game.clone())
    );
    bench.play("a1", "a1");
    assert!(bench.posted.is_empty());
    bench.json(r#"{"do":"restart","lane":"main"}"#);
    assert!(bench.others.contains(&Effect::StartEngine { lane: Lane::Main }));
    bench.serve();
    let view = bench.view();
    assert_eq!((&view["explore"]["main"]["crashed"], bench.uci()), (&Value::Bool(false), game));
    assert_eq!(view["explore"]["main"]["exact"], true);
    let nonsense = bench.session.hear(Lane::Main, "{");
    assert!(matches!(nonsense[..], [Effect::Toast { .. }]));
}

#[test]
fn copies_are_of_what_is_on_screen() {
    let mut bench = Bench::started("");
    bench.enter("e4 e5");
    for (what, expected) in
        [("fen", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"), ("uci", "e2e4 e7e5")]
    {
        bench.json(&format!(r#"{{"do":"copy","what":"{what}"}}"#));
        let Some(Effect::Copy { text, link: false, .. }) = bench.others.last() else { panic!() };
        assert_eq!(text, expected);
    }
    bench.json(r#"{"do":"copy","what":"link"}"#);
    let Some(Effect::Copy { text, link: true, .. }) = bench.others.last() else { panic!() };
    assert_eq!(Bench::started(text).uci(), "e2e4 e7e5");
}

#[test]
fn the_gallery_holds_failures_that_were_found() {
    let mut bench = Bench::started("");
    bench.json(r#"{"do":"dialog","dialog":"gallery"}"#);
    let (lane, request, _) = bench.posted.last().unwrap().clone();
    let Ask::Grade(job) = &request.ask else { panic!("{request:?}") };
    assert!(job.model && job.sets.len() == 1);
    let game = crate::gallery::Gallery::new().line(2).unwrap();
    let worst = WorstGame {
        tracker: "transformer-d128".into(),
        dataset: "classics".into(),
        game: 2,
        title: None,
        tokens: game.moves().iter().map(|token| token.id()).collect(),
        first_mistake: 16,
        exact_steps: 17,
        wrong_labels: 100,
    };
    bench.posted.clear();
    bench.reply(lane, request.id, graded(Baseline::NaiveMover, vec![worst]));
    let view = bench.view();
    let sections = view["gallery"].as_array().unwrap();
    assert_eq!(sections[0]["title"], "Where transformer-d128 goes wrong");
    let item = sections[0]["items"][0]["item"].as_u64().unwrap();
    bench.json(&format!(r#"{{"do":"gallery","item":{item}}}"#));
    assert_eq!((bench.session.ply, bench.uci()), (16, game.uci()));
    assert_eq!(bench.view()["explore"]["second"]["name"], "transformer-d128");
}

#[test]
fn the_badge_says_what_computes() {
    let mut bench = Bench::started("");
    let backend = Backend { kind: BackendKind::Cpu, adapter: None, why: Some("no WebGPU".into()) };
    bench.reply(Lane::Main, 0, Say::Ready { backend, version: "0".into() });
    assert_eq!(bench.view()["badge"]["text"], "CPU");
    assert_eq!(bench.view()["badge"]["why"], "no WebGPU");
}
