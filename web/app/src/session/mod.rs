//! The session: everything on screen, changed by commands and by what the workers say.

mod files;
mod grading;
mod models;
mod play;
mod texts;
mod view;
mod words;

use cwm_core::chess::{
    Policy,
    parse::{ParseError, ParsedGame},
};
use cwm_protocol::{Ask, Request};
use shakmaty::Square;

use crate::{
    gallery::{Gallery, OPENING},
    grade::Grade,
    input::Trouble,
    keys::{self, Action},
    line::{Line, Origin},
    link::{Link, Tab, View},
    message::{Command, Copied, Dialog, Effect, Lane, Level, Shipped, Target},
    seat::Seat,
};

/// Everything on screen.
#[derive(Debug, Default)]
pub struct Session {
    tab: Tab,
    line: Line,
    /// Grows with every change of the line, so that scripts draw the moves anew only then.
    revision: u32,
    ply: usize,
    flipped: bool,
    view: View,
    main: Seat,
    second: Seat,
    inspected: Option<usize>,
    note: Note,
    trouble: Option<Trouble>,
    games: Vec<Result<ParsedGame, ParseError>>,
    promotion: Option<(Square, Square)>,
    dialog: Option<Dialog>,
    gallery: Gallery,
    shipped: Vec<Shipped>,
    entropy: u32,
    policy: Policy,
    /// Until somebody does something, the page shows its worked example and steps to where it goes wrong.
    guided: bool,
    grade: Grade,
    last_request: u32,
    effects: Vec<Effect>,
}

/// The line of text under the input box.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Note {
    /// What it says.
    pub text: String,
    /// Whether it tells of an error.
    pub error: bool,
}

