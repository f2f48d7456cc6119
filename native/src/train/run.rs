//! The training loop, from the first batch to the last checkpoint.

use std::{
    thread,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::Context;
use cwm_core::{
    chess::{EnPassant, Trajectory},
    data::Games,
    evaluate::{BatchBudget, Grading, evaluate},
};
use cwm_models::{checkpoint::TrainingFacts, train::StepReport};
use serde_json::json;

use super::{
    feed::{Fed, Source, feed},
    learner::Learner,
    log::{Record, RunLog},
    run_dir::RunDir,
    settings::TrainSettings,
    signals::Stop,
    standing::Standing,
};
use crate::{
    evaluate::subject::block_on,
    exit::{Exit, Failure},
    progress::{Progress, Task},
};

/// Everything a run needs, made by [`super::job`].
#[derive(Debug)]
pub struct Run<'a> {
    /// The job's settings.
    pub settings: &'a TrainSettings,
    /// The run's directory.
    pub dir: RunDir,
    /// Games to train on.
    pub train: &'a Games,
    /// What they are made into.
    pub source: &'a Source<'a>,
    /// Games to validate on.
    pub validation: &'a Games,
    /// When the en passant label is set.
    pub en_passant: EnPassant,
    /// What checkpoints tell of the run, sums and curve aside.
    pub facts: &'a TrainingFacts,
    /// Optimisation steps to do in all.
    pub total_steps: u64,
    /// Batches in an epoch.
    pub epoch_batches: u64,
}

/// Sums since the last step line.
#[derive(Debug)]
struct Window {
    since: Instant,
    loss: f64,
    batches: u64,
    games: u64,
    valid_steps: u64,
}

impl Window {
    fn new() -> Self {
        Window { since: Instant::now(), loss: 0.0, batches: 0, games: 0, valid_steps: 0 }
    }
}

