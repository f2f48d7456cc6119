//! Checkpoints on disk: found, read within bounds, and written whole or not at all.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::Context;
use cwm_models::{
    ModelConfig, Parameters,
    checkpoint::{
        Checkpoint, CheckpointError, Header, TrainingFacts, WriteOptions, config::CONFIG_KEY,
        torch::is_torch, write,
    },
};

use crate::{atomic, exit::Failure};

/// The weights in a checkpoint's folder.
pub const WEIGHTS_FILE: &str = "model.safetensors";
/// The config in a checkpoint's folder.
pub const CONFIG_FILE: &str = "config.json";
/// What the reference's training calls its checkpoint.
pub const TORCH_FILE: &str = "latest.pt";
/// The model card in a checkpoint's folder.
pub const CARD_FILE: &str = "README.md";
/// The evaluation report in a checkpoint's folder.
pub const EVAL_FILE: &str = "eval.json";
/// The largest file of weights that is read: ten times the largest network of the benchmark in f32, four times its
/// checkpoint with the optimiser's state.
const LIMIT_BYTES: u64 = 2 << 30;
/// Bytes that tell kinds of file apart.
const HEAD_BYTES: u64 = 9;
/// The longest text file (config, report) that is read.
const TEXT_LIMIT_BYTES: u64 = 16 << 20;

/// A checkpoint's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The safetensors file, or the reference's PyTorch file.
    pub weights: PathBuf,
    /// The config beside it, where it lies in a folder of its own.
    pub config: Option<PathBuf>,
}

/// Finds the checkpoint that `path` means: a safetensors file, a folder that holds one, or a run directory, whose
/// best checkpoint is taken, else its latest.
pub fn find(path: &Path) -> anyhow::Result<Found> {
    let metadata = fs::metadata(path).map_err(|e| {
        let failure = Failure::data(format!("cannot read `{}`: {e}", path.display()));
        match e.kind() {
            std::io::ErrorKind::NotFound => failure.hint(
                "give a .safetensors file, a folder with config.json and model.safetensors, a run directory, or a PyTorch \
                 checkpoint of the reference",
            ),
            _ => failure,
        }
    })?;
    if metadata.is_dir() {
        return find_in_folder(path);
    }
    if path.file_name().is_some_and(|name| name == CONFIG_FILE) {
        return find_in_folder(path.parent().unwrap_or(Path::new(".")));
    }
    Ok(Found { weights: path.to_path_buf(), config: config_beside(path) })
}

fn find_in_folder(folder: &Path) -> anyhow::Result<Found> {
    let checkpoints = folder.join("checkpoints");
    for place in
        [folder.to_path_buf(), target(&checkpoints, "best"), target(&checkpoints, "latest")]
    {
        let weights = place.join(WEIGHTS_FILE);
        if weights.is_file() {
            return Ok(Found { config: config_beside(&weights), weights });
        }
    }
    if checkpoints.is_dir() {
        return Err(Failure::data(format!("the run `{}` has no checkpoint yet", folder.display()))
            .hint("a run writes its first one at `train.save_every` steps, or when it is stopped")
            .into());
    }
    let torch = folder.join(TORCH_FILE);
    if torch.is_file() {
        return Ok(Found { weights: torch, config: None });
    }
    Err(Failure::data(format!("`{}` holds no checkpoint", folder.display()))
        .hint(format!("a checkpoint's folder holds {CONFIG_FILE} and {WEIGHTS_FILE}"))
        .into())
}

/// Where `best` or `latest` points: a link, or a file with the name in it where links are not to be had.
fn target(checkpoints: &Path, name: &str) -> PathBuf {
    let path = checkpoints.join(name);
    match fs::metadata(&path) {
        Ok(m) if m.is_file() && m.len() < 256 => {
            fs::read_to_string(&path).map_or(path, |to| checkpoints.join(to.trim()))
        }
        _ => path,
    }
}

