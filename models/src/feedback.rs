//! What a model that reads its own last answer is given in its place, when it is graded.

/// What is read back from step to step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Feedback {
    /// The most probable labels: what the model has named. The benchmark asks for this.
    #[default]
    Argmax,
    /// All classes, by their probabilities.
    Soft,
    /// The true labels, as in training: every step by itself. A measurement of the steps, not a score.
    Truth,
}

/// A feedback that a model cannot be given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a {family} has no {} feedback", .feedback.name())]
pub struct FeedbackError {
    /// The model's family.
    pub family: &'static str,
    /// What was asked for.
    pub feedback: Feedback,
}

impl Feedback {
    /// Its name on command lines and in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Feedback::Argmax => "argmax",
            Feedback::Soft => "soft",
            Feedback::Truth => "truth",
        }
    }
}
