//! What is graded: a baseline by its name, or a checkpoint.

use std::ops::ControlFlow;

use cwm_core::{
    baseline::Baseline,
    chess::{EnPassant, Trajectory},
    evaluate::{BatchBudget, EvaluateError, Grading, evaluate},
    event::Event,
    report::{TrackerInfo, TrackerKind},
    tracker::{Prediction, TrackError},
};

use super::games::Trajectories;
use crate::exit::{Exit, Failure};

/// A tracker chosen on the command line.
#[derive(Debug)]
pub struct Subject {
    /// What the report says of it.
    pub info: TrackerInfo,
    tracker: AnyTracker,
}

#[derive(Debug)]
enum AnyTracker {
    Baseline(Baseline),
}

impl Subject {
    /// The checkpoints that this build ships.
    pub fn shipped() -> anyhow::Result<Vec<Self>> {
        Ok(Vec::new())
    }

    /// A baseline.
    pub fn baseline(baseline: Baseline) -> Self {
        let info = TrackerInfo { name: baseline.name().to_string(), kind: TrackerKind::Baseline };
        Subject { info, tracker: AnyTracker::Baseline(baseline) }
    }

    /// All baselines, from the one that knows least.
    pub fn baselines() -> Vec<Self> {
        Baseline::ALL.into_iter().map(Self::baseline).collect()
    }

    /// The subject that an argument of the command line names.
    ///
    /// # Errors
    /// A [`Failure`] if there is neither a baseline nor a checkpoint of that name.
    pub fn from_argument(argument: &str) -> anyhow::Result<Self> {
        if let Some(baseline) = Baseline::from_name(argument) {
            return Ok(Self::baseline(baseline));
        }
        let names = Baseline::ALL.iter().map(|baseline| baseline.name());
        Err(Failure::usage(format!("`{argument}` is neither a checkpoint nor a baseline"))
            .nearest(argument, names)
            .into())
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
        dataset: &str,
        en_passant: EnPassant,
        games: Trajectories<'_>,
        games_total: u64,
        on_event: impl FnMut(Event) -> ControlFlow<()>,
    ) -> anyhow::Result<Grading> {
        let budget = BatchBudget::default();
        let total = Some(games_total);
        let graded = match &self.tracker {
            AnyTracker::Baseline(baseline) => {
                let baseline = baseline.for_labels(en_passant);
                block_on(evaluate(&baseline, dataset, games, total, budget, on_event))
            }
        };
        graded.map_err(|error| match error {
            EvaluateError::Tracker(error) => self.failed(&error).into(),
            EvaluateError::Games { source, game } => {
                source.context(format!("cannot read game {} of `{dataset}`", game + 1))
            }
        })
    }

    /// Names every state of one game.
    ///
    /// # Errors
    /// If the tracker fails.
    pub fn predict(&self, game: &Trajectory) -> anyhow::Result<Prediction> {
        let predicted = match &self.tracker {
            AnyTracker::Baseline(baseline) => block_on(cwm_core::evaluate::predict(baseline, game)),
        };
        predicted.map_err(|error| self.failed(&error).into())
    }

    fn failed(&self, error: &TrackError) -> Failure {
        let message = format!("`{}`: {error}", self.info.name);
        match error {
            TrackError::Device(_) => Failure::new(Exit::Device, message)
                .hint("try `--device cpu`, and `cwm doctor` for what this machine offers"),
            TrackError::TooLong { .. } => Failure::data(message),
        }
    }
}

/// Runs a future to its end on this thread, asleep while it waits for a device.
fn block_on<T>(future: impl Future<Output = T>) -> T {
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
