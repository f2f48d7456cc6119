//! The transition machine: its kernels against plain double precision, its trainer's promises, and both ways to run it.

use crate::transition_plain::Plain;
use cwm_core::{
    chess::{
        EnPassant, MoveToken, State, Trajectory,
        label::{LABELS, LOGITS, logit_range},
        random::RandomPlay,
    },
    data::{
        GameResult, Games,
        transition::{Sampling, TransitionSampler, Transitions},
    },
    tracker::{Tracker, ready},
};
use cwm_models::{
    ModelConfig, ModelTracker, NamedTensor, Parameters, TransitionConfig,
    checkpoint::{Checkpoint, WriteOptions, write},
    device::DeviceChoice,
    feedback::Feedback,
    train::{OptimizerConfig, ScheduleConfig},
    transition::{Clocks, Transition, TransitionTracker, TransitionTrainer},
};

fn games(count: u64) -> Games {
    let mut games = Games::new();
    for seed in 0..count {
        games.push("", &RandomPlay::new(seed, 0).play().unwrap().moves, GameResult::Unknown);
    }
    games
}

fn batch(cells: usize, steps: usize, number: u64) -> Transitions {
    let games = games(12);
    let sampling = Sampling { cells, ..Sampling::default() };
    TransitionSampler::new(&games, EnPassant::Always, &sampling, 3).draw(number, steps).0
}

fn trainer(config: &TransitionConfig) -> TransitionTrainer {
    let optimizer = OptimizerConfig { weight_decay: 0.01, ..OptimizerConfig::default() };
    let schedule = ScheduleConfig { warmup_steps: 3, decay_steps: 10, ..ScheduleConfig::default() };
    TransitionTrainer::new(config, &optimizer, &schedule, 5).unwrap()
}

fn small() -> TransitionConfig {
    TransitionConfig { context_hidden: 7, context_width: 6, cell_hidden: 5, ..Default::default() }
}

#[test]
fn loss_and_gradients_are_those_of_plain_double_precision() {
    // More steps than run through the network together, and all cells of a few; and what can be left out.
    let absolute = TransitionConfig { relative_positions: false, ..small() };
    let bytes = TransitionConfig { clocks: Clocks::Bytes, ..small() };
    for (cells, steps, config) in
        [(7, 70, small()), (64, 9, small()), (16, 40, absolute), (16, 40, bytes)]
    {
        let batch = batch(cells, steps, 1);
        let mut trainer = trainer(&config);
        for _ in 0..5 {
            trainer.step(&batch).unwrap();
        }
        let parameters = trainer.named_parameters();
        let (loss, gradients) = trainer.loss_and_gradients(&batch).unwrap();
        let plain = Plain { parameters: &parameters, moved: None };
        let expected = plain.loss(&batch);
        assert!((loss - expected).abs() < 1e-5 * expected, "{loss} is not {expected}");

        let shapes = trainer.config().parameter_shapes();
        for ((name, _), gradient) in shapes.iter().zip(&gradients) {
            let largest = gradient.iter().fold(0.0_f32, |max, x| max.max(x.abs()));
            assert!(largest > 0.0, "{name} gets no gradient");
            // Among them one that surely has a gradient: tables are larger than what a batch reads of them.
            let steepest = (0..gradient.len())
                .max_by(|&a, &b| gradient[a].abs().total_cmp(&gradient[b].abs()))
                .unwrap();
            for pick in 0..3 {
                let index = (steepest + pick * 7919) % gradient.len();
                let at = |by| Plain { moved: Some((name, index, by)), ..plain }.loss(&batch);
                let slope = (at(1e-6) - at(-1e-6)) / 2e-6;
                let error = (slope - f64::from(gradient[index])).abs();
                assert!(
                    error < 1e-4 * f64::from(largest) + 1e-6,
                    "{name}[{index}]: {} is not {slope}",
                    gradient[index]
                );
            }
        }
    }
}

