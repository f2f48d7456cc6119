//! Random play against the reference's generator: numbers, move order, ends of games, and whole games by hash.

use std::fmt::Write as _;

use cwm_core::chess::{
    MoveToken, Trajectory,
    mt19937::PythonRandom,
    order,
    random::{RandomPlay, Referee, Termination},
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use shakmaty::{
    CastlingMode, Chess, FromSetup, Position, PositionError, PositionErrorKinds, fen::Fen,
    uci::UciMove,
};

use super::json;

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).collect()
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

/// A position from a FEN, also one that no game reaches; shakmaty has none where the side not to move is in check.
fn position(fen: &str) -> Option<Chess> {
    let setup = fen.parse::<Fen>().unwrap().into_setup();
    Chess::from_setup(setup, CastlingMode::Standard)
        .or_else(PositionError::ignore_too_much_material)
        .or_else(PositionError::ignore_impossible_check)
        .or_else(PositionError::ignore_invalid_castling_rights)
        .map_err(|e| {
            assert!(e.kinds().contains(PositionErrorKinds::OPPOSITE_CHECK), "{fen}: {e}");
        })
        .ok()
}

fn ordered_ucis(position: &Chess) -> Vec<String> {
    let mut moves = position.legal_moves();
    order::sort(position, &mut moves);
    moves.iter().map(|&m| MoveToken::from_move(m).to_string()).collect()
}

#[test]
fn draws_and_shuffles_are_cpythons() {
    let golden = json("random/rng.json");
    for case in golden["mt19937"].as_array().unwrap() {
        let seed: i128 = case["seed"].as_str().unwrap().parse().unwrap();
        let seed = u64::try_from(seed.unsigned_abs()).unwrap();
        let mut rng = PythonRandom::new(seed);
        let words: Vec<u64> = (0..10).map(|_| rng.next_u32().into()).collect();
        assert_eq!(words, numbers(&case["first10_u32"]), "seed {seed}");
        let mut rng = PythonRandom::new(seed);
        let drawn: Vec<u64> = numbers(&case["randrange_args"])
            .iter()
            .map(|&n| rng.randrange(n as u32).into())
            .collect();
        assert_eq!(drawn, numbers(&case["randrange_results"]), "seed {seed}");
    }
    for case in golden["shard_shuffle"].as_array().unwrap() {
        let field = |name: &str| case[name].as_u64().unwrap();
        let mut shards: Vec<u64> = (0..field("n")).collect();
        PythonRandom::new(field("seed") + 1009 * field("epoch")).shuffle(&mut shards);
        assert_eq!(shards, numbers(&case["order"]));
    }
}

#[test]
fn legal_moves_come_in_the_references_order() {
    for case in json("random/movegen_cases.json").as_array().unwrap() {
        let position = position(case["fen"].as_str().unwrap()).unwrap();
        let expected: Vec<&str> =
            case["legal"].as_array().unwrap().iter().map(|m| m.as_str().unwrap()).collect();
        assert_eq!(ordered_ucis(&position), expected, "{}", case["label"]);
        let in_check = position.is_check();
        assert_eq!(in_check, case["in_check"].as_bool().unwrap(), "{}", case["label"]);
        for (index, uci) in expected.iter().enumerate() {
            let m = order::nth(&position.legal_moves(), in_check, index);
            assert_eq!(MoveToken::from_move(m).to_string(), *uci, "{}", case["label"]);
        }
    }
}

#[test]
fn games_end_where_the_reference_ends_them() {
    let mut unbuildable = Vec::new();
    for case in json("random/gameover_cases.json").as_array().unwrap() {
        let label = &case["label"];
        let mut referee = Referee::default();
        let fen = case["fen"].as_str().unwrap();
        let Some(position) = position(fen) else {
            unbuildable.push(fen.to_string());
            continue;
        };
        referee.reset(position);
        for uci in case["moves"].as_array().unwrap() {
            let uci: UciMove = uci.as_str().unwrap().parse().unwrap();
            referee.play(uci.to_move(referee.position()).unwrap());
        }
        let legal = referee.position().legal_moves();
        let verdict = referee.verdict(&legal, referee.position().is_check());
        let name = |t| match t {
            Termination::Checkmate => "CHECKMATE",
            Termination::Stalemate => "STALEMATE",
            Termination::InsufficientMaterial => "INSUFFICIENT_MATERIAL",
            Termination::SeventyFiveMoves => "SEVENTYFIVE_MOVES",
            Termination::FiftyMoves => "FIFTY_MOVES",
            Termination::FivefoldRepetition => "FIVEFOLD_REPETITION",
            Termination::ThreefoldRepetition => "THREEFOLD_REPETITION",
            Termination::PlyLimit => "broken off by no referee",
        };
        assert_eq!(verdict.map(name), case["termination_claim"].as_str(), "{label}");
        let unclaimed = referee.verdict_without_claims(&legal, referee.position().is_check());
        assert_eq!(unclaimed.map(name), case["termination_noclaim"].as_str(), "{label}");
        let result = verdict.map_or("*", |t| referee.result(t).as_str());
        assert_eq!(result, case["result_claim"].as_str().unwrap(), "{label}");
    }
    assert_eq!(unbuildable, ["k7/8/1K6/8/8/8/8/7Q w - - 99 80"]);
}

