//! Models on the boards: loading them, asking them, hearing them.

use cwm_core::baseline::Baseline;
use cwm_protocol::{Ask, CheckpointSource, Fault, GameSet, GradeJob, Reply, Say, code};

use super::Session;
use crate::{
    answers::Answer,
    gallery::WORST_LISTED,
    link::Link,
    message::{Effect, Lane, Level},
    seat::{Opening, Progress, Subject},
};

/// The small network that stands beside the default model, to show what going wrong looks like.
const BESIDE: &str = "transformer-d128";

impl Session {
    /// What a worker says, as JSON.
    pub fn hear(&mut self, lane: Lane, text: &str) -> Vec<Effect> {
        match serde_json::from_str::<Reply>(text) {
            Ok(reply) => self.take_reply(lane, reply),
            Err(error) => {
                let hint = "reload the page: its files are of different versions";
                self.toast(
                    Level::Error,
                    &format!("the engine said something unknown: {error}"),
                    hint,
                );
            }
        }
        std::mem::take(&mut self.effects)
    }

    fn take_reply(&mut self, lane: Lane, reply: Reply) {
        if let Say::Failed { fault } | Say::Notice { fault, .. } = &reply.say
            && fault.code == code::PANIC
        {
            let message = fault.message.clone();
            return self.crashed(lane, &message);
        }
        if lane == Lane::Grade {
            return self.hear_grade(reply);
        }
        let id = reply.id;
        match reply.say {
            Say::Ready { backend, .. } => self.seat(lane).backend = Some(backend),
            Say::Notice { fault, backend } => {
                self.seat(lane).backend = Some(backend);
                self.toast(Level::Error, &fault.message, &fault.hint);
            }
            Say::Phase { phase, done, total } => {
                if let Some(opening) = &mut self.seat(lane).opening
                    && opening.request == id
                {
                    opening.progress = Some(Progress { phase, done, total });
                }
            }
            Say::Opened { facts } => self.opened(lane, id, *facts),
            Say::Step { answer } => self.answered(lane, id, &answer),
            Say::Predicted { millis, .. } => {
                let seat = self.seat(lane);
                if seat.asked.is_some_and(|(request, _)| request == id) {
                    seat.asked = None;
                    seat.answer_millis = Some(millis);
                    self.settle();
                }
            }
            Say::Graded { worst, .. } => self.gallery.add_worst(&worst),
            Say::Failed { fault } => self.failed(lane, id, fault),
            Say::Superseded | Say::Grading { .. } | Say::Cancelled => {}
        }
    }

    /// Lets a seat's model be another.
    pub(super) fn choose_model(&mut self, lane: Lane, name: Option<&str>) {
        let Some(name) = name else {
            if lane == Lane::Second {
                let seat = self.seat(lane);
                seat.subject = None;
                seat.opening = None;
                seat.forget_from(0);
                self.remember(true);
            }
            return;
        };
        if self.seat(lane).name() == Some(name) && self.seat(lane).fault.is_none() {
            return;
        }
        if self.sit(lane, name) {
            self.remember(true);
        } else {
            let hint = "choose one of the list, or drop a checkpoint";
            self.toast(Level::Error, &format!("there is no model called `{name}`"), hint);
        }
    }

    /// Seats a model by name; `false` if there is none of that name.
    fn sit(&mut self, lane: Lane, name: &str) -> bool {
        if let Some(baseline) = Baseline::from_name(name) {
            let seat = self.seat(lane);
            seat.opening = None;
            seat.fault = None;
            seat.subject = Some(Subject::Baseline(baseline));
            seat.forget_from(0);
            self.ask();
            return true;
        }
        let at_hand = self.seat(lane).facts.as_ref().map(|(subject, _)| subject.clone());
        if let Some(subject) = at_hand.filter(|subject| subject.name() == name) {
            // It is still in the worker.
            let seat = self.seat(lane);
            seat.opening = None;
            seat.fault = None;
            seat.subject = Some(subject);
            seat.forget_from(0);
            self.ask();
            return true;
        }
        if !self.shipped.iter().any(|shipped| shipped.name == name) {
            return false;
        }
        self.load(lane, Subject::Shipped(name.to_string()));
        true
    }

    /// Asks a worker to load a checkpoint.
    pub(super) fn load(&mut self, lane: Lane, subject: Subject) {
        let (source, files) = match &subject {
            Subject::File(_, files) => (CheckpointSource::Files, files.clone()),
            _ => (CheckpointSource::Shipped, Vec::new()),
        };
        let ask = Ask::Open { name: subject.name().to_string(), source };
        let request = self.post(lane, ask, files);
        let seat = self.seat(lane);
        seat.fault = None;
        seat.opening = Some(Opening { request, subject, progress: None });
    }

    pub(super) fn seat_from_link(&mut self, link: &Link, first: bool) {
        let default = self.shipped.first().map(|shipped| shipped.name.clone());
        if let Some(name) = &link.model {
            if self.main.name() != Some(name) && !self.sit(Lane::Main, name) {
                let hint = "the link was made with another build, or with a file that was dropped";
                self.toast(Level::Error, &format!("there is no model called `{name}`"), hint);
            }
        } else if let (true, Some(name)) = (first, &default) {
            self.sit(Lane::Main, name);
        }
        match &link.second {
            Some(name) if name.is_empty() => self.choose_model(Lane::Second, None),
            Some(name) if self.second.name() != Some(name) => {
                self.sit(Lane::Second, name);
            }
            None if first && link.model.is_none() => {
                // Beside the default model, one that drifts.
                let beside = if default.as_deref() == Some(BESIDE) || default.is_none() {
                    Baseline::NaiveMoverRightsEp.name()
                } else {
                    BESIDE
                };
                self.sit(Lane::Second, beside);
            }
            _ => {}
        }
    }

