//! The zip archive of a PyTorch file: stored entries under one folder, each checked against its checksum.
//!
//! `torch.save` writes `NAME/data.pkl`, `NAME/byteorder`, `NAME/data/0`, `NAME/data/1`, ... and a few small entries.
//! Entries are slices of the file: nothing is copied, and nothing allocated on the word of the archive.

use std::collections::BTreeMap;

use rawzip::{CompressionMethod, ZipArchive};

use super::TorchError;
use crate::checkpoint::error::quoted;

/// The most entries that are read; the largest network of the benchmark, with its optimiser, has some hundreds.
const ENTRIES_LIMIT: usize = 1 << 14;
/// The entry that holds the values.
const PICKLE: &str = "data.pkl";

/// The entries of a PyTorch file, by name below the archive's folder.
#[derive(Debug)]
pub(super) struct Archive<'a> {
    entries: BTreeMap<String, &'a [u8]>,
}

impl<'a> Archive<'a> {
    /// Takes a file apart and checks every entry.
    pub(super) fn open(file: &'a [u8]) -> Result<Self, TorchError> {
        let damaged =
            |error: rawzip::Error| TorchError::Archive { reason: error.to_string().to_lowercase() };
        let archive = ZipArchive::from_slice(file).map_err(damaged)?;
        let mut all = BTreeMap::new();
        let mut claimed_bytes = 0_u64;
        for record in archive.entries() {
            let record = record.map_err(damaged)?;
            let entry = archive.get_entry(record.wayfinder()).map_err(damaged)?;
            let name = String::from_utf8_lossy(record.file_path().as_bytes()).into_owned();
            if all.len() == ENTRIES_LIMIT {
                return Err(TorchError::EntryCount { limit: ENTRIES_LIMIT });
            }
            if entry.local_header().file_path().as_bytes() != record.file_path().as_bytes() {
                let reason = format!("`{}` is not where the directory says", quoted(&name));
                return Err(TorchError::Archive { reason });
            }
            let claim = entry.claim_verifier();
            if record.compression_method() != CompressionMethod::STORE
                || record.flags().is_encrypted()
                || claim.uncompressed_size != entry.data().len() as u64
            {
                return Err(TorchError::NotStored { entry: quoted(&name) });
            }
            // Entries that overlap would make a small file cost the time and memory of a large one.
            claimed_bytes += entry.data().len() as u64;
            if claimed_bytes > file.len() as u64 {
                return Err(TorchError::EntryLength { entry: quoted(&name) });
            }
            if rawzip::crc32(entry.data()) != claim.crc {
                return Err(TorchError::Checksum { entry: quoted(&name) });
            }
            let (begin, end) = entry.compressed_data_range();
            let data = &file[begin as usize..end as usize];
            if all.contains_key(&name) {
                return Err(TorchError::EntryTwice { entry: quoted(&name) });
            }
            all.insert(name, data);
        }
        Self::below_folder(all)
    }

    /// Keeps what lies in the folder of `data.pkl`.
    fn below_folder(all: BTreeMap<String, &'a [u8]>) -> Result<Self, TorchError> {
        let folder = all.keys().find_map(|name| {
            let folder = name.strip_suffix(PICKLE)?;
            let is_folder = folder.find('/').is_some_and(|at| at + 1 == folder.len());
            is_folder.then(|| folder.to_string())
        });
        let folder = folder.ok_or(TorchError::MissingEntry { entry: PICKLE })?;
        let below = |name: String| name.strip_prefix(&folder).map(str::to_string);
        let entries = all.into_iter().filter_map(|(name, data)| Some((below(name)?, data)));
        let archive = Archive { entries: entries.collect() };
        match archive.get("byteorder") {
            None | Some(b"little") => Ok(archive),
            Some(found) => {
                let found = quoted(&String::from_utf8_lossy(&found[..found.len().min(32)]));
                Err(TorchError::ByteOrder { found })
            }
        }
    }

    /// The bytes of an entry.
    pub(super) fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.entries.get(name).copied()
    }

    /// The values.
    pub(super) fn pickle(&self) -> Result<&'a [u8], TorchError> {
        self.get(PICKLE).ok_or(TorchError::MissingEntry { entry: PICKLE })
    }
}
