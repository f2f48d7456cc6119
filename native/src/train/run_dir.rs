//! A run on disk: `runs/<UTC>-<name>-<8 hex of the config>/` with config, logs, checkpoints and outcome.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;

use crate::{atomic, exit::Failure};

/// A run's directory.
#[derive(Debug, Clone)]
pub struct RunDir {
    path: PathBuf,
}

/// What a checkpoint directory holds besides the model's own files.
pub const STATE_FILE: &str = "training.state";
/// Where the run stands at a checkpoint (JSON).
pub const PROGRESS_FILE: &str = "progress.json";
const DONE: &str = "DONE";
const FAILED: &str = "FAILED";

impl RunDir {
    /// Makes a new run directory under `root`; `stamp` is the UTC time as `20260131T120000Z`.
    pub fn create(root: &Path, stamp: &str, name: &str, hash: &str) -> anyhow::Result<Self> {
        for attempt in 0..100 {
            let suffix = if attempt == 0 { String::new() } else { format!("-{attempt}") };
            let path = root.join(format!("{stamp}{suffix}-{name}-{hash}"));
            fs::create_dir_all(root)
                .with_context(|| format!("cannot make `{}`", root.display()))?;
            match fs::create_dir(&path) {
                Ok(()) => {
                    fs::create_dir(path.join("checkpoints"))
                        .with_context(|| format!("cannot make `{}`", path.display()))?;
                    return Ok(RunDir { path });
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => {
                    return Err(e).with_context(|| format!("cannot make `{}`", path.display()));
                }
            }
        }
        Err(Failure::data(format!("cannot find a free run name under `{}`", root.display())).into())
    }

    /// An existing run directory.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        if !path.join("checkpoints").is_dir() {
            return Err(Failure::data(format!("`{}` is not a run directory", path.display()))
                .hint("a run directory holds `config.toml` and `checkpoints/`")
                .into());
        }
        Ok(RunDir { path: path.to_path_buf() })
    }

    /// The newest run under `root` of this name and config.
    pub fn newest(root: &Path, name: &str, hash: &str) -> Option<Self> {
        let ending = format!("-{name}-{hash}");
        let mut runs: Vec<PathBuf> = fs::read_dir(root)
            .ok()?
            .filter_map(|entry| entry.ok().map(|e| e.path()))
            .filter(|path| path.to_string_lossy().ends_with(&ending))
            .filter(|path| path.join("checkpoints").is_dir())
            .collect();
        runs.sort();
        runs.pop().map(|path| RunDir { path })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the run has reached its end.
    pub fn is_done(&self) -> bool {
        self.path.join(DONE).exists()
    }

    /// Step and path of every whole checkpoint, oldest first.
    pub fn checkpoints(&self) -> Vec<(u64, PathBuf)> {
        let mut found: Vec<(u64, PathBuf)> = fs::read_dir(self.path.join("checkpoints"))
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let step = path.file_name()?.to_str()?.strip_prefix("step-")?.parse().ok()?;
                path.join(STATE_FILE).is_file().then_some((step, path))
            })
            .collect();
        found.sort();
        found
    }

    /// Writes checkpoint `step` whole or not at all and points `latest` at it; `fill` writes its files.
    pub fn save_checkpoint(
        &self,
        step: u64,
        fill: impl FnOnce(&Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<PathBuf> {
        let path = self.path.join("checkpoints").join(format!("step-{step:09}"));
        // A checkpoint of the same step is moved out of the way first: at no time is there half of one.
        let replaced = self.path.join("checkpoints").join(format!(".replaced-{step}"));
        if path.exists() {
            let _ = fs::remove_dir_all(&replaced);
            fs::rename(&path, &replaced)
                .with_context(|| format!("cannot replace `{}`", path.display()))?;
        }
        atomic::directory(&path, fill)?;
        let _ = fs::remove_dir_all(&replaced);
        self.point("latest", step)?;
        Ok(path)
    }

    /// Points a name (`latest`, `best`) at checkpoint `step`.
    pub fn point(&self, name: &str, step: u64) -> anyhow::Result<()> {
        #[cfg(unix)]
        {
            let dir = self.path.join("checkpoints");
            let temp = dir.join(format!(".{name}"));
            let _ = fs::remove_file(&temp);
            std::os::unix::fs::symlink(format!("step-{step:09}"), &temp)
                .and_then(|()| fs::rename(&temp, dir.join(name)))
                .with_context(|| format!("cannot write `{}`", dir.join(name).display()))?;
        }
        #[cfg(not(unix))]
        atomic::write(
            &self.path.join("checkpoints").join(name),
            format!("step-{step:09}").as_bytes(),
        )?;
        Ok(())
    }

    /// Deletes checkpoints beyond the `keep_last` newest, sparing `best` and every multiple of `keep_every` (0 = none).
    pub fn prune(
        &self,
        keep_last: usize,
        best: Option<u64>,
        keep_every: u64,
    ) -> anyhow::Result<()> {
        let all = self.checkpoints();
        let old = all.len().saturating_sub(keep_last.max(1));
        for (step, path) in &all[..old] {
            let milestone = keep_every > 0 && step % keep_every == 0;
            if Some(*step) != best && !milestone {
                fs::remove_dir_all(path)
                    .with_context(|| format!("cannot delete `{}`", path.display()))?;
            }
        }
        Ok(())
    }

    /// Writes the summary and `DONE`.
    pub fn finish(&self, summary: &serde_json::Value) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(summary)?;
        atomic::write(&self.path.join("summary.json"), text.as_bytes())?;
        let _ = fs::remove_file(self.path.join(FAILED));
        atomic::write(&self.path.join(DONE), b"")
    }

    /// Writes `FAILED` with the reason.
    pub fn fail(&self, reason: &str) -> anyhow::Result<()> {
        atomic::write(&self.path.join(FAILED), reason.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_last_the_best_and_the_milestones() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDir::create(root.path(), "20260131T120000Z", "a", "01234567").unwrap();
        for step in 1..=8 {
            run.save_checkpoint(step * 10, |dir| atomic::write(&dir.join(STATE_FILE), b"x"))
                .unwrap();
        }
        run.prune(3, Some(20), 40).unwrap();
        let steps: Vec<u64> = run.checkpoints().into_iter().map(|(step, _)| step).collect();
        assert_eq!(steps, [20, 40, 60, 70, 80]);
        assert!(run.path().join("checkpoints/latest").join(STATE_FILE).exists());
        // A checkpoint without its state is not whole and does not count.
        fs::create_dir(run.path().join("checkpoints/step-000000090")).unwrap();
        assert_eq!(run.checkpoints().len(), 5);
    }

    #[test]
    fn resuming_finds_the_newest_run_of_the_same_config() {
        let root = tempfile::tempdir().unwrap();
        for (stamp, hash) in [("1", "aa"), ("2", "aa"), ("3", "bb")] {
            RunDir::create(root.path(), stamp, "n", hash).unwrap();
        }
        let found = RunDir::newest(root.path(), "n", "aa").unwrap();
        assert!(found.path().ends_with("2-n-aa"));
        assert!(RunDir::newest(root.path(), "m", "aa").is_none());
        let again = RunDir::create(root.path(), "2", "n", "aa").unwrap();
        assert!(again.path().ends_with("2-1-n-aa"));
    }
}