    /// Asks for the answers that are missing.
    pub(super) fn ask(&mut self) {
        for lane in [Lane::Main, Lane::Second] {
            let steps = self.line.plies() + 1;
            let line = self.line.clone();
            let seat = self.seat(lane);
            seat.answer_baseline(&line);
            let pending = seat.asked.is_some_and(|(_, asked)| asked == steps);
            if !seat.network_answers() || seat.answers.len() >= steps || pending || seat.crashed {
                continue;
            }
            let from_step = seat.answers.len() as u32;
            let tokens = line.moves().iter().map(|token| token.id()).collect();
            let request = self.post(lane, Ask::Predict { tokens, from_step }, Vec::new());
            self.seat(lane).asked = Some((request, steps));
        }
        self.settle();
    }

    fn answered(&mut self, lane: Lane, id: u32, answer: &cwm_protocol::StepAnswer) {
        let step = answer.step as usize;
        let Some(truth) = self.line.states().get(step).copied() else { return };
        let seat = self.seat(lane);
        let expected = seat.asked.is_some_and(|(request, _)| request == id);
        if expected && step == seat.answers.len() {
            seat.answers.push(Answer::of(answer), &truth);
        }
    }

    fn opened(&mut self, lane: Lane, id: u32, facts: cwm_protocol::ModelFacts) {
        let seat = self.seat(lane);
        if seat.opening.as_ref().is_none_or(|opening| opening.request != id) {
            // A choice that was changed meanwhile: the worker holds it, nobody sits on it.
            return;
        }
        let Some(opening) = seat.opening.take() else { return };
        seat.subject = Some(opening.subject.clone());
        seat.facts = Some((opening.subject, facts));
        seat.forget_from(0);
        let name = seat.name().unwrap_or_default().to_string();
        self.announce(format!("{name} is loaded"));
        self.ask();
    }

    fn failed(&mut self, lane: Lane, id: u32, fault: Fault) {
        let seat = self.seat(lane);
        if seat.opening.as_ref().is_some_and(|opening| opening.request == id) {
            seat.opening = None;
        } else if seat.asked.is_some_and(|(request, _)| request == id) {
            seat.asked = None;
        } else {
            return;
        }
        seat.fault = Some(fault.clone());
        self.toast(Level::Error, &fault.message, &fault.hint);
    }

    pub(super) fn crashed(&mut self, lane: Lane, message: &str) {
        let seat = self.seat(lane);
        if std::mem::replace(&mut seat.crashed, true) {
            return;
        }
        seat.asked = None;
        seat.fault = Some(Fault::new(
            code::PANIC,
            format!("the engine stopped: {message}"),
            "restart it; the game on screen stays",
        ));
        if lane == Lane::Grade {
            self.grade.crashed();
        }
        self.announce("the engine stopped".into());
    }

    pub(super) fn restart(&mut self, lane: Lane) {
        let seat = self.seat(lane);
        let opening = seat.opening.take().map(|opening| opening.subject);
        let subject = opening.or_else(|| seat.facts.take().map(|(subject, _)| subject));
        let baseline = matches!(seat.subject, Some(Subject::Baseline(_)));
        *seat = crate::seat::Seat {
            subject: seat.subject.take().filter(|_| baseline),
            answers: std::mem::take(&mut seat.answers),
            started: true,
            ..Default::default()
        };
        self.effects.push(Effect::StartEngine { lane });
        if let Some(subject) = subject.filter(|_| !baseline) {
            self.load(lane, subject);
        }
        self.announce("the engine is being restarted".into());
    }

    /// While the worked example is on screen untouched: steps to where a board goes wrong first.
    fn settle(&mut self) {
        if !self.guided {
            return;
        }
        let steps = self.line.plies() + 1;
        for seat in [&self.main, &self.second] {
            if seat.answers.len() < steps {
                continue;
            }
            let squares_wrong = |&step: &usize| {
                let truth = &self.line.states()[step];
                seat.answers.get(step).is_some_and(|answer| {
                    (0..cwm_core::chess::label::SQUARES).any(|l| !answer.is_right(truth, l))
                })
            };
            if let Some(step) = (0..steps).find(squares_wrong) {
                self.ply = step;
                return;
            }
        }
    }

    /// Finds the games in which the seated models go wrong, for the gallery.
    pub(super) fn find_failures(&mut self) {
        self.gallery.find_failures();
        for lane in [Lane::Main, Lane::Second] {
            let seat = self.seat(lane);
            let name = seat.shown_facts().map(|facts| facts.name.clone());
            let Some(name) = name.filter(|name| !self.gallery.has(name)) else { continue };
            let same = |other: Lane| other != lane && self.seat_of(other).name() == Some(&name);
            if lane == Lane::Second && same(Lane::Main) {
                continue;
            }
            let job = GradeJob {
                model: true,
                baselines: Vec::new(),
                sets: vec![GameSet::Classics],
                limit: None,
                worst: WORST_LISTED,
            };
            self.post(lane, Ask::Grade(job), Vec::new());
        }
    }

    pub(super) fn seat_of(&self, lane: Lane) -> &crate::seat::Seat {
        match lane {
            Lane::Main => &self.main,
            Lane::Second => &self.second,
            Lane::Grade => &self.grade.seat,
        }
    }
}
