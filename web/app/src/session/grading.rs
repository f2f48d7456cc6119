//! The grading view's commands, and what its worker says.

use cwm_core::chess::MoveToken;
use cwm_protocol::{Ask, Reply, Say};

use super::Session;
use crate::{
    grade::{Export, GradeCommand, Run},
    line::{Line, Origin},
    link::Tab,
    message::{Effect, Lane, Level},
    seat::{Progress, Subject},
};

/// The command that draws the next chart.
const DRAW: &str = r#"{"do":"grade","grade":"draw"}"#;

impl Session {
    pub(super) fn grade_command(&mut self, command: GradeCommand) {
        let running = self.grade.run.is_some();
        match command {
            GradeCommand::Cancel => self.cancel(),
            GradeCommand::Look { worst } => self.look(worst),
            GradeCommand::Explore => self.explore_subject(),
            GradeCommand::Export { what } => self.export(&what),
            GradeCommand::Draw => self.draw_chart(),
            GradeCommand::PaperRows { all } => {
                self.grade.config.all_paper_rows = all;
                self.grade.revision += 1;
            }
            _ if running => {}
            GradeCommand::Subject { name: None } => self.grade.config.model = false,
            GradeCommand::Subject { name: Some(name) } => self.grade_subject(&name),
            GradeCommand::Set { set } => self.grade.config.set = set,
            GradeCommand::Seed { seed } => self.grade.config.seed = seed,
            GradeCommand::Policy { policy } => self.grade.config.policy = policy,
            GradeCommand::Size { size } => self.grade.config.size = size,
            GradeCommand::Custom { games } => self.grade.config.custom = games,
            GradeCommand::Baselines { on } => self.grade.config.baselines = on,
            GradeCommand::Run => self.run_grade(),
        }
    }

    fn grade_subject(&mut self, name: &str) {
        self.grade.config.model = true;
        let seated = self.grade.seat.name() == Some(name);
        if self.shipped.iter().any(|shipped| shipped.name == name)
            && (!seated || self.grade.seat.fault.is_some())
        {
            self.load(Lane::Grade, Subject::Shipped(name.to_string()));
            self.grade.fault = None;
        }
    }

    /// The grading view takes over the board's checkpoint when it is first looked at.
    pub(super) fn grade_default(&mut self) {
        if self.tab == Tab::Grade && self.grade.seat.name().is_none() && self.grade.config.model {
            let seated = self.main.name().map(str::to_string);
            let shipped = |name: &String| self.shipped.iter().any(|s| s.name == *name);
            let default = self.shipped.first().map(|shipped| shipped.name.clone());
            match seated.filter(shipped).or(default) {
                Some(name) => self.grade_subject(&name),
                None => self.grade.config.model = false,
            }
        }
    }

    fn run_grade(&mut self) {
        match self.grade.job() {
            Err(reason) => self.toast(Level::Error, &reason, ""),
            Ok((job, files)) => {
                let planned = (usize::from(job.model) + job.baselines.len()) * job.sets.len();
                let request = self.post(Lane::Grade, Ask::Grade(job), files);
                self.grade.fault = None;
                self.grade.run = Some(Run { request, planned, ..Run::default() });
                self.announce("grading".into());
            }
        }
    }

    fn cancel(&mut self) {
        let Some(run) = &mut self.grade.run else { return };
        if std::mem::replace(&mut run.cancelling, true) {
            return;
        }
        let request = run.request;
        self.post(Lane::Grade, Ask::Cancel { request }, Vec::new());
        self.announce("stopping".into());
    }

    fn look(&mut self, worst: usize) {
        let Some(outcome) = &self.grade.outcome else { return };
        let Some(game) = outcome.worst.get(worst).cloned() else { return };
        let moves: Vec<MoveToken> =
            game.tokens.iter().filter_map(|&id| MoveToken::try_from(id).ok()).collect();
        let mut line = Line::new(&moves, Origin::Graded);
        let title =
            game.title.unwrap_or_else(|| format!("game {} of {}", game.game + 1, game.dataset));
        line.tags = vec![("Event".into(), title.clone())];
        let own = self.grade.seat.subject.clone();
        if own.as_ref().is_some_and(|subject| subject.name() == game.tracker) {
            self.seat_subject(own);
        } else {
            self.choose_model(Lane::Main, Some(&game.tracker));
        }
        let text = format!("{title}, at the first mistake of {}", game.tracker);
        self.open_line(line, text);
        self.ply = (game.first_mistake as usize).min(self.line.plies());
        self.remember(false);
    }