#[test]
fn a_thousand_games_are_the_references() {
    let golden = json("random/golden.json");
    let plies = numbers(&golden["plies"]);
    let mut moves_hash = Sha256::new();
    let mut states_hash = Sha256::new();
    let mut line = String::new();
    for (index, game) in RandomPlay::new(0, 10).take(1000).enumerate() {
        let context = format!("game {index}");
        assert_eq!(game.id, format!("cwm_random_{index:05}"));
        assert_eq!(game.moves.len() as u64, plies[index], "{context}");
        let result = match golden["results"][index].as_str().unwrap() {
            "w" => "1-0",
            "b" => "0-1",
            _ => "1/2-1/2",
        };
        assert_eq!(game.result.as_str(), result, "{context}");
        let termination = match game.termination {
            Termination::Checkmate => "checkmate",
            Termination::Stalemate => "stalemate",
            Termination::InsufficientMaterial => "insufficient",
            Termination::FiftyMoves => "fifty-claim-next",
            Termination::ThreefoldRepetition => "threefold-claim-next",
            Termination::SeventyFiveMoves => "seventyfive",
            Termination::FivefoldRepetition | Termination::PlyLimit => panic!("draws are claimed"),
        };
        assert_eq!(termination, golden["terminations"][index].as_str().unwrap(), "{context}");

        let trajectory = Trajectory::replay(&game.moves);
        line.clear();
        for (step, token) in trajectory.tokens().iter().enumerate() {
            let gap = if step == 0 { "" } else { " " };
            write!(line, "{gap}{}", token.id()).unwrap();
        }
        line.push('\n');
        moves_hash.update(&line);
        line.clear();
        for state in trajectory.states() {
            for (label, class) in state.labels().iter().enumerate() {
                let gap = if label == 0 { "" } else { " " };
                write!(line, "{gap}{class}").unwrap();
            }
            line.push('\n');
        }
        states_hash.update(&line);

        if index == 0 {
            let ids: Vec<u64> = trajectory.tokens().iter().map(|t| t.id().into()).collect();
            assert_eq!(ids, numbers(&golden["game0_moves"]));
            let last: Vec<u64> =
                trajectory.states().last().unwrap().labels().iter().map(|&c| c.into()).collect();
            assert_eq!(last, numbers(&golden["game0_last_state"]));
        }
        let after = &golden["after_games"][(index + 1).to_string()];
        if after.is_object() {
            assert_eq!(
                hex(moves_hash.clone()),
                after["moves_sha256"].as_str().unwrap(),
                "{context}"
            );
            assert_eq!(
                hex(states_hash.clone()),
                after["states_sha256"].as_str().unwrap(),
                "{context}"
            );
        }
    }
}

#[test]
fn every_list_of_legal_moves_in_a_hundred_games_is_the_references() {
    let golden = json("random/golden.json");
    let mut hash = Sha256::new();
    for game in RandomPlay::new(0, 10).take(100) {
        let mut position = Chess::default();
        for token in game.moves.iter().map(Some).chain([None]) {
            hash.update(ordered_ucis(&position).join(" "));
            hash.update("\n");
            if let Some(token) = token {
                let m = token.to_uci().unwrap().to_move(&position).unwrap();
                position.play_unchecked(m);
            }
        }
    }
    assert_eq!(hex(hash), golden["legal_moves_sha256_first_100_games"].as_str().unwrap());
}

#[test]
fn short_games_leave_gaps_in_the_numbering() {
    let all: Vec<_> = RandomPlay::new(5, 0).take(60).collect();
    let long: Vec<_> = RandomPlay::new(5, 150).take(20).collect();
    let expected: Vec<_> = all.into_iter().filter(|g| g.moves.len() >= 300).take(20).collect();
    assert!(expected.iter().any(|g| !g.id.ends_with("00000")));
    assert_eq!(long[..expected.len().min(20)], expected[..]);
}
