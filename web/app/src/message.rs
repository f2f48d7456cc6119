//! What the scripts tell the session, and what it tells them to do.

use cwm_core::chess::Policy;
use serde::{Deserialize, Serialize};

use crate::link::{Tab, View};

/// A worker that runs an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Answers for the main board.
    Main,
    /// Answers for the board beside it.
    Second,
    /// Grades.
    Grade,
}

impl Lane {
    /// Every lane.
    pub const ALL: [Lane; 3] = [Lane::Main, Lane::Second, Lane::Grade];
}

/// A checkpoint that ships with the page.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Shipped {
    /// Its name, the folder's.
    pub name: String,
    /// Length of its weights file.
    pub bytes: u64,
}

/// A file that was dropped or picked. The scripts keep the file itself under its key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FileHead {
    /// The scripts' name for it.
    pub key: String,
    /// The file's own name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Its first sixteen bytes or fewer.
    pub head: Vec<u8>,
    /// Its text, if it is short and may be text.
    pub text: Option<String>,
}

/// Something happened.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Command {
    /// The page is up.
    Start {
        /// The part of the URL behind `#`.
        hash: String,
        /// Checkpoints that the page ships, the default one first.
        shipped: Vec<Shipped>,
        /// A random number for the first seed.
        entropy: u32,
    },
    /// Back, Forward, or another link.
    Hash {
        /// The part of the URL behind `#`.
        hash: String,
    },
    /// Another tab.
    Tab {
        /// Which.
        tab: Tab,
    },
    /// A key outside of inputs, without modifiers but Shift.
    Key {
        /// `KeyboardEvent.key`.
        key: String,
    },
    /// A step button, or something else that goes to a ply.
    Go {
        /// Where to.
        to: Target,
    },
    /// A move on the board.
    Move {
        /// Source square.
        from: String,
        /// Target square.
        to: String,
    },
    /// The choice of a promotion: `q`, `r`, `b`, `n`; nothing cancels it.
    Promote {
        /// The piece.
        piece: Option<char>,
    },
    /// The text in the input box as it is being written.
    Typed {
        /// All of it.
        text: String,
    },
    /// The text in the input box is to be played or opened.
    Enter {
        /// All of it.
        text: String,
    },
    /// The legal part of a text with an error is to be opened.
    EnterLegal,
    /// A game of the picker.
    Pick {
        /// Its place, from 0.
        game: usize,
    },
    /// A random game.
    Random {
        /// The seed, in decimal; none takes a new one.
        seed: Option<String>,
        /// What the moves are picked from.
        policy: Policy,
    },
    /// A game of the gallery.
    Gallery {
        /// Its place, from 0.
        item: usize,
    },
    /// The other side at the bottom.
    Flip,
    /// What the board shows.
    View {
        /// Which.
        view: View,
    },
    /// A square or label under the pointer or the focus; nothing when it is left.
    Inspect {
        /// The label, 0..75.
        label: Option<usize>,
    },
    /// Copies something.
    Copy {
        /// What.
        what: Copied,
    },
    /// Another model on the main board or the one beside it; nothing removes the second.
    Model {
        /// Which board.
        lane: Lane,
        /// The name of a shipped checkpoint or a baseline.
        name: Option<String>,
    },
    /// Opens a dialog, or closes it.
    Dialog {
        /// Which.
        dialog: Option<Dialog>,
    },
    /// Files that were dropped or picked.
    Files {
        /// What is known of them.
        files: Vec<FileHead>,
    },
    /// The grading view.
    Grade(crate::grade::GradeCommand),
    /// A worker died.
    Crashed {
        /// Which.
        lane: Lane,
        /// What the browser says.
        message: String,
    },
    /// A worker is to be started anew.
    Restart {
        /// Which.
        lane: Lane,
    },
}

/// A place in the game.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// The start.
    First,
    /// One ply back.
    Previous,
    /// One ply on.
    Next,
    /// The end.
    Last,
    /// The first mistake.
    FirstMistake,
    /// The next mistake.
    NextMistake,
    /// The mistake before.
    PreviousMistake,
    /// A ply.
    Ply(usize),
}

/// What can be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Copied {
    /// The position.
    Fen,
    /// The game.
    Pgn,
    /// The moves.
    Uci,
    /// A link to what is on screen.
    Link,
}

/// A dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialog {
    /// The keys.
    Help,
    /// What a pawn becomes.
    Promotion,
    /// The games of a text.
    Games,
    /// The gallery.
    Gallery,
}

/// How much a message matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Good to know.
    Note,
    /// Something did not work.
    Error,
}

/// What the scripts have to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Start a worker, ending the one that there is.
    StartEngine {
        /// Which.
        lane: Lane,
    },
    /// Send a request to a worker.
    Post {
        /// Which.
        lane: Lane,
        /// The request, as JSON.
        text: String,
        /// Keys of the files that go with it.
        files: Vec<String>,
    },
    /// Say something in the polite live region.
    Announce {
        /// What.
        text: String,
    },
    /// Show a message.
    Toast {
        /// How much it matters.
        level: Level,
        /// What happened.
        text: String,
        /// What to do next.
        hint: String,
    },
    /// Copy a text; then say so.
    Copy {
        /// The text; for a link the part behind `#`.
        text: String,
        /// Whether it is a link's part behind `#`.
        link: bool,
        /// What to say.
        done: String,
    },
    /// Write the URL.
    History {
        /// The part behind `#`.
        hash: String,
        /// Whether Back returns to what was there before.
        push: bool,
    },
    /// Move the focus to the input box.
    FocusInput,
    /// Empty the input box.
    ClearInput,
    /// Show a chart.
    Chart {
        /// Whether it is a report's first: it takes the place of the charts of others.
        first: bool,
        /// The chart.
        chart: Box<crate::grade::ChartView>,
    },
    /// Carry out a command, but let other work come first.
    Later {
        /// The command, as JSON.
        command: &'static str,
    },
    /// Save a file.
    Save {
        /// Its name.
        name: String,
        /// Its type.
        mime: String,
        /// Its content.
        text: String,
    },
}
