//! PGN: legal games of standard chess from the standard start, each judged by its whole main line.

use std::borrow::Cow;

use super::{GameResult, Games, IdKey, SkipCounts, SkipReason, blocks::Cut, spec::MAX_PLIES};
use crate::chess::{
    parse::{is_standard_start, is_standard_variant},
    pgn::{self, Lexer, Token},
    replay::Replayer,
};

/// Which games are kept, and under which ids.
#[derive(Debug, Clone)]
pub struct Keep<'k> {
    /// Games of fewer plies are left out.
    pub min_plies: usize,
    /// Derives the example ids.
    pub id_key: &'k IdKey,
}

/// Cuts before an `[Event ` tag behind a blank line, or, where there is none, wherever the lexer begins a game.
#[derive(Debug, Clone, Copy)]
pub struct AtGames;

/// The part of a text that surely holds no beginning of what comes behind it.
///
/// What the end of a text will turn out to be is unknown: a game found sequentially begins well before it.
pub fn sure_part(text: &[u8]) -> usize {
    text.len().saturating_sub(1024)
}

impl Cut for AtGames {
    fn last_end(&self, text: &[u8]) -> Option<usize> {
        pgn::last_game(text).or_else(|| {
            let mut lexer = Lexer::new(text);
            let mut end = None;
            while lexer.next_game() && lexer.offset() < sure_part(text) {
                end = Some(lexer.offset()).filter(|&at| at > 0).or(end);
            }
            end
        })
    }

    fn resume_at(&self, text: &[u8]) -> Option<usize> {
        pgn::first_game(text)
    }
}

/// The games of a block that are kept, and how many are not, by reason.
pub fn parse(text: &[u8], keep: &Keep<'_>) -> (Games, SkipCounts) {
    let (mut games, mut skipped) = (Games::new(), SkipCounts::default());
    let mut replayer = Replayer::default();
    let mut lexer = Lexer::new(text);
    while lexer.next_game() {
        match parse_game(&mut lexer, keep, &mut replayer) {
            Ok((id, result)) => games.push(&id, replayer.moves(), result),
            Err(reason) => skipped.add(reason),
        }
    }
    (games, skipped)
}

fn parse_game(
    lexer: &mut Lexer<'_>,
    keep: &Keep<'_>,
    replayer: &mut Replayer,
) -> Result<(String, GameResult), SkipReason> {
    let mut site = None;
    let mut link = None;
    let mut tagged = GameResult::Unknown;
    while let Some(tag) = lexer.next_tag() {
        match tag.name {
            b"Site" => site = Some(tag.value()),
            b"Link" => link = Some(tag.value()),
            b"Result" => tagged = GameResult::from_bytes(tag.raw.trim_ascii()).unwrap_or_default(),
            b"FEN" if !is_standard_start(&tag.value()) => return Err(SkipReason::NonStandardStart),
            b"Variant" => {
                let value: Cow<'_, str> = tag.value();
                if value.trim().eq_ignore_ascii_case("from position") {
                    return Err(SkipReason::NonStandardStart);
                }
                if !is_standard_variant(&value) {
                    return Err(SkipReason::Variant);
                }
            }
            _ => {}
        }
    }
    replayer.reset();
    let mut written = GameResult::Unknown;
    while let Some(token) = lexer.next_token() {
        match token {
            Token::Word(_) if replayer.moves().len() == MAX_PLIES => {
                return Err(SkipReason::TooLong);
            }
            Token::Word(word) => {
                replayer.push_written(word)?;
            }
            Token::Result(result) => written = result,
            Token::Fault(_) => return Err(SkipReason::Malformed),
        }
    }
    if replayer.moves().len() < keep.min_plies {
        return Err(SkipReason::Short);
    }
    let result = if tagged == GameResult::Unknown { written } else { tagged };
    let address =
        |value: &Option<Cow<'_, str>>| value.as_ref().and_then(|v| keep.id_key.of_address(v));
    let id = address(&site)
        .or_else(|| address(&link))
        .unwrap_or_else(|| keep.id_key.of_moves(replayer.moves()));
    Ok((id, result))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_events_is_cut_between_games() {
        let text = "1. e4 e5 1-0\n".repeat(500);
        let at = AtGames.last_end(text.as_bytes()).unwrap();
        assert_eq!(at % 13, 0);
        assert!(at > 0 && at < text.len());
        assert_eq!(AtGames.last_end(b"[White \"x\"]\n\n1. e4"), None);
    }
}
