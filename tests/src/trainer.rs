//! The trainer's promises: resumed equals uninterrupted, threads do not matter, bad numbers change nothing.

use cwm_core::{
    chess::{EnPassant, MoveToken, Trajectory, label::LABELS, random::RandomPlay},
    data::batch::Batch,
    tracker::Tracker,
};
use cwm_models::{
    Model, ModelConfig, Predictor, TransformerConfig,
    device::DeviceChoice,
    train::{OptimizerConfig, ScheduleConfig, Trainer},
};
use proptest::prelude::*;

/// Games of uniformly random play.
fn games(seed: u64, count: usize) -> Vec<Vec<MoveToken>> {
    let mut play = RandomPlay::new(seed, 0);
    (0..count).map(|_| play.play().unwrap().moves).collect()
}

fn batch(games: &[Vec<MoveToken>]) -> Batch {
    let games: Vec<&[MoveToken]> = games.iter().map(Vec::as_slice).collect();
    Batch::new(&games, EnPassant::Always)
}

fn trainer(dropout: f64) -> Trainer {
    let mut config = TransformerConfig::new(16, 2, 2);
    config.dropout = dropout;
    let optimizer = OptimizerConfig { weight_decay: 0.01, ..OptimizerConfig::default() };
    let schedule = ScheduleConfig { warmup_steps: 3, decay_steps: 10, ..ScheduleConfig::default() };
    let config = ModelConfig::Transformer(config);
    Trainer::new(&config, &optimizer, &schedule, 5, &DeviceChoice::CPU).unwrap()
}

/// Batches of a few ragged games.
fn batches() -> Vec<Batch> {
    let mut games = games(1, 12);
    for (i, game) in games.iter_mut().enumerate() {
        game.truncate(10 + 37 * i % 190);
    }
    games.chunks(3).map(batch).collect()
}

#[test]
fn a_resumed_run_equals_an_uninterrupted_one_bit_for_bit() {
    let batches = batches();
    let mut whole = trainer(0.1);
    let reports: Vec<_> = batches.iter().map(|batch| whole.step(batch).unwrap()).collect();
    let mut first = trainer(0.1);
    batches[..2].iter().for_each(|batch| {
        first.step(batch).unwrap();
    });
    let state = first.save_state();
    let mut second = trainer(0.1);
    second.load_state(&state).unwrap();
    assert_eq!(second.steps_done(), 2);
    for (batch, report) in batches[2..].iter().zip(&reports[2..]) {
        assert_eq!(second.step(batch).unwrap(), *report);
    }
    assert!(second.save_state() == whole.save_state(), "states differ");
    assert!(second.full_parameters() == whole.full_parameters(), "full parameters differ");
}

#[test]
fn results_do_not_depend_on_threads() {
    let batch = batch(&games(2, 9));
    let state = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut trainer = trainer(0.1);
            let report = trainer.step(&batch).unwrap();
            (report, trainer.save_state())
        })
    };
    let (report, one) = state(1);
    for threads in [2, 5] {
        let (other_report, other) = state(threads);
        assert_eq!(report, other_report, "{threads} threads");
        assert!(one == other, "{threads} threads");
    }
}

#[test]
fn dropout_depends_on_the_step_and_the_seed() {
    let batch = &batches()[0];
    let mut trainer = trainer(0.5);
    let (first, _) = trainer.loss_and_gradients(batch).unwrap();
    assert_eq!(trainer.loss_and_gradients(batch).unwrap().0, first);
    trainer.step(batch).unwrap();
    let moved = trainer.loss_and_gradients(batch).unwrap().0;
    assert!((moved - first).abs() > 1e-6);
}

#[test]
fn numbers_that_are_not_finite_change_nothing() {
    let batch = &batches()[0];
    let healthy = trainer(0.0);
    let mut parameters = healthy.model().named_parameters();
    parameters.get_mut("blocks.1.mlp.out_proj.bias").unwrap().data[3] = f32::NAN;
    let model =
        Model::from_parameters(healthy.model().config(), &parameters, healthy.model().device());
    let (optimizer, schedule) = (OptimizerConfig::default(), ScheduleConfig::default());
    let mut sick = Trainer::from_model(model.unwrap(), &optimizer, &schedule, 5).unwrap();
    let report = sick.step(batch).unwrap();
    assert!(report.skipped_non_finite && !report.loss.is_finite());
    assert_eq!((report.step, sick.steps_done()), (0, 0));
    let after = sick.model().named_parameters();
    for (name, before) in &parameters {
        let same =
            before.data.iter().zip(&after[name].data).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same, "{name} changed");
    }
}

