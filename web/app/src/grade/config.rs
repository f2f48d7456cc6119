//! What is to be graded: the choices of the grading view, and the commands that change them.

use cwm_core::chess::Policy;
use serde::{Deserialize, Serialize};

/// A change of the grading view.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "grade", rename_all = "snake_case")]
pub enum GradeCommand {
    /// Another shipped checkpoint.
    Subject {
        /// Its name; nothing grades the baselines alone.
        name: Option<String>,
    },
    /// Other games.
    Set {
        /// Which.
        set: SetKind,
    },
    /// Another seed.
    Seed {
        /// In decimal.
        seed: String,
    },
    /// Another policy for rule-stratified play.
    Policy {
        /// Which.
        policy: Policy,
    },
    /// Another number of games.
    Size {
        /// Which.
        size: Size,
    },
    /// The number for [`Size::Custom`].
    Custom {
        /// In decimal.
        games: String,
    },
    /// Whether the baselines are graded as well.
    Baselines {
        /// Whether.
        on: bool,
    },
    /// Whether all rows of the paper are shown.
    PaperRows {
        /// Whether.
        all: bool,
    },
    /// Start.
    Run,
    /// Stop, and keep what is graded.
    Cancel,
    /// Look at one of the worst games on the board.
    Look {
        /// Its place in the list.
        worst: usize,
    },
    /// Look at games on the board with this checkpoint.
    Explore,
    /// Draw the next chart.
    Draw,
    /// Save something.
    Export {
        /// What.
        what: Export,
    },
}

/// What can be saved.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Export {
    /// The report.
    Json,
    /// Prefix bins.
    Csv,
    /// The summary in the reference's columns.
    Tsv,
    /// A chart, by name.
    Svg(String),
}

/// A kind of games.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetKind {
    /// The shipped sample of human games.
    Classics,
    /// Uniformly random legal play.
    #[default]
    Random,
    /// Play that seeks out a rule.
    Stratum,
    /// The user's PGN.
    Pgn,
}

/// How many games.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// A first look: not comparable.
    #[default]
    Quick,
    /// 1,000 games.
    Standard,
    /// 10,000 games, or all of a PGN.
    Full,
    /// Any number.
    Custom,
}

/// Games of a quick look.
pub(super) const QUICK_GAMES: u64 = 100;
/// Games of the standard size.
pub(super) const STANDARD_GAMES: u64 = 1000;
/// Games of the full size.
pub(super) const FULL_GAMES: u64 = 10_000;
/// Full moves that a game has at least, as on the command line.
pub(super) const MIN_FULLMOVES: u32 = 10;
/// Worst games that are listed.
pub(super) const WORST: u32 = 12;
/// The most games that a browser is asked to play.
pub(super) const GAMES_MAX: u64 = 1_000_000;

/// What is to be graded.
#[derive(Debug, Clone)]
pub struct Config {
    /// Whether the checkpoint is graded; else the baselines alone.
    pub model: bool,
    /// The games.
    pub set: SetKind,
    /// The seed, as written.
    pub seed: String,
    /// The policy of [`SetKind::Stratum`].
    pub policy: Policy,
    /// How many games.
    pub size: Size,
    /// The number of [`Size::Custom`], as written.
    pub custom: String,
    /// Whether the baselines are graded.
    pub baselines: bool,
    /// The user's PGN: key, name, length.
    pub pgn: Option<(String, String, u64)>,
    /// Whether all rows of the paper are shown.
    pub all_paper_rows: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            model: true,
            set: SetKind::default(),
            seed: "0".into(),
            policy: Policy::Castling,
            size: Size::default(),
            custom: "500".into(),
            baselines: true,
            pgn: None,
            all_paper_rows: false,
        }
    }
}
