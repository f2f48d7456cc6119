//! Puts what is on screen into words and data.

use cwm_core::{
    baseline::Baseline,
    chess::{
        Policy,
        explain::name,
        label::{LABELS, SQUARES, label_name},
    },
    report::grouped,
};
use shakmaty::Position;

use super::{
    Session,
    words::{about, badge, board_of, ending, letters, loading},
};
use crate::{
    input::{Trouble, game_title},
    keys::help,
    labels::{self, AUXILIARY},
    line::Origin,
    link::Tab,
    message::Dialog,
    seat::{Seat, Subject},
    view::{
        ExploreView, GameChoice, Inspected, LabelRow, LineView, Mistake, ModelChoice, PageView,
        SeatView,
    },
};

impl Session {
    /// What is on screen. `line` and `result` are the revisions that the scripts have drawn.
    pub fn view(&self, line: u32, result: u32) -> PageView<'_> {
        let explore = self.tab == Tab::Explore;
        let grade = self.tab == Tab::Grade;
        PageView {
            tab: self.tab,
            dialog: self.dialog,
            models: self.models(),
            badge: badge(if grade { &self.grade.seat } else { self.computing() }),
            explore: explore.then(|| self.explore()),
            line: (line != self.revision).then(|| self.line_view()),
            revision: self.revision,
            gallery: (self.dialog == Some(Dialog::Gallery)).then(|| self.gallery.sections()),
            games: (self.dialog == Some(Dialog::Games)).then(|| self.game_choices()),
            help: (self.dialog == Some(Dialog::Help)).then(help),
            grade: grade.then(|| self.grade.view()),
            result: if grade && result != self.grade.revision {
                self.grade.result_view()
            } else {
                None
            },
            busy: self.grade.run.is_some(),
        }
    }

    /// The seat whose worker is told of: the second's, where a baseline sits on the main one.
    fn computing(&self) -> &Seat {
        if self.main.backend.is_none() && self.second.backend.is_some() {
            &self.second
        } else {
            &self.main
        }
    }

    fn models(&self) -> Vec<ModelChoice> {
        let shipped = self.shipped.iter().enumerate().map(|(i, shipped)| ModelChoice {
            name: shipped.name.clone(),
            about: format!(
                "{}{}",
                if i == 0 { "default, " } else { "" },
                crate::grade::size_of(shipped.bytes)
            ),
            baseline: false,
        });
        let own = [&self.main, &self.second].into_iter().filter_map(|seat| match &seat.subject {
            Some(Subject::File(name, _)) => {
                Some(ModelChoice { name: name.clone(), about: "your file".into(), baseline: false })
            }
            _ => None,
        });
        let baselines = Baseline::ALL.into_iter().map(|baseline| ModelChoice {
            name: baseline.name().into(),
            about: "no network".into(),
            baseline: true,
        });
        shipped.chain(own).chain(baselines).collect()
    }

    fn line_view(&self) -> LineView<'_> {
        let known = |name: &str| {
            self.line
                .tag(name)
                .map(str::trim)
                .filter(|value| !matches!(*value, "" | "?" | "????.??.??"))
        };
        let title = match (known("White"), known("Black"), &self.line.origin) {
            (None, None, Origin::Random { seed, policy, .. }) => match policy {
                Policy::Uniform => format!("Random legal game, seed {seed}"),
                policy => format!("Random game ({}), seed {seed}", policy.name()),
            },
            (None, None, Origin::Graded) => known("Event").unwrap_or("A graded game").to_string(),
            (None, None, _) => known("Event").unwrap_or("Your game").to_string(),
            (white, black, _) => {
                format!("{} \u{2013} {}", white.unwrap_or("?"), black.unwrap_or("?"))
            }
        };
        let mut about: Vec<String> = Vec::new();
        match &self.line.origin {
            Origin::Random { termination, .. } => about.push(ending(*termination).into()),
            _ if title != known("Event").unwrap_or_default() => {
                about.extend(known("Event").map(str::to_string));
            }
            _ => {}
        }
        about.extend(known("Date").map(|date| date.trim_end_matches(".??").to_string()));
        about.push(match self.line.plies() {
            1 => "1 ply".to_string(),
            plies => format!("{} plies", grouped(plies as u64)),
        });
        LineView {
            sans: self.line.sans(),
            title,
            about: about.join(" \u{b7} "),
            origin: &self.line.origin,
            result: self.line.result.as_str(),
        }
    }

    fn game_choices(&self) -> Vec<GameChoice> {
        let choice = |game: &Result<_, _>| match game {
            Ok(game) => GameChoice {
                title: game_title(game),
                about: format!("{} plies, {}", game.moves.len(), game.result),
                damaged: false,
            },
            Err(error) => {
                let trouble = Trouble::from(cwm_core::chess::parse::ParseError::clone(error));
                GameChoice { title: "damaged".into(), about: trouble.to_string(), damaged: true }
            }
        };
        self.games.iter().map(choice).collect()
    }

    fn explore(&self) -> ExploreView<'_> {
        let position = self.line.position(self.ply);
        let truth = &self.line.states()[self.ply];
        let last_move = self.ply.checked_sub(1).and_then(|at| {
            let (from, to, _) = self.line.moves().get(at)?.parts()?;
            Some([from.to_string(), to.to_string()])
        });
        let main_answer = self.main.answers.get(self.ply);
        let words = |label: usize| {
            let right = self.truth_words(label);
            let square = label_name(label);
            match main_answer.and_then(|answer| answer.named()) {
                Some(named) if named.labels()[label] != truth.labels()[label] => {
                    let says = labels::words(label, named.labels()[label]);
                    format!("{square}, {right}; the model says {says}")
                }
                _ => format!("{square}, {right}"),
            }
        };
        ExploreView {
            ply: self.ply,
            plies: self.line.plies(),
            played: self.line.numbered(self.ply),
            spoken: self.spoken(),
            flipped: self.flipped,
            view: self.view,
            turn: if position.turn().is_white() { "white" } else { "black" },
            check: position.is_check(),
            last_move,
            fen: self.line.fen(self.ply),
            destinations: self.line.destinations(self.ply),
            square_words: (0..SQUARES).map(words).collect(),
            squares: letters(Some(truth)),
            main: self.seat_view(&self.main),
            second: self.second.name().is_some().then(|| self.seat_view(&self.second)),
            mistakes_of: self
                .mistakes()
                .answers
                .first_mistake()
                .and(self.mistakes().name())
                .map(str::to_string),
            inspected: self.inspected.map(|label| Inspected {
                label,
                title: labels::title(label),
                truth: self.truth_words(label),
            }),
            note: &self.note,
            trouble: self.trouble.as_ref(),
            promotion: self.promotion.map(|(from, to)| {
                [name(position.turn()).to_lowercase(), from.to_string(), to.to_string()]
            }),
            policies: Policy::ALL.map(|p| (p.name().into(), p.about().into())).to_vec(),
            policy: self.policy,
            guided: self.guided,
            lede: self.lede(),
        }
    }

    /// What there is to see at this step, in a sentence or two.
    fn lede(&self) -> String {
        let said = |seat: &Seat| {
            let wrong = *seat.answers.wrong().get(self.ply)?;
            let name = seat.name()?.to_string();
            Some((name, wrong))
        };
        let place = match self.ply {
            0 => "Before the first move".to_string(),
            ply => format!("After {}", self.line.numbered(ply)),
        };
        match (said(&self.main), said(&self.second)) {
            (None, None) => {
                "Move a piece: the rules are here already, the models are on their way.".into()
            }
            (Some((name, 0)), None) | (None, Some((name, 0))) => {
                format!("{place}, {name} names all 75 labels of the position rightly.")
            }
            (Some((name, wrong)), None) | (None, Some((name, wrong))) => {
                format!("{place}, {name} has {wrong} of 75 labels wrong.")
            }
            (Some((a, 0)), Some((b, 0))) => {
                format!("{place}, {a} and {b} both name all 75 labels rightly.")
            }
            (Some((right, 0)), Some((drifted, wrong)))
            | (Some((drifted, wrong)), Some((right, 0))) => {
                format!(
                    "{place}, {right} still names all 75 labels of the position; {drifted} has drifted, with {wrong} of them wrong."
                )
            }
            (Some((a, m)), Some((b, n))) => {
                format!("{place}, {a} has {m} of 75 labels wrong, {b} {n}.")
            }
        }
    }

    fn seat_view(&self, seat: &Seat) -> SeatView {
        let truth = &self.line.states()[self.ply];
        let answer = seat.answers.get(self.ply);
        let named = answer.and_then(|answer| answer.named());
        let wrong = seat.answers.wrong();
        let here = wrong.get(self.ply).copied();
        let label_row = |label: usize| LabelRow {
            label,
            title: labels::title(label),
            truth: labels::words(label, truth.labels()[label]),
            model: match (answer, named) {
                (None, _) => "\u{2026}".into(),
                (Some(_), None) => "not finite".into(),
                (Some(_), Some(named)) => labels::words(label, named.labels()[label]),
            },
            percent: answer
                .and_then(|answer| answer.probability(label))
                .map_or(String::new(), labels::percent),
            wrong: answer.is_some_and(|answer| !answer.is_right(truth, label)),
        };
        let wrong_labels = |label: &usize| answer.is_some_and(|a| !a.is_right(truth, *label));
        SeatView {
            name: seat.name().map(str::to_string),
            about: about(seat),
            loading: seat
                .opening
                .as_ref()
                .map(|opening| loading(opening.subject.name(), opening.progress)),
            fault: seat.fault.clone(),
            crashed: seat.crashed,
            wrong: wrong.to_vec(),
            board: named.map(|named| board_of(&named.to_fen())),
            verdict: match here {
                None => "no answer yet".into(),
                Some(0) => format!("exact: all {LABELS} labels right"),
                Some(n) if named.is_none() => {
                    format!("not exact: {n} of {LABELS} labels wrong, the numbers are not finite")
                }
                Some(n) => format!("not exact: {n} of {LABELS} labels wrong"),
            },
            exact: here.map(|wrong| wrong == 0),
            summary: self.summary(seat),
            first_mistake: seat.answers.first_mistake().map(|ply| Mistake {
                ply,
                played: self.line.numbered(ply),
                wrong: wrong[ply],
            }),
            squares: answer.map_or_else(String::new, |_| letters(named)),
            wrong_labels: (0..LABELS).filter(wrong_labels).map(|label| label as u8).collect(),
            labels: AUXILIARY.map(label_row).collect(),
            inspected_wrong: self
                .inspected
                .map_or(Vec::new(), |label| seat.answers.wrong_steps(label, self.line.states())),
            likely: match (self.inspected, answer) {
                (Some(label), Some(answer)) => answer.likely(truth, label),
                _ => Vec::new(),
            },
            millis: seat.answer_millis.filter(|_| seat.network_answers()),
        }
    }

    fn summary(&self, seat: &Seat) -> String {
        let steps = self.line.plies() + 1;
        let answered = seat.answers.len();
        let exact = seat.answers.exact();
        let shown = if answered < steps {
            format!("{answered} of {steps} states answered, {exact} exact")
        } else {
            format!("{exact} of {steps} states exact")
        };
        match seat.answers.first_mistake() {
            Some(ply) => {
                format!("{shown}, first mistake at ply {ply} ({})", self.line.numbered(ply))
            }
            None => shown,
        }
    }
}