impl Session {
    /// Carries out a command; the effects are for the scripts.
    pub fn command(&mut self, command: Command) -> Vec<Effect> {
        if self.guided && !matches!(command, Command::Inspect { .. } | Command::Typed { .. }) {
            self.guided = false;
        }
        self.carry_out(command);
        std::mem::take(&mut self.effects)
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Start { hash, shipped, entropy } => self.start(&hash, shipped, entropy),
            Command::Hash { hash } => self.follow(&hash),
            Command::Tab { tab } => self.show_tab(tab),
            Command::Key { key } => self.key(&key),
            Command::Go { to } => self.go(to),
            Command::Move { from, to } => self.board_move(&from, &to),
            Command::Promote { piece } => self.promote(piece),
            Command::Typed { text } => self.typed(&text),
            Command::Enter { text } => self.enter(&text),
            Command::EnterLegal => self.enter_legal(),
            Command::Pick { game } => self.pick(game),
            Command::Random { seed, policy } => self.random(seed.as_deref(), policy),
            Command::Gallery { item } => self.open_gallery(item),
            Command::Flip => self.flip(),
            Command::View { view } => self.show(view),
            Command::Inspect { label } => {
                self.inspected = label.filter(|&l| l < cwm_core::chess::label::LABELS);
            }
            Command::Copy { what } => self.copy(what),
            Command::Model { lane, name } => self.choose_model(lane, name.as_deref()),
            Command::Dialog { dialog } => self.open_dialog(dialog),
            Command::Files { files } => self.files(files),
            Command::Grade(command) => self.grade_command(command),
            Command::Crashed { lane, message } => self.crashed(lane, &message),
            Command::Restart { lane } => self.restart(lane),
        }
    }

    fn start(&mut self, hash: &str, shipped: Vec<Shipped>, entropy: u32) {
        self.shipped = shipped;
        self.entropy = entropy;
        self.gallery = Gallery::new();
        let link = self.read_link(hash);
        let with_game = link.moves.is_some();
        self.guided = !with_game && link.ply.is_none() && link.tab == Tab::Explore;
        if !with_game {
            self.open_opening();
        }
        self.apply(&link, true);
    }

    /// The worked example that a first visitor sees.
    fn open_opening(&mut self) {
        if let Some(line) = self.gallery.line(OPENING) {
            self.set_line(line);
            self.ply = self.line.plies();
        }
    }

    fn follow(&mut self, hash: &str) {
        let link = self.read_link(hash);
        if link.moves.is_none() && link.tab == Tab::Explore {
            self.open_opening();
        }
        self.apply(&link, false);
    }

    fn read_link(&mut self, hash: &str) -> Link {
        Link::read(hash).unwrap_or_else(|error| {
            let hint = "the page's own example is shown instead";
            self.toast(Level::Error, &error.to_string(), hint);
            Link::default()
        })
    }

    fn apply(&mut self, link: &Link, first: bool) {
        self.tab = link.tab;
        if let Some(moves) = link.moves.as_ref().filter(|moves| moves[..] != *self.line.moves()) {
            self.set_line(Line::new(moves, Origin::Link));
        }
        if let Some(ply) = link.ply {
            self.ply = ply;
        } else if link.moves.is_some() {
            self.ply = self.line.plies();
        }
        self.ply = self.ply.min(self.line.plies());
        self.flipped = link.flipped;
        self.view = link.view.unwrap_or_default();
        self.close_dialogs();
        self.seat_from_link(link, first);
        self.grade_default();
        self.ask();
    }

    fn link(&self) -> Link {
        Link {
            tab: self.tab,
            model: self.main.name().map(str::to_string),
            second: Some(self.second.name().unwrap_or_default().to_string()),
            moves: Some(self.line.moves().to_vec()),
            ply: Some(self.ply),
            flipped: self.flipped,
            view: Some(self.view),
        }
    }

    /// Writes the URL. With `push`, Back returns to what was on screen.
    fn remember(&mut self, push: bool) {
        let hash = self.link().write();
        self.effects.push(Effect::History { hash, push });
    }

    fn show_tab(&mut self, tab: Tab) {
        if self.tab != tab {
            self.tab = tab;
            self.close_dialogs();
            self.remember(true);
            self.grade_default();
        }
    }

    fn key(&mut self, key: &str) {
        let Some(action) = keys::action(key) else { return };
        if action == Action::Help {
            let open = self.dialog == Some(Dialog::Help);
            return self.open_dialog((!open).then_some(Dialog::Help));
        }
        if self.tab != Tab::Explore || self.dialog.is_some() {
            return;
        }
        match action {
            Action::Previous => self.go(Target::Previous),
            Action::Next => self.go(Target::Next),
            Action::First => self.go(Target::First),
            Action::Last => self.go(Target::Last),
            Action::NextMistake => self.go(Target::NextMistake),
            Action::PreviousMistake => self.go(Target::PreviousMistake),
            Action::FirstMistake => self.go(Target::FirstMistake),
            Action::Flip => self.flip(),
            Action::View => self.show(match self.view {
                View::Diff => View::Truth,
                View::Truth => View::Model,
                View::Model => View::Diff,
            }),
            Action::Random => self.random(None, self.policy),
            Action::Input => self.effects.push(Effect::FocusInput),
            Action::Help => {}
        }
    }

    fn flip(&mut self) {
        self.flipped = !self.flipped;
        let side = if self.flipped { "Black" } else { "White" };
        self.announce(format!("{side} at the bottom"));
        self.remember(false);
    }

    fn show(&mut self, view: View) {
        if self.view == view {
            return;
        }
        self.view = view;
        self.announce(match view {
            View::Truth => "showing the true board".into(),
            View::Model => "showing the model's board".into(),
            View::Diff => "showing what the model has wrong".into(),
        });
        self.remember(false);
    }

    fn copy(&mut self, what: Copied) {
        let (text, done) = match what {
            Copied::Fen => (self.line.fen(self.ply), "position copied as FEN"),
            Copied::Pgn => (self.line.pgn(), "game copied as PGN"),
            Copied::Uci => (self.line.uci(), "moves copied as UCI"),
            Copied::Link => (self.link().write(), "link copied"),
        };
        let link = what == Copied::Link;
        if link && self.line.plies() > crate::link::LINK_PLIES_MAX {
            let text = "the game is too long for a link";
            return self.toast(Level::Error, text, "copy it as PGN instead");
        }
        self.effects.push(Effect::Copy { text, link, done: done.into() });
    }

    fn open_dialog(&mut self, dialog: Option<Dialog>) {
        match dialog {
            None => self.close_dialogs(),
            Some(Dialog::Promotion) => {}
            Some(Dialog::Games) if self.games.is_empty() => {}
            Some(dialog) => {
                self.dialog = Some(dialog);
                if dialog == Dialog::Gallery {
                    self.find_failures();
                }
            }
        }
    }

    fn close_dialogs(&mut self) {
        self.dialog = None;
        self.promotion = None;
    }

    /// Puts another game on the board; everything said about the old one is forgotten.
    fn set_line(&mut self, line: Line) {
        self.line = line;
        self.revision += 1;
        self.ply = 0;
        self.inspected = None;
        self.main.forget_from(0);
        self.second.forget_from(0);
    }

    fn seat(&mut self, lane: Lane) -> &mut Seat {
        match lane {
            Lane::Main => &mut self.main,
            Lane::Second => &mut self.second,
            Lane::Grade => &mut self.grade.seat,
        }
    }

    /// Sends a request and returns its id.
    fn post(&mut self, lane: Lane, ask: Ask, files: Vec<String>) -> u32 {
        if !self.seat(lane).started {
            self.seat(lane).started = true;
            self.effects.push(Effect::StartEngine { lane });
        }
        self.last_request += 1;
        let id = self.last_request;
        // Requests hold strings and integers alone: writing them cannot fail.
        let text = serde_json::to_string(&Request { id, ask }).unwrap_or_default();
        self.effects.push(Effect::Post { lane, text, files });
        id
    }

    fn announce(&mut self, text: String) {
        self.effects.push(Effect::Announce { text });
    }

    fn toast(&mut self, level: Level, text: &str, hint: &str) {
        self.effects.push(Effect::Toast { level, text: text.into(), hint: hint.into() });
    }
}

#[cfg(test)]
mod tests;
