//! Where a run stands, and the checkpoint directory that remembers it.

use std::{fs, path::Path};

use anyhow::Context;
use cwm_models::checkpoint::{TrainingFacts, WriteOptions};
use serde::{Deserialize, Serialize};

use super::{
    facts::facts,
    feed::Position,
    learner::Learner,
    run_dir::{PROGRESS_FILE, RunDir, STATE_FILE},
};
use crate::{atomic, checkpoint, exit::Failure};

/// All that resuming needs besides the trainer's own state.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    /// Optimisation steps done.
    pub step: u64,
    /// The next batch.
    pub position: Position,
    /// Games trained on, repeats counted.
    pub games: u64,
    /// Valid steps trained on, repeats counted.
    pub valid_steps: u64,
    /// Batches skipped because something was not finite.
    pub skipped: u64,
    /// Of those, in a row until now.
    pub skipped_in_a_row: u64,
    /// Step and validation loss of the best checkpoint.
    pub best: Option<(u64, f64)>,
    /// Seconds of training, over all sessions.
    pub elapsed_secs: f64,
}

impl Standing {
    /// Writes checkpoint `step`: the model in its own files, the trainer's state, and this.
    pub fn save(
        &self,
        run: &RunDir,
        trainer: &Learner,
        base: &TrainingFacts,
    ) -> anyhow::Result<()> {
        let facts = facts(run.path(), base, self);
        run.save_checkpoint(self.step, |dir| {
            checkpoint::write_files(
                dir,
                trainer.config(),
                &trainer.named_parameters(),
                Some(&facts),
                WriteOptions::EXACT,
            )?;
            atomic::write(&dir.join(STATE_FILE), &trainer.save_state())?;
            atomic::write(&dir.join(PROGRESS_FILE), serde_json::to_string_pretty(self)?.as_bytes())
        })?;
        Ok(())
    }

    /// Reads a checkpoint directory into `trainer`.
    pub fn load(dir: &Path, trainer: &mut Learner) -> anyhow::Result<Self> {
        let read = |name: &str| {
            let path = dir.join(name);
            fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))
        };
        let standing: Standing = serde_json::from_slice(&read(PROGRESS_FILE)?)
            .map_err(|e| Failure::data(format!("`{}/{PROGRESS_FILE}`: {e}", dir.display())))?;
        trainer
            .load_state(&read(STATE_FILE)?)
            .map_err(|e| Failure::data(format!("`{}/{STATE_FILE}`: {e}", dir.display())))?;
        Ok(standing)
    }

    /// Loads the newest checkpoint that can be read; a damaged one is named through `note` and passed over.
    pub fn load_latest(
        run: &RunDir,
        trainer: &mut Learner,
        note: impl Fn(&str),
    ) -> anyhow::Result<Option<Self>> {
        let mut last_error = None;
        for (_, dir) in run.checkpoints().iter().rev() {
            match Standing::load(dir, trainer) {
                Ok(standing) => return Ok(Some(standing)),
                Err(error) => {
                    note(&format!("passing over a damaged checkpoint: {error:#}"));
                    last_error = Some(error);
                }
            }
        }
        last_error.map_or(Ok(None), Err)
    }
}
