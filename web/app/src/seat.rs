//! A model beside the game: what it is, whether it is loaded, and what it says.

use cwm_core::{baseline::Baseline, evaluate::predict, tracker::ready};
use cwm_protocol::{Backend, Fault, ModelFacts, Phase};
use serde::Serialize;

use crate::{
    answers::{Answer, Answers},
    line::Line,
};

/// What answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A checkpoint that ships with the page.
    Shipped(String),
    /// A checkpoint of the user's: its name and the keys of its files.
    File(String, Vec<String>),
    /// A tracker without a network; it answers on the main thread.
    Baseline(Baseline),
}

impl Subject {
    /// The name in pickers and tables.
    pub fn name(&self) -> &str {
        match self {
            Subject::Shipped(name) | Subject::File(name, _) => name,
            Subject::Baseline(baseline) => baseline.name(),
        }
    }
}

/// How far a load has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// What is being done.
    pub phase: Phase,
    /// How much of it is done.
    pub done: u64,
    /// How much there is to do.
    pub total: Option<u64>,
}

/// A load that is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The request.
    pub request: u32,
    /// What is loaded.
    pub subject: Subject,
    /// How far it has come.
    pub progress: Option<Progress>,
}

/// A place for a model: the main board's, or the one beside it.
#[derive(Debug, Clone, Default)]
pub struct Seat {
    /// What answers; nothing before the first load is done.
    pub subject: Option<Subject>,
    /// What is being loaded to answer next.
    pub opening: Option<Opening>,
    /// The checkpoint in the worker, if there is one.
    pub facts: Option<(Subject, ModelFacts)>,
    /// What the worker computes with.
    pub backend: Option<Backend>,
    /// Why the last load or answer failed.
    pub fault: Option<Fault>,
    /// Whether the worker was started.
    pub started: bool,
    /// Whether the worker died.
    pub crashed: bool,
    /// What was said about the line.
    pub answers: Answers,
    /// The request that is being answered, and the steps that it is about.
    pub asked: Option<(u32, usize)>,
    /// Time that the last answer took in the worker, in milliseconds.
    pub answer_millis: Option<f64>,
}

impl Seat {
    /// The name of what answers or is about to.
    pub fn name(&self) -> Option<&str> {
        let coming = self.opening.as_ref().map(|opening| &opening.subject);
        self.subject.as_ref().or(coming).map(Subject::name)
    }

    /// Whether the model in the worker is the one that answers.
    pub fn network_answers(&self) -> bool {
        match (&self.subject, &self.facts) {
            (Some(subject), Some((open, _))) => subject == open,
            _ => false,
        }
    }

    /// What is open, if it answers.
    pub fn shown_facts(&self) -> Option<&ModelFacts> {
        self.facts.as_ref().filter(|_| self.network_answers()).map(|(_, facts)| facts)
    }

    /// Forgets what was said, from `step` on.
    pub fn forget_from(&mut self, step: usize) {
        self.answers.truncate(step);
        self.asked = None;
    }

    /// Lets a baseline answer, if one is seated.
    pub fn answer_baseline(&mut self, line: &Line) {
        let Some(Subject::Baseline(baseline)) = &self.subject else { return };
        if self.answers.len() > line.plies() {
            return;
        }
        // Baselines neither wait nor fail.
        let Some(Ok(prediction)) = ready(predict(baseline, &line.trajectory())) else { return };
        let first = self.answers.len();
        for (state, truth) in prediction.states.iter().zip(line.states()).skip(first) {
            self.answers.push(Answer::certain(*state), truth);
        }
    }
}
