//! One `grade` request: every tracker on every set of games, into one report.

use std::{convert::Infallible, ops::ControlFlow};

use cwm_core::{
    baseline::Baseline,
    data::SkipCounts,
    evaluate::{BatchBudget, EvaluateError, Grading, evaluate_play},
    metrics::Resampling,
    report::{EvalReport, Evaluation, TrackerInfo, TrackerKind},
    tracker::Tracker,
};
use cwm_protocol::{Fault, GradeJob, Phase, Say, Timing, WorstGame, code};

use crate::{
    checkpoint::OpenModel,
    faults,
    games::{Pace, Set},
    host::{Host, InputFile},
    paced::Paced,
};

/// How long a batch may take: a `cancel` waits for one, and so does the answer to a move.
const BATCH_SECS: f64 = 0.12;

/// Something that is graded.
enum Subject<'m> {
    Model(&'m OpenModel),
    Baseline(Baseline),
}

impl Subject<'_> {
    fn info(&self) -> TrackerInfo {
        match self {
            Subject::Model(model) => model.info.clone(),
            Subject::Baseline(baseline) => {
                TrackerInfo { name: baseline.name().to_string(), kind: TrackerKind::Baseline }
            }
        }
    }

    fn budget(&self) -> BatchBudget {
        match self {
            Subject::Model(model) => {
                let steps = (model.steps_per_sec * BATCH_SECS) as usize;
                BatchBudget { steps: steps.clamp(256, 8192), ..BatchBudget::default() }
            }
            Subject::Baseline(_) => BatchBudget::default(),
        }
    }
}

/// What a request is run with.
pub(crate) struct Run<'r, H> {
    pub(crate) host: &'r H,
    pub(crate) id: u32,
    pub(crate) model: Option<&'r OpenModel>,
    pub(crate) cancelled: &'r dyn Fn() -> bool,
    #[cfg(feature = "webgpu")]
    pub(crate) gpu: Option<&'r crate::gpu::Gpu>,
}

