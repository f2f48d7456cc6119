//! Which files are meant: directories stand for the games in them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;

use crate::exit::Failure;

const KINDS: [&str; 3] = ["pgn", "uci", "jsonl"];
const COMPRESSIONS: [&str; 3] = ["zst", "gz", "bz2"];

/// Replaces each directory by the files in it and below that are called like games (`*.pgn`, `*.uci`, `*.jsonl`,
/// compressed or not), in order of their paths.
///
/// # Errors
/// A [`Failure`] if an input does not exist, a directory holds no such file, or stdin is named twice.
pub fn expand(inputs: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    if inputs.iter().filter(|path| is_stdin(path)).count() > 1 {
        return Err(Failure::usage("stdin (`-`) can be read only once").into());
    }
    for input in inputs {
        if is_stdin(input) || input.is_file() {
            files.push(input.clone());
        } else if input.is_dir() {
            let before = files.len();
            walk(input, &mut files)?;
            files[before..].sort();
            if files.len() == before {
                return Err(Failure::data(format!("`{}` holds no game files", input.display()))
                    .hint("expected names like *.pgn, *.pgn.zst, *.uci.gz or *.jsonl; name other files one by one")
                    .into());
            }
        } else if input.exists() {
            // A pipe or a device.
            files.push(input.clone());
        } else {
            return Err(Failure::data(format!("`{}` does not exist", input.display())).into());
        }
    }
    Ok(files)
}

/// Whether a path means stdin.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

fn walk(dir: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let context = || format!("looking into `{}`", dir.display());
    for entry in fs::read_dir(dir).with_context(context)? {
        let entry = entry.with_context(context)?;
        let path = entry.path();
        // Links to directories are not followed: they may lead round in a circle.
        if entry.file_type().with_context(context)?.is_dir() {
            walk(&path, files)?;
        } else if is_called_like_games(&path) && path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

fn is_called_like_games(path: &Path) -> bool {
    let extension = |path: &Path| {
        path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
    };
    let mut last = extension(path);
    if COMPRESSIONS.contains(&last.as_str()) {
        last = extension(&path.with_extension(""));
    }
    KINDS.contains(&last.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_become_their_game_files_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        for name in ["b.pgn", "a.PGN.zst", "sub/c.uci.gz", "notes.txt", "x.jsonl", "y.zst"] {
            fs::write(at(name), "").unwrap();
        }
        let files = expand(&[dir.path().to_path_buf()]).unwrap();
        assert_eq!(files, ["a.PGN.zst", "b.pgn", "sub/c.uci.gz", "x.jsonl"].map(at));
        assert!(expand(&[at("absent")]).is_err());
        assert!(expand(&["-".into(), "-".into()]).is_err());
        fs::remove_file(at("sub/c.uci.gz")).unwrap();
        assert!(expand(&[at("sub")]).unwrap_err().to_string().contains("no game files"));
    }
}