fn config_beside(weights: &Path) -> Option<PathBuf> {
    let config = weights.with_file_name(CONFIG_FILE);
    config.is_file().then_some(config)
}

/// Finds and reads a checkpoint of the benchmark's vocabulary.
pub fn load(path: &Path) -> anyhow::Result<Checkpoint> {
    load_with(path, Checkpoint::read)
}

/// Finds and reads a checkpoint of any vocabulary.
pub fn load_any_vocabulary(path: &Path) -> anyhow::Result<Checkpoint> {
    load_with(path, Checkpoint::read_any_vocabulary)
}

fn load_with(
    path: &Path,
    read: impl Fn(&[u8], Option<&str>) -> Result<Checkpoint, CheckpointError>,
) -> anyhow::Result<Checkpoint> {
    let found = find(path)?;
    let fault = |e: CheckpointError| failure(&found.weights, &e);
    let (header, weights) = read_weights(&found.weights)?;
    let Some(header) = header else {
        let mut checkpoint = read(&weights, None).map_err(fault)?;
        if let Some(training) = &mut checkpoint.info.training
            && let Some(imported) = &mut training.imported
        {
            let name = found.weights.file_name();
            imported.file = name.map(|name| name.to_string_lossy().into_owned());
        }
        return Ok(checkpoint);
    };
    // A file with a name of its own that brings its config has nothing to do with what lies beside it.
    let lone = found.weights.file_name().is_none_or(|name| name != WEIGHTS_FILE)
        && header.metadata.contains_key(CONFIG_KEY);
    let config = found.config.as_deref().filter(|_| !lone).map(read_text).transpose()?;
    Ok(read(&weights, config.as_deref()).map_err(fault)?)
}

/// A fault of the file at `path` as the command line reports it.
pub fn failure(path: &Path, error: &CheckpointError) -> Failure {
    Failure::data(format!("`{}`: {error} [{}]", path.display(), error.code())).hint(error.hint())
}

/// Reads a file of weights: a safetensors file after its header has been checked against its length; a PyTorch file,
/// which has its directory at its end, as it is.
fn read_weights(path: &Path) -> anyhow::Result<(Option<Header>, Vec<u8>)> {
    let context = || format!("cannot read `{}`", path.display());
    let mut file = File::open(path).with_context(context)?;
    let metadata = file.metadata().with_context(context)?;
    if !metadata.is_file() {
        return Err(Failure::data(format!("`{}` is not a file", path.display())).into());
    }
    let file_bytes = metadata.len();
    // The head alone decides whether the rest is worth reading.
    let mut head = Vec::new();
    file.by_ref().take(HEAD_BYTES).read_to_end(&mut head).with_context(context)?;
    let header = if is_torch(&head) {
        None
    } else {
        if let Ok(head_bytes) = Header::head_bytes(&head, file_bytes) {
            let rest = head_bytes.saturating_sub(head.len() as u64);
            file.by_ref().take(rest).read_to_end(&mut head).with_context(context)?;
        }
        Some(Header::parse_head(&head, file_bytes).map_err(|e| failure(path, &e))?)
    };
    if file_bytes > LIMIT_BYTES {
        return Err(Failure::data(format!(
            "`{}` has {file_bytes} bytes; no more than {LIMIT_BYTES} are read",
            path.display()
        ))
        .into());
    }
    // The file may have changed meanwhile; the full check behind sees what was read.
    file.take(LIMIT_BYTES - head.len() as u64).read_to_end(&mut head).with_context(context)?;
    Ok((header, head))
}

/// Reads a text file that should be small.
pub fn read_text(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let read = File::open(path).and_then(|f| f.take(TEXT_LIMIT_BYTES).read_to_string(&mut text));
    match read {
        Ok(bytes) if (bytes as u64) < TEXT_LIMIT_BYTES => Ok(text),
        Ok(_) => Err(Failure::data(format!("`{}` is too long to be read", path.display())).into()),
        Err(e) => Err(Failure::data(format!("cannot read `{}`: {e}", path.display())).into()),
    }
}

