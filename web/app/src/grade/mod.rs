//! The grading view: which checkpoint on which games, how far it is, and what came of it.

mod charts;
mod report;
mod view;

use cwm_core::{chess::Policy, data::SkipCounts, event::Event, report::EvalReport};
use cwm_protocol::{Fault, GameSet, GradeJob, Phase, Timing, WorstGame};
use serde::{Deserialize, Serialize};

pub use charts::ChartView;
pub use view::{CheckRow, GradeView, ResultView, phase_words, size_of};

use crate::seat::{Progress, Seat};

/// A change of the grading view.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "grade", rename_all = "snake_case")]
pub enum GradeCommand {
    /// Another shipped checkpoint.
    Subject {
        /// Its name; nothing grades the baselines alone.
        name: Option<String>,
    },
    /// Other games.
    Set {
        /// Which.
        set: SetKind,
    },
    /// Another seed.
    Seed {
        /// In decimal.
        seed: String,
    },
    /// Another policy for rule-stratified play.
    Policy {
        /// Which.
        policy: Policy,
    },
    /// Another number of games.
    Size {
        /// Which.
        size: Size,
    },
    /// The number for [`Size::Custom`].
    Custom {
        /// In decimal.
        games: String,
    },
    /// Whether the baselines are graded as well.
    Baselines {
        /// Whether.
        on: bool,
    },
    /// Whether all rows of the paper are shown.
    PaperRows {
        /// Whether.
        all: bool,
    },
    /// Start.
    Run,
    /// Stop, and keep what is graded.
    Cancel,
    /// Look at one of the worst games on the board.
    Look {
        /// Its place in the list.
        worst: usize,
    },
    /// Look at games on the board with this checkpoint.
    Explore,
    /// Save something.
    Export {
        /// What.
        what: Export,
    },
}

/// What can be saved.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Export {
    /// The report.
    Json,
    /// Prefix bins.
    Csv,
    /// The summary in the reference's columns.
    Tsv,
    /// A chart, by name.
    Svg(String),
}

/// A kind of games.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetKind {
    /// The shipped sample of human games.
    Classics,
    /// Uniformly random legal play.
    #[default]
    Random,
    /// Play that seeks out a rule.
    Stratum,
    /// The user's PGN.
    Pgn,
}

/// How many games.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// A first look: not comparable.
    #[default]
    Quick,
    /// 1,000 games.
    Standard,
    /// 10,000 games, or all of a PGN.
    Full,
    /// Any number.
    Custom,
}

/// Games of a quick look.
const QUICK_GAMES: u64 = 100;
/// Games of the standard size.
const STANDARD_GAMES: u64 = 1000;
/// Games of the full size.
const FULL_GAMES: u64 = 10_000;
/// Full moves that a game has at least, as on the command line.
const MIN_FULLMOVES: u32 = 10;
/// Worst games that are listed.
const WORST: u32 = 12;
/// The most games that a browser is asked to play.
const GAMES_MAX: u64 = 1_000_000;

/// What is to be graded.
#[derive(Debug, Clone)]
pub struct Config {
    /// Whether the checkpoint is graded; else the baselines alone.
    pub model: bool,
    /// The games.
    pub set: SetKind,
    /// The seed, as written.
    pub seed: String,
    /// The policy of [`SetKind::Stratum`].
    pub policy: Policy,
    /// How many games.
    pub size: Size,
    /// The number of [`Size::Custom`], as written.
    pub custom: String,
    /// Whether the baselines are graded.
    pub baselines: bool,
    /// The user's PGN: key, name, length.
    pub pgn: Option<(String, String, u64)>,
    /// Whether all rows of the paper are shown.
    pub all_paper_rows: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            model: true,
            set: SetKind::default(),
            seed: "0".into(),
            policy: Policy::Castling,
            size: Size::default(),
            custom: "500".into(),
            baselines: true,
            pgn: None,
            all_paper_rows: false,
        }
    }
}

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
    /// The charts, or why there are none.
    pub charts: Result<Vec<ChartView>, String>,
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
            Event::Started { tracker, dataset, games_total } => run.rows.push(RunRow {
                tracker,
                dataset,
                games_total,
                graded: Default::default(),
                millis,
                finished: false,
            }),
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
        let charts = charts::charts(&report);
        self.outcome = Some(Outcome { report, worst, skipped, timings, complete, charts });
        self.revision += 1;
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