impl<H: Host> Run<'_, H> {
    /// Grades everything that `job` names; what is graded by the time of a cancellation is in the report.
    pub(crate) async fn grade(
        &self,
        job: &GradeJob,
        files: Vec<Box<dyn InputFile>>,
    ) -> Result<Say, Fault> {
        let subjects = self.subjects(job)?;
        let mut timings = Vec::new();
        let mut sets = Vec::new();
        let mut files = files.into_iter();
        let mut pace = Pace::new(self.host, self.id);
        for set in &job.sets {
            let started = self.host.now_millis();
            let gathered =
                Set::gather(set, job.limit, &mut files, &mut pace, self.cancelled).await?;
            let Some(set) = gathered else { break };
            if sets.iter().any(|other: &Set| other.info.name == set.info.name) {
                let message = format!("two sets of games are called `{}`", set.info.name);
                return Err(Fault::new(code::REQUEST, message, "choose each set once"));
            }
            timings.push(self.timing(format!("reading {}", set.info.name), 0, started));
            sets.push(set);
        }
        let tool = format!("cwm {}", env!("CARGO_PKG_VERSION"));
        let mut report = EvalReport::new(tool, Resampling::default());
        report.trackers = subjects.iter().map(Subject::info).collect();
        report.datasets = sets.iter().map(|set| set.info.clone()).collect();
        let mut worst = Vec::new();
        for set in &sets {
            for subject in &subjects {
                if (self.cancelled)() {
                    break;
                }
                let name = subject.info().name;
                let started = self.host.now_millis();
                let grading = self.grade_one(subject, set).await?;
                let what = format!("{name} on {}", set.info.name);
                timings.push(self.timing(what, grading.counts.steps, started));
                self.host
                    .say(self.id, Say::Phase { phase: Phase::Intervals, done: 0, total: None });
                self.host.pause().await;
                let started = self.host.now_millis();
                let mut evaluation =
                    Evaluation::new(&name, &set.info.name, &grading, report.resampling);
                evaluation.worst_games.truncate(job.worst as usize);
                for game in &mut evaluation.worst_games {
                    game.name = set.name(game.game);
                }
                report.evaluations.push(evaluation);
                timings.push(self.timing(
                    format!("intervals of {name} on {}", set.info.name),
                    0,
                    started,
                ));
                worst.extend(worst_games(&name, set, &grading, job.worst as usize));
            }
        }
        let mut skipped = SkipCounts::default();
        sets.iter().for_each(|set| skipped.merge(&set.skipped));
        let whole = report.evaluations.len() == job.sets.len() * subjects.len();
        let complete = whole && report.evaluations.iter().all(|evaluation| evaluation.complete);
        Ok(Say::Graded { report: Box::new(report), worst, skipped, timings, complete })
    }

    fn timing(&self, what: String, steps: u64, started_millis: f64) -> Timing {
        Timing { what, steps, millis: self.host.now_millis() - started_millis }
    }

    fn subjects(&self, job: &GradeJob) -> Result<Vec<Subject<'_>>, Fault> {
        let mut subjects = Vec::new();
        if job.model {
            let Some(model) = self.model else {
                let message = "no checkpoint is open";
                return Err(Fault::new(code::NO_MODEL, message, "open one first"));
            };
            subjects.push(Subject::Model(model));
        }
        for name in &job.baselines {
            let Some(baseline) = Baseline::from_name(name) else {
                let message = format!("there is no baseline `{name}`");
                return Err(Fault::new(code::BASELINE, message, "reload the page"));
            };
            let model_name = self.model.map(|model| &model.info.name);
            if job.model && model_name == Some(name) {
                let message = format!("the checkpoint is called `{name}`, like the baseline");
                return Err(Fault::new(code::BASELINE, message, "rename the file"));
            }
            subjects.push(Subject::Baseline(baseline));
        }
        if subjects.is_empty() || job.sets.is_empty() {
            let message = "nothing to grade";
            let hint = "choose a checkpoint or a baseline, and a set of games";
            return Err(Fault::new(code::REQUEST, message, hint));
        }
        Ok(subjects)
    }

    async fn grade_one(&self, subject: &Subject<'_>, set: &Set) -> Result<Grading, Fault> {
        match subject {
            Subject::Model(model) => {
                #[cfg(feature = "webgpu")]
                if let (Some(gpu), Some(on_gpu)) = (self.gpu, &model.on_gpu) {
                    let (on_cpu, host) = (&model.tracker, self.host);
                    let twins = crate::gpu::Twins { gpu, on_gpu, on_cpu, host };
                    return self.run(&twins, subject.budget(), set).await;
                }
                self.run(&model.tracker, subject.budget(), set).await
            }
            Subject::Baseline(baseline) => {
                let baseline = baseline.for_labels(set.info.en_passant);
                self.run(&baseline, subject.budget(), set).await
            }
        }
    }

    async fn run<T: Tracker>(
        &self,
        tracker: &T,
        budget: BatchBudget,
        set: &Set,
    ) -> Result<Grading, Fault> {
        let started = self.host.now_millis();
        let tracker = Paced { tracker, host: self.host };
        let games = set.trajectories().map(Ok::<_, Infallible>);
        let total = Some(set.len() as u64);
        let name = &set.info.name;
        let graded = evaluate_play(&tracker, name, set.policy(), games, total, budget, |event| {
            let millis = self.host.now_millis() - started;
            self.host.say(self.id, Say::Grading { event, millis });
            if (self.cancelled)() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        graded.await.map_err(|error| match error {
            EvaluateError::Tracker(error) => faults::of_tracker(&error),
            EvaluateError::Games { source, .. } => match source {},
        })
    }
}

/// The worst games with their tokens, ready to be opened.
fn worst_games(tracker: &str, set: &Set, grading: &Grading, wanted: usize) -> Vec<WorstGame> {
    let game = |worst: &cwm_core::metrics::WorstGame| WorstGame {
        tracker: tracker.to_string(),
        dataset: set.info.name.clone(),
        game: worst.game,
        title: set.name(worst.game),
        tokens: worst.moves.iter().map(|token| token.id()).collect(),
        first_mistake: worst.record.first_mistake.unwrap_or(0),
        exact_steps: worst.record.exact_steps,
        wrong_labels: worst.labels_wrong,
    };
    grading.worst.games().iter().take(wanted).map(game).collect()
}
