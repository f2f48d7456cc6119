//! The grading view as the scripts render it.

use cwm_core::{chess::Policy, report::grouped};
use cwm_protocol::{Fault, ModelFacts};
use serde::Serialize;

use super::{
    Grade, Outcome, Run, SetKind, Size,
    report::{HeadTable, tables},
};
use crate::seat::{Progress, Subject};

/// A line of the file check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckRow {
    /// What was looked at.
    pub name: &'static str,
    /// What was found.
    pub value: String,
    /// Whether it is a warning.
    pub warning: bool,
}

/// A choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// What the command names.
    pub id: String,
    /// What is shown.
    pub title: String,
    /// A few words more.
    pub about: String,
}

/// A running evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunView {
    /// What is being done.
    pub what: String,
    /// How far the evaluation under way is, from 0 to 1, if known.
    pub fraction: Option<f64>,
    /// Games, steps, speed and time left, in words.
    pub text: String,
    /// What was graded so far, a line a tracker.
    pub rows: Vec<RunRowView>,
    /// Whether it was cancelled.
    pub cancelling: bool,
}

/// What was graded so far of one tracker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunRowView {
    /// The tracker and the set.
    pub name: String,
    /// Exact states so far.
    pub exact: String,
    /// Of how much.
    pub count: String,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResultView<'a> {
    /// Whether everything was graded.
    pub complete: bool,
    /// The headline tables.
    pub tables: Vec<HeadTable>,
    /// The worst games.
    pub worst: Vec<WorstView>,
    /// Games that were left out.
    pub skipped: &'a [(String, u64)],
    /// Where the time went.
    pub timings: Vec<String>,
    /// Whether all rows of the paper are shown.
    pub all_paper_rows: bool,
}

/// A game on which a tracker did badly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorstView {
    /// The tracker.
    pub tracker: String,
    /// The game.
    pub title: String,
    /// How bad it is.
    pub about: String,
}

/// Everything in the grading view but results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GradeView {
    /// The name of the checkpoint, or of what is being loaded.
    pub subject: Option<String>,
    /// Whether the checkpoint is graded.
    pub model: bool,
    /// Whether it is a file of the user's.
    pub own_file: bool,
    /// The load under way.
    pub opening: Option<Progress>,
    /// The file check.
    pub check: Vec<CheckRow>,
    /// What went wrong with the file or the run.
    pub fault: Option<Fault>,
    /// Whether the worker died.
    pub crashed: bool,
    /// The kinds of games.
    pub sets: Vec<Choice>,
    /// The one chosen.
    pub set: SetKind,
    /// The seed, as written.
    pub seed: String,
    /// The policies.
    pub policies: Vec<Choice>,
    /// The one chosen.
    pub policy: Policy,
    /// The sizes.
    pub sizes: Vec<Choice>,
    /// The one chosen.
    pub size: Size,
    /// The number of games of one's own choice.
    pub custom: String,
    /// Whether the baselines are graded.
    pub baselines: bool,
    /// The user's PGN.
    pub pgn: Option<String>,
    /// Why it cannot be run; nothing if it can.
    pub blocked: Option<String>,
    /// The same run on the command line.
    pub command_line: Option<String>,
    /// The run under way.
    pub run: Option<RunView>,
    /// Grows with every outcome.
    pub revision: u32,
}

impl Grade {
    /// The view without the results.
    pub fn view(&self) -> GradeView {
        let config = &self.config;
        let seat = &self.seat;
        GradeView {
            subject: seat.name().map(str::to_string),
            model: config.model,
            own_file: matches!(seat.subject, Some(Subject::File(..))),
            opening: seat.opening.as_ref().and_then(|opening| opening.progress),
            check: seat.facts.as_ref().map_or(Vec::new(), |(_, facts)| check(facts)),
            fault: self.fault.clone().or(seat.fault.clone()),
            crashed: seat.crashed,
            sets: sets(),
            set: config.set,
            seed: config.seed.clone(),
            policies: policies(),
            policy: config.policy,
            sizes: sizes(config.set),
            size: config.size,
            custom: config.custom.clone(),
            baselines: config.baselines,
            pgn: config.pgn.as_ref().map(|(_, name, bytes)| format!("{name}, {}", size_of(*bytes))),
            blocked: self.job().err(),
            command_line: self.command_line(),
            run: self.run.as_ref().map(run_view),
            revision: self.revision,
        }
    }

