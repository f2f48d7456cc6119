//! The checkpoints under `models/checkpoints`, so that the binary carries them wherever it is installed.

use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Writes the list as `shipped.rs` into the build's folder.
pub fn list() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let models = root.join("../models");
    let checkpoints = models.join("checkpoints");
    // A path that does not exist counts as always changed: watch its parent until it does.
    let watched = if checkpoints.is_dir() { &checkpoints } else { &models };
    println!("cargo::rerun-if-changed={}", watched.display());

    let mut folders: Vec<PathBuf> = match fs::read_dir(&checkpoints) {
        Ok(entries) => entries.map(|entry| entry.map(|e| e.path())).collect::<io::Result<_>>()?,
        Err(_) => Vec::new(),
    };
    folders.sort();
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("shipped.rs");
    let mut source = Vec::new();
    writeln!(source, "&[")?;
    for folder in folders {
        let (weights, config) = (folder.join("model.safetensors"), folder.join("config.json"));
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if weights.is_file() && config.is_file() {
            println!("cargo::rerun-if-changed={}", weights.display());
            println!("cargo::rerun-if-changed={}", config.display());
            writeln!(
                source,
                "Shipped {{ name: {name:?}, weights: include_bytes!({:?}), config: include_str!({:?}) }},",
                absolute(&weights)?,
                absolute(&config)?,
            )?;
        }
    }
    writeln!(source, "]")?;
    fs::write(out, source)
}

fn absolute(path: &Path) -> io::Result<String> {
    Ok(fs::canonicalize(path)?.to_string_lossy().into_owned())
}