/// Writes config.json and model.safetensors into the directory `dir`; callers that need all or nothing pass one made
/// by [`atomic::directory`].
pub fn write_files(
    dir: &Path,
    config: &ModelConfig,
    tensors: &Parameters,
    training: Option<&TrainingFacts>,
    options: WriteOptions,
) -> anyhow::Result<()> {
    let weights = write(config, tensors, training, options)
        .map_err(|e| Failure::data(format!("{e} [{}]", e.code())).hint(e.hint()))?;
    atomic::write(&dir.join(WEIGHTS_FILE), &weights)?;
    let json = serde_json::to_string_pretty(config)? + "\n";
    atomic::write(&dir.join(CONFIG_FILE), json.as_bytes())
}

#[cfg(test)]
mod tests {
    use cwm_models::{NamedTensor, TransformerConfig, checkpoint::EmbeddingRows};

    use super::*;

    fn tiny() -> (ModelConfig, Parameters) {
        let config = ModelConfig::Transformer(TransformerConfig::new(4, 1, 2));
        let shapes = config.parameter_shapes().into_iter();
        let tensors = shapes.map(|(name, shape)| {
            let data = vec![0.5; shape.iter().product()];
            (name, NamedTensor { shape, data })
        });
        let tensors = tensors.collect();
        (config, tensors)
    }

    fn message(result: anyhow::Result<Checkpoint>) -> String {
        format!("{:#}", result.unwrap_err())
    }

    #[test]
    fn a_checkpoint_is_found_by_file_folder_and_run() {
        let (config, tensors) = tiny();
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        let latest = run.join("checkpoints/latest");
        fs::create_dir_all(&latest).unwrap();
        assert!(message(load(&run)).ends_with("has no checkpoint yet"));
        write_files(&latest, &config, &tensors, None, WriteOptions::EXACT).unwrap();
        let read = load(&run).unwrap();
        assert_eq!((&read.config, read.info.rows), (&config, EmbeddingRows::Reachable));
        assert_eq!(load(&latest).unwrap(), read);
        assert_eq!(load(&latest.join(CONFIG_FILE)).unwrap(), read);
        let lone = dir.path().join("lone.safetensors");
        fs::copy(latest.join(WEIGHTS_FILE), &lone).unwrap();
        assert_eq!(load(&lone).unwrap(), read);
        fs::write(dir.path().join(CONFIG_FILE), "{}").unwrap();
        assert_eq!(load(&lone).unwrap(), read);
        // Where there are no links, `best` is a file with a name in it.
        let step = run.join("checkpoints/step-7");
        fs::create_dir(&step).unwrap();
        write_files(&step, &config, &tensors, None, WriteOptions::SMALL).unwrap();
        fs::write(run.join("checkpoints/best"), "step-7").unwrap();
        assert_eq!(find(&run).unwrap().weights, step.join(WEIGHTS_FILE));
    }

    #[test]
    fn what_is_no_checkpoint_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        assert!(message(load(dir.path())).ends_with("holds no checkpoint"));
        assert!(message(load(&path("absent"))).contains("cannot read"));
        fs::write(path("a.safetensors"), b"PK\x03\x04 the rest of a zip").unwrap();
        assert!(message(load(&path("a.safetensors"))).ends_with("[CKPT-PT-ZIP]"));
        fs::write(path("b.safetensors"), b"\x10\0\0\0\0\0\0\0{}").unwrap();
        assert!(message(load(&path("b.safetensors"))).ends_with("[CKPT-TRUNCATED]"));
        fs::write(path("latest.pt"), b"\x80\x02").unwrap();
        assert!(message(load(&path("latest.pt"))).ends_with("[CKPT-PT-OLD]"));
        // A folder may be one of the reference's.
        assert!(message(load(dir.path())).ends_with("[CKPT-PT-OLD]"));
    }
}
