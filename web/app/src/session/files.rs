//! Files that were dropped or picked: told apart by what is in them, and opened where they belong.

use cwm_core::report::EvalReport;

use super::Session;
use crate::{
    grade::SetKind,
    link::Tab,
    message::{FileHead, Lane, Level},
    seat::Subject,
};

/// What a file is, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Weights.
    Safetensors,
    /// A PyTorch checkpoint, which holds its config.
    Torch,
    /// JSON: a config or a report.
    Json,
    /// PGN or lists of moves.
    Games,
    /// A compressed archive of games.
    Compressed,
    /// A dataset.
    Parquet,
    /// Something else.
    Unknown,
}

/// The largest PGN that is taken.
const PGN_BYTES_MAX: u64 = 100_000_000;

impl FileKind {
    /// Tells by the first bytes, then by the name.
    pub fn of(file: &FileHead) -> FileKind {
        let head = &file.head[..];
        let name = file.name.to_ascii_lowercase();
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        match head {
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x1f, 0x8b, ..] | [b'B', b'Z', b'h', ..] => {
                FileKind::Compressed
            }
            [b'P', b'A', b'R', b'1', ..] => FileKind::Parquet,
            [b'P', b'K', 3, 4, ..] if ends(&[".zip", ".pgn.zip"]) => FileKind::Compressed,
            [b'P', b'K', 3, 4, ..] => FileKind::Torch,
            [_, _, _, _, _, 0, 0, 0, b'{', ..] => FileKind::Safetensors,
            _ if ends(&[".safetensors"]) => FileKind::Safetensors,
            _ if ends(&[".pt", ".pth", ".bin", ".ckpt"]) => FileKind::Torch,
            [b'{', ..] => FileKind::Json,
            _ if ends(&[".json"]) => FileKind::Json,
            _ if head.contains(&0) => FileKind::Unknown,
            _ if ends(&[".pgn", ".txt", ".uci", ".san"]) || head.is_ascii() => FileKind::Games,
            _ => FileKind::Unknown,
        }
    }
}

impl Session {
    pub(super) fn files(&mut self, files: Vec<FileHead>) {
        let of_kind = |kind: FileKind| files.iter().find(|file| FileKind::of(file) == kind);
        if let Some(weights) = of_kind(FileKind::Safetensors) {
            let config = of_kind(FileKind::Json).map(|file| file.key.clone());
            let keys = [weights.key.clone()].into_iter().chain(config).collect();
            let stem = weights.name.trim_end_matches(".safetensors").to_string();
            return self.open_checkpoint(stem, keys);
        }
        if let Some(torch) = of_kind(FileKind::Torch) {
            let stem = torch.name.rsplit_once('.').map_or(&torch.name[..], |(stem, _)| stem);
            return self.open_checkpoint(stem.to_string(), vec![torch.key.clone()]);
        }
        let Some(file) = files.first() else { return };
        let name = &file.name;
        match FileKind::of(file) {
            FileKind::Games => self.open_games(file),
            FileKind::Json => self.open_json(file),
            FileKind::Compressed => {
                let hint = "unpack it first, or turn it into a dataset with `cwm data prepare`";
                self.toast(Level::Error, &format!("`{name}` is compressed"), hint);
            }
            FileKind::Parquet => {
                let hint = format!("grade it with `cwm evaluate NAME --data mine={name}`");
                self.toast(Level::Error, &format!("`{name}` is a Parquet dataset"), &hint);
            }
            _ => {
                let hint = "drop a checkpoint (.safetensors, with or without its config.json, or .pt), a PGN, or a report";
                self.toast(
                    Level::Error,
                    &format!("`{name}` is nothing that this page reads"),
                    hint,
                );
            }
        }
    }

    fn open_checkpoint(&mut self, name: String, keys: Vec<String>) {
        if self.grade.run.is_some() {
            let hint = "cancel it first";
            return self.toast(Level::Error, "an evaluation is running", hint);
        }
        let name = if name.is_empty() { "checkpoint".to_string() } else { name };
        self.load(Lane::Grade, Subject::File(name, keys));
        self.grade.config.model = true;
        self.grade.fault = None;
        if self.tab != Tab::Grade {
            self.tab = Tab::Grade;
            self.remember(true);
        }
    }

    fn open_games(&mut self, file: &FileHead) {
        if file.bytes > PGN_BYTES_MAX {
            let hint = "grade it with `cwm evaluate`";
            return self.toast(
                Level::Error,
                &format!("`{}` is larger than 100 MB", file.name),
                hint,
            );
        }
        match &file.text {
            Some(text) if self.tab == Tab::Explore => {
                let text = text.clone();
                self.enter(&text);
                // More games than the picker takes become a set.
                if self.tab == Tab::Grade {
                    self.use_pgn(file);
                }
            }
            _ => self.use_pgn(file),
        }
    }

    fn use_pgn(&mut self, file: &FileHead) {
        self.grade.config.pgn = Some((file.key.clone(), file.name.clone(), file.bytes));
        self.grade.config.set = SetKind::Pgn;
        self.announce(format!("{} is ready to be graded", file.name));
        if self.tab != Tab::Grade {
            self.tab = Tab::Grade;
            self.remember(true);
        }
    }

    fn open_json(&mut self, file: &FileHead) {
        let report = file.text.as_deref().map(EvalReport::from_json);
        match report {
            Some(Ok(report)) => {
                self.grade.show_report(report);
                self.draw_later();
                self.tab = Tab::Grade;
                self.remember(true);
            }
            Some(Err(error)) => {
                let hint = "drop a config.json together with its model.safetensors";
                self.toast(Level::Error, &format!("`{}`: {error}", file.name), hint);
            }
            None => {
                let hint = "reports have less than 1 MB";
                self.toast(
                    Level::Error,
                    &format!("`{}` is too large for a report", file.name),
                    hint,
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, head: &[u8]) -> FileHead {
        FileHead { key: "1".into(), name: name.into(), bytes: 9, head: head.into(), text: None }
    }

    #[test]
    fn files_are_told_apart_by_their_bytes() {
        for (name, head, expected) in [
            ("x", &b"\x40\0\0\0\0\0\0\0{\"a"[..], FileKind::Safetensors),
            ("m.safetensors", b"", FileKind::Safetensors),
            ("latest.pt", b"PK\x03\x04", FileKind::Torch),
            ("old.pt", b"\x80\x02", FileKind::Torch),
            ("games.pgn.zst", b"\x28\xb5\x2f\xfd", FileKind::Compressed),
            ("games.zip", b"PK\x03\x04", FileKind::Compressed),
            ("x.parquet", b"PAR1", FileKind::Parquet),
            ("config.json", b"{\n", FileKind::Json),
            ("my.pgn", b"[Event \"x\"]", FileKind::Games),
            ("latin.pgn", b"[White \"\xc4\"]", FileKind::Games),
            ("noname", b"1. e4 e5", FileKind::Games),
            ("photo.jpg", b"\xff\xd8\xff\xe0\0\x10JF", FileKind::Unknown),
        ] {
            assert_eq!(FileKind::of(&file(name, head)), expected, "{name}");
        }
    }
}
