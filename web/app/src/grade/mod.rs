//! The grading view: which checkpoint on which games, how far it is, and what came of it.

mod charts;
mod config;
mod report;
mod view;

pub use self::config::{Config, Export, GradeCommand, SetKind, Size};
use self::config::{FULL_GAMES, GAMES_MAX, MIN_FULLMOVES, QUICK_GAMES, STANDARD_GAMES, WORST};
pub use charts::ChartView;
use cwm_core::{chess::Policy, data::SkipCounts, event::Event, plot, report::EvalReport};
use cwm_protocol::{Fault, GameSet, GradeJob, Phase, Timing, WorstGame};
pub use view::{CheckRow, GradeView, ResultView, phase_words, size_of};

use crate::seat::{Progress, Seat};

/// A running evaluation.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// The request.
    pub request: u32,
    /// What is being done besides grading.
    pub phase: Option<Progress>,
    /// The evaluations that have begun, in order.
    pub rows: Vec<RunRow>,
    /// How many there will be.
    pub planned: usize,
    /// Whether it was cancelled.
    pub cancelling: bool,
}

/// A tracker on a set, as far as it is graded.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    /// The tracker.
    pub tracker: String,
    /// The set.
    pub dataset: String,
    /// Games to grade, if known.
    pub games_total: Option<u64>,
    /// Sums so far.
    pub graded: cwm_core::event::Partial,
    /// Time since it began, in milliseconds.
    pub millis: f64,
    /// Whether it is through.
    pub finished: bool,
}

/// What came of a run, or stood in a report that was dropped.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The report.
    pub report: EvalReport,
    /// The worst games, worst first within each evaluation.
    pub worst: Vec<WorstGame>,
    /// Games that were left out, in words.
    pub skipped: Vec<(String, u64)>,
    /// Where the time went.
    pub timings: Vec<Timing>,
    /// Whether everything was graded.
    pub complete: bool,
    /// The charts of the report.
    pub charts: Vec<plot::Plan>,
    /// How many of them are drawn: one at a time, so that nothing else has to wait.
    pub drawn: usize,
}

/// The grading view.
#[derive(Debug, Clone, Default)]
pub struct Grade {
    /// Its checkpoint and worker.
    pub seat: Seat,
    /// What is to be graded.
    pub config: Config,
    /// The run under way.
    pub run: Option<Run>,
    /// What came of the last one.
    pub outcome: Option<Outcome>,
    /// Grows with every outcome.
    pub revision: u32,
    /// Why the last run failed.
    pub fault: Option<Fault>,
}

impl Grade {
    /// The run that the settings ask for.
    ///
    /// # Errors
    /// What is missing, in words.
    pub fn job(&self) -> Result<(GradeJob, Vec<String>), String> {
        let config = &self.config;
        if config.model && self.seat.opening.is_some() {
            return Err("the checkpoint is still being loaded".into());
        }
        if config.model && self.seat.facts.is_none() {
            return Err("choose or drop a checkpoint first".into());
        }
        let number = |text: &str, what: &str| {
            text.trim().parse::<u64>().map_err(|_| format!("{what} is no whole number"))
        };
        let custom = || match number(&config.custom, "the number of games")? {
            0 => Err("no games to grade".to_string()),
            n if n > GAMES_MAX => Err(format!("more than {GAMES_MAX} games: use `cwm evaluate`")),
            n => Ok(n),
        };
        let (games, limit) = match config.size {
            Size::Quick => (STANDARD_GAMES, Some(QUICK_GAMES)),
            Size::Standard => (STANDARD_GAMES, None),
            Size::Full => (FULL_GAMES, None),
            Size::Custom => (custom()?, None),
        };
        let random = |policy: Policy| {
            let seed = number(&config.seed, "the seed")?;
            Ok::<_, String>(GameSet::Random { policy, seed, games, min_fullmoves: MIN_FULLMOVES })
        };
        let (set, limit, files) = match config.set {
            SetKind::Classics => (GameSet::Classics, None, Vec::new()),
            SetKind::Random => (random(Policy::Uniform)?, limit, Vec::new()),
            SetKind::Stratum => (random(config.policy)?, limit, Vec::new()),
            SetKind::Pgn => {
                let (key, name, _) = config.pgn.as_ref().ok_or("choose or drop a PGN first")?;
                let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
                let limit = match config.size {
                    Size::Full => None,
                    Size::Standard => Some(STANDARD_GAMES),
                    _ => limit.or(Some(games)),
                };
                let set = GameSet::Pgn { name: stem.into(), min_fullmoves: MIN_FULLMOVES };
                (set, limit, vec![key.clone()])
            }
        };
        let baselines = if config.baselines || !config.model {
            cwm_core::baseline::Baseline::ALL.map(|baseline| baseline.name().to_string()).to_vec()
        } else {
            Vec::new()
        };
        let job = GradeJob { model: config.model, baselines, sets: vec![set], limit, worst: WORST };
        Ok((job, files))
    }

