//! The files of a built page, read once: what is not in the table is not there, whatever a request's path says.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::exit::Failure;

/// Bytes that a page may have in all; more is no page of ours.
const SITE_BYTES_MAX: u64 = 1 << 30;
/// What the entry page is called.
const INDEX: &str = "index.html";

/// One file.
#[derive(Debug, Clone)]
pub struct Asset {
    /// Its bytes.
    pub plain: Bytes,
    /// The same, compressed by Brotli, where a `.br` file lies beside it.
    pub brotli: Option<Bytes>,
    /// Its media type.
    pub media_type: &'static str,
    /// Names its content: equal tags mean equal bytes.
    pub tag: String,
}

/// A built page.
#[derive(Debug, Clone, Default)]
pub struct Site {
    assets: BTreeMap<String, Asset>,
}

impl Site {
    /// Reads the page in `dir`.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 3 if there is none.
    pub fn read(dir: &Path) -> anyhow::Result<Site> {
        if !dir.join(INDEX).is_file() {
            return Err(Failure::data(format!("there is no built page in `{}`", dir.display()))
                .hint("build it with `bash web/build`, or name its folder with --dist")
                .into());
        }
        let mut files = BTreeMap::new();
        let mut total_bytes = 0;
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            let path = dir.join(&folder);
            let reading = || format!("reading `{}`", path.display());
            for entry in fs::read_dir(&path).with_context(reading)? {
                let entry = entry.with_context(reading)?;
                let name = folder.join(entry.file_name());
                let kind = entry.file_type().with_context(reading)?;
                if kind.is_dir() {
                    folders.push(name);
                } else if kind.is_file() {
                    total_bytes += entry.metadata().with_context(reading)?.len();
                    if total_bytes > SITE_BYTES_MAX {
                        let message = format!("`{}` is too large to be a page", dir.display());
                        return Err(Failure::data(message)
                            .hint("name its folder with --dist")
                            .into());
                    }
                    let bytes = fs::read(entry.path()).with_context(reading)?;
                    files.insert(url_path(&name), Bytes::from(bytes));
                }
            }
        }
        Ok(Site::from_files(files))
    }

    fn from_files(files: BTreeMap<String, Bytes>) -> Site {
        let asset = |(path, plain): (&String, &Bytes)| {
            let digest = Sha256::digest(plain);
            let tag: String = digest[..12].iter().map(|byte| format!("{byte:02x}")).collect();
            let brotli = files.get(&format!("{path}.br")).cloned();
            let media_type = media_type(path);
            (path.clone(), Asset { plain: plain.clone(), brotli, media_type, tag })
        };
        let whole = files.iter().filter(|(path, _)| !path.ends_with(".br"));
        Site { assets: whole.map(asset).collect() }
    }

    /// The file at a path below the page, without a leading `/`; a folder means the entry page in it.
    pub fn get(&self, path: &str) -> Option<&Asset> {
        if path.is_empty() || path.ends_with('/') {
            return self.assets.get(&format!("{path}{INDEX}"));
        }
        self.assets.get(path)
    }

    /// How many files there are.
    pub fn files(&self) -> usize {
        self.assets.len()
    }
}

fn url_path(path: &Path) -> String {
    let parts: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "wasm" => "application/wasm",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" | "md" | "pgn" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_with_types_tags_and_compressed_twins() {
        let dir = tempfile::tempdir().unwrap();
        let message = format!("{:#}", Site::read(dir.path()).unwrap_err());
        assert!(message.contains("there is no built page"), "{message}");
        fs::create_dir(dir.path().join("models")).unwrap();
        for (name, text) in [
            ("index.html", "<p>"),
            ("app.wasm", "\0asm"),
            ("app.wasm.br", "x"),
            ("models/a.json", "{}"),
        ] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let site = Site::read(dir.path()).unwrap();
        assert_eq!(site.files(), 3);
        let wasm = site.get("app.wasm").unwrap();
        assert_eq!(
            (wasm.media_type, wasm.brotli.as_deref()),
            ("application/wasm", Some(&b"x"[..]))
        );
        assert_eq!(site.get("").unwrap().tag, site.get("index.html").unwrap().tag);
        assert_ne!(site.get("models/a.json").unwrap().tag, wasm.tag);
        assert!(
            ["app.wasm.br", "models/", "models", "../a", "/index.html"]
                .iter()
                .all(|p| site.get(p).is_none())
        );
    }
}
