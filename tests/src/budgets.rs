//! What a training step may cost in memory.

use burn::tensor::Device;
use cwm_core::{
    chess::{MoveToken, label::LABELS},
    data::batch::Batch,
};
use cwm_models::{
    Model, ModelConfig, presets,
    train::{OptimizerConfig, ScheduleConfig, Trainer},
};
use cwm_tests::memory::peak_of;

/// 128 games of 200 steps, without padding.
fn batch() -> Batch {
    const GAMES: usize = 128;
    const STEPS: usize = 200;
    let reachable = MoveToken::reachable();
    let token = |i: usize| match i % STEPS {
        0 => MoveToken::START.id(),
        _ => reachable[i * 7919 % reachable.len()].id(),
    };
    Batch {
        games: GAMES,
        steps: STEPS,
        tokens: (0..GAMES * STEPS).map(token).collect(),
        lengths: vec![STEPS as u32; GAMES],
        labels: vec![0; GAMES * STEPS * LABELS],
    }
}

/// On one thread, where everything is counted; more threads hold a micro-batch each on top.
#[test]
fn a_training_step_of_every_smallest_model_stays_below_four_gibibytes() {
    const LIMIT_BYTES: u64 = 4 << 30;
    let batch = batch();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for preset in presets::names().filter(|name| name.ends_with("-d128")) {
        let table: toml::Table = presets::get(preset).unwrap().parse().unwrap();
        let config: ModelConfig = table["model"].clone().try_into().unwrap();
        let peak_bytes = pool.install(|| {
            let (report, peak_bytes) = peak_of(|| {
                let model = Model::new(&config, 0, &Device::flex()).unwrap();
                let (optimizer, schedule) = (OptimizerConfig::default(), ScheduleConfig::default());
                let mut trainer = Trainer::from_model(model, &optimizer, &schedule, 0).unwrap();
                trainer.step(&batch).unwrap()
            });
            assert!(!report.skipped_non_finite, "{preset}: {report:?}");
            peak_bytes
        });
        assert!(peak_bytes > 30 << 20, "{preset}: only {peak_bytes} bytes were counted");
        assert!(peak_bytes < LIMIT_BYTES, "{preset}: {} MiB", peak_bytes >> 20);
        println!("{preset}: {} MiB", peak_bytes >> 20);
    }
}
