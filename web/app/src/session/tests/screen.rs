//! Random games, links, keys, and what is under the pointer.

use super::*;

#[test]
fn random_games_are_those_of_the_command_line() {
    let mut bench = Bench::started("");
    bench.json(r#"{"do":"random","seed":"42","policy":"uniform"}"#);
    let game = RandomPlay::new(42, 10).next().unwrap();
    assert_eq!(bench.session.line.moves(), game.moves);
    let view = bench.view();
    assert_eq!(view["line"]["title"], "Random legal game, seed 42");
    assert_eq!(view["line"]["origin"]["seed"], "42");
    bench.json(r#"{"do":"random","seed":"x","policy":"uniform"}"#);
    assert_eq!(bench.session.line.moves(), game.moves, "no seed, no game");
    bench.key("r");
    let first = bench.uci();
    bench.key("r");
    assert_ne!(bench.uci(), first, "each has a seed of its own");
    bench.json(r#"{"do":"random","seed":"1","policy":"castling"}"#);
    let castling = RandomPlay::with_policy(Policy::Castling, 1, 10).next().unwrap();
    assert_eq!(bench.session.line.moves(), castling.moves);
}

#[test]
fn links_bring_everything_back() {
    let mut bench = Bench::started("");
    bench.json(r#"{"do":"random","seed":"3","policy":"uniform"}"#);
    bench.serve();
    bench.json(r#"{"do":"go","to":{"ply":17}}"#);
    bench.json(r#"{"do":"view","view":"model"}"#);
    bench.json(r#"{"do":"flip"}"#);
    bench.json(r#"{"do":"model","lane":"main","name":"naive-mover"}"#);
    let (hash, _) = bench.hashes.last().unwrap().clone();
    assert!(hash.len() < 2000);
    let other = Bench::started(&format!("#{hash}"));
    let (a, b) = (bench.view(), other.view());
    for part in ["ply", "view", "flipped", "fen", "main"] {
        assert!(a["explore"][part] == b["explore"][part], "{part}");
    }
    assert_eq!(other.session.line.moves(), bench.session.line.moves());
    // Back and Forward.
    let earlier = bench.hashes.iter().find(|(_, push)| *push).unwrap().0.clone();
    bench.run(Command::Hash { hash: earlier });
    assert_eq!(bench.session.ply, 0);
    bench.run(Command::Hash { hash });
    bench.serve();
    assert!(bench.view()["explore"]["main"] == a["explore"]["main"]);
    bench.run(Command::Hash { hash: "#g=3.zzz".into() });
    assert!(bench.toasts.last().unwrap().contains("damaged"));
    assert_eq!(bench.session.line.plies(), 21, "the example again");
}

#[test]
fn keys_do_what_the_table_says_and_nothing_behind_a_dialog() {
    let mut bench = Bench::started("");
    bench.json(r#"{"do":"model","lane":"main","name":"naive-mover"}"#);
    let ply = |bench: &Bench| bench.session.ply;
    bench.key("Home");
    bench.key("ArrowRight");
    assert_eq!(ply(&bench), 1);
    bench.key("ArrowDown");
    assert_eq!(ply(&bench), 21);
    bench.key("m");
    let first = ply(&bench);
    assert_eq!(Some(first), bench.session.main.answers.first_mistake());
    bench.key("e");
    assert!(ply(&bench) > first);
    bench.key("E");
    assert_eq!(ply(&bench), first);
    bench.key("d");
    assert_eq!(bench.session.view, View::Truth);
    bench.key("f");
    assert!(bench.session.flipped);
    bench.key("/");
    assert_eq!(bench.others.last(), Some(&Effect::FocusInput));
    bench.key("?");
    let view = bench.view();
    assert_eq!(view["help"].as_array().unwrap().len(), crate::keys::TABLE.len());
    bench.key("ArrowLeft");
    assert_eq!(ply(&bench), first);
    bench.key("?");
    assert_eq!(bench.view()["dialog"], Value::Null);
}

#[test]
fn squares_and_labels_are_inspected() {
    let mut bench = Bench::started("");
    bench.json(r#"{"do":"inspect","label":61}"#);
    assert!(bench.session.guided, "looking changes nothing");
    let view = bench.view();
    assert_eq!(view["explore"]["inspected"]["title"], "f1");
    assert_eq!(view["explore"]["main"]["likely"][0]["percent"], "75.0 %");
    assert_eq!(view["explore"]["main"]["labels"].as_array().unwrap().len(), 11);
    bench.json(r#"{"do":"model","lane":"second","name":"naive-mover"}"#);
    let second = &bench.view()["explore"]["second"];
    assert!(second["wrong_labels"].as_array().unwrap().len() > 1);
    bench.json(r#"{"do":"inspect","label":65}"#);
    let second = &bench.view()["explore"]["second"];
    assert!(
        !second["inspected_wrong"].as_array().unwrap().is_empty(),
        "a right that it never drops"
    );
    bench.json(r#"{"do":"inspect","label":75}"#);
    assert_eq!(bench.view()["explore"]["inspected"], Value::Null);
}
