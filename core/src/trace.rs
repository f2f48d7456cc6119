//! One game step by step: the truth, what a tracker names, and where they differ, as data and as text.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::{
    chess::{
        State, Trajectory,
        label::{
            CASTLING, EP_FILE, EP_RANK, HALFMOVE, LABELS, PIECE_SYMBOLS, SIDE, SQUARES, label_name,
        },
    },
    tracker::Prediction,
};

/// The value of `schema` in every trace.
pub const SCHEMA: &str = "cwm-trace";
/// The version that is written.
pub const VERSION: u32 = 1;

/// A tracker's answers along one game.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Always [`VERSION`].
    pub version: u32,
    /// What made the trace, e.g. `cwm 0.1.0`.
    pub tool: String,
    /// The tracker's name.
    pub tracker: String,
    /// Plies in the game.
    pub plies: u32,
    /// Steps with all 75 labels right, out of `plies + 1`.
    pub exact_steps: u32,
    /// The ply of the first mistake.
    pub first_mistake: Option<u32>,
    /// The steps asked for, ascending.
    pub steps: Vec<TraceStep>,
}

/// One step: the state after a ply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceStep {
    /// The ply; 0 is the start position.
    pub ply: u32,
    /// The move that was played, in UCI notation; none at ply 0.
    pub played: Option<String>,
    /// The true state as FEN.
    pub truth: String,
    /// The named state as FEN; missing if the tracker's numbers were not finite.
    pub predicted: Option<String>,
    /// The labels that are wrong; empty if the step is exact.
    pub wrong: Vec<WrongLabel>,
}

/// A label that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrongLabel {
    /// Its name: `a8`..`h1`, `side`, `castle K`, `ep file`, ...
    pub label: String,
    /// What it is.
    pub truth: String,
    /// What the tracker says.
    pub predicted: String,
}

impl Trace {
    /// Compares a prediction with its game.
    pub fn new(tool: &str, tracker: &str, game: &Trajectory, prediction: &Prediction) -> Self {
        let steps: Vec<TraceStep> =
            (0..game.steps()).map(|step| TraceStep::new(game, prediction, step)).collect();
        let is_exact = |step: &&TraceStep| step.predicted.is_some() && step.wrong.is_empty();
        Trace {
            schema: SCHEMA.to_string(),
            version: VERSION,
            tool: tool.to_string(),
            tracker: tracker.to_string(),
            plies: game.plies() as u32,
            exact_steps: steps.iter().filter(is_exact).count() as u32,
            first_mistake: steps.iter().find(|step| !is_exact(step)).map(|step| step.ply),
            steps,
        }
    }

    /// Keeps one ply alone; the totals stay those of the game.
    pub fn keep_ply(&mut self, ply: u32) {
        self.steps.retain(|step| step.ply == ply);
    }

    /// For a terminal: a line a ply, then both boards at the first mistake, or at the last ply if there is none.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{}: {} of {} states exact, {}\n\n",
            self.tracker,
            self.exact_steps,
            self.plies + 1,
            match self.first_mistake {
                Some(ply) => format!("first mistake at ply {ply}"),
                None => "no mistake".to_string(),
            }
        );
        for step in &self.steps {
            let played = step.played.as_deref().unwrap_or("start");
            let _ = writeln!(text, "{:>5}  {played:<6} {}", step.ply, step.verdict());
        }
        let shown = self.steps.iter().find(|step| Some(step.ply) == self.first_mistake);
        if let Some(step) = shown.or(self.steps.last()) {
            text.push('\n');
            text += &self.boards(step);
        }
        text
    }

    fn boards(&self, step: &TraceStep) -> String {
        let mut text = match &step.played {
            Some(played) => format!("After ply {} ({played}):\n\n", step.ply),
            None => "At the start:\n\n".to_string(),
        };
        // FENs of our own making are always read back.
        let truth = State::from_fen(&step.truth).unwrap_or_else(|_| State::start());
        let predicted = step.predicted.as_deref().and_then(|fen| State::from_fen(fen).ok());
        let width = 29;
        let _ = writeln!(text, "  {:<width$}{}", "truth", self.tracker);
        for rank in 0..8 {
            let row = |state: &State, other: &State| {
                let mut row = format!("{} ", 8 - rank);
                for label in rank * 8..rank * 8 + 8 {
                    let class = state.labels()[label];
                    let symbol = PIECE_SYMBOLS[usize::from(class)];
                    let differs = class != other.labels()[label];
                    row += &if differs { format!("[{symbol}]") } else { format!(" {symbol} ") };
                }
                row
            };
            let right = predicted.as_ref().map(|p| row(p, &truth)).unwrap_or_default();
            let left = row(&truth, predicted.as_ref().unwrap_or(&truth));
            let _ = writeln!(text, "  {}", format!("{left:<width$}{right}").trim_end());
        }
        let files = "   a  b  c  d  e  f  g  h";
        let _ = writeln!(text, "  {files:<width$}{files}\n");
        let _ = writeln!(text, "  truth      {}", step.truth);
        let named = step.predicted.as_deref().unwrap_or("numbers that are not finite");
        let _ = writeln!(text, "  predicted  {named}");
        if !step.wrong.is_empty() {
            let _ = writeln!(text, "\n  {:<12}{:<14}predicted", "wrong label", "truth");
            for wrong in &step.wrong {
                let _ =
                    writeln!(text, "  {:<12}{:<14}{}", wrong.label, wrong.truth, wrong.predicted);
            }
        }
        text
    }
}

