//! What a run says while it goes: the step line, `metrics.jsonl` and TensorBoard events.

use std::{
    fs::{self, File, OpenOptions},
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::tensorboard::EventFile;
use crate::atomic;

/// The log of records in a run directory.
pub const FILE: &str = "metrics.jsonl";

/// One line of [`FILE`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    /// Means and rates since the last record of this kind.
    Train {
        /// Optimisation steps done.
        step: u64,
        /// Mean cross-entropy a label, in nats.
        loss: f64,
        /// Learning rate of the last step.
        lr: f64,
        /// Global gradient norm before clipping, of the last step.
        grad_norm: f64,
        /// Games a second.
        games_per_sec: f64,
        /// Valid steps (positions) a second.
        steps_per_sec: f64,
        /// Passes over the data, with fraction.
        epoch: f64,
        /// Seconds of training, over all sessions of the run.
        elapsed_secs: f64,
    },
    /// Scores on games of the validation split.
    Validation {
        /// Optimisation steps done.
        step: u64,
        /// Games scored.
        games: u64,
        /// Mean cross-entropy a label, in nats.
        loss: f64,
        /// Share of steps with all 75 labels right.
        exact: f64,
        /// Share of labels right.
        labelwise: f64,
        /// Share of games with every step exact.
        trajectory: f64,
        /// Seconds of training, over all sessions of the run.
        elapsed_secs: f64,
    },
    /// A batch whose loss or gradient was not finite: no parameter moved.
    Skipped {
        /// Optimisation steps done.
        step: u64,
        /// Ids of the batch's games.
        games: Vec<String>,
        /// Whether the run went back to its last snapshot.
        rolled_back: bool,
    },
}

impl Record {
    /// The step of the record.
    pub fn step(&self) -> u64 {
        match self {
            Record::Train { step, .. }
            | Record::Validation { step, .. }
            | Record::Skipped { step, .. } => *step,
        }
    }

    /// Name and value of each number worth a curve.
    fn scalars(&self) -> Vec<(&'static str, f64)> {
        match *self {
            Record::Train { loss, lr, grad_norm, games_per_sec, steps_per_sec, .. } => vec![
                ("train/loss", loss),
                ("train/lr", lr),
                ("train/grad_norm", grad_norm),
                ("train/games_per_sec", games_per_sec),
                ("train/steps_per_sec", steps_per_sec),
            ],
            Record::Validation { loss, exact, labelwise, trajectory, .. } => vec![
                ("validation/loss", loss),
                ("validation/exact_state", exact),
                ("validation/labelwise", labelwise),
                ("validation/trajectory", trajectory),
            ],
            Record::Skipped { .. } => vec![("train/skipped", 1.0)],
        }
    }
}

/// Appends records to both files of a run.
#[derive(Debug)]
pub struct RunLog {
    path: PathBuf,
    file: File,
    events: EventFile,
}

impl RunLog {
    /// Opens the logs of `run`, dropping records later than `step`: what a resumed run does again is told once.
    pub fn open(run: &Path, step: u64, now_secs: u64) -> anyhow::Result<Self> {
        let path = run.join(FILE);
        if path.exists() {
            let kept: Vec<String> = read_records(&path)?
                .into_iter()
                .filter(|record| record.step() <= step)
                .map(|record| serde_json::to_string(&record))
                .collect::<Result<_, _>>()?;
            let text: String = kept.iter().map(|line| format!("{line}\n")).collect();
            atomic::write(&path, text.as_bytes())?;
        }
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("cannot write `{}`", path.display()))?;
        let events = EventFile::open(run, now_secs)
            .with_context(|| format!("cannot write events in `{}`", run.display()))?;
        Ok(RunLog { path, file, events })
    }

    /// Appends a record.
    pub fn record(&mut self, record: &Record, wall_secs: f64) -> anyhow::Result<()> {
        let line = serde_json::to_string(record)? + "\n";
        let mut write = || -> std::io::Result<()> {
            self.file.write_all(line.as_bytes())?;
            for (tag, value) in record.scalars() {
                self.events.scalar(wall_secs, record.step(), tag, value as f32)?;
            }
            Ok(())
        };
        write().with_context(|| format!("cannot write `{}`", self.path.display()))
    }
}

/// The records of a log; an unfinished last line is passed over.
pub fn read_records(path: &Path) -> anyhow::Result<Vec<Record>> {
    let file = fs::File::open(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let mut records = Vec::new();
    for line in BufReader::new(file).lines() {
        let line = line.with_context(|| format!("cannot read `{}`", path.display()))?;
        if let Ok(record) = serde_json::from_str(&line) {
            records.push(record);
        }
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reopening_at_a_step_forgets_what_came_after() {
        let dir = tempfile::tempdir().unwrap();
        let skipped = |step| Record::Skipped { step, games: vec![], rolled_back: false };
        let mut log = RunLog::open(dir.path(), 0, 1).unwrap();
        for step in 1..=4 {
            log.record(&skipped(step), 0.0).unwrap();
        }
        drop(log);
        let path = dir.path().join("metrics.jsonl");
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"kind\":\"tra").unwrap();
        let mut log = RunLog::open(dir.path(), 2, 2).unwrap();
        log.record(&skipped(3), 0.0).unwrap();
        let steps: Vec<u64> = read_records(&path).unwrap().iter().map(Record::step).collect();
        assert_eq!(steps, [1, 2, 3]);
    }
}
