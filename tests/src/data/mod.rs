//! Datasets: random play, preparation, storage, exchange.

mod overlap;
mod random;

use std::path::{Path, PathBuf};

/// A file under `tests/fixtures/data`.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/data").join(name)
}

/// A JSON file under `tests/fixtures/data`.
pub fn json(name: &str) -> serde_json::Value {
    let path = fixture(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
