//! A new run that begins where another one stands (`--extend`): the same network and order of batches, other steps or schedule.

use std::{fs, path::Path};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::{
    environment::Environment, learner::Learner, log, run_dir::RunDir, settings::Settings,
    standing::Standing,
};
use crate::{atomic, exit::Failure};

/// Where a run began, if not at its first step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The directory name of the run before.
    pub run: String,
    /// The step it stood at.
    pub step: u64,
}

impl Origin {
    /// Where an existing run began.
    ///
    /// # Errors
    /// If its `environment.json` cannot be read.
    pub fn of(run: &RunDir) -> anyhow::Result<Option<Self>> {
        Ok(Environment::read(run)?.extends)
    }

    /// The beginning as a checkpoint's card tells it.
    pub fn text(&self) -> String {
        format!("{} steps of {}", self.step, self.run)
    }
}

/// A run to begin from.
#[derive(Debug)]
pub struct Extension {
    from: RunDir,
    origin: Origin,
}

impl Extension {
    /// Looks whether a job of `settings` and this data over `total_steps` can begin where the run at `path` stands.
    ///
    /// # Errors
    /// If there is no such run, its network, data or order of batches is another, or it has as many steps already.
    pub fn open(
        path: &Path,
        settings: &Settings,
        data_sha256: &str,
        total_steps: u64,
    ) -> anyhow::Result<Self> {
        let from = RunDir::open(path)?;
        let config = path.join("config.toml");
        let text = fs::read_to_string(&config)
            .with_context(|| format!("cannot read `{}`", config.display()))?;
        let before: Settings = toml::from_str(&text)
            .map_err(|e| Failure::data(format!("`{}`: {e}", config.display())))?;
        let refuse =
            |what: String| Failure::usage(format!("cannot extend `{}`: {what}", path.display()));
        if let Some(key) = before.first_other_course(settings)? {
            return Err(refuse(format!("it was started with another `{key}`")).into());
        }
        if Environment::read(&from)?.dataset.sha256 != data_sha256 {
            return Err(refuse("it was trained on other data".into()).into());
        }
        let step = from.checkpoints().last().map_or(0, |(step, _)| *step);
        if step == 0 || step >= total_steps {
            return Err(refuse(format!("it stands at step {step} of {total_steps}"))
                .hint("name more steps in all with `--max-steps`")
                .into());
        }
        let run = fs::canonicalize(path)?;
        let run = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Extension { from, origin: Origin { run, step } })
    }

    /// Where the new run begins.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Takes over the newest checkpoint and the log up to it; the new run finds a best checkpoint of its own.
    pub fn begin(
        &self,
        dir: &RunDir,
        trainer: &mut Learner,
        note: impl Fn(&str),
    ) -> anyhow::Result<Standing> {
        let standing = Standing::load_latest(&self.from, trainer, note)?;
        let mut standing =
            standing.filter(|standing| standing.step == self.origin.step).ok_or_else(|| {
                let path = self.from.path().display();
                Failure::data(format!("the newest checkpoint of `{path}` cannot be read"))
            })?;
        standing.best = None;
        let metrics = self.from.path().join(log::FILE);
        if metrics.exists() {
            let text = fs::read(&metrics)
                .with_context(|| format!("cannot read `{}`", metrics.display()))?;
            atomic::write(&dir.path().join(log::FILE), &text)?;
        }
        Ok(standing)
    }
}
