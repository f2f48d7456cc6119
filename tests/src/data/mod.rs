//! Datasets: random play, preparation, storage, exchange.

mod exchange;
mod overlap;
mod policy;
mod prepare;
mod quirks;
mod random;
mod storage;
mod untrusted;

use std::{
    fs,
    path::{Path, PathBuf},
};

use cwm_core::{chess::MoveToken, data::GameResult};
use shakmaty::{Chess, san::SanPlus};

/// A file under `tests/fixtures/data`.
pub fn fixture(name: &str) -> PathBuf {
    cwm_tests::cwm::fixture(&format!("data/{name}"))
}

/// A JSON file under `tests/fixtures/data`.
pub fn json(name: &str) -> serde_json::Value {
    let path = fixture(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Runs `cwm data` quietly in `dir`.
#[track_caller]
pub fn data<const N: usize>(dir: &Path, args: [&str; N]) -> cwm_tests::cwm::Output {
    cwm_tests::cwm::cwm_in(dir, ["--progress", "none", "data"].into_iter().chain(args))
}

/// The `dataset.json` of a dataset.
pub fn manifest(dir: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(dir.join("dataset.json")).unwrap()).unwrap()
}

/// A game as a server writes it: tags, move numbers, a clock comment at every move, now and then a variation.
pub fn pgn(site: &str, moves: &[MoveToken], result: GameResult) -> String {
    let mut text = format!(
        "[Event \"Rated Blitz game\"]\n[Site \"{site}\"]\n[White \"a\"]\n[Black \"b\"]\n[Result \"{result}\"]\n\n"
    );
    let mut position = Chess::default();
    for (ply, token) in moves.iter().enumerate() {
        let m = token.to_uci().unwrap().to_move(&position).unwrap();
        let san = SanPlus::from_move_and_play_unchecked(&mut position, m);
        let dots = if ply % 2 == 0 { "." } else { "..." };
        text += &format!("{}{dots} {san} {{ [%clk 0:03:{:02}] }} ", ply / 2 + 1, ply % 60);
        if ply % 17 == 3 {
            text += "$2 (1. a4 {no} (1. h4 h5) 1... a5) ";
        }
        if ply % 9 == 8 {
            text += "\n";
        }
    }
    text + result.as_str() + "\n\n"
}
