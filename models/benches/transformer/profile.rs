//! Where the time goes: every kernel on its own, on one core, at the shapes of a training step.
//!
//! Times are the best of several runs, on Linux in time of the processor that other programs do not count into.
//! What is left of a whole step when all parts are taken away is the row `rest`:
//! graphs, copies between tensors, sums of gradients, and waiting for memory that single kernels find in the caches.

use std::time::Instant;

use cwm_core::{
    chess::label::LOGITS,
    data::batch::Batch,
    tracker::{Tracker, ready},
};
use cwm_models::{
    init::initial_parameters,
    kernel::{
        attention, gather, head::Head, linear, norm, random::Dropout, residual, rope::RopeTable,
        swiglu,
    },
    train::{AdamW, OptimizerConfig, Step, clip_factor, global_norm},
    vocabulary::{COMPACT_ROWS, TokenRows},
};

use super::{
    games::{BATCH, Games},
    trainer,
};

/// Width, heads and MLP width of d128/l1.
const D: usize = 128;
const HEADS: usize = 2;
const F: usize = 4 * D;
const EPS: f32 = 1e-6;
/// Rows that run through the network together, about as many as in training.
const ROWS: usize = 1300;
/// Runs of which the best counts.
const RUNS: usize = 15;

/// Seconds of the best of several runs on the calling thread.
fn best_secs<T>(mut run: impl FnMut() -> T) -> f64 {
    let once = |_| {
        let start = thread_secs();
        std::hint::black_box(run());
        thread_secs() - start
    };
    (0..RUNS).map(once).fold(f64::INFINITY, f64::min)
}

/// Processor time of the calling thread.
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
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// Seconds of the best of several runs on all threads together, as a clock shows them.
fn best_wall_secs<T>(mut run: impl FnMut() -> T) -> f64 {
    let once = |_| {
        let start = Instant::now();
        std::hint::black_box(run());
        start.elapsed().as_secs_f64()
    };
    (0..RUNS).map(once).fold(f64::INFINITY, f64::min)
}

/// A part of the work on one valid step.
struct Phase {
    name: &'static str,
    forward_secs: f64,
    backward_secs: f64,
    /// Multiplications and additions in matrix products, forward.
    forward_flop: f64,
    /// And backward.
    backward_flop: f64,
}

/// Numbers around zero, the same in every run.
fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 % 1009) as f32 - 504.0) / 504.0).collect()
}

/// Measures all kernels on the first games of a batch; per valid step.
fn phases(batch: &Batch) -> Vec<Phase> {
    let mut lengths = Vec::new();
    let mut rows = 0;
    for &length in batch.lengths.iter().step_by(7) {
        rows += length as usize;
        lengths.push(length);
        if rows >= ROWS {
            break;
        }
    }
    let labels = &batch.labels[..rows * 75];
    let per_row = |secs: f64| secs / rows as f64;
    let dropout = Dropout::at(0.1, 0, 0, 0);
    let x = numbers(rows * D);
    let mut phases = Vec::new();

    let table = numbers(COMPACT_ROWS * D);
    let ids: Vec<u32> = (0..rows).map(|row| (row * 37 % COMPACT_ROWS) as u32).collect();
    let mask = |dy: &[f32]| dropout.map(|dropout| residual::mask(dy, D, dropout));
    phases.push(Phase {
        name: "embedding",
        forward_secs: per_row(best_secs(|| mask(&gather::forward(&table, &ids, D)))),
        backward_secs: per_row(best_secs(|| {
            let dy = mask(&x).unwrap_or_default();
            gather::backward(&dy, &ids, D, COMPACT_ROWS)
        })),
        forward_flop: 0.0,
        backward_flop: 0.0,
    });

    for (name, maps) in [
        ("attention's linear maps", [(D, 3 * D), (D, D)]),
        ("MLP's linear maps", [(D, 2 * F), (F, D)]),
    ] {
        let (mut forward_secs, mut backward_secs, mut flop) = (0.0, 0.0, 0.0);
        for (inputs, outputs) in maps {
            let shape = linear::Shape { rows, inputs, outputs };
            let (x, dy) = (numbers(rows * inputs), numbers(rows * outputs));
            let (w, b) = (numbers(outputs * inputs), numbers(outputs));
            forward_secs += per_row(best_secs(|| linear::forward(&x, &w, &b, shape)));
            backward_secs += per_row(best_secs(|| {
                let dx = linear::input_gradient(&dy, &w, shape);
                let dw = linear::weight_gradient(&dy, &x, shape);
                (dx, dw, linear::bias_gradient(&dy, outputs))
            }));
            flop += (2 * inputs * outputs) as f64;
        }
        let (forward_flop, backward_flop) = (flop, 2.0 * flop);
        phases.push(Phase { name, forward_secs, backward_secs, forward_flop, backward_flop });
    }

    let longest = lengths.iter().copied().max().unwrap_or(0) as usize;
    let rope = RopeTable::new(D / HEADS, longest);
    let shape = attention::Shape { width: D, heads: HEADS, lengths: &lengths };
    let qkv = numbers(rows * 3 * D);
    let (_, saved) = attention::forward(&qkv, shape, &rope, dropout, true);
    let pairs: f64 = lengths.iter().map(|&t| f64::from(t) * (f64::from(t) + 1.0) / 2.0).sum();
    // A product of a query with a key, and one of a probability with a value.
    let flop = 2.0 * 2.0 * pairs * D as f64 / rows as f64;
    phases.push(Phase {
        name: "attention",
        forward_secs: per_row(best_secs(|| attention::forward(&qkv, shape, &rope, dropout, true))),
        backward_secs: per_row(best_secs(|| {
            attention::backward(&x, &qkv, &saved, shape, &rope, dropout)
        })),
        forward_flop: flop,
        backward_flop: 2.0 * flop,
    });

    let w = numbers(D);
    let u = numbers(rows * 2 * F);
    let dy = numbers(rows * F);
    phases.push(Phase {
        name: "norms, SwiGLU, residuals",
        forward_secs: per_row(
            3.0 * best_secs(|| norm::forward(&x, &w, EPS))
                + 2.0 * best_secs(|| residual::forward(&x, &x, D, dropout))
                + best_secs(|| swiglu::forward(&u, F)),
        ),
        backward_secs: per_row(
            3.0 * best_secs(|| norm::backward(&x, &x, &w, EPS))
                + 2.0 * best_secs(|| mask(&x))
                + best_secs(|| swiglu::backward(&dy, &u, F)),
        ),
        forward_flop: 0.0,
        backward_flop: 0.0,
    });

    let model = trainer();
    let parameters = initial_parameters(model.model().config(), 0, &TokenRows::Full(COMPACT_ROWS));
    let head = Head {
        width: D,
        weight: &parameters["output_head.weight"].data,
        bias: &parameters["output_head.bias"].data,
    };
    let flop = (2 * D * LOGITS) as f64;
    let forward_secs = per_row(best_secs(|| head.grade(&x, Some(labels))));
    let both_secs = per_row(best_secs(|| head.loss(&x, labels, 1e-4, true)));
    phases.push(Phase {
        name: "state head and loss",
        forward_secs,
        backward_secs: both_secs - forward_secs,
        forward_flop: flop,
        backward_flop: 2.0 * flop,
    });
    phases
}