fn trained() -> TransitionTrainer {
    let mut trainer = trainer(&TransitionConfig {
        context_hidden: 24,
        context_width: 16,
        cell_hidden: 16,
        ..Default::default()
    });
    for number in 0..40 {
        trainer.step(&batch(16, 128, number)).unwrap();
    }
    trainer
}

#[test]
fn grading_pushing_and_probabilities_agree() {
    let tracker = trained().tracker();
    let games: Vec<Trajectory> = (50..75)
        .map(|seed| {
            let moves = RandomPlay::new(seed, 0).play().unwrap().moves;
            Trajectory::replay(&moves[..moves.len().min(20 + 9 * (seed as usize - 50))])
        })
        .collect();
    let games: Vec<&Trajectory> = games.iter().collect();
    let graded = ready(tracker.grade(&games)).unwrap().unwrap();
    for (game, graded) in games.iter().zip(&graded) {
        assert_eq!(graded.states.len(), game.steps());
        let mut memory = tracker.start(3);
        for (step, &token) in game.tokens().iter().enumerate() {
            if step == 9 {
                let mut fork = memory.clone();
                ready(tracker.push(&mut fork, &[MoveToken::START, token, token])).unwrap().unwrap();
            }
            let states = ready(tracker.push(&mut memory, &[token; 3])).unwrap().unwrap();
            assert_eq!(states, [graded.states[step]; 3], "step {step}");
        }
        let p = tracker.probabilities(game.tokens());
        // Enough branches for two parts.
        let mut memory = tracker.start(17);
        for (step, (&token, p)) in game.tokens().iter().zip(p.chunks(LOGITS)).enumerate() {
            let answers = tracker.answer(&mut memory, &[token; 17]).unwrap();
            assert_eq!(answers.states, [graded.states[step]; 17], "step {step}");
            assert_eq!(answers.finite, [true; 17]);
            for branch in answers.probabilities.chunks(LOGITS) {
                let apart = branch.iter().zip(p).map(|(a, b)| (a - b).abs());
                assert!(apart.fold(0.0, f32::max) < 1e-5, "step {step}");
            }
        }
        let mut loss = 0.0;
        for (step, p) in p.chunks_exact(LOGITS).enumerate() {
            for label in 0..LABELS {
                let p = &p[logit_range(label)];
                let sum: f64 = p.iter().map(|&x| f64::from(x)).sum();
                assert!((sum - 1.0).abs() < 1e-4, "step {step}, label {label}: {sum}");
                loss -= f64::from(p[usize::from(game.states()[step].labels()[label])]).ln();
                if label < 71 {
                    // Classes may tie: the one named is no less probable than any.
                    let named = p[usize::from(graded.states[step].labels()[label])];
                    let best = p.iter().copied().fold(0.0, f32::max);
                    assert!(named >= best - 1e-6, "step {step}, label {label}: {named}, {best}");
                }
            }
        }
        let found = graded.loss_sum.unwrap();
        assert!((found - loss).abs() < 1e-3 * loss, "{found} is not {loss}");
    }
    let wrong = ready(tracker.push(&mut tracker.start(2), &[MoveToken::START])).unwrap();
    assert!(wrong.is_err());
}

fn short_games() -> Vec<Trajectory> {
    let game = |seed| Trajectory::replay(&RandomPlay::new(seed, 0).play().unwrap().moves[..30]);
    (80..83).map(game).collect()
}

#[test]
fn with_the_truth_fed_back_every_step_stands_by_itself() {
    let trainer = trained();
    let parameters = trainer.named_parameters();
    let plain = Plain { parameters: &parameters, moved: None };
    let all_cells: Vec<u8> = (0..64).collect();
    let tracker = trainer.tracker().with_feedback(Feedback::Truth);
    for game in short_games() {
        let graded = ready(tracker.grade(&[&game])).unwrap().unwrap().remove(0);
        let mut before = [0; LABELS];
        for (step, &token) in game.tokens().iter().enumerate() {
            let (_, cells) = plain.logits(token.id(), &before, &all_cells);
            for (cell, logits) in cells.iter().enumerate() {
                let named = logits[usize::from(graded.states[step].labels()[cell])];
                let best = logits.iter().copied().fold(f64::MIN, f64::max);
                assert!(named > best - 1e-4, "step {step}, cell {cell}: {named}, {best}");
            }
            before = *game.states()[step].labels();
        }
    }
}

