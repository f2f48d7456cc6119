//! Speed of the d128/l1 Transformer on batches of 128 games, in valid steps a second: a training step and grading, the
//! fused form beside the portable one.
//!
//! ```text
//! cargo bench -p cwm-models --features train --bench transformer
//! cargo bench -p cwm-models --features train --bench transformer -- --profile
//! ```
//!
//! The second form prints where the time of a training step and of grading goes, and the floating-point operations
//! behind it. Games are random play cut to the lengths of human games, or those of the file that `CWM_BENCH_GAMES`
//! names: a game a line, UCI moves with spaces between, after the last tab.

mod games;
mod profile;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group};
use cwm_core::tracker::{Tracker, ready};
use cwm_models::{
    ModelConfig, Predictor, TransformerConfig,
    device::DeviceChoice,
    train::{OptimizerConfig, ScheduleConfig, Trainer},
};

use games::{BATCH, Games};

fn trainer() -> Trainer {
    let config = ModelConfig::Transformer(TransformerConfig::new(128, 1, 2));
    let (optimizer, schedule) = (OptimizerConfig::default(), ScheduleConfig::default());
    Trainer::new(&config, &optimizer, &schedule, 0, &DeviceChoice::CPU)
        .expect("the smallest size trains on the CPU")
}

fn portable_trainer() -> Trainer {
    let model = trainer().model().clone().into_portable();
    let (optimizer, schedule) = (OptimizerConfig::default(), ScheduleConfig::default());
    Trainer::from_model(model, &optimizer, &schedule, 0).expect("default settings are valid")
}

fn training_step(c: &mut Criterion) {
    let batch = Games::open(BATCH).batch();
    let mut group = c.benchmark_group("training step");
    group.throughput(Throughput::Elements(batch.valid_steps() as u64));
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    for (form, mut trainer) in [("fused", trainer()), ("portable", portable_trainer())] {
        group.bench_function(form, |b| b.iter(|| trainer.step(&batch).expect("a valid batch")));
    }
    group.finish();
}

fn grading(c: &mut Criterion) {
    let games = Games::open(BATCH);
    let trajectories = games.trajectories();
    let trajectories: Vec<_> = trajectories.iter().collect();
    let mut group = c.benchmark_group("grading");
    group.throughput(Throughput::Elements(games.valid_steps() as u64));
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    for (form, trainer) in [("fused", trainer()), ("portable", portable_trainer())] {
        let predictor: Predictor = trainer.predictor();
        group.bench_function(form, |b| {
            b.iter(|| ready(predictor.grade(&trajectories)).expect("the CPU answers at once"));
        });
    }
    group.finish();
}

criterion_group!(benches, training_step, grading);

fn main() {
    if std::env::args().any(|argument| argument == "--profile") {
        profile::print();
        return;
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