    fn explore_subject(&mut self) {
        self.seat_subject(self.grade.seat.subject.clone());
        self.show_tab(Tab::Explore);
    }

    /// Lets the grading view's checkpoint answer on the main board.
    fn seat_subject(&mut self, subject: Option<Subject>) {
        match subject {
            Some(file @ Subject::File(..)) if self.main.subject.as_ref() != Some(&file) => {
                self.load(Lane::Main, file);
            }
            Some(Subject::Shipped(name)) => self.choose_model(Lane::Main, Some(&name)),
            _ => {}
        }
    }

    fn draw_chart(&mut self) {
        let Some((chart, first, more)) = self.grade.draw_next() else { return };
        match chart {
            Ok(chart) => self.effects.push(Effect::Chart { first, chart: Box::new(chart) }),
            Err(error) => self.toast(Level::Error, &error, "the numbers are in the tables"),
        }
        if more {
            self.draw_later();
        }
    }

    /// Draws a report's charts, each in a task of its own.
    pub(super) fn draw_later(&mut self) {
        self.effects.push(Effect::Later { command: DRAW });
    }

    fn export(&mut self, what: &Export) {
        let Some(outcome) = &self.grade.outcome else { return };
        let report = &outcome.report;
        let (name, mime, text) = match what {
            Export::Json => ("eval.json".to_string(), "application/json", report.to_json()),
            Export::Csv => (
                "prefix-bins.csv".to_string(),
                "text/csv",
                cwm_core::report::tsv::prefix_bins_csv(report),
            ),
            Export::Tsv => (
                "summary.tsv".to_string(),
                "text/tab-separated-values",
                cwm_core::report::tsv::summary(report),
            ),
            Export::Svg(chart) => {
                let Some(svg) = self.grade.svg(chart) else { return };
                (format!("{chart}.svg"), "image/svg+xml", svg)
            }
        };
        self.announce(format!("{name} saved"));
        self.effects.push(Effect::Save { name, mime: mime.into(), text });
    }

    pub(super) fn hear_grade(&mut self, reply: Reply) {
        let ours = self.grade.run.as_ref().is_some_and(|run| run.request == reply.id);
        let opening = self.grade.seat.opening.as_ref().is_some_and(|o| o.request == reply.id);
        match reply.say {
            Say::Ready { backend, .. } => self.grade.seat.backend = Some(backend),
            Say::Notice { fault, backend } => {
                self.grade.seat.backend = Some(backend);
                self.toast(Level::Error, &fault.message, &fault.hint);
            }
            Say::Phase { phase, done, total } if opening => {
                if let Some(opening) = &mut self.grade.seat.opening {
                    opening.progress = Some(Progress { phase, done, total });
                }
            }
            Say::Phase { phase, done, total } => self.grade.hear_phase(phase, done, total),
            Say::Opened { facts } if opening => {
                let seat = &mut self.grade.seat;
                if let Some(opening) = seat.opening.take() {
                    seat.subject = Some(opening.subject.clone());
                    seat.facts = Some((opening.subject, *facts));
                    seat.fault = None;
                    let name = seat.name().unwrap_or_default().to_string();
                    self.announce(format!("{name} is loaded"));
                }
            }
            Say::Grading { event, millis } if ours => self.grade.hear_event(event, millis),
            Say::Graded { report, worst, skipped, timings, complete } if ours => {
                let text = if complete { "graded" } else { "stopped; the results are partial" };
                self.announce(text.into());
                self.grade.finish(*report, worst, &skipped, timings, complete);
                self.draw_later();
            }
            Say::Failed { fault } if opening => {
                self.announce(format!("not loaded: {fault}"));
                self.grade.seat.opening = None;
                self.grade.seat.fault = Some(fault);
            }
            Say::Failed { fault } if ours => {
                self.announce(format!("not graded: {fault}"));
                self.grade.run = None;
                self.grade.fault = Some(fault);
            }
            _ => {}
        }
    }
}
