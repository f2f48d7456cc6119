//! What is graded: a baseline by its name, or a checkpoint.

use std::{ops::ControlFlow, path::Path};

use anyhow::Context;
use cwm_core::{
    baseline::Baseline,
    chess::Trajectory,
    evaluate::{BatchBudget, EvaluateError, Grading, evaluate_play},
    event::Event,
    report::{DatasetInfo, Source, TrackerInfo, TrackerKind},
    tracker::{Prediction, TrackError},
};
use cwm_models::{
    checkpoint::{Checkpoint, FileKind},
    device::{DeviceChoice, DeviceError},
    feedback::Feedback,
    tracker::ModelTracker,
};

use super::{
    games::Trajectories,
    shipped::{SHIPPED, Shipped, shipped},
};
use crate::{
    checkpoint,
    exit::{Exit, Failure},
    progress::Progress,
};

/// A tracker chosen on the command line.
#[derive(Debug)]
pub struct Subject {
    /// What the report says of it.
    pub info: TrackerInfo,
    tracker: AnyTracker,
    /// What a user should know of where it comes from.
    note: Option<String>,
}

#[derive(Debug)]
enum AnyTracker {
    Baseline(Baseline),
    Model(ModelTracker),
}

impl Subject {
    /// A baseline.
    pub fn baseline(baseline: Baseline) -> Self {
        let info = TrackerInfo { name: baseline.name().to_string(), kind: TrackerKind::Baseline };
        Subject { info, tracker: AnyTracker::Baseline(baseline), note: None }
    }

    /// All baselines, from the one that knows least.
    pub fn baselines() -> Vec<Self> {
        Baseline::ALL.into_iter().map(Self::baseline).collect()
    }

    /// The checkpoints that this build ships.
    ///
    /// # Errors
    /// If the device cannot be used or a checkpoint is damaged.
    pub fn all_shipped(device: DeviceChoice) -> anyhow::Result<Vec<Self>> {
        SHIPPED.iter().map(|shipped| Self::from_shipped(shipped, device)).collect()
    }

    fn from_shipped(shipped: &Shipped, device: DeviceChoice) -> anyhow::Result<Self> {
        let checkpoint = Checkpoint::read(shipped.weights, Some(shipped.config))
            .with_context(|| format!("cannot read the built-in checkpoint `{}`", shipped.name))?;
        Self::model(shipped.name, "built-in", &checkpoint, device)
    }

    /// The subject that an argument of the command line names: a baseline, a shipped checkpoint, or a path.
    ///
    /// # Errors
    /// A [`Failure`] if there is no such thing, or the checkpoint or the device cannot be used.
    pub fn from_argument(argument: &str, device: DeviceChoice) -> anyhow::Result<Self> {
        if let Some(baseline) = Baseline::from_name(argument) {
            return Ok(Self::baseline(baseline));
        }
        let path = Path::new(argument);
        if path.exists() {
            let checkpoint = checkpoint::load(path)?;
            return Self::model(&name_of(path), argument, &checkpoint, device);
        }
        if let Some(shipped) = shipped(argument) {
            return Self::from_shipped(shipped, device);
        }
        let baselines = Baseline::ALL.iter().map(|baseline| baseline.name());
        let names = baselines.chain(SHIPPED.iter().map(|shipped| shipped.name));
        let message = format!("`{argument}` is neither a checkpoint nor a baseline");
        Err(Failure::usage(message).nearest(argument, names).into())
    }

    fn model(
        name: &str,
        path: &str,
        checkpoint: &Checkpoint,
        device: DeviceChoice,
    ) -> anyhow::Result<Self> {
        let device = device.open().map_err(|error| unusable(&error))?;
        let config = &checkpoint.config;
        let model = ModelTracker::from_parameters(name, config, &checkpoint.tensors, &device)
            .map_err(|error| Failure::data(format!("`{path}`: {error}")))?;
        let kind = TrackerKind::Model(checkpoint.model_info(path));
        let info = TrackerInfo { name: name.to_string(), kind };
        let note = (checkpoint.info.kind == FileKind::Torch)
            .then(|| format!("`{path}`: imported from a PyTorch checkpoint of the reference"));
        Ok(Subject { info, tracker: AnyTracker::Model(model), note })
    }

    /// Tells where it comes from, if that needs telling.
    pub fn tell(&self, progress: &Progress) {
        if let Some(note) = &self.note {
            progress.note(note);
        }
    }

    /// The same on other feedback than its own answers: a subject of another name.
    ///
    /// # Errors
    /// A [`Failure`] if it does not read its own answers.
    pub fn with_feedback(self, feedback: Feedback) -> Result<Self, Failure> {
        if feedback == Feedback::Argmax {
            return Ok(self);
        }
        let name = self.info.name;
        let failure = |message: String| {
            Failure::usage(format!("`{name}`: {message}"))
                .hint("`--feedback` is for models that read their own last answer")
        };
        let tracker = match self.tracker {
            AnyTracker::Baseline(_) => {
                return Err(failure(format!("a baseline has no {} feedback", feedback.name())));
            }
            AnyTracker::Model(model) => {
                model.with_feedback(feedback).map_err(|error| failure(error.to_string()))?
            }
        };
        let name = format!("{name}, {} fed back", feedback.name());
        let info = TrackerInfo { name, ..self.info };
        Ok(Subject { info, tracker: AnyTracker::Model(tracker), note: self.note })
    }

