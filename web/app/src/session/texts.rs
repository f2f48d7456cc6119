//! The input box: moves, games, errors, the picker.

use cwm_core::chess::parse::ParsedGame;

use super::{Note, Session};
use crate::{
    input::{self, Found, game_title},
    line::{Line, Origin},
    link::Tab,
    message::{Dialog, Effect, Level},
};

impl Session {
    pub(super) fn typed(&mut self, text: &str) {
        let found = input::read(text, &self.line, self.ply);
        self.note = Note { text: found.describe(), error: matches!(found, Found::Broken(_)) };
        self.trouble = match found {
            Found::Broken(trouble) => Some(trouble),
            _ => None,
        };
    }

    pub(super) fn enter(&mut self, text: &str) {
        match input::read(text, &self.line, self.ply) {
            Found::Nothing => {}
            Found::Moves(moves) => {
                self.play(&moves);
                self.effects.push(Effect::ClearInput);
            }
            Found::Game(game) => self.open_game(&game),
            Found::Games(games) => {
                self.games = games;
                self.note = Note { text: "choose a game".into(), error: false };
                self.dialog = Some(Dialog::Games);
            }
            Found::Broken(trouble) => {
                self.note = Note { text: trouble.to_string(), error: true };
                self.announce(trouble.to_string());
                self.trouble = Some(trouble);
            }
            Found::TooMany { reason } => {
                self.tab = Tab::Grade;
                let hint = "save the text as a .pgn file and drop it here";
                self.toast(Level::Note, &format!("{reason}: too much for the board"), hint);
                self.remember(true);
            }
        }
    }

    pub(super) fn enter_legal(&mut self) {
        let Some(trouble) = self.trouble.take() else { return };
        let notation = cwm_core::chess::parse::Notation::San;
        let line = Line::new(&trouble.prefix, Origin::Text { notation });
        let text = format!("the legal part is on the board: {} plies", line.plies());
        // The text stays in the box, to be mended.
        self.set_line(line);
        self.ply = self.line.plies();
        self.note = Note { text: text.clone(), error: false };
        self.announce(text);
        self.remember(true);
        self.ask();
    }

    pub(super) fn pick(&mut self, game: usize) {
        match self.games.get(game).cloned() {
            Some(Ok(game)) => self.open_game(&game),
            Some(Err(error)) => {
                self.close_dialogs();
                let trouble = input::Trouble::from(error);
                self.note = Note { text: trouble.to_string(), error: true };
                self.trouble = Some(trouble);
            }
            None => {}
        }
    }

    pub(super) fn open_game(&mut self, game: &ParsedGame) {
        let line = Line::parsed(game, Origin::Text { notation: game.notation });
        let text = format!("{}, {} plies", game_title(game), line.plies());
        self.open_line(line, text);
    }
}
