//! Speed of the shipped transition machine, in steps a second: grading on all cores and on one, following games move by
//! move, and a training step.
//!
//! ```text
//! cargo bench --workspace --bench transition
//! ```

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use cwm_core::{
    chess::{EnPassant, MoveToken, Trajectory, random::RandomPlay},
    data::{
        GameResult, Games,
        transition::{Sampling, TransitionSampler},
    },
    tracker::{Tracker, ready},
};
use cwm_models::{
    ModelTracker, TransitionConfig,
    checkpoint::Checkpoint,
    device::DeviceChoice,
    train::{OptimizerConfig, ScheduleConfig},
    transition::TransitionTrainer,
};

const WEIGHTS: &[u8] = include_bytes!("../checkpoints/transition/model.safetensors");
const CONFIG: &str = include_str!("../checkpoints/transition/config.json");

fn tracker() -> ModelTracker {
    let checkpoint = Checkpoint::read(WEIGHTS, Some(CONFIG)).expect("the shipped checkpoint reads");
    let device = DeviceChoice::CPU.open().expect("there is always a CPU");
    let (config, tensors) = (&checkpoint.config, &checkpoint.tensors);
    ModelTracker::from_parameters("transition", config, tensors, &device).expect("they fit")
}

fn grading(c: &mut Criterion) {
    let tracker = tracker();
    let games: Vec<Trajectory> =
        RandomPlay::new(0, 10).take(100).map(|game| Trajectory::replay(&game.moves)).collect();
    let games: Vec<&Trajectory> = games.iter().collect();
    let steps: usize = games.iter().map(|game| game.steps()).sum();
    let mut group = c.benchmark_group("transition grading");
    group.throughput(Throughput::Elements(steps as u64));
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    let cores = rayon::current_num_threads();
    for threads in if cores > 1 { vec![1, cores] } else { vec![1] } {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.expect("threads start");
        group.bench_function(format!("{threads} threads"), |b| {
            b.iter(|| pool.install(|| ready(tracker.grade(&games)).expect("ready at once")));
        });
    }
    group.finish();
}

fn following(c: &mut Criterion) {
    let tracker = tracker();
    let moves = RandomPlay::new(0, 10).next().expect("games do not end").moves;
    let mut group = c.benchmark_group("transition move by move");
    for branches in [1, 32] {
        group.throughput(Throughput::Elements((branches * (moves.len() + 1)) as u64));
        group.bench_function(format!("{branches} branches"), |b| {
            b.iter(|| {
                let mut memory = tracker.start(branches);
                for &token in [MoveToken::START].iter().chain(&moves) {
                    let pushed = ready(tracker.push(&mut memory, &vec![token; branches]));
                    pushed.expect("ready at once").expect("legal tokens");
                }
            });
        });
    }
    group.finish();
}

fn training_step(c: &mut Criterion) {
    let mut games = Games::new();
    for game in RandomPlay::new(1, 10).take(50) {
        games.push("", &game.moves, GameResult::Unknown);
    }
    let sampler = TransitionSampler::new(&games, EnPassant::Always, &Sampling::default(), 0);
    let (batch, _) = sampler.draw(0, 1024);
    let (optimizer, schedule) = (OptimizerConfig::default(), ScheduleConfig::default());
    let config = TransitionConfig::default();
    let trainer = TransitionTrainer::new(&config, &optimizer, &schedule, 0);
    let mut trainer = trainer.expect("default settings are valid");
    let mut group = c.benchmark_group("transition training");
    group.throughput(Throughput::Elements(batch.steps() as u64));
    group.bench_function("step", |b| b.iter(|| trainer.step(&batch).expect("a valid batch")));
    group.finish();
}

criterion_group!(benches, grading, following, training_step);
criterion_main!(benches);