    /// The same run on the command line, where there is one.
    pub fn command_line(&self) -> Option<String> {
        let (job, _) = self.job().ok()?;
        let mut words = vec!["cwm evaluate".to_string()];
        if job.model {
            let subject = self.seat.subject.as_ref()?;
            words.push(match subject {
                crate::seat::Subject::Shipped(name) => format!("models/checkpoints/{name}"),
                other => other.name().to_string(),
            });
        }
        if !job.baselines.is_empty() {
            words.push("--baselines".into());
        }
        match job.sets.first()? {
            GameSet::Classics => words.push("--human-sample".into()),
            GameSet::Random { policy, seed, games, .. } => {
                words.push(format!("--random {games} --seed {seed}"));
                if *policy != Policy::Uniform {
                    words.push(format!("--policy {}", policy.name()));
                }
            }
            GameSet::Pgn { name, .. } => words.push(format!("--data {name}=FOLDER")),
        }
        if let Some(limit) = job.limit {
            words.push(format!("--limit {limit}"));
        }
        Some(words.join(" "))
    }

    /// A message of the running evaluation.
    pub fn hear_event(&mut self, event: Event, millis: f64) {
        let Some(run) = &mut self.run else { return };
        run.phase = None;
        match event {
            Event::Started { tracker, dataset, games_total } => {
                // Where the GPU is lost, everything begins anew on the CPU.
                let same = |row: &RunRow| row.tracker == tracker && row.dataset == dataset;
                if let Some(again) = run.rows.iter().position(same) {
                    run.rows.truncate(again);
                }
                let graded = Default::default();
                let finished = false;
                run.rows.push(RunRow { tracker, dataset, games_total, graded, millis, finished });
            }
            Event::Graded(graded) => {
                if let Some(row) = run.rows.last_mut() {
                    (row.graded, row.millis) = (graded, millis);
                }
            }
            Event::Finished { graded, .. } => {
                if let Some(row) = run.rows.last_mut() {
                    (row.graded, row.millis, row.finished) = (graded, millis, true);
                }
            }
        }
    }

    /// Something takes a while during a run.
    pub fn hear_phase(&mut self, phase: Phase, done: u64, total: Option<u64>) {
        if let Some(run) = &mut self.run {
            run.phase = Some(Progress { phase, done, total });
        }
    }

    /// The report is there.
    pub fn finish(
        &mut self,
        report: EvalReport,
        worst: Vec<WorstGame>,
        skipped: &SkipCounts,
        timings: Vec<Timing>,
        complete: bool,
    ) {
        self.run = None;
        self.fault = None;
        let skipped = skipped.iter().filter(|(_, games)| *games > 0);
        let skipped = skipped.map(|(reason, n)| (reason.describe().to_string(), n)).collect();
        let charts = plot::plan(&report);
        self.outcome =
            Some(Outcome { report, worst, skipped, timings, complete, charts, drawn: 0 });
        self.revision += 1;
    }

    /// Draws the next chart; nothing if all are drawn. Also whether it is the first, and whether more are to come.
    ///
    /// # Errors
    /// Why it could not be drawn; the next call goes on with the one behind it.
    pub fn draw_next(&mut self) -> Option<(Result<ChartView, String>, bool, bool)> {
        let outcome = self.outcome.as_mut()?;
        let chart = charts::draw(&outcome.report, outcome.charts.get(outcome.drawn)?);
        outcome.drawn += 1;
        Some((chart, outcome.drawn == 1, outcome.drawn < outcome.charts.len()))
    }

    /// A chart's SVG document, by name.
    pub fn svg(&self, name: &str) -> Option<String> {
        let outcome = self.outcome.as_ref()?;
        let plan = outcome.charts.iter().find(|plan| plan.name == name)?;
        plan.draw(&outcome.report).ok().map(|chart| chart.svg)
    }

    /// A report that was made elsewhere.
    pub fn show_report(&mut self, report: EvalReport) {
        let complete = report.evaluations.iter().all(|evaluation| evaluation.complete);
        self.finish(report, Vec::new(), &SkipCounts::default(), Vec::new(), complete);
    }

    /// The worker died: the run is lost, what was counted stays on screen.
    pub fn crashed(&mut self) {
        if let Some(run) = self.run.take() {
            self.fault = self.seat.fault.clone();
            let graded: u64 = run.rows.iter().map(|row| row.graded.games).sum();
            if let Some(fault) = &mut self.fault {
                fault.message += &format!(" ({graded} games had been graded)");
            }
        }
    }
}