impl Run<'_> {
    /// Trains from `standing` to the end, a stop request, or divergence.
    pub fn train(
        &self,
        trainer: &mut Learner,
        mut standing: Standing,
        stop: &Stop,
        progress: &Progress,
    ) -> anyhow::Result<Exit> {
        let mut log = RunLog::open(self.dir.path(), standing.step, now_secs() as u64)?;
        let started = Instant::now();
        let earlier_secs = standing.elapsed_secs;
        let mut snapshot = (trainer.save_state(), standing.step);
        let mut window = Window::new();
        let task = progress.task("training", self.total_steps, "steps");
        task.begin_at(standing.step);

        let exit = thread::scope(|scope| -> anyhow::Result<Exit> {
            let (lessons, _feeder) = feed(scope, self.source, standing.position);
            while standing.step < self.total_steps {
                if stop.requested() {
                    standing.save(&self.dir, trainer, self.facts)?;
                    return Ok(Exit::Stopped);
                }
                let fed = lessons.recv().context("the data feed ended early")?;
                let report = trainer.step(&fed.lesson)?;
                standing.position = fed.next;
                standing.elapsed_secs = earlier_secs + started.elapsed().as_secs_f64();
                if report.skipped_non_finite {
                    self.skip(trainer, &mut standing, &fed, &snapshot, &mut log)?;
                    if standing.skipped_in_a_row >= self.settings.stop_after {
                        return Ok(Exit::Diverged);
                    }
                    continue;
                }
                standing.skipped_in_a_row = 0;
                standing.step = report.step;
                standing.games += fed.games_read;
                standing.valid_steps += fed.lesson.valid_steps() as u64;
                task.advance(1);
                self.tell(&mut window, &fed, &report, &standing, &task, &mut log)?;

                let step = standing.step;
                let due = |every: u64| every > 0 && step.is_multiple_of(every);
                let last = step == self.total_steps;
                if due(self.settings.snapshot_every) {
                    snapshot = (trainer.save_state(), standing.step);
                }
                if !last && due(self.settings.validate_every) {
                    let paused = Instant::now();
                    self.validate(
                        trainer,
                        &mut standing,
                        self.settings.validate_games,
                        &mut log,
                        &task,
                    )?;
                    window.since += paused.elapsed();
                }
                if !last && due(self.settings.save_every) {
                    standing.save(&self.dir, trainer, self.facts)?;
                    self.dir.prune(
                        self.settings.keep_last,
                        standing.best.map(|(step, _)| step),
                        self.settings.keep_every,
                    )?;
                }
            }
            self.validate(trainer, &mut standing, 0, &mut log, &task)?;
            standing.save(&self.dir, trainer, self.facts)?;
            Ok(Exit::Done)
        })?;
        drop(task);
        self.end(exit, &standing, progress)
    }

    /// Records a batch that was not finite and, after a few in a row, goes back to the last snapshot.
    fn skip(
        &self,
        trainer: &mut Learner,
        standing: &mut Standing,
        fed: &Fed,
        (state, step): &(Vec<u8>, u64),
        log: &mut RunLog,
    ) -> anyhow::Result<()> {
        standing.skipped += 1;
        standing.skipped_in_a_row += 1;
        let rolled_back = standing.skipped_in_a_row.is_multiple_of(self.settings.rollback_after);
        if rolled_back {
            trainer.load_state(state).context("cannot go back to the last snapshot")?;
            standing.step = *step;
        }
        let games = fed.games.iter().map(|&i| self.train.id(i as usize).to_string()).collect();
        log.record(&Record::Skipped { step: standing.step, games, rolled_back }, now_secs())
    }

    /// Every few steps: the step line and its record.
    fn tell(
        &self,
        window: &mut Window,
        fed: &Fed,
        report: &StepReport,
        standing: &Standing,
        task: &Task,
        log: &mut RunLog,
    ) -> anyhow::Result<()> {
        window.loss += report.loss;
        window.batches += 1;
        window.games += fed.games_read;
        window.valid_steps += fed.lesson.valid_steps() as u64;
        if !standing.step.is_multiple_of(self.settings.log_every) {
            return Ok(());
        }
        let secs = window.since.elapsed().as_secs_f64().max(1e-9);
        let loss = window.loss / window.batches as f64;
        let steps_per_sec = window.valid_steps as f64 / secs;
        let games_per_sec = window.games as f64 / secs;
        task.message(format!(
            "loss {loss:.5} lr {:.2e} |g| {:.3} {games_per_sec:.0} games/s {steps_per_sec:.0} steps/s",
            report.lr, report.grad_norm
        ));
        let epoch = standing.position.epoch as f64
            + standing.position.batch as f64 / self.epoch_batches.max(1) as f64;
        *window = Window::new();
        let record = Record::Train {
            step: standing.step,
            loss,
            lr: report.lr,
            grad_norm: report.grad_norm,
            games_per_sec,
            steps_per_sec,
            epoch,
            elapsed_secs: standing.elapsed_secs,
        };
        log.record(&record, now_secs())
    }

    /// Scores validation games (`limit` 0: all) and remembers the best loss.
    fn validate(
        &self,
        trainer: &Learner,
        standing: &mut Standing,
        limit: usize,
        log: &mut RunLog,
        task: &Task,
    ) -> anyhow::Result<()> {
        let games =
            if limit == 0 { self.validation.len() } else { limit.min(self.validation.len()) };
        if games == 0 {
            return Ok(());
        }
        let grading = grade(trainer, self.validation, games, self.en_passant)?;
        let counts = &grading.counts;
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let loss = counts.loss.mean().unwrap_or(f64::NAN);
        let exact = share(counts.exact_steps, counts.steps);
        let labelwise = share(counts.labels_right(), counts.steps * 75);
        let trajectory = share(counts.exact_games, counts.games);
        if standing.best.is_none_or(|(_, best)| loss < best) {
            standing.best = Some((standing.step, loss));
            standing.save(&self.dir, trainer, self.facts)?;
            self.dir.point("best", standing.step)?;
        }
        task.println(&format!(
            "step {}: validation loss {loss:.5}, exact states {:.2} %, labels {:.2} %, games {:.2} % (n = {} games)",
            standing.step, 100.0 * exact, 100.0 * labelwise, 100.0 * trajectory, counts.games
        ));
        let record = Record::Validation {
            step: standing.step,
            games: counts.games,
            loss,
            exact,
            labelwise,
            trajectory,
            elapsed_secs: standing.elapsed_secs,
        };
        log.record(&record, now_secs())
    }

    /// The end banner, the summary and the exit code.
    fn end(&self, exit: Exit, standing: &Standing, progress: &Progress) -> anyhow::Result<Exit> {
        let dir = self.dir.path().display();
        match exit {
            Exit::Done => {
                let summary = json!({
                    "steps": standing.step,
                    "games": standing.games,
                    "valid_steps": standing.valid_steps,
                    "skipped_batches": standing.skipped,
                    "best_step": standing.best.map(|(step, _)| step),
                    "best_validation_loss": standing.best.map(|(_, loss)| loss),
                    "elapsed_secs": standing.elapsed_secs,
                });
                self.dir.finish(&summary)?;
                progress.note(&format!(
                    "done: {} steps in {:.0} s, {dir}",
                    standing.step, standing.elapsed_secs
                ));
                if let Some((step, loss)) = standing.best {
                    progress.note(&format!("best validation loss {loss:.5} at step {step}"));
                }
                progress.note(&format!("next: cwm evaluate {dir} --random 1000"));
                Ok(exit)
            }
            Exit::Diverged => {
                let message = format!(
                    "{} batches in a row gave non-finite losses or gradients at step {}",
                    standing.skipped_in_a_row, standing.step
                );
                self.dir.fail(&message)?;
                Err(Failure::new(exit, message)
                    .hint(format!(
                        "the last good checkpoint is kept; the batches' game ids are in {dir}/metrics.jsonl; \
                         try a lower `optimizer.lr`"
                    ))
                    .into())
            }
            _ => {
                progress.note(&format!("stopped at step {} with a checkpoint", standing.step));
                progress.note(&format!("resume: cwm train --resume {dir}"));
                Ok(exit)
            }
        }
    }
}

/// Grades the first `limit` games.
fn grade(
    trainer: &Learner,
    games: &Games,
    limit: usize,
    en_passant: EnPassant,
) -> anyhow::Result<Grading> {
    let trajectories = (0..limit).map(|i| {
        Ok::<_, std::convert::Infallible>(Trajectory::replay_with(games.moves(i), en_passant))
    });
    let grading = block_on(evaluate(
        &trainer.tracker(),
        "validation",
        trajectories,
        Some(limit as u64),
        BatchBudget::default(),
        |_| std::ops::ControlFlow::Continue(()),
    ))?;
    Ok(grading)
}

fn now_secs() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}
