//! What is on screen, as data for the scripts.

use cwm_core::chess::Policy;
use cwm_protocol::Fault;
use serde::Serialize;

use crate::{
    gallery::Section,
    grade::{GradeView, ResultView},
    input::Trouble,
    keys::HelpRow,
    labels::Likely,
    line::Origin,
    link::{Tab, View},
    message::Dialog,
    session::Note,
};

/// Everything.
#[derive(Debug, Serialize)]
pub struct PageView<'a> {
    /// The tab.
    pub tab: Tab,
    /// The open dialog.
    pub dialog: Option<Dialog>,
    /// The models to choose from.
    pub models: Vec<ModelChoice>,
    /// What the main board's worker computes with.
    pub badge: Badge,
    /// The board and what belongs to it; on other tabs nothing.
    pub explore: Option<ExploreView<'a>>,
    /// The moves, if they changed.
    pub line: Option<LineView<'a>>,
    /// Grows with every change of the line.
    pub revision: u32,
    /// The gallery, if it is open.
    pub gallery: Option<Vec<Section<'a>>>,
    /// The games to pick from, if they are shown.
    pub games: Option<Vec<GameChoice>>,
    /// The keys, if they are shown.
    pub help: Option<Vec<HelpRow>>,
    /// The grading view.
    pub grade: Option<GradeView>,
    /// What came of grading, if it changed.
    pub result: Option<ResultView<'a>>,
    /// Whether closing the page would lose something.
    pub busy: bool,
}

/// A model to choose.
#[derive(Debug, Serialize)]
pub struct ModelChoice {
    /// Its name.
    pub name: String,
    /// What it is, and its size before it is fetched.
    pub about: String,
    /// Whether it has no network.
    pub baseline: bool,
}

/// What answers are computed with.
#[derive(Debug, Serialize)]
pub struct Badge {
    /// In a word or three.
    pub text: String,
    /// Why, and what to do.
    pub why: String,
    /// Whether it is a GPU.
    pub gpu: bool,
}

/// A game to pick.
#[derive(Debug, Serialize)]
pub struct GameChoice {
    /// Its name.
    pub title: String,
    /// Plies and result, or what is wrong.
    pub about: String,
    /// Whether it is damaged.
    pub damaged: bool,
}

/// The moves.
#[derive(Debug, Serialize)]
pub struct LineView<'a> {
    /// The moves in algebraic notation.
    pub sans: &'a [String],
    /// What the game is called.
    pub title: String,
    /// Where it comes from.
    pub about: String,
    /// How it came to the board.
    pub origin: &'a Origin,
    /// The result as PGN has it.
    pub result: &'static str,
}

/// A model's place.
#[derive(Debug, Serialize)]
pub struct SeatView {
    /// Its name.
    pub name: Option<String>,
    /// What it is.
    pub about: String,
    /// The load under way.
    pub loading: Option<Loading>,
    /// What went wrong.
    pub fault: Option<Fault>,
    /// Whether the worker died.
    pub crashed: bool,
    /// Wrong labels at each answered step; 75 also for numbers that are not finite.
    pub wrong: Vec<u8>,
    /// The board part of the FEN that it names here.
    pub board: Option<String>,
    /// What it says of this step, in a sentence.
    pub verdict: String,
    /// Whether this step is exact; nothing while it is not answered.
    pub exact: Option<bool>,
    /// How the whole game went, in a sentence.
    pub summary: String,
    /// The first mistake, with its move.
    pub first_mistake: Option<Mistake>,
    /// Classes of the 64 squares that it names, by FEN letter; `?` for none, `.` for empty.
    pub squares: String,
    /// Which of the 75 labels are wrong.
    pub wrong_labels: Vec<u8>,
    /// The auxiliary labels.
    pub labels: Vec<LabelRow>,
    /// Steps at which the inspected label is wrong.
    pub inspected_wrong: Vec<u32>,
    /// The most probable classes of the inspected label.
    pub likely: Vec<Likely>,
    /// Time of the last answer, in milliseconds.
    pub millis: Option<f64>,
}

/// A load under way.
#[derive(Debug, Serialize)]
pub struct Loading {
    /// What is loaded.
    pub name: String,
    /// What is being done, and how far it is.
    pub text: String,
    /// How far it is, from 0 to 1.
    pub fraction: Option<f64>,
}

/// A first mistake.
#[derive(Debug, Serialize)]
pub struct Mistake {
    /// The ply.
    pub ply: usize,
    /// The move with its number.
    pub played: String,
    /// Labels that are wrong there.
    pub wrong: u8,
}

/// A row of the table of auxiliary labels.
#[derive(Debug, Serialize)]
pub struct LabelRow {
    /// The label, 64..75.
    pub label: usize,
    /// Its name.
    pub title: String,
    /// What it is.
    pub truth: String,
    /// What the model says.
    pub model: String,
    /// How sure it is.
    pub percent: String,
    /// Whether it is wrong.
    pub wrong: bool,
}

/// The board and what belongs to it.
#[derive(Debug, Serialize)]
pub struct ExploreView<'a> {
    /// The ply shown.
    pub ply: usize,
    /// Plies in the game.
    pub plies: usize,
    /// `12. Nf3`, or `start`.
    pub played: String,
    /// What the slider says.
    pub spoken: String,
    /// Whether Black is at the bottom.
    pub flipped: bool,
    /// What the board shows.
    pub view: View,
    /// `white` or `black`.
    pub turn: &'static str,
    /// Whether the side to move is in check.
    pub check: bool,
    /// The squares of the last move.
    pub last_move: Option<[String; 2]>,
    /// The true position as FEN.
    pub fen: String,
    /// Legal moves: each source with its targets.
    pub destinations: Vec<(String, Vec<String>)>,
    /// The squares in words, a8 to h1: name, truth, and where it differs what the main model says.
    pub square_words: Vec<String>,
    /// Classes of the 64 true squares, by FEN letter.
    pub squares: String,
    /// The main board's model.
    pub main: SeatView,
    /// The model beside it.
    pub second: Option<SeatView>,
    /// Whose mistakes the mistake buttons visit.
    pub mistakes_of: Option<String>,
    /// The inspected label.
    pub inspected: Option<Inspected>,
    /// What stands under the input box.
    pub note: &'a Note,
    /// Where the text cannot be read.
    pub trouble: Option<&'a Trouble>,
    /// The promotion that is asked for: the side, and the squares.
    pub promotion: Option<[String; 3]>,
    /// The policies of random play.
    pub policies: Vec<(String, String)>,
    /// The one used last.
    pub policy: Policy,
    /// Whether the worked example is on screen untouched.
    pub guided: bool,
    /// What there is to see, in a sentence or two.
    pub lede: String,
}

/// The label under the pointer.
#[derive(Debug, Serialize)]
pub struct Inspected {
    /// The label.
    pub label: usize,
    /// Its name.
    pub title: String,
    /// What it is.
    pub truth: String,
}
