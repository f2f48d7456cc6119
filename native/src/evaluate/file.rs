//! Games from a file, without making a dataset of it: read by the same code as `cwm data prepare`, and as strict.

use std::path::{Path, PathBuf};

use cwm_core::{
    chess::{EnPassant, MoveToken},
    data::{IdKey, SkipCounts},
};

use crate::{
    data::{
        input::{Parsed, files::is_stdin, source::Source},
        prepare::{Rules, blocks_of, parse_block},
    },
    exit::Failure,
};

/// A file of games that is read anew each time.
#[derive(Debug)]
pub(super) struct GameFile {
    path: PathBuf,
    /// Games that can be graded, up to the limit.
    pub(super) games: u64,
    /// Games that cannot, up to where reading stopped.
    pub(super) skipped: u64,
}

/// An id and moves without START.
pub(super) type NamedMoves = (String, Vec<MoveToken>);

impl GameFile {
    /// Counts the games of a file, or the first ones up to `limit`.
    ///
    /// # Errors
    /// A [`Failure`] if the file cannot be read or has no game that can be graded.
    pub(super) fn open(path: &Path, limit: Option<u64>) -> anyhow::Result<Self> {
        if is_stdin(path) {
            return Err(Failure::usage(
                "games to grade cannot come from stdin: they are read several times",
            )
            .hint("make a dataset of them with `cwm data prepare -`")
            .into());
        }
        let (mut games, mut skipped) = (0, SkipCounts::default());
        for parsed in blocks(path)? {
            let parsed = parsed?;
            games += parsed.games.iter().count() as u64;
            skipped.merge(&parsed.skipped);
            if limit.is_some_and(|limit| games >= limit) {
                break;
            }
        }
        if games == 0 {
            let reasons = skipped.iter().map(|(reason, games)| format!("{games} {reason}"));
            let reasons = reasons.collect::<Vec<_>>().join("; ");
            let failure = Failure::data(format!("`{}` holds no games to grade", path.display()));
            return Err(if reasons.is_empty() {
                failure
            } else {
                failure.hint(format!("left out: {reasons}"))
            }
            .into());
        }
        let games = games.min(limit.unwrap_or(u64::MAX));
        Ok(GameFile { path: path.to_path_buf(), games, skipped: skipped.total() })
    }

    /// The games in order.
    ///
    /// # Errors
    /// If the file cannot be opened; errors further on come from the iterator.
    pub(super) fn read(
        &self,
    ) -> anyhow::Result<impl Iterator<Item = anyhow::Result<NamedMoves>> + Send + use<>> {
        Ok(blocks(&self.path)?.flat_map(|parsed| match parsed {
            Ok(parsed) => {
                let games =
                    parsed.games.iter().map(|(id, moves)| Ok((id.to_string(), moves.to_vec())));
                games.collect::<Vec<_>>()
            }
            Err(error) => vec![Err(error)],
        }))
    }
}

/// A file's games, block by block.
fn blocks(
    path: &Path,
) -> anyhow::Result<impl Iterator<Item = anyhow::Result<Parsed>> + Send + use<>> {
    let source = Source::open(path, Default::default())?;
    let rules = Rules {
        min_fullmoves: 0,
        en_passant: EnPassant::Always,
        id_key: IdKey::new(b""),
        quirks: false,
    };
    // An empty file has no format and no blocks.
    let (format, blocks) = blocks_of(source, rules.quirks)?.unzip();
    Ok(blocks.into_iter().flatten().map(move |block| {
        let block = block?;
        Ok(format.map(|format| parse_block(&block, format, &rules)).unwrap_or_default())
    }))
}