    /// Whether it is a trained network.
    pub fn is_model(&self) -> bool {
        matches!(self.info.kind, TrackerKind::Model(_))
    }

    /// Grades it; the loop is the core's.
    ///
    /// # Errors
    /// If the tracker fails or the games cannot be read.
    pub fn grade(
        &self,
        dataset: &DatasetInfo,
        games: Trajectories<'_>,
        games_total: u64,
        on_event: impl FnMut(Event) -> ControlFlow<()>,
    ) -> anyhow::Result<Grading> {
        let budget = BatchBudget::default();
        let total = Some(games_total);
        let policy = match dataset.source {
            Source::RuleStratum { policy, .. } => Some(policy),
            _ => None,
        };
        let (name, en_passant) = (&dataset.name, dataset.en_passant);
        let graded = match &self.tracker {
            AnyTracker::Baseline(baseline) => {
                let baseline = baseline.for_labels(en_passant);
                block_on(evaluate_play(&baseline, name, policy, games, total, budget, on_event))
            }
            AnyTracker::Model(model) => {
                block_on(evaluate_play(model, name, policy, games, total, budget, on_event))
            }
        };
        graded.map_err(|error| match error {
            EvaluateError::Tracker(error) => self.failed(&error).into(),
            EvaluateError::Games { source, game } => {
                source.context(format!("cannot read game {} of `{name}`", game + 1))
            }
        })
    }

    /// Names every state of one game.
    ///
    /// # Errors
    /// If the tracker fails.
    pub fn predict(&self, game: &Trajectory) -> anyhow::Result<Prediction> {
        use cwm_core::evaluate::predict;
        let predicted = match &self.tracker {
            AnyTracker::Baseline(baseline) => block_on(predict(baseline, game)),
            AnyTracker::Model(model) => block_on(predict(model, game)),
        };
        predicted.map_err(|error| self.failed(&error).into())
    }

    fn failed(&self, error: &TrackError) -> Failure {
        let message = format!("`{}`: {error}", self.info.name);
        match error {
            TrackError::Device(_) => Failure::new(Exit::Device, message)
                .hint("try `--device cpu`, and `cwm doctor` for what this machine offers"),
            _ => Failure::data(message),
        }
    }
}

/// The device of that name.
///
/// # Errors
/// A [`Failure`] if there is none, or this build has it not.
pub fn device_of(name: &str) -> anyhow::Result<DeviceChoice> {
    Ok(name.parse().map_err(|error| unusable(&error))?)
}

/// A device that cannot be used, as the command line reports it.
fn unusable(error: &DeviceError) -> Failure {
    let exit = match error {
        DeviceError::Unknown(_) => Exit::Usage,
        _ => Exit::Device,
    };
    Failure::new(exit, error).hint("`cwm doctor` says what this machine offers")
}

/// What a checkpoint at `path` is called: its folder, or its file without ending. The folders that a run makes for its
/// checkpoints say little, so the run's own name goes before them.
fn name_of(path: &Path) -> String {
    // `.` and `..` have no name of their own.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let part = |path: &Path| -> Option<String> {
        let stem = if path.is_dir() { path.file_name() } else { path.file_stem() };
        Some(stem?.to_string_lossy().into_owned())
    };
    let folder = match path.file_name() {
        Some(file)
            if [checkpoint::WEIGHTS_FILE, checkpoint::CONFIG_FILE, checkpoint::TORCH_FILE]
                .iter()
                .any(|generic| file == *generic) =>
        {
            path.parent().unwrap_or(&path)
        }
        _ => &path,
    };
    let name = part(folder).unwrap_or_else(|| "checkpoint".to_string());
    let checkpoints = folder.parent().filter(|parent| parent.ends_with("checkpoints"));
    match checkpoints.and_then(Path::parent).and_then(part) {
        Some(run) if run != "models" => format!("{run}/{name}"),
        _ => name,
    }
}

/// Runs a future to its end on this thread, asleep while it waits for a device.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    use std::{
        pin::pin,
        sync::Arc,
        task::{Context, Poll, Wake, Waker},
        thread::{self, Thread},
    };

    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_called_after_their_folder_or_file() {
        let dir = tempfile::tempdir().unwrap();
        for (path, name) in [
            ("models/checkpoints/transformer-d128/model.safetensors", "transformer-d128"),
            ("models/checkpoints/transformer-d128", "transformer-d128"),
            ("runs/my-run/checkpoints/best/model.safetensors", "my-run/best"),
            ("some/tiny.v2.safetensors", "tiny.v2"),
            ("ckpts/slice-d128/latest.pt", "slice-d128"),
            ("ckpts/slice-d128/step7.pt", "step7"),
        ] {
            let path = dir.path().join(path);
            if path.extension().is_some() {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, "").unwrap();
            }
            assert_eq!(name_of(&path), name);
        }
    }
}
