//! A Transformer that reads the labels of the state before: parallel on the truth, step by step on its own answers.

use cwm_core::{
    chess::{EnPassant, MoveToken, State, Trajectory, label::LABELS, random::RandomPlay},
    data::batch::Batch,
    tracker::{Tracker, ready},
};
use cwm_models::{
    Model, ModelConfig, ModelTracker, Predictor, TransformerConfig,
    checkpoint::{Checkpoint, WriteOptions, write},
    device::DeviceChoice,
    feedback::Feedback,
    train::{OptimizerConfig, ScheduleConfig, Trainer},
};

fn config() -> ModelConfig {
    let shape = TransformerConfig::new(16, 2, 2);
    ModelConfig::Transformer(TransformerConfig { label_feedback: true, dropout: 0.0, ..shape })
}

fn model() -> Model {
    Model::new(&config(), 4, &DeviceChoice::CPU.open().unwrap()).unwrap()
}

fn games() -> Vec<Trajectory> {
    let game = |seed| {
        let moves = RandomPlay::new(seed, 0).play().unwrap().moves;
        Trajectory::replay(&moves[..20 + 3 * seed as usize])
    };
    (0..5).map(game).collect()
}

fn batch() -> Batch {
    let games = games();
    let moves: Vec<&[MoveToken]> = games.iter().map(|game| &game.tokens()[1..]).collect();
    Batch::new(&moves, EnPassant::Always)
}

fn trainer(model: Model) -> Trainer {
    Trainer::from_model(model, &OptimizerConfig::default(), &ScheduleConfig::default(), 4).unwrap()
}

#[test]
fn both_forms_learn_alike_and_the_labels_are_learned_from() {
    let batch = batch();
    let fused = trainer(model());
    let portable = trainer(model().into_portable());
    let (loss, gradients) = fused.loss_and_gradients(&batch).unwrap();
    let (other, others) = portable.loss_and_gradients(&batch).unwrap();
    assert!((loss - other).abs() < 1e-5 * other, "{loss} is not {other}");
    let shapes = config().parameter_shapes();
    assert_eq!(shapes[1].0, "label_in.weight");
    for (((name, _), a), b) in shapes.iter().zip(&gradients).zip(&others) {
        let largest = b.iter().fold(0.0_f32, |max, x| max.max(x.abs()));
        assert!(largest > 0.0, "{name} gets no gradient");
        let worst = a.iter().zip(b).fold(0.0_f32, |max, (a, b)| max.max((a - b).abs()));
        assert!(worst < 2e-4 * largest + 1e-7, "{name}: {worst} of {largest}");
    }
    let mut trainer = fused;
    let losses: Vec<f64> = (0..12).map(|_| trainer.step(&batch).unwrap().loss).collect();
    assert!(losses[11] < losses[0], "{losses:?}");
}

#[test]
fn with_the_truth_fed_back_steps_and_whole_games_agree() {
    for model in [model(), model().into_portable()] {
        let predictor = Predictor::new("m", model.clone());
        let truth = predictor.clone().with_feedback(Feedback::Truth).unwrap();
        let games = games();
        let graded = ready(truth.grade(&games.iter().collect::<Vec<_>>())).unwrap().unwrap();
        for (game, graded) in games.iter().zip(&graded) {
            let mut memory = predictor.start(1);
            for (step, &token) in game.tokens().iter().enumerate() {
                let states = ready(predictor.push(&mut memory, &[token])).unwrap().unwrap();
                assert_eq!(states[0], graded.states[step], "step {step}");
                // The answer that was fed back gives way to the truth.
                model.feed_back(&mut memory, game.states()[step].labels());
            }
        }
    }
}

#[test]
fn on_its_own_answers_it_grades_as_it_is_pushed() {
    let mut trainer = trainer(model());
    let batch = batch();
    for _ in 0..10 {
        trainer.step(&batch).unwrap();
    }
    let predictor = trainer.predictor();
    let games = games();
    let all: Vec<&Trajectory> = games.iter().collect();
    let graded = ready(predictor.grade(&all)).unwrap().unwrap();
    let truth = predictor.clone().with_feedback(Feedback::Truth).unwrap();
    assert_ne!(ready(truth.grade(&all)).unwrap().unwrap(), graded);
    for (game, graded) in games.iter().zip(&graded) {
        let mut memory = predictor.start(2);
        let mut loss = 0.0;
        let p = ready(predictor.probabilities(game.tokens())).unwrap().unwrap();
        for (step, &token) in game.tokens().iter().enumerate() {
            let states = ready(predictor.push(&mut memory, &[token; 2])).unwrap().unwrap();
            assert_eq!(states, [graded.states[step]; 2], "step {step}");
            let p = &p[step * 1878..(step + 1) * 1878];
            for (label, &class) in game.states()[step].labels().iter().enumerate() {
                let range = cwm_core::chess::label::logit_range(label);
                loss -= f64::from(p[range.start + usize::from(class)]).ln();
            }
        }
        let found = graded.loss_sum.unwrap();
        assert!((found - loss).abs() < 1e-3 * loss, "{found} is not {loss}");
        assert_eq!(graded.states.len(), game.steps());
    }
}

#[test]
fn its_checkpoints_carry_the_option_and_it_counts_as_structured() {
    let config = config();
    assert!(config.is_structured() && config.name() == "transformer-labels d16/l2");
    let plain = ModelConfig::Transformer(TransformerConfig::new(16, 2, 2));
    assert!(!plain.is_structured() && !plain.to_json().contains("label_feedback"));
    let parameters = model().named_parameters();
    let file = write(&config, &parameters, None, WriteOptions::EXACT).unwrap();
    let read = Checkpoint::read(&file, None).unwrap();
    assert_eq!((&read.config, &read.tensors), (&config, &parameters));
    let device = DeviceChoice::CPU.open().unwrap();
    let tracker = ModelTracker::from_parameters("m", &config, &read.tensors, &device).unwrap();
    let game = &games()[0];
    let graded = ready(tracker.grade(&[game])).unwrap().unwrap();
    assert_eq!(graded, ready(Predictor::new("m", model()).grade(&[game])).unwrap().unwrap());
    assert!(tracker.clone().with_feedback(Feedback::Truth).is_ok());
    let fault = tracker.with_feedback(Feedback::Soft).unwrap_err();
    assert_eq!(fault.to_string(), "a transformer has no soft feedback");
    let plain = Model::new(&plain, 4, &device).unwrap();
    assert!(Predictor::new("m", plain).with_feedback(Feedback::Truth).is_err());
    assert_eq!(State::start().labels().len(), LABELS);
}
