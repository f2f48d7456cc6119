//! Speed of models of every family on batches of 128 games of human lengths: a training step and grading, the fused form
//! beside the portable one, and how much of the time goes into matrix products.
//!
//! ```text
//! cargo bench --workspace --bench mixers                     # every family at d128/l1 and d256/l2
//! cargo bench --workspace --bench mixers -- slice-d128       # these presets
//! cargo bench --workspace --bench mixers -- slice-d128 --chunks   # both forms by length of chunk; --chunks=8,16 for these
//! cargo bench --workspace --bench mixers -- slice-d128 --json     # the fused form on one core, one JSON line
//! ```
//!
//! `one core` is processor time, which other programs do not count into; `products` the share of it in matrix products,
//! their number of operations a step, and how many times the time of these products alone at the machine's best the whole
//! takes. `CWM_BENCH_GAMES` names a file of games: a game a line, UCI moves with spaces between, after the last tab; else
//! games are random play cut to human lengths.

#[path = "../transformer/games.rs"]
mod games;
mod subject;

use std::time::Instant;

use cwm_core::tracker::{Tracker, ready};
use cwm_models::{
    Model,
    kernel::matrix::{Matrix, meter, multiply},
    presets,
};

use games::{BATCH, Games};
use subject::trainer;

/// Runs of which the best counts.
const RUNS: usize = 5;

/// Seconds of `run`, on the calling thread alone.
#[cfg(target_os = "linux")]
fn thread_secs() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one `timespec` to a valid place, and keeps nothing.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "every thread on Linux has a clock");
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The time since the first call.
#[cfg(not(target_os = "linux"))]
fn thread_secs() -> f64 {
    wall_secs()
}

/// The time since the first call.
fn wall_secs() -> f64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// The least time of several runs, by a clock.
fn best_secs<T>(clock: fn() -> f64, mut run: impl FnMut() -> T) -> f64 {
    let once = |_| {
        let start = clock();
        std::hint::black_box(run());
        clock() - start
    };
    (0..RUNS).map(once).fold(f64::INFINITY, f64::min)
}

/// Operations a second of a large matrix product on one core: the floor's yardstick.
fn best_flop_per_sec() -> f64 {
    let (rows, cols, inner) = (1024, 1024, 256);
    let (a, b) = (vec![0.5; rows * inner], vec![0.25; inner * cols]);
    let mut out = vec![0.0; rows * cols];
    let run = || {
        multiply(&mut out, cols, false, Matrix::new(&a, rows, inner), Matrix::new(&b, inner, cols));
    };
    let secs = best_secs(thread_secs, run);
    2.0 * (rows * cols * inner) as f64 / secs
}

/// A preset's model on the CPU, if it reads sequences.
fn model(preset: &str) -> Option<Model> {
    subject::model(preset, &burn::tensor::Device::flex())
}

/// One form of a model, measured.
fn measure(model: Model, games: &Games, peak: f64) -> [Measured; 2] {
    let batch = games.batch();
    let trajectories = games.trajectories();
    let trajectories: Vec<_> = trajectories.iter().collect();
    let mut trainer = trainer(model);
    let predictor = trainer.predictor();
    let steps = batch.valid_steps() as f64;
    let mut train = || {
        trainer.step(&batch).expect("a valid batch");
    };
    let mut grade =
        || drop(ready(predictor.grade(&trajectories)).expect("the CPU answers at once"));
    [Measured::of(&mut train, steps, peak), Measured::of(&mut grade, steps, peak)]
}

/// Speed in valid steps a second.
struct Measured {
    all_cores: f64,
    one_core: f64,
    /// Share of time in matrix products, on one core.
    products: f64,
    /// Operations in matrix products a step.
    flop: f64,
    /// Time in multiples of the products' at the machine's best.
    floors: f64,
}