/// One clipped update of every parameter.
fn optimizer_secs() -> f64 {
    let config = OptimizerConfig { weight_decay: 0.01, ..OptimizerConfig::default() };
    let parameters = trainer().model().named_parameters();
    let names: Vec<String> = parameters.keys().cloned().collect();
    let mut values: Vec<Vec<f32>> = parameters.into_values().map(|tensor| tensor.data).collect();
    let gradients: Vec<Vec<f32>> = values.iter().map(|values| numbers(values.len())).collect();
    let mut adam = AdamW::new(values.iter().map(Vec::len));
    best_secs(|| {
        let clip = clip_factor(global_norm(&gradients), config.grad_clip);
        let step = Step { config: &config, lr: 1e-3, number: 10, clip };
        adam.update(step, &names, &mut values, &gradients);
    })
}

fn line(name: &str, secs: f64, whole_secs: f64, flop: f64) {
    let speed = if flop > 0.0 { format!("{:9.1}", flop / secs * 1e-9) } else { String::new() };
    let flop = if flop > 0.0 { format!("{:9.3}", flop * 1e-6) } else { " ".repeat(9) };
    println!("{name:26} {:9.3} {:7.1} % {flop} {speed}", secs * 1e6, 100.0 * secs / whole_secs);
}

/// Prints the parts of a whole, what is left of it, and the whole.
fn table(title: &str, parts: &[(&str, f64, f64)], whole_secs: f64) {
    println!("\n{title}");
    println!("{:26} {:>9} {:>9} {:>9} {:>9}", "", "us/step", "share", "MFLOP", "GFLOP/s");
    for &(name, secs, flop) in parts {
        line(name, secs, whole_secs, flop);
    }
    let known: f64 = parts.iter().map(|(_, secs, _)| secs).sum();
    line("rest", whole_secs - known, whole_secs, 0.0);
    line("whole", whole_secs, whole_secs, parts.iter().map(|(_, _, flop)| flop).sum());
}

/// Measures and prints.
pub fn print() {
    let games = Games::open(BATCH);
    let batch = games.batch();
    let steps = batch.valid_steps() as f64;
    println!(
        "d128/l1, {} games, {} valid steps ({:.1} % padding without packing)",
        batch.games,
        batch.valid_steps(),
        100.0 * (1.0 - steps / batch.padded_steps() as f64)
    );
    let phases = phases(&batch);
    let mut trainer = trainer();
    let trajectories = games.trajectories();
    let trajectories: Vec<_> = trajectories.iter().collect();
    let predictor = trainer.predictor();

    // One worker, so that a whole compares with the sum of its parts.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
    let one_update = pool.install(optimizer_secs) / steps;
    let one_step = pool.install(|| best_secs(|| trainer.step(&batch)) / steps);
    let one_grade = pool.install(|| best_secs(|| ready(predictor.grade(&trajectories))) / steps);
    let both = |phase: &Phase| {
        let secs = phase.forward_secs + phase.backward_secs;
        (phase.name, secs, phase.forward_flop + phase.backward_flop)
    };
    let mut parts: Vec<_> = phases.iter().map(both).collect();
    parts.push(("clipping and optimiser", one_update, 0.0));
    table("training step, one core", &parts, one_step);
    let forward = |phase: &Phase| (phase.name, phase.forward_secs, phase.forward_flop);
    let parts: Vec<_> = phases.iter().map(forward).collect();
    table("grading, one core (parts as in training: with dropout)", &parts, one_grade);

    let all_step = best_wall_secs(|| trainer.step(&batch)) / steps;
    let all_grade = best_wall_secs(|| ready(predictor.grade(&trajectories))) / steps;
    println!("\nvalid steps/s {:>18} {:>24}", "one core", "all cores, by the clock");
    println!("training {:>23.0} {:>24.0}", 1.0 / one_step, 1.0 / all_step);
    println!("grading {:>24.0} {:>24.0}", 1.0 / one_grade, 1.0 / all_grade);
    println!("batch making {:>19.0}", steps / best_secs(|| games.batch()));
}
