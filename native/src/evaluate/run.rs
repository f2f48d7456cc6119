//! Every subject on every set of games, into one report.

use std::{ops::ControlFlow, thread, time::Instant};

use cwm_core::{
    event::Event,
    metrics::Resampling,
    report::{EvalReport, Evaluation},
};

use super::{
    games::{GameSource, Trajectories},
    subject::Subject,
};
use crate::{
    progress::{Progress, Task},
    train::signals::Stop,
    version,
};

/// What to grade.
#[derive(Debug)]
pub struct Job {
    /// The trackers.
    pub subjects: Vec<Subject>,
    /// The games.
    pub sources: Vec<GameSource>,
    /// How the intervals are drawn.
    pub resampling: Resampling,
    /// The worst games that the report lists of each subject on each source.
    pub worst_games: usize,
}

/// Games that are replayed ahead of the tracker.
const GAMES_AHEAD: usize = 256;

/// Grades every subject on every source. A stop request ends it early, with what is graded by then.
///
/// # Errors
/// If a tracker fails or games cannot be read.
pub fn grade_all(job: &Job, progress: &Progress, stop: &Stop) -> anyhow::Result<EvalReport> {
    let tool = format!("cwm {}", version::VERSION);
    let mut report = EvalReport::new(tool, job.resampling);
    report.trackers = job.subjects.iter().map(|subject| subject.info.clone()).collect();
    report.datasets = job.sources.iter().map(|source| source.info.clone()).collect();
    for source in &job.sources {
        for subject in &job.subjects {
            if stop.requested() {
                return Ok(report);
            }
            let (tracker, dataset) = (&subject.info.name, &source.info.name);
            let task = progress.task(&format!("{tracker} on {dataset}"), source.total(), "games");
            let mut games_done = 0;
            let started = Instant::now();
            let grading = ahead(source.open()?, |games| {
                let total = source.total();
                subject.grade(&source.info, games, total, |event| {
                    show(&task, &event, &mut games_done);
                    if stop.requested() {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                })
            })?;
            drop(task);
            if subject.is_model() {
                let (steps, secs) = (grading.counts.steps, started.elapsed().as_secs_f64());
                progress.note(&format!(
                    "{tracker} on {dataset}: {steps} steps in {secs:.1} s, {:.0} steps/s",
                    steps as f64 / secs.max(1e-9)
                ));
            }
            let mut evaluation = Evaluation::new(tracker, dataset, &grading, job.resampling);
            let worst = &mut evaluation.worst_games;
            worst.truncate(job.worst_games);
            let places: Vec<u64> = worst.iter().map(|game| game.game).collect();
            for (game, name) in worst.iter_mut().zip(source.names(&places)?) {
                game.name = name;
            }
            report.evaluations.push(evaluation);
        }
    }
    Ok(report)
}

fn show(task: &Task, event: &Event, games_done: &mut u64) {
    if let Event::Graded(partial) = event {
        task.advance(partial.games - *games_done);
        *games_done = partial.games;
        let exact = partial.exact_state_accuracy() * 100.0;
        task.message(format!("exact states {exact:.2} %"));
    }
}

/// Lets another thread read and replay games while this one grades them.
fn ahead<T>(games: Trajectories<'_>, grade: impl FnOnce(Trajectories<'_>) -> T) -> T {
    let (sender, receiver) = crossbeam_channel::bounded(GAMES_AHEAD);
    thread::scope(|scope| {
        scope.spawn(move || {
            for game in games {
                // The grading may end early; nobody waits for the rest then.
                if sender.send(game).is_err() {
                    break;
                }
            }
        });
        grade(Box::new(receiver.into_iter()))
    })
}
