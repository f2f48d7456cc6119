//! JSON lines as the reference writes them; moves are tested for legality and labels against the moves.

use cwm_core::{
    chess::{EnPassant, MoveToken, State, replay::Replayer},
    data::{GameResult, SkipReason, spec::MAX_PLIES},
};

use super::Parsed;
use crate::data::prepare::Rules;

#[derive(serde::Deserialize)]
struct Line {
    example_id: String,
    moves: Vec<u32>,
    states: Vec<Vec<u16>>,
    #[serde(default)]
    result: String,
}

/// Parses the lines of a block.
pub fn parse(text: &[u8], rules: &Rules) -> Parsed {
    let mut parsed = Parsed::default();
    let mut replayer = Replayer::default();
    for line in text.split(|&b| b == b'\n') {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match parse_line(line, rules, &mut replayer) {
            Ok((id, result)) => parsed.games.push(&id, replayer.moves(), result),
            Err(reason) => parsed.skipped.add(reason),
        }
    }
    parsed
}

fn parse_line(
    line: &[u8],
    rules: &Rules,
    replayer: &mut Replayer,
) -> Result<(String, GameResult), SkipReason> {
    let line: Line = serde_json::from_slice(line).map_err(|_| SkipReason::Malformed)?;
    let [start, moves @ ..] = &line.moves[..] else { return Err(SkipReason::Malformed) };
    if *start != u32::from(MoveToken::START.id())
        || line.states.len() != line.moves.len()
        || line.example_id.is_empty()
    {
        return Err(SkipReason::Malformed);
    }
    if moves.len() > MAX_PLIES {
        return Err(SkipReason::TooLong);
    }
    replayer.reset();
    // Either way of setting the en passant label will do, as long as it is one way.
    let mut fits = [(EnPassant::Always, true), (EnPassant::Legal, true)];
    for (step, found) in line.states.iter().enumerate() {
        if step > 0 {
            let token = MoveToken::new(moves[step - 1]).map_err(|_| SkipReason::NotAMove)?;
            replayer.push_token(token)?;
        }
        for (en_passant, fits) in &mut fits {
            let state = State::from_position(replayer.position(), *en_passant);
            *fits &= state.labels().iter().map(|&class| u16::from(class)).eq(found.iter().copied());
        }
        if !fits[0].1 && !fits[1].1 {
            return Err(if step == 0 {
                SkipReason::NonStandardStart
            } else {
                SkipReason::LabelsDiffer
            });
        }
    }
    if moves.len() < rules.min_plies() {
        return Err(SkipReason::Short);
    }
    Ok((line.example_id, line.result.parse().unwrap_or_default()))
}