impl Measured {
    fn of(run: &mut (dyn FnMut() + Send), steps: f64, peak: f64) -> Self {
        run();
        let all_secs = best_secs(wall_secs, &mut *run);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
        pool.install(|| {
            let one_secs = best_secs(thread_secs, &mut *run);
            // By the processor's time outside, by the clock inside: shares come from one measured run.
            let start = wall_secs();
            let ((), products) = meter::measure(&mut *run);
            let whole_secs = wall_secs() - start;
            Measured {
                all_cores: steps / all_secs,
                one_core: steps / one_secs,
                products: products.secs / whole_secs,
                flop: products.flop / steps,
                floors: one_secs * peak / products.flop,
            }
        })
    }

    fn print(&self, name: &str, form: &str, task: &str) {
        let Measured { all_cores, one_core, products, flop, floors } = self;
        print!("{name:22} {form:9} {task:9} {all_cores:10.0} {one_core:10.0}");
        if form == "fused" {
            println!(" {:8.0} % {:9.2} {floors:9.2}", products * 100.0, flop * 1e-6);
        } else {
            println!();
        }
    }
}

/// Both forms' speed on one core by length of chunk; a form without chunks does not care.
fn chunks(name: &str, games: &Games, lengths: &[usize]) {
    println!("{name}: valid steps/s on one core, training and grading");
    println!("{:>8} {:>10} {:>10} {:>10} {:>10}", "chunk", "fused", "", "portable", "");
    let batch = games.batch();
    let trajectories = games.trajectories();
    let trajectories: Vec<_> = trajectories.iter().collect();
    let steps = batch.valid_steps() as f64;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
    for &chunk in lengths {
        print!("{chunk:8}");
        let Some(model) = model(name) else { return };
        for model in [model.clone(), model.into_portable()] {
            let mut trainer = trainer(model.with_chunk_steps(chunk));
            let predictor = trainer.predictor();
            let [train, grade] = pool.install(|| {
                let train = || trainer.step(&batch).expect("a valid batch");
                let train_secs = best_secs(thread_secs, train);
                let grade = || ready(predictor.grade(&trajectories)).expect("the CPU");
                [train_secs, best_secs(thread_secs, grade)]
            });
            print!(" {:10.0} {:10.0}", steps / train, steps / grade);
        }
        println!();
    }
}

fn main() {
    let (flags, mut names): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let flag = |name: &str| flags.iter().any(|flag| flag == name);
    if names.is_empty() {
        let sizes =
            presets::names().filter(|name| name.ends_with("-d128") || name.ends_with("-d256"));
        names = sizes.map(str::to_string).collect();
    }
    let games = Games::open(BATCH);
    if let Some(flag) = flags.iter().find(|flag| flag.starts_with("--chunks")) {
        let lengths: Vec<usize> = match flag.split_once('=') {
            Some((_, list)) => list.split(',').map(|n| n.parse().expect("a number")).collect(),
            None => vec![4, 8, 16, 32, 64, 128, 256],
        };
        names.iter().for_each(|name| chunks(name, &games, &lengths));
        return;
    }
    let peak = best_flop_per_sec();
    if !flag("--json") {
        println!(
            "128 games, {} valid steps; one core's best: {:.0} GFLOP/s",
            games.valid_steps(),
            peak * 1e-9
        );
        println!(
            "{:42} {:>10} {:>10} {:>10} {:>9} {:>9}",
            "valid steps/s", "all cores", "one core", "products", "MFLOP", "floors"
        );
    }
    for name in &names {
        let Some(model) = model(name) else { continue };
        if flag("--json") {
            let [train, grade] = measure(model, &games, peak);
            println!(
                "{{\"training\": {:.0}, \"evaluation\": {:.0}}}",
                train.one_core, grade.one_core
            );
            continue;
        }
        for (form, model) in [("fused", model.clone()), ("portable", model.into_portable())] {
            let [train, grade] = measure(model, &games, peak);
            train.print(name, form, "training");
            grade.print(name, form, "grading");
        }
    }
}