    /// The results.
    pub fn result_view(&self) -> Option<ResultView<'_>> {
        let outcome = self.outcome.as_ref()?;
        let Outcome { report, worst, skipped, timings, complete, .. } = outcome;
        let timing = |timing: &cwm_protocol::Timing| {
            let secs = timing.millis / 1000.0;
            match timing.steps {
                0 => format!("{}: {secs:.2} s", timing.what),
                steps => format!(
                    "{}: {} steps in {secs:.2} s, {} steps/s",
                    timing.what,
                    grouped(steps),
                    grouped((steps as f64 / secs.max(1e-3)) as u64)
                ),
            }
        };
        Some(ResultView {
            complete: *complete,
            tables: tables(report, self.config.all_paper_rows),
            worst: worst.iter().map(worst_view).collect(),
            skipped,
            timings: timings.iter().map(timing).collect(),
            all_paper_rows: self.config.all_paper_rows,
        })
    }
}

fn worst_view(game: &cwm_protocol::WorstGame) -> WorstView {
    let title = game.title.clone().unwrap_or_else(|| format!("game {}", game.game + 1));
    WorstView {
        tracker: game.tracker.clone(),
        title: format!("{title} ({})", game.dataset),
        about: format!(
            "first mistake at ply {}, {} of {} states exact, {} labels wrong",
            game.first_mistake,
            game.exact_steps,
            game.tokens.len() + 1,
            grouped(game.wrong_labels)
        ),
    }
}

