//! PGN as the reference reads it (`--keep-reference-quirks`).

use cwm_core::{
    chess::pgn,
    data::{
        SkipReason,
        blocks::Cut,
        pgn::sure_part,
        quirks::{QuirkGame, QuirkReader},
    },
};

use super::Parsed;
use crate::data::{Replay, prepare::Rules};

/// Cuts before an `[Event ` tag behind a blank line and moves. Behind a blank line and tags it would be another tag of
/// the same game; inside a comment, where the reference would read on, the comment is taken as ended.
#[derive(Debug, Clone, Copy)]
pub struct AtQuirkGames;

impl Cut for AtQuirkGames {
    fn last_end(&self, text: &[u8]) -> Option<usize> {
        let mut end = text.len();
        while let Some(at) = pgn::last_game(&text[..end]) {
            let before = text[..at].trim_ascii_end();
            let line = before.rsplit(|&b| b == b'\n').next().unwrap_or_default();
            if !line.starts_with(b"[") {
                return Some(at);
            }
            end = at;
        }
        let mut reader = QuirkReader::new(text);
        let mut end = None;
        while reader.next().is_some() && text.len() - reader.unread() < sure_part(text) {
            end = Some(text.len() - reader.unread());
        }
        end
    }

    fn resume_at(&self, text: &[u8]) -> Option<usize> {
        pgn::first_game(text)
    }
}

/// Parses the games of a block.
pub fn parse(text: &[u8], rules: &Rules) -> Parsed {
    let mut parsed = Parsed::default();
    for game in QuirkReader::new(text) {
        let QuirkGame { site, result, played } = game;
        let kept = played.and_then(|played| {
            if played.moves.len() < rules.min_plies() { Err(SkipReason::Short) } else { Ok(played) }
        });
        match kept {
            Err(reason) => parsed.skipped.add(reason),
            Ok(played) => {
                let Some(id) = rules.id_key.of_site(&site) else {
                    parsed.abort =
                        Some("a game has an empty Site tag, at which the reference stops".into());
                    break;
                };
                if !played.plain {
                    let replay = Replay { rules: played.rules.into(), start_fen: played.start_fen };
                    parsed.replays.push((parsed.games.len(), replay));
                }
                parsed.games.push(&id, &played.moves, result);
            }
        }
    }
    parsed
}