#[test]
fn soft_feedback_starts_alike_and_pushes_as_it_grades() {
    let hard = trained().tracker();
    let soft = hard.clone().with_feedback(Feedback::Soft);
    let mut differences = 0;
    for game in short_games() {
        let start = Trajectory::replay(&[]);
        let first = ready(hard.grade(&[&start])).unwrap().unwrap().remove(0);
        let first_soft = ready(soft.grade(&[&start])).unwrap().unwrap().remove(0);
        assert_eq!(first.states, first_soft.states, "before START nothing is in doubt");
        let (a, b) = (first.loss_sum.unwrap(), first_soft.loss_sum.unwrap());
        assert!((a - b).abs() < 1e-4 * a, "{a} is not {b}");

        let graded = ready(soft.grade(&[&game])).unwrap().unwrap().remove(0);
        let mut memory = soft.start(2);
        for (step, &token) in game.tokens().iter().enumerate() {
            let states = ready(soft.push(&mut memory, &[token; 2])).unwrap().unwrap();
            assert_eq!(states, [graded.states[step]; 2], "step {step}");
        }
        let other = ready(hard.grade(&[&game])).unwrap().unwrap().remove(0);
        differences += usize::from(other.states != graded.states);
    }
    assert!(differences > 0, "soft feedback is no argmax");
}

#[test]
fn machines_with_parts_left_out_train_and_keep_their_config() {
    let absolute = TransitionConfig { relative_positions: false, ..TransitionConfig::default() };
    let bytes = TransitionConfig { clocks: Clocks::Bytes, ..TransitionConfig::default() };
    let batch = batch(16, 256, 0);
    let game = &short_games()[0];
    for config in [absolute, bytes] {
        let mut trainer = trainer(&config);
        let losses: Vec<f64> = (0..8).map(|_| trainer.step(&batch).unwrap().loss).collect();
        assert!(losses[7] < 0.9 * losses[0], "{losses:?}");
        let parameters = trainer.named_parameters();
        let family = ModelConfig::Transition(config.clone());
        let file = write(&family, &parameters, None, WriteOptions::EXACT).unwrap();
        let read = Checkpoint::read(&file, None).unwrap();
        assert_eq!((&read.config, &read.tensors), (&family, &parameters));
        let again = TransitionTracker::new(
            "m",
            Transition::from_parameters(&config, &read.tensors).unwrap(),
        );
        let grade = |tracker: &TransitionTracker| ready(tracker.grade(&[game])).unwrap().unwrap();
        assert_eq!(grade(&again), grade(&trainer.tracker()));
        let p = again.probabilities(game.tokens());
        let last = &p[30 * LOGITS..];
        for label in 0..LABELS {
            let sum: f32 = last[logit_range(label)].iter().sum();
            assert!((sum - 1.0).abs() < 1e-3, "label {label}: {sum}");
        }
    }
}

#[test]
fn broken_networks_are_graded_as_such() {
    let mut parameters = trained().named_parameters();
    parameters.get_mut("context.hidden.bias").unwrap().data[0] = f32::NAN;
    let config = TransitionConfig {
        context_hidden: 24,
        context_width: 16,
        cell_hidden: 16,
        ..Default::default()
    };
    let network = Transition::from_parameters(&config, &parameters).unwrap();
    let game = Trajectory::replay(&RandomPlay::new(3, 0).play().unwrap().moves[..10]);
    let tracker = TransitionTracker::new("broken", network);
    let graded = ready(tracker.grade(&[&game])).unwrap().unwrap();
    assert_eq!(graded[0].non_finite_steps, (0..11).collect::<Vec<_>>());
}

