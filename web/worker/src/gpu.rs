//! Networks on the browser's GPU, each with its twin on the CPU behind it.
//!
//! The GPU grades; moves are answered by the CPU, which is faster at one step. Before a network is used on the GPU it
//! reads a fixed line there and on the CPU, whose answers are held to golden data elsewhere: a GPU that computes
//! something else is refused. A GPU that fails is left for good, and the CPU goes on from the same batch.

use std::cell::Cell;

use cwm_core::{
    chess::{MoveToken, State, Trajectory},
    tracker::{Prediction, TrackError, Tracker},
};
use cwm_models::{
    ModelConfig, ModelTracker, Parameters,
    device::{Device, webgpu},
};
use cwm_protocol::{Backend, BackendKind, Fault, Phase, Say, code};

use crate::{
    checkpoint::{probe_line, speed},
    faults,
    host::Host,
};

/// The browser's GPU.
pub(crate) struct Gpu {
    device: Device,
    /// The largest tensor that fits one of its buffers.
    buffer_bytes_max: u64,
    failed: Cell<bool>,
}

/// The largest difference of a probability that is still called equal: GPUs round their own way.
const TOLERANCE: f32 = 0.01;
/// Rows that run through the network together.
const ROWS: usize = 4096;
/// Heads of the largest network in the benchmark, and some.
const HEADS_MAX: u64 = 16;

impl Gpu {
    /// Asks the browser for its GPU.
    pub(crate) async fn open() -> Result<Gpu, Fault> {
        let opened = webgpu::open().await.map_err(|message| {
            Fault::new(code::GPU_REFUSED, message, "the CPU does the work; nothing is lost")
        })?;
        let (device, buffer_bytes_max) = (opened.device, opened.buffer_bytes_max);
        Ok(Gpu { device, buffer_bytes_max, failed: Cell::new(false) })
    }

    /// Whether it can still be used.
    pub(crate) fn is_usable(&self) -> bool {
        !self.failed.get()
    }

    /// Builds a network on the GPU, warms it up and compares it with `cpu`, the same network. `None` if the GPU is of no
    /// use for it, which the user is told unless that lies in the network's family.
    pub(crate) async fn build<H: Host>(
        &self,
        host: &H,
        id: u32,
        cpu: &ModelTracker,
        config: &ModelConfig,
        parameters: &Parameters,
    ) -> Option<(ModelTracker, f64)> {
        if !self.is_usable() || matches!(cpu, ModelTracker::Transition(_)) {
            return None;
        }
        host.say(id, Say::Phase { phase: Phase::WarmingUp, done: 0, total: None });
        host.pause().await;
        let gpu =
            ModelTracker::from_parameters(cpu.name(), config, parameters, &self.device).ok()?;
        let gpu = gpu.with_rows_per_pass(ROWS.min(self.rows_max()));
        let tested = async {
            let line = probe_line();
            let found = gpu.probabilities(line.tokens()).await?;
            host.say(id, Say::Phase { phase: Phase::SelfTest, done: 0, total: None });
            let expected = cpu.probabilities(line.tokens()).await?;
            let apart = found.iter().zip(&expected).map(|(a, b)| (a - b).abs());
            // A NaN is no number that `max` would keep.
            let wrong =
                apart.clone().any(|d| !d.is_finite()) || apart.fold(0.0, f32::max) > TOLERANCE;
            Ok(!wrong && found.len() == expected.len())
        };
        match tested.await {
            Ok(true) => match speed(host, &gpu).await {
                Ok(steps_per_sec) => return Some((gpu, steps_per_sec)),
                Err(fault) => self.leave(host, fault),
            },
            Ok(false) => self.leave(
                host,
                Fault::new(
                    code::GPU_WRONG,
                    "the GPU computes other answers than the CPU: it is not used",
                    "update the browser and the graphics driver",
                ),
            ),
            Err(error) => self.leave(host, fault_of(&error)),
        }
        None
    }

    fn rows_max(&self) -> usize {
        let row_bytes = (cwm_core::chess::label::LOGITS * size_of::<f32>()) as u64;
        (self.buffer_bytes_max / row_bytes).max(1) as usize
    }

    /// Whether the scores of an attention over a game fit a buffer.
    fn fits(&self, game: &Trajectory) -> bool {
        let steps = game.steps() as u64;
        let scores = HEADS_MAX.saturating_mul(steps).saturating_mul(steps);
        scores.saturating_mul(size_of::<f32>() as u64) <= self.buffer_bytes_max
    }

    /// Uses the GPU no more, and says so: once.
    fn leave<H: Host>(&self, host: &H, fault: Fault) {
        if !self.failed.replace(true) {
            let why = Some(fault.message.clone());
            let backend = Backend { kind: BackendKind::Cpu, adapter: None, why };
            host.say(0, Say::Notice { fault, backend });
        }
    }
}

/// What a failure of the GPU is called.
fn fault_of(error: &TrackError) -> Fault {
    let TrackError::Device(reason) = error else { return faults::of_tracker(error) };
    let lower = reason.to_lowercase();
    let (code, what) = if lower.contains("poison") || lower.contains("lost") {
        (code::GPU_LOST, "the GPU was lost")
    } else if lower.contains("memory") {
        (code::GPU_MEMORY, "the GPU has too little memory")
    } else {
        (code::GPU_SHADER, "the GPU refused a command")
    };
    Fault::new(code, format!("{what}: {reason}"), "the CPU goes on; nothing is lost")
}

/// A network on the GPU, and on the CPU for when the GPU fails.
pub(crate) struct Twins<'a, H> {
    pub(crate) gpu: &'a Gpu,
    pub(crate) on_gpu: &'a ModelTracker,
    pub(crate) on_cpu: &'a ModelTracker,
    pub(crate) host: &'a H,
}

impl<H: Host> Tracker for Twins<'_, H> {
    type Memory = cwm_models::ModelMemory;

    fn name(&self) -> &str {
        self.on_cpu.name()
    }

    fn start(&self, branches: usize) -> Self::Memory {
        self.on_cpu.start(branches)
    }

    async fn push(
        &self,
        memory: &mut Self::Memory,
        tokens: &[MoveToken],
    ) -> Result<Vec<State>, TrackError> {
        self.on_cpu.push(memory, tokens).await
    }

    async fn grade(&self, games: &[&Trajectory]) -> Result<Vec<Prediction>, TrackError> {
        if self.gpu.is_usable() && games.iter().all(|game| self.gpu.fits(game)) {
            match self.on_gpu.grade(games).await {
                Err(error @ TrackError::Device(_)) => self.gpu.leave(self.host, fault_of(&error)),
                graded => return graded,
            }
        }
        self.on_cpu.grade(games).await
    }
}
