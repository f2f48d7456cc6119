//! Lines of UCI moves: `id TAB source TAB result TAB white_elo TAB black_elo TAB moves`, or the moves alone.

use cwm_core::{
    chess::replay::Replayer,
    data::{GameResult, SkipReason, spec::MAX_PLIES},
};

use super::Parsed;
use crate::data::prepare::Rules;

/// Parses the lines of a block.
pub fn parse(text: &[u8], rules: &Rules) -> Parsed {
    let mut parsed = Parsed::default();
    let mut replayer = Replayer::default();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    for line in text.split(|&b| b == b'\n') {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        match parse_line(line, rules, &mut replayer) {
            Ok((id, result)) => {
                let moves = replayer.moves();
                match id {
                    Some(id) => parsed.games.push(id, moves, result),
                    None => parsed.games.push(&rules.id_key.of_moves(moves), moves, result),
                }
            }
            Err(reason) => parsed.skipped.add(reason),
        }
    }
    parsed
}

fn parse_line<'a>(
    line: &'a [u8],
    rules: &Rules,
    replayer: &mut Replayer,
) -> Result<(Option<&'a str>, GameResult), SkipReason> {
    let mut fields = line.split(|&b| b == b'\t');
    let first = fields.next().unwrap_or_default();
    let rest: Vec<&[u8]> = fields.collect();
    let (id, result, moves) = match rest[..] {
        [] => (None, GameResult::Unknown, first),
        [_source, result, _white, _black, moves] => {
            let id = std::str::from_utf8(first).map_err(|_| SkipReason::Malformed)?;
            if id.is_empty() {
                return Err(SkipReason::Malformed);
            }
            let result = GameResult::from_bytes(result).ok_or(SkipReason::Malformed)?;
            (Some(id), result, moves)
        }
        // The line was trimmed: a game without moves lacks its last field.
        [_source, _result, _white, _black] => return Err(SkipReason::Short),
        _ => return Err(SkipReason::Malformed),
    };
    replayer.reset();
    for word in moves.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        if replayer.moves().len() == MAX_PLIES {
            return Err(SkipReason::TooLong);
        }
        replayer.push_uci(word)?;
    }
    if replayer.moves().len() < rules.min_plies() {
        return Err(SkipReason::Short);
    }
    Ok((id, result))
}
