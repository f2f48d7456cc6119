//! From files to a network that answers.

use std::io;

use cwm_core::{
    chess::{MoveToken, Trajectory},
    report::{TrackerInfo, TrackerKind},
    tracker::Tracker,
};
use cwm_models::{
    ModelTracker,
    checkpoint::{Checkpoint, Header},
    device::Device,
};
use cwm_protocol::{Fault, ModelFacts, code};

use crate::{
    faults,
    host::{Host, InputFile, read_up_to},
};

/// The largest file of weights that is opened: it, its numbers and the network share a memory of 4 GiB.
const LIMIT_BYTES: u64 = 1 << 30;
/// The longest config that is read.
const CONFIG_LIMIT_BYTES: u64 = 1 << 20;

/// A checkpoint in use.
pub(crate) struct OpenModel {
    /// The network on the CPU.
    pub(crate) tracker: ModelTracker,
    /// The same network on the GPU.
    #[cfg(feature = "webgpu")]
    pub(crate) on_gpu: Option<ModelTracker>,
    /// What reports say of it.
    pub(crate) info: TrackerInfo,
    /// Steps that are graded in a second, roughly.
    pub(crate) steps_per_sec: f64,
}

/// Reads the bytes of a checkpoint from files: the weights, then config.json if there is one. A header that promises
/// nonsense is refused before the rest is read.
pub(crate) fn read_files(files: &[Box<dyn InputFile>]) -> Result<(Vec<u8>, Option<String>), Fault> {
    let [weights, config @ ..] = files else {
        let message = "the request brings no file";
        return Err(Fault::new(code::REQUEST, message, "reload the page"));
    };
    let weights = read_weights(weights.as_ref()).map_err(|error| faults::of_read(&error))??;
    let config = match config.first() {
        None => None,
        Some(file) => {
            let bytes = read_up_to(file.as_ref(), CONFIG_LIMIT_BYTES)
                .map_err(|error| faults::of_read(&error))?;
            Some(String::from_utf8(bytes).map_err(|_| {
                let message = "config.json is not UTF-8 text";
                Fault::new(code::READ, message, "take the config.json that lies beside the weights")
            })?)
        }
    };
    Ok((weights, config))
}

fn read_weights(file: &dyn InputFile) -> io::Result<Result<Vec<u8>, Fault>> {
    let size = file.size_bytes();
    let head = read_up_to(file, 8)?;
    if let Ok(head_bytes) = Header::head_bytes(&head, size) {
        let head = read_up_to(file, head_bytes)?;
        if let Err(error) = Header::parse_head(&head, size) {
            return Ok(Err(faults::of_checkpoint(&error)));
        }
    }
    if size > LIMIT_BYTES {
        let message = format!("the file has {size} bytes; the page opens up to {LIMIT_BYTES}");
        return Ok(Err(Fault::new(code::TOO_LARGE, message, "grade it with `cwm evaluate`")));
    }
    // Whatever is wrong with a short or foreign file is said by the full check behind.
    read_up_to(file, LIMIT_BYTES).map(Ok)
}

/// Checks a checkpoint and builds its network.
pub(crate) async fn build<H: Host>(
    host: &H,
    name: &str,
    path: &str,
    weights: Vec<u8>,
    config: Option<&str>,
    gpu: Wanted<'_>,
) -> Result<(OpenModel, ModelFacts), Fault> {
    let started = host.now_millis();
    let checkpoint =
        Checkpoint::read(&weights, config).map_err(|error| faults::of_checkpoint(&error))?;
    drop(weights);
    let summary = checkpoint.describe();
    let (config, parameters) = (&checkpoint.config, &checkpoint.tensors);
    let tracker = ModelTracker::from_parameters(name, config, parameters, &Device::flex())
        .map_err(|error| faults::of_model(&error))?;
    let info = TrackerInfo {
        name: name.to_string(),
        kind: TrackerKind::Model(checkpoint.model_info(path)),
    };
    let steps_per_sec = speed(host, &tracker).await?;
    #[cfg(feature = "webgpu")]
    let (on_gpu, steps_per_sec) = {
        let built = match gpu.gpu {
            Some(device) => device.build(host, gpu.id, &tracker, config, parameters).await,
            None => None,
        };
        built.map_or((None, steps_per_sec), |(on_gpu, speed)| (Some(on_gpu), speed))
    };
    #[cfg(not(feature = "webgpu"))]
    let _ = gpu;
    let facts = ModelFacts {
        name: name.to_string(),
        train_steps: summary.training.as_ref().map(|training| training.steps),
        family: summary.family,
        size: summary.size,
        preset: summary.preset,
        parameters: summary.parameters,
        stored_parameters: summary.stored_parameters,
        dtype: summary.dtype,
        labels: cwm_core::chess::label::LABELS as u32,
        file_bytes: summary.file_bytes,
        sha256: summary.sha256,
        warnings: summary.warnings,
        steps_per_sec,
        fetch_millis: 0.0,
        build_millis: host.now_millis() - started,
    };
    let model = OpenModel {
        tracker,
        #[cfg(feature = "webgpu")]
        on_gpu,
        info,
        steps_per_sec,
    };
    Ok((model, facts))
}

/// Whether a network is wanted on the GPU too, and for which request.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wanted<'g> {
    #[cfg(feature = "webgpu")]
    pub(crate) gpu: Option<&'g crate::gpu::Gpu>,
    #[cfg(feature = "webgpu")]
    pub(crate) id: u32,
    pub(crate) lifetime: std::marker::PhantomData<&'g ()>,
}

/// Knights that go out and back four times.
pub(crate) fn probe_line() -> Trajectory {
    // g1f3 g8f6 f3g1 f6g8
    let moves = [(6, 21), (62, 45), (21, 6), (45, 62)].map(|(from, to)| (from * 64 + to) * 5);
    let moves: Vec<MoveToken> =
        moves.iter().cycle().take(16).filter_map(|&id| MoveToken::new(id).ok()).collect();
    Trajectory::replay(&moves)
}

/// Times a few short games: how long a batch may be depends on it, and it warms the network up.
pub(crate) async fn speed<H: Host>(host: &H, tracker: &ModelTracker) -> Result<f64, Fault> {
    let game = probe_line();
    let games = [&game; 4];
    let mut best_millis = f64::INFINITY;
    for _ in 0..2 {
        let started = host.now_millis();
        tracker.grade(&games).await.map_err(|error| faults::of_tracker(&error))?;
        best_millis = best_millis.min(host.now_millis() - started);
    }
    let steps = games.len() * game.steps();
    Ok(steps as f64 * 1000.0 / best_millis.max(0.1))
}
