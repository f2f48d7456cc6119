//! Speed of models on a GPU through wgpu, on batches of games of human lengths: a training step and grading, with own kernels
//! and without, in turns.
//!
//! ```text
//! cargo bench -p cwm-models --bench gpu --features train,wgpu                        # every family at d128/l1
//! cargo bench -p cwm-models --bench gpu --features train,wgpu -- slice-d256          # these presets
//! cargo bench -p cwm-models --bench gpu --features train,wgpu -- --games=32          # a smaller batch; else 128
//! ```
//!
//! Where there is no GPU, Mesa's lavapipe stands in; there leave out Burn's autotuning, which compiles for minutes:
//! `--features train,gpu,fusion,burn/wgpu`. Times are by the clock, the best of several.

#[path = "../transformer/games.rs"]
mod games;
#[path = "../mixers/subject.rs"]
mod subject;

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake},
    thread::{self, Thread},
    time::Instant,
};

use burn::tensor::{Device, DeviceKind};
use cwm_core::tracker::Tracker;
use cwm_models::{presets, train::Trainer};

use games::{BATCH, Games};
use subject::{model, trainer};

/// Runs of which the best counts.
const RUNS: usize = 3;

/// Wakes the thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for an answer: unlike the CPU, a GPU need not have it at once.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let waker = Arc::new(Unpark(thread::current())).into();
    let (mut context, mut future) = (Context::from_waker(&waker), pin!(future));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// The two forms' best seconds, one run of each in turns after one to warm up.
fn in_turns(mut runs: [&mut dyn FnMut(); 2]) -> [f64; 2] {
    runs.iter_mut().for_each(|run| run());
    let mut best = [f64::INFINITY; 2];
    for _ in 0..RUNS {
        for (run, best) in runs.iter_mut().zip(&mut best) {
            let start = Instant::now();
            run();
            *best = best.min(start.elapsed().as_secs_f64());
        }
    }
    best
}

fn main() {
    let (flags, mut names): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    if names.is_empty() {
        names =
            presets::names().filter(|name| name.ends_with("-d128")).map(str::to_string).collect();
    }
    let count = flags.iter().find_map(|flag| flag.strip_prefix("--games="));
    let games = Games::open(count.map_or(BATCH, |count| count.parse().expect("a number")));
    let device = Device::wgpu(DeviceKind::DefaultDevice);

    let (batch, trajectories) = (games.batch(), games.trajectories());
    let trajectories: Vec<_> = trajectories.iter().collect();
    let steps = games.valid_steps() as f64;
    println!("{} games, {steps} valid steps; valid steps/s", trajectories.len());
    println!("{:22} {:9} {:>12} {:>12} {:>6}", "", "", "own kernels", "portable", "ratio");
    for name in &names {
        let Some(model) = model(name, &device) else { continue };
        let [mut own, mut portable] = [model.clone(), model.into_portable()].map(trainer);
        let predictors = [own.predictor(), portable.predictor()];
        let step = |trainer: &mut Trainer| {
            trainer.step(&batch).expect("a valid batch");
        };
        let train = in_turns([&mut || step(&mut own), &mut || step(&mut portable)]);
        let grade = |form: usize| {
            let grades = wait(predictors[form].grade(&trajectories)).expect("an answer");
            assert_eq!(grades.len(), trajectories.len());
        };
        let grade = in_turns([&mut || grade(0), &mut || grade(1)]);
        for (task, [own, portable]) in [("training", train), ("grading", grade)] {
            let ratio = portable / own;
            println!(
                "{name:22} {task:9} {:12.0} {:12.0} {ratio:6.2}",
                steps / own,
                steps / portable
            );
        }
    }
}