/// A length in bytes, as people read it.
pub fn size_of(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

fn check(facts: &ModelFacts) -> Vec<CheckRow> {
    let row = |name, value: String| CheckRow { name, value, warning: false };
    let preset = facts.preset.as_ref().map_or(String::new(), |p| format!(" (preset {p})"));
    let mut rows = vec![
        row("family", facts.family.clone()),
        row("shape", format!("{}{preset}", facts.size)),
        row(
            "parameters",
            match facts.stored_parameters {
                stored if stored == facts.parameters => grouped(stored),
                stored => {
                    format!("{}, {} of them stored", grouped(facts.parameters), grouped(stored))
                }
            },
        ),
        row("number format", facts.dtype.clone()),
        row("labels", format!("{} after every step", facts.labels)),
        row("file", size_of(facts.file_bytes)),
        row("SHA-256", facts.sha256.clone()),
    ];
    if let Some(steps) = facts.train_steps {
        rows.push(row("training", format!("{} optimiser steps", grouped(steps))));
    }
    if facts.steps_per_sec > 0.0 {
        let speed = grouped(facts.steps_per_sec as u64);
        rows.push(row("speed here", format!("about {speed} steps/s on the CPU")));
    }
    rows.extend(facts.warnings.iter().map(|warning| CheckRow {
        name: "warning",
        value: warning.clone(),
        warning: true,
    }));
    rows
}

fn choice(id: &str, title: &str, about: &str) -> Choice {
    Choice { id: id.into(), title: title.into(), about: about.into() }
}

fn sets() -> Vec<Choice> {
    vec![
        choice(
            "random",
            "Random-uniform",
            "every legal move equally likely: human habits do not help",
        ),
        choice("classics", "Human sample", "44 famous games that ship with the page"),
        choice("stratum", "Rule-stratified", "play that seeks out one rule"),
        choice("pgn", "My PGN", "up to 100 MB, read on this computer"),
    ]
}

fn policies() -> Vec<Choice> {
    let all = Policy::ALL.into_iter().filter(|&policy| policy != Policy::Uniform);
    all.map(|policy| choice(policy.name(), policy.name(), policy.about())).collect()
}

fn sizes(set: SetKind) -> Vec<Choice> {
    match set {
        SetKind::Classics => Vec::new(),
        SetKind::Pgn => vec![
            choice("quick", "Quick", "the first 100 games: a preview, not comparable"),
            choice("standard", "Standard", "the first 1,000 games"),
            choice("full", "Full", "every game of the file"),
            choice("custom", "Custom", "the first games, as many as you say"),
        ],
        SetKind::Random | SetKind::Stratum => vec![
            choice("quick", "Quick", "100 games: a preview, not comparable"),
            choice("standard", "Standard", "1,000 games"),
            choice("full", "Full", "10,000 games, as in the paper"),
            choice("custom", "Custom", "as many as you say"),
        ],
    }
}

fn run_view(run: &Run) -> RunView {
    let rows = run.rows.iter().map(|row| RunRowView {
        name: row.tracker.clone(),
        exact: if row.graded.steps > 0 {
            format!("{:.2} %", row.graded.exact_state_accuracy() * 100.0)
        } else {
            "\u{2013}".into()
        },
        count: format!("{} games, {} steps", grouped(row.graded.games), grouped(row.graded.steps)),
    });
    let (what, fraction, text) = progress(run);
    RunView { what, fraction, text, rows: rows.collect(), cancelling: run.cancelling }
}

/// What is being done, how far it is, and the numbers in words.
fn progress(run: &Run) -> (String, Option<f64>, String) {
    if let Some(progress) = run.phase {
        let fraction = progress.total.map(|total| progress.done as f64 / total.max(1) as f64);
        let text = match progress.total {
            Some(total) => format!("{} of {}", grouped(progress.done), grouped(total)),
            None if progress.done > 0 => grouped(progress.done),
            None => String::new(),
        };
        return (phase_words(progress.phase).into(), fraction, text);
    }
    let Some(row) = run.rows.last() else { return ("starting".into(), None, String::new()) };
    let what =
        format!("{} on {} ({} of {})", row.tracker, row.dataset, run.rows.len(), run.planned);
    let games = row.graded.games;
    let fraction = row.games_total.map(|total| games as f64 / total.max(1) as f64);
    let of = row.games_total.map_or(String::new(), |total| format!(" / {}", grouped(total)));
    let secs = row.millis / 1000.0;
    let mut text = format!("{}{of} games, {} steps", grouped(games), grouped(row.graded.steps));
    if let (Some(total), true) = (row.games_total, games > 0) {
        let steps = (row.graded.steps as f64 / games as f64 * total as f64) as u64;
        if !row.finished && games < total {
            text += &format!(" / about {}", grouped(steps));
        }
    }
    if secs > 0.05 && row.graded.steps > 0 {
        text += &format!(", {} steps/s", grouped((row.graded.steps as f64 / secs) as u64));
        if let (Some(total), true) = (row.games_total, games > 0) {
            let left = secs / games as f64 * total.saturating_sub(games) as f64;
            text += &format!(", {} left", duration(left));
        }
    }
    (what, fraction, text)
}

fn duration(secs: f64) -> String {
    match secs {
        s if s < 1.0 => "less than a second".into(),
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// A phase in words.
pub const fn phase_words(phase: cwm_protocol::Phase) -> &'static str {
    use cwm_protocol::Phase;
    match phase {
        Phase::Fetching => "fetching the checkpoint",
        Phase::Building => "checking and building the network",
        Phase::OpeningGpu => "asking for the GPU",
        Phase::SelfTest => "testing the GPU against known answers",
        Phase::WarmingUp => "compiling for the GPU",
        Phase::ReadingGames => "reading games",
        Phase::Intervals => "drawing the intervals",
    }
}