/// Wrong labels that a line names one by one.
const NAMED_IN_LINE: usize = 4;

impl TraceStep {
    fn new(game: &Trajectory, prediction: &Prediction, step: usize) -> Self {
        let truth = game.states()[step];
        let finite = !prediction.non_finite_steps.contains(&step);
        let predicted = prediction.states.get(step).filter(|_| finite);
        let wrong = predicted.map_or(Vec::new(), |predicted| {
            let name = |label: usize| WrongLabel {
                label: label_name(label),
                truth: class_name(label, truth.labels()[label]),
                predicted: class_name(label, predicted.labels()[label]),
            };
            truth.differing_labels(predicted).map(name).collect()
        });
        TraceStep {
            ply: step as u32,
            played: game.tokens()[step].to_uci().map(|uci| uci.to_string()),
            truth: truth.to_fen(),
            predicted: predicted.map(State::to_fen),
            wrong,
        }
    }

    fn verdict(&self) -> String {
        if self.predicted.is_none() {
            return "not finite: all 75 labels wrong".to_string();
        }
        if self.wrong.is_empty() {
            return "exact".to_string();
        }
        let named: Vec<&str> =
            self.wrong.iter().take(NAMED_IN_LINE).map(|wrong| wrong.label.as_str()).collect();
        let more = if self.wrong.len() > NAMED_IN_LINE { ", .." } else { "" };
        format!("{} of {LABELS} wrong: {}{more}", self.wrong.len(), named.join(", "))
    }
}

/// A class of a label in words; square contents as FEN letters, `.` for an empty square.
pub fn class_name(label: usize, class: u8) -> String {
    match label {
        0..SQUARES => PIECE_SYMBOLS.get(usize::from(class)).copied().unwrap_or('?').to_string(),
        SIDE => ["white", "black"].get(usize::from(class)).copied().unwrap_or("?").to_string(),
        CASTLING..EP_FILE => if class == 0 { "gone" } else { "held" }.to_string(),
        EP_FILE if class > 0 => char::from(b'a' + (class - 1).min(25)).to_string(),
        EP_RANK if class > 0 => if class == 1 { "3" } else { "6" }.to_string(),
        EP_FILE..HALFMOVE => "none".to_string(),
        _ => class.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{baseline::Baseline, chess::MoveToken, evaluate::predict, tracker::ready};

    /// g1f3 g8f6 g2g3 g7g6 f1g2 f8g7 e1g1 (castling is ply 7).
    fn castling() -> Trajectory {
        let moves = [(6, 21), (62, 45), (14, 22), (54, 46), (5, 14), (61, 54), (4, 6)];
        let token = |&(from, to): &(u32, u32)| MoveToken::new((from * 64 + to) * 5).unwrap();
        Trajectory::replay(&moves.iter().map(token).collect::<Vec<_>>())
    }

    fn trace(prediction: Prediction) -> Trace {
        Trace::new("cwm 0", Baseline::NaiveMoverRights.name(), &castling(), &prediction)
    }

    fn naive() -> Prediction {
        ready(predict(&Baseline::NaiveMoverRights, &castling())).unwrap().unwrap()
    }

    #[test]
    fn a_castling_rook_left_behind_is_named_and_drawn() {
        let trace = trace(naive());
        assert_eq!((trace.plies, trace.exact_steps, trace.first_mistake), (7, 7, Some(7)));
        let wrong = |label: &str, truth: &str, predicted: &str| WrongLabel {
            label: label.into(),
            truth: truth.into(),
            predicted: predicted.into(),
        };
        assert_eq!(trace.steps[7].wrong, [wrong("f1", "R", "."), wrong("h1", ".", "R")]);
        let text = trace.text();
        assert!(text.contains("    7  e1g1   2 of 75 wrong: f1, h1\n"), "{text}");
        assert!(
            text.contains("  1  R  N  B  Q  . [R] K [.]   1  R  N  B  Q  . [.] K [R]\n"),
            "{text}"
        );
        let json = serde_json::to_string(&trace).unwrap();
        assert_eq!(serde_json::from_str::<Trace>(&json).unwrap(), trace);
    }

    #[test]
    fn a_step_that_is_not_finite_is_wrong_without_a_state() {
        let mut prediction = naive();
        prediction.non_finite_steps = vec![2];
        let mut trace = trace(prediction);
        assert_eq!((trace.exact_steps, trace.first_mistake), (6, Some(2)));
        assert!(trace.text().contains("    2  g8f6   not finite: all 75 labels wrong"));
        trace.keep_ply(3);
        assert_eq!(trace.steps.len(), 1);
        assert!(trace.text().contains("After ply 3 (g2g3)"));
    }

    #[test]
    fn classes_have_words() {
        let words = [
            (0, 12),
            (SIDE, 1),
            (CASTLING, 1),
            (EP_FILE, 0),
            (EP_FILE, 8),
            (EP_RANK, 2),
            (74, 200),
        ];
        let found = words.map(|(label, class)| class_name(label, class));
        assert_eq!(found, ["k", "black", "held", "none", "h", "6", "200"]);
    }
}