#[test]
fn resuming_and_threads_change_nothing() {
    let batches: Vec<Transitions> = (0..4).map(|number| batch(16, 200, number)).collect();
    let mut whole = trainer(&small());
    batches.iter().for_each(|batch| {
        whole.step(batch).unwrap();
    });
    let mut first = trainer(&small());
    batches[..2].iter().for_each(|batch| {
        first.step(batch).unwrap();
    });
    let state = first.save_state();
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut second = trainer(&small());
            second.load_state(&state).unwrap();
            assert_eq!(second.steps_done(), 2);
            batches[2..].iter().for_each(|batch| {
                second.step(batch).unwrap();
            });
            assert!(second.save_state() == whole.save_state(), "{threads} threads");
        });
    }
    let mut other = trainer(&TransitionConfig::default());
    assert!(other.load_state(&state).is_err());
    let mut bad = batches[0].clone();
    bad.weights.pop();
    assert!(other.step(&bad).unwrap_err().to_string().contains("weights"));
    let mut bad = batches[0].clone();
    bad.after[64] = 2;
    assert!(other.step(&bad).unwrap_err().to_string().contains("label 64 is 2"));
}

#[test]
fn training_lowers_the_loss_and_moves_every_parameter() {
    let batch = batch(16, 256, 0);
    let mut trainer = trainer(&TransitionConfig::default());
    let before = trainer.named_parameters();
    let losses: Vec<f64> = (0..8).map(|_| trainer.step(&batch).unwrap().loss).collect();
    assert!(losses[7] < 0.8 * losses[0], "{losses:?}");
    for (name, after) in trainer.named_parameters() {
        assert!(before[&name].data != after.data, "{name} stayed");
    }
}

#[test]
fn checkpoints_are_small_and_read_back() {
    let config = TransitionConfig::default();
    let network = Transition::new(&config, 1).unwrap();
    let parameters = network.named_parameters();
    let family = ModelConfig::Transition(config);
    let small = write(&family, &parameters, None, WriteOptions::SMALL).unwrap();
    assert!(small.len() < 200_000, "{} bytes", small.len());
    let file = write(&family, &parameters, None, WriteOptions::EXACT).unwrap();
    let read = Checkpoint::read(&file, None).unwrap();
    assert_eq!((&read.config, &read.tensors), (&family, &parameters));
    let summary = read.describe();
    assert_eq!(summary.preset.as_deref(), Some("transition"));
    assert_eq!(summary.stored_parameters, summary.parameters);
    let parts: Vec<_> = summary.parts.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(parts, ["context", "heads", "cell"]);

    let device = DeviceChoice::CPU.open().unwrap();
    let game = Trajectory::replay(&RandomPlay::new(1, 0).play().unwrap().moves);
    let grade = |parameters: &Parameters| {
        let tracker = ModelTracker::from_parameters("m", &family, parameters, &device).unwrap();
        ready(tracker.grade(&[&game])).unwrap().unwrap()
    };
    assert_eq!(grade(&read.tensors), grade(&parameters));

    let mut lacking = parameters.clone();
    lacking.remove("heads.bias");
    let fault = Transition::from_parameters(&TransitionConfig::default(), &lacking).unwrap_err();
    assert!(fault.to_string().contains("heads.bias"), "{fault}");
    lacking.insert("heads.bias".into(), NamedTensor { shape: vec![3], data: vec![0.0; 3] });
    assert_eq!(
        write(&family, &lacking, None, WriteOptions::SMALL).unwrap_err().code(),
        "CKPT-SHAPE"
    );
}

#[test]
fn odd_tokens_and_states_are_answered() {
    let tracker = trained().tracker();
    let mut memory = tracker.start(1);
    for id in (0..=20_481).step_by(577).chain([20_480, 20_481]) {
        let token = MoveToken::new(id).unwrap();
        let states = ready(tracker.push(&mut memory, &[token])).unwrap().unwrap();
        assert!(State::new(*states[0].labels()).is_ok());
    }
}
