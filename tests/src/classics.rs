//! The built-in human games replay legally to the ends they are known for.

use std::{collections::HashSet, fs, io::Cursor, ops::ControlFlow};

use cwm_models::splits::CLASSICS_PGN;
use cwm_tests::cwm::fixture;
use pgn_reader::{RawTag, Reader, SanPlus, Visitor};
use shakmaty::{Chess, EnPassantMode, Move, Position, fen::Fen};

/// One game as read from the PGN.
#[derive(Default)]
struct Game {
    white: String,
    black: String,
    site: String,
    /// The moves, and whether each was written as shakmaty would write it.
    moves: Vec<Move>,
    last_san: String,
    end: Chess,
    /// The first move that could not be played or is written in another way.
    fault: Option<String>,
}

struct Replay;

impl Visitor for Replay {
    type Tags = Game;
    type Movetext = Game;
    type Output = Game;

    fn begin_tags(&mut self) -> ControlFlow<Game, Game> {
        ControlFlow::Continue(Game::default())
    }

    fn tag(&mut self, game: &mut Game, name: &[u8], value: RawTag<'_>) -> ControlFlow<Game> {
        let value = value.decode_utf8_lossy().into_owned();
        match name {
            b"White" => game.white = value,
            b"Black" => game.black = value,
            b"Site" => game.site = value,
            b"FEN" | b"SetUp" | b"Variant" => game.fault = Some("not from the start".into()),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn begin_movetext(&mut self, game: Game) -> ControlFlow<Game, Game> {
        ControlFlow::Continue(game)
    }

    fn san(&mut self, game: &mut Game, san: SanPlus) -> ControlFlow<Game> {
        if game.fault.is_some() {
            return ControlFlow::Continue(());
        }
        match san.san.to_move(&game.end) {
            Ok(played) => {
                let written = SanPlus::from_move_and_play_unchecked(&mut game.end, played);
                game.last_san = san.to_string();
                if written.to_string() != game.last_san {
                    game.fault = Some(format!("{san} should be written {written}"));
                }
                game.moves.push(played);
            }
            Err(error) => game.fault = Some(format!("{san}: {error}")),
        }
        ControlFlow::Continue(())
    }

    fn end_game(&mut self, game: Game) -> Game {
        game
    }
}

fn games() -> Vec<Game> {
    let mut reader = Reader::new(Cursor::new(CLASSICS_PGN));
    let mut games = Vec::new();
    while let Some(game) = reader.read_game(&mut Replay).expect("an in-memory read") {
        games.push(game);
    }
    games
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
        assert_eq!(game.fault, None, "{name}");
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
    assert_eq!(sites.len(), games.len(), "example ids hash the Site tag, so each needs its own");
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
