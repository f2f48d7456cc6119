//! Games as people read them: SAN and PGN text of move tokens.

use std::fmt::Write as _;

use shakmaty::{Chess, san::SanPlus};

use super::MoveToken;
use crate::data::GameResult;

/// The seven tags that PGN wants, in its order, with what stands there if nothing is known.
const ROSTER: [(&str, &str); 7] = [
    ("Event", "?"),
    ("Site", "?"),
    ("Date", "????.??.??"),
    ("Round", "?"),
    ("White", "?"),
    ("Black", "?"),
    ("Result", "*"),
];

/// Characters of a line of moves, as PGN's export format has it.
const LINE_WIDTH: usize = 79;

/// Each move in algebraic notation, with its check or mate mark; stops before the first token that is no legal move.
pub fn san_words(moves: &[MoveToken]) -> Vec<String> {
    let mut position = Chess::default();
    let word = |token: &MoveToken| {
        let m = token.to_uci()?.to_move(&position).ok()?;
        Some(SanPlus::from_move_and_play_unchecked(&mut position, m).to_string())
    };
    moves.iter().map_while(word).collect()
}

/// A game in PGN's export format: the seven tags first, then the others as given, then the moves.
///
/// `tags` may hold any tags; Result is written from `result`.
pub fn pgn(tags: &[(String, String)], moves: &[MoveToken], result: GameResult) -> String {
    let mut text = String::new();
    let given = |name: &str| tags.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
    for (name, unknown) in ROSTER {
        let value = if name == "Result" { result.as_str() } else { given(name).unwrap_or(unknown) };
        write_tag(&mut text, name, value);
    }
    for (name, value) in tags {
        if ROSTER.iter().all(|(known, _)| known != name) {
            write_tag(&mut text, name, value);
        }
    }
    text.push('\n');
    let mut line = String::new();
    for (i, san) in san_words(moves).iter().enumerate() {
        if i % 2 == 0 {
            add_word(&mut text, &mut line, &format!("{}.", i / 2 + 1));
        }
        add_word(&mut text, &mut line, san);
    }
    add_word(&mut text, &mut line, result.as_str());
    text + &line + "\n"
}

fn write_tag(text: &mut String, name: &str, value: &str) {
    let value: String = value
        .chars()
        .filter(|c| !c.is_control())
        .flat_map(|c| matches!(c, '"' | '\\').then_some('\\').into_iter().chain([c]))
        .collect();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "[{name} \"{value}\"]");
}

fn add_word(text: &mut String, line: &mut String, word: &str) {
    if !line.is_empty() && line.len() + 1 + word.len() > LINE_WIDTH {
        text.push_str(line);
        text.push('\n');
        line.clear();
    }
    if !line.is_empty() {
        line.push(' ');
    }
    line.push_str(word);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chess::{parse::parse_games, random::RandomPlay};

    #[test]
    fn the_seven_tags_come_first_and_the_result_ends_the_moves() {
        let game = parse_games(
            "[White \"A \\\"x\\\"\"]\n[Opening \"Ruy\"]\n[Result \"1-0\"]\n\ne4 e5 Nf3",
        )
        .unwrap()
        .remove(0);
        let text = pgn(&game.tags, &game.moves, game.result);
        assert!(text.starts_with("[Event \"?\"]\n[Site \"?\"]\n[Date \"????.??.??\"]\n"), "{text}");
        assert!(
            text.contains("[White \"A \\\"x\\\"\"]\n[Black \"?\"]\n[Result \"1-0\"]\n[Opening")
        );
        assert!(text.ends_with("\n\n1. e4 e5 2. Nf3 1-0\n"), "{text}");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(seed in 0_u64..200, value in "\\PC{0,12}") {
            let game = RandomPlay::new(seed, 1).next().unwrap();
            let tags = vec![("White".to_string(), value.clone())];
            let text = pgn(&tags, &game.moves, game.result);
            prop_assert!(text.lines().skip(8).all(|line| line.len() <= LINE_WIDTH));
            let read = parse_games(&text).unwrap();
            prop_assert_eq!(read.len(), 1);
            prop_assert_eq!(&read[0].moves, &game.moves);
            prop_assert_eq!(read[0].result, game.result);
            prop_assert_eq!(read[0].tag("White"), Some(value.as_str()));
        }
    }
}
