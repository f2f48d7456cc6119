//! `cwm data export`: the reference's JSON lines, byte for byte as Python's `json.dumps` writes them.

use std::{
    fmt::Write as _,
    io::{self, Write},
    sync::LazyLock,
};

use cwm_core::{
    chess::{EnPassant, MoveToken, State, replay::Replayer},
    data::{Spec, Split, quirks, spec::SQUARE_ORDER},
};

use super::{Dataset, Row};
use crate::{exit::Failure, progress::Progress};

/// Writes every game of a split as a line; returns how many.
///
/// # Errors
/// If the dataset is damaged or the lines cannot be written.
pub fn jsonl(
    dataset: &Dataset,
    split: Split,
    out: &mut impl Write,
    progress: &Progress,
) -> anyhow::Result<u64> {
    let counts = &dataset.manifest().counts;
    let total = match split {
        Split::All => counts.games,
        Split::Train => counts.train_games,
        Split::Validation => counts.validation_games,
    };
    let task = progress.task("exporting", total, "games");
    let mut line = String::new();
    let mut games = 0;
    for row in dataset.rows(split) {
        let row = row?;
        write_line(&row, dataset.spec(), &mut line).map_err(|e| {
            Failure::data(format!(
                "game `{}` of `{}` {e}",
                row.game.id.escape_debug(),
                dataset.dir().display()
            ))
        })?;
        out.write_all(line.as_bytes())?;
        games += 1;
        task.advance(1);
    }
    out.flush()?;
    Ok(games)
}

/// The states of a row, START's first.
///
/// # Errors
/// Why it cannot be replayed.
pub fn states(row: &Row, en_passant: EnPassant) -> Result<Vec<State>, String> {
    if let Some(replay) = &row.replay {
        return quirks::replay(&replay.rules, replay.start_fen.as_deref(), &row.game.moves)
            .map_err(|e| format!("cannot be replayed: {e}"));
    }
    let mut replayer = Replayer::default();
    let mut states = Vec::with_capacity(row.game.moves.len() + 1);
    states.push(State::start());
    for (index, &token) in row.game.moves.iter().enumerate() {
        replayer
            .push_token(token)
            .map_err(|e| format!("cannot be replayed: {e} `{token}` at ply {}", index + 1))?;
        states.push(State::from_position(replayer.position(), en_passant));
    }
    Ok(states)
}

/// Makes the line of a row, its newline included.
///
/// # Errors
/// As [`states`].
pub fn write_line(row: &Row, spec: &Spec, line: &mut String) -> Result<(), String> {
    let states = states(row, spec.en_passant)?;
    let moves = &row.game.moves;
    line.clear();
    line.push_str("{\"example_id\": ");
    push_string(line, &row.game.id);
    line.push_str(", \"moves\": [");
    let _ = write!(line, "{}", MoveToken::START.id());
    for token in moves {
        let _ = write!(line, ", {}", token.id());
    }
    line.push_str("], \"states\": [");
    for (step, state) in states.iter().enumerate() {
        line.push_str(if step == 0 { "[" } else { ", [" });
        for (label, &class) in state.labels().iter().enumerate() {
            if label > 0 {
                line.push_str(", ");
            }
            line.push_str(&CLASSES[usize::from(class)]);
        }
        line.push(']');
    }
    let plies = moves.len();
    let _ = write!(
        line,
        "], \"steps\": {}, \"plies\": {plies}, \"fullmoves\": {}, \"result\": ",
        plies + 1,
        plies.div_ceil(2)
    );
    push_string(line, row.game.result.as_str());
    line.push_str(", \"spec\": ");
    line.push_str(&SPEC);
    line.push_str("}\n");
    Ok(())
}

static CLASSES: LazyLock<Vec<String>> =
    LazyLock::new(|| (0..=u8::MAX).map(|class| class.to_string()).collect());

/// The reference's description of the encoding, the same in every line.
static SPEC: LazyLock<String> = LazyLock::new(|| {
    let spec = Spec::new(EnPassant::Always);
    let mut text = format!(
        "{{\"move_vocab\": {}, \"start_move_id\": {}, \"pad_move_id\": {}, \"state_len\": {}, \"piece_symbols\": [",
        spec.move_vocab, spec.start_move_id, spec.pad_move_id, spec.state_len
    );
    for (i, symbol) in spec.piece_symbols.iter().enumerate() {
        text.push_str(if i == 0 { "" } else { ", " });
        push_string(&mut text, symbol);
    }
    text.push_str("], \"square_order\": ");
    push_string(&mut text, SQUARE_ORDER);
    text.push_str(", \"state_layout\": {");
    let layout = [
        ("pieces_0_63", "piece_id in 0..12 over PIECE_SYMBOLS"),
        ("side_64", "0=w,1=b"),
        ("castle_65_68", "K,Q,k,q bits in {0,1}"),
        ("ep_file_69", "0='-',1..8='a'..'h'"),
        ("ep_rank_70", "0='-',1='3',2='6'"),
        ("halfmove_71_72", "uint16 hi,lo (0..65535)"),
        ("fullmove_73_74", "uint16 hi,lo (0..65535)"),
    ];
    for (i, (name, meaning)) in layout.into_iter().enumerate() {
        text.push_str(if i == 0 { "" } else { ", " });
        push_string(&mut text, name);
        text.push_str(": ");
        push_string(&mut text, meaning);
    }
    text.push_str("}}");
    text
});

/// A JSON string in ASCII alone, as `json.dumps` writes it.
fn push_string(line: &mut String, text: &str) {
    line.push('"');
    for c in text.chars() {
        match c {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            '\u{8}' => line.push_str("\\b"),
            '\u{c}' => line.push_str("\\f"),
            ' '..='~' => line.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(line, "\\u{unit:04x}");
                }
            }
        }
    }
    line.push('"');
}

/// A writer to stdout whose errors say so.
pub fn stdout() -> io::BufWriter<io::StdoutLock<'static>> {
    io::BufWriter::with_capacity(1 << 18, io::stdout().lock())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_pythons() {
        let mut text = String::new();
        push_string(&mut text, "a\"\\\n\u{7f}é\u{1f600}\u{1}");
        assert_eq!(text, "\"a\\\"\\\\\\n\\u007f\\u00e9\\ud83d\\ude00\\u0001\"");
    }
}
