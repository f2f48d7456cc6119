//! Baselines on real games. The counts were made once with python-chess 1.11.2, by a second implementation of the
//! baselines' definitions and of random play; the games' hash is the golden one of the reference's generator.

use std::{convert::Infallible, ops::ControlFlow};

use cwm_core::{
    baseline::Baseline,
    chess::{EnPassant, Trajectory, parse::parse_games, random::RandomPlay},
    evaluate::{BatchBudget, Grading, evaluate},
    tracker::{Tracker, ready},
};
use cwm_models::splits::CLASSICS_PGN;
use proptest::prelude::*;

fn grade(baseline: Baseline, games: &[Trajectory]) -> Grading {
    let source = games.iter().map(|game| Ok::<_, Infallible>(game.clone()));
    let budget = BatchBudget::default();
    let run = evaluate(&baseline, "games", source, None, budget, |_| ControlFlow::Continue(()));
    ready(run).expect("baselines never wait").unwrap()
}

/// Exact states and exact games of the three naive movers and the oracle.
fn counts(games: &[Trajectory]) -> [(u64, u64); 4] {
    let naive = [Baseline::NaiveMover, Baseline::NaiveMoverRights, Baseline::NaiveMoverRightsEp];
    let oracle = Baseline::Oracle(EnPassant::Always);
    [naive[0], naive[1], naive[2], oracle].map(|baseline| {
        let counts = grade(baseline, games).counts;
        (counts.exact_steps, counts.exact_games)
    })
}

#[test]
fn counts_on_random_play_are_those_of_python_chess() {
    let games: Vec<_> =
        RandomPlay::new(0, 10).take(100).map(|game| Trajectory::replay(&game.moves)).collect();
    assert_eq!(counts(&games), [(995, 0), (30_616, 0), (31_258, 89), (33_089, 100)]);
    assert_eq!(
        grade(Baseline::StartBoard, &games).moves_sha256,
        "4751358b4108db0abaf4306df2169d0f9bd9a296cca9b88ec3068e62831b934f"
    );
}

#[test]
fn counts_on_the_classics_are_those_of_python_chess() {
    let games: Vec<_> = parse_games(CLASSICS_PGN)
        .unwrap()
        .iter()
        .map(|game| Trajectory::replay(&game.moves))
        .collect();
    assert_eq!(counts(&games), [(505, 0), (553, 0), (699, 1), (2_712, 44)]);
}

#[test]
fn the_oracle_follows_either_en_passant_label() {
    for mode in [EnPassant::Always, EnPassant::Legal] {
        let games: Vec<_> = RandomPlay::new(3, 0)
            .take(20)
            .map(|game| Trajectory::replay_with(&game.moves, mode))
            .collect();
        assert_eq!(grade(Baseline::Oracle(mode), &games).counts.exact_games, 20);
        let other = match mode {
            EnPassant::Always => EnPassant::Legal,
            EnPassant::Legal => EnPassant::Always,
        };
        assert!(grade(Baseline::Oracle(other), &games).counts.exact_games < 20);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Pushing token by token, with a fork at every step that then goes its own way, names what grading names.
    #[test]
    fn pushing_equals_grading_and_forks_are_independent(seed in 0u64..1000) {
        let mut play = RandomPlay::new(seed, 0);
        let (game, other) = (play.next().unwrap(), play.next().unwrap());
        let game = Trajectory::replay(&game.moves);
        for baseline in Baseline::ALL {
            let graded = ready(baseline.grade(&[&game])).unwrap().unwrap().remove(0);
            let mut memory = baseline.start(1);
            for (step, &token) in game.tokens().iter().enumerate().take(80) {
                let pushed = ready(baseline.push(&mut memory, &[token])).unwrap().unwrap();
                prop_assert_eq!(pushed[0], graded.states[step]);
                let mut fork = memory.clone();
                for &token in other.moves.iter().take(2) {
                    ready(baseline.push(&mut fork, &[token])).unwrap().unwrap();
                }
            }
        }
    }
}