#[test]
fn batches_that_do_not_fit_are_refused_by_name() {
    let mut trainer = trainer(0.0);
    let good = batches().remove(0);
    let mut refuse = |change: &dyn Fn(&mut Batch), expected: &str| {
        let mut bad = good.clone();
        change(&mut bad);
        let error = trainer.step(&bad).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refuse(&|b| b.tokens[1] = 1, "no legal game");
    refuse(&|b| b.tokens[1] = 60_000, "outside the vocabulary");
    refuse(&|b| b.labels[LABELS + 64] = 2, "label 64 is 2");
    refuse(&|b| b.labels.truncate(9), "75 labels");
    refuse(&|b| b.lengths[0] = 0, "no step");
    refuse(&|b| b.steps += 1, "tokens");
    refuse(&|b| b.games = 0, "no games");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn damaged_states_are_errors(position in 0_usize..1_000_000, byte: u8, cut in 0_usize..1_000_000) {
        let mut trainer = trainer(0.0);
        let state = trainer.save_state();
        let mut damaged = state.clone();
        // Most of a state is numbers, which may be any: aim at the header.
        let place = position % 6000;
        damaged[place] = byte;
        let _ = trainer.load_state(&damaged);
        prop_assert!(trainer.load_state(&state[..cut % state.len()]).is_err());
        prop_assert!(trainer.load_state(&state).is_ok());
        prop_assert!(trainer.save_state() == state);
    }
}

#[test]
fn training_lowers_the_loss_and_moves_every_parameter() {
    let batch = &batches()[0];
    let mut trainer = trainer(0.0);
    let before = trainer.model().named_parameters();
    let losses: Vec<f64> = (0..10).map(|_| trainer.step(batch).unwrap().loss).collect();
    assert!(losses.windows(2).all(|pair| pair[1] < pair[0]), "{losses:?}");
    for (name, after) in trainer.model().named_parameters() {
        assert!(before[&name].data != after.data, "{name} stayed");
    }
}

fn block_on<F: std::future::Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => panic!("on the CPU futures are ready at once"),
    }
}

#[test]
fn both_forms_and_both_ways_of_reading_agree() {
    let mut trainer = trainer(0.1);
    batches().iter().for_each(|batch| {
        trainer.step(batch).unwrap();
    });
    let fused = Predictor::new("fused", trainer.model().clone());
    let portable = Predictor::new("portable", trainer.model().clone().into_portable());
    let games: Vec<Trajectory> =
        games(3, 5).iter().map(|moves| Trajectory::replay(moves)).collect();
    let games: Vec<&Trajectory> = games.iter().collect();
    let graded = block_on(fused.grade(&games)).unwrap();
    let other = block_on(portable.grade(&games)).unwrap();
    for (a, b) in graded.iter().zip(&other) {
        assert_eq!(a.states, b.states);
        let (a, b) = (a.loss_sum.unwrap(), b.loss_sum.unwrap());
        assert!((a - b).abs() < 1e-4 * a, "{a} {b}");
    }
    for (game, graded) in games.iter().zip(&graded) {
        let whole = block_on(fused.probabilities(game.tokens())).unwrap();
        assert_eq!(whole.len(), game.steps() * 1878);
        // Two branches that read the same game, one of them forked on the way.
        let mut memory = fused.start(2);
        for (step, &token) in game.tokens().iter().enumerate() {
            if step == 70 {
                let mut fork = memory.clone();
                block_on(fused.push(&mut fork, &[MoveToken::START, token])).unwrap();
            }
            let states = block_on(fused.push(&mut memory, &[token, token])).unwrap();
            assert_eq!(states, [graded.states[step]; 2], "step {step}");
        }
        let mut memory = fused.start(1);
        for (step, (&token, whole)) in game.tokens().iter().zip(whole.chunks(1878)).enumerate() {
            let answers = block_on(fused.answer(&mut memory, &[token])).unwrap();
            assert_eq!(
                (&answers.states[..], &answers.finite[..]),
                (&[graded.states[step]][..], &[true][..])
            );
            let apart = answers.probabilities.iter().zip(whole).map(|(a, b)| (a - b).abs());
            assert!(apart.fold(0.0, f32::max) < 1e-5, "step {step}");
        }
    }
}
