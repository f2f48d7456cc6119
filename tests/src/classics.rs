//! The built-in human games replay legally to the ends they are known for.

use std::{collections::HashSet, fs};

use cwm_models::splits::CLASSICS_PGN;
use cwm_tests::cwm::fixture;
use shakmaty::{Chess, EnPassantMode, Move, Position, fen::Fen, san::SanPlus};

/// One game of the PGN, read and replayed without the project's own parser: the file is plain enough.
struct Game {
    white: String,
    black: String,
    site: String,
    moves: Vec<Move>,
    last_san: String,
    end: Chess,
}

fn games() -> Vec<Game> {
    let mut sections = CLASSICS_PGN.split("\n\n");
    let mut games = Vec::new();
    while let Some(tags) = sections.next().filter(|tags| !tags.trim().is_empty()) {
        games.push(replay(tags, sections.next().expect("moves after the tags")));
    }
    games
}

/// Plays a game's moves, which must be legal, and written as shakmaty would write them.
fn replay(tags: &str, movetext: &str) -> Game {
    let tag = |name: &str| -> String {
        let start = format!("[{name} \"");
        let line = tags.lines().find_map(|line| line.strip_prefix(&start));
        line.and_then(|line| line.strip_suffix("\"]")).expect("a tag").to_string()
    };
    let mut game = Game {
        white: tag("White"),
        black: tag("Black"),
        site: tag("Site"),
        moves: Vec::new(),
        last_san: String::new(),
        end: Chess::default(),
    };
    let name = format!("{} - {}", game.white, game.black);
    let (moves, result) = movetext.trim_end().rsplit_once([' ', '\n']).expect("moves and a result");
    assert_eq!(result, tag("Result"), "{name}");
    for word in moves.split_whitespace().filter(|word| !word.ends_with('.')) {
        let san: SanPlus = word.parse().unwrap_or_else(|error| panic!("{name}: {word}: {error}"));
        let played = san.san.to_move(&game.end);
        let played = played.unwrap_or_else(|error| panic!("{name}: {word}: {error}"));
        let written = SanPlus::from_move_and_play_unchecked(&mut game.end, played);
        assert_eq!(word, written.to_string(), "{name}");
        game.moves.push(played);
        game.last_san = word.to_string();
    }
    game
}

#[test]
fn every_game_replays_to_its_known_end() {
    let games = games();
    let table = fs::read_to_string(fixture("classics/ends.tsv")).expect("the table of ends");
    let rows: Vec<Vec<&str>> =
        table.lines().skip(1).map(|line| line.split('\t').collect()).collect();
    assert_eq!(games.len(), rows.len(), "games in the PGN and rows in the table");
    for (game, row) in games.iter().zip(&rows) {
        let name = format!("{} - {}", game.white, game.black);
        let fen = Fen::from_position(&game.end, EnPassantMode::Always).to_string();
        let found = [&game.white, &game.black, &game.moves.len().to_string(), &game.last_san, &fen];
        assert_eq!(found, [row[0], row[1], row[2], row[3], row[4]], "{name}");
        assert_eq!(game.last_san.ends_with('#'), game.end.is_checkmate(), "{name}");
    }
}

#[test]
fn the_split_is_large_varied_and_within_the_benchmarks_rules() {
    let games = games();
    assert!(games.len() >= 20, "{} games", games.len());
    let sites: HashSet<&str> = games.iter().map(|game| game.site.as_str()).collect();
    assert_eq!(sites.len(), games.len(), "some games share a Site");
    for game in &games {
        assert!(game.moves.len() >= 20, "{} - {} is too short", game.white, game.black);
    }
    let having = |wanted: fn(&Move) -> bool| {
        games.iter().filter(|game| game.moves.iter().any(wanted)).count()
    };
    assert!(having(|m| m.is_castle() && m.castling_side().is_some_and(|s| s.is_king_side())) >= 20);
    assert!(having(|m| m.castling_side().is_some_and(|s| s.is_queen_side())) >= 5);
    assert!(having(|m| m.is_en_passant()) >= 5);
    assert!(having(|m| m.is_promotion()) >= 3);
}
