//! Moves, steps, random games, the gallery.

use cwm_core::chess::{MoveToken, Policy, explain::role_name, random::RandomPlay};
use shakmaty::{Role, Square};

use super::{Note, Session};
use crate::{
    labels,
    line::{Line, Refusal},
    message::{Dialog, Effect, Lane, Level, Target},
};

/// Full moves that a random game has at least, as on the command line.
const MIN_FULLMOVES: u32 = 10;

impl Session {
    pub(super) fn go(&mut self, to: Target) {
        let plies = self.line.plies();
        let answers = &self.mistakes().answers;
        let ply = match to {
            Target::First => Some(0),
            Target::Previous => self.ply.checked_sub(1),
            Target::Next => Some(self.ply + 1).filter(|&ply| ply <= plies),
            Target::Last => Some(plies),
            Target::FirstMistake => answers.first_mistake(),
            Target::NextMistake => answers.mistake_after(self.ply),
            Target::PreviousMistake => answers.mistake_before(self.ply),
            Target::Ply(ply) => Some(ply.min(plies)),
        };
        match ply {
            Some(ply) if ply == self.ply => {}
            Some(ply) => {
                self.ply = ply;
                let text = self.spoken();
                self.announce(text);
                self.remember(false);
            }
            None => {
                let text = match to {
                    Target::FirstMistake => "no mistake in this game",
                    Target::NextMistake => "no mistake after this",
                    Target::PreviousMistake => "no mistake before this",
                    Target::Previous => "start of the game",
                    _ => "end of the game",
                };
                self.announce(text.to_string());
            }
        }
    }

    /// The seat whose mistakes the mistake buttons visit: the main one, or the second where only that errs.
    pub(super) fn mistakes(&self) -> &crate::seat::Seat {
        if self.main.answers.first_mistake().is_none()
            && self.second.answers.first_mistake().is_some()
        {
            &self.second
        } else {
            &self.main
        }
    }

    /// Where the game stands, and what the model says of it, in a sentence.
    pub(super) fn spoken(&self) -> String {
        let place = self.line.numbered(self.ply);
        match self.main.answers.wrong().get(self.ply) {
            None => place,
            Some(0) => format!("{place}: exact"),
            Some(wrong) => format!("{place}: {wrong} of 75 labels wrong"),
        }
    }

    pub(super) fn board_move(&mut self, from: &str, to: &str) {
        let (Ok(from), Ok(to)) = (from.parse::<Square>(), to.parse::<Square>()) else { return };
        if from == to {
            return;
        }
        match self.line.token(self.ply, from, to, None) {
            Ok(token) => self.play(&[token]),
            Err(Refusal::Promotion) => {
                self.promotion = Some((from, to));
                self.dialog = Some(Dialog::Promotion);
            }
            Err(refusal) => {
                let text = format!("{from}{to} is not legal: {refusal}");
                self.note = Note { text: text.clone(), error: true };
                self.announce(text);
            }
        }
    }

    pub(super) fn promote(&mut self, piece: Option<char>) {
        let Some((from, to)) = self.promotion.take() else { return };
        self.dialog = None;
        let role = piece.and_then(Role::from_char);
        match role.map(|role| (role, self.line.token(self.ply, from, to, Some(role)))) {
            Some((role, Ok(token))) => {
                self.announce(format!("promoted to a {}", role_name(role)));
                self.play(&[token]);
            }
            _ => self.announce("promotion cancelled".into()),
        }
    }

    /// Plays legal tokens from the ply on the board.
    pub(super) fn play(&mut self, tokens: &[MoveToken]) {
        let mut changed = false;
        for &token in tokens {
            let dropped_tail = self.ply < self.line.plies();
            if self.line.play(self.ply, token) {
                if dropped_tail {
                    self.main.forget_from(self.ply + 1);
                    self.second.forget_from(self.ply + 1);
                }
                changed = true;
            }
            self.ply += 1;
        }
        self.note = Note::default();
        self.trouble = None;
        if changed {
            self.revision += 1;
        }
        let text = self.line.numbered(self.ply);
        self.announce(text);
        self.remember(changed);
        self.ask();
    }

    pub(super) fn random(&mut self, seed: Option<&str>, policy: Policy) {
        let seed = match seed.map(str::trim).filter(|seed| !seed.is_empty()) {
            None => {
                // A linear congruential step: the next seed differs, whatever the first was.
                self.entropy = self.entropy.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                u64::from(self.entropy >> 12)
            }
            Some(text) => match text.parse::<u64>() {
                Ok(seed) => seed,
                Err(_) => {
                    let text = format!("`{text}` is no seed: a whole number from 0 is needed");
                    return self.toast(Level::Error, &text, "leave it empty for a new one");
                }
            },
        };
        self.policy = policy;
        let min_fullmoves = MIN_FULLMOVES.min(policy.max_min_fullmoves());
        let Some(game) = RandomPlay::with_policy(policy, seed, min_fullmoves).next() else {
            return;
        };
        let line = Line::random(&game, policy, seed);
        let text = format!("random game, seed {seed}, {} plies", line.plies());
        self.open_line(line, text);
    }

    pub(super) fn open_gallery(&mut self, item: usize) {
        let Some(line) = self.gallery.line(item) else { return };
        let title = self.gallery.title(item);
        let ply = self.gallery.ply(item);
        let tracker = self.gallery.tracker(item).map(str::to_string);
        if let Some(name) = tracker.filter(|name| self.main.name() != Some(name)) {
            self.choose_model(Lane::Second, Some(&name));
        }
        self.open_line(line, title);
        if let Some(ply) = ply {
            self.ply = ply.min(self.line.plies());
            self.remember(false);
        }
    }

    /// Puts a game on the board, at its start for games to play through.
    pub(super) fn open_line(&mut self, line: Line, said: String) {
        self.set_line(line);
        self.close_dialogs();
        self.tab = crate::link::Tab::Explore;
        self.note = Note::default();
        self.trouble = None;
        self.effects.push(Effect::ClearInput);
        self.announce(said);
        self.remember(true);
        self.ask();
    }

    /// What stands on a square of the true board, in words.
    pub(super) fn truth_words(&self, label: usize) -> String {
        labels::words(label, self.line.states()[self.ply].labels()[label])
    }
}
