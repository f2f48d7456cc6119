//! The games that are trained on and graded.

use std::fs;

use cwm_core::{
    chess::{EnPassant, MoveToken, Trajectory, random::RandomPlay, replay::Replayer},
    data::batch::Batch,
};

/// Games in a batch, unless a bench is told otherwise.
pub const BATCH: usize = 128;

/// Plies of human games at every twentieth of their distribution.
const HUMAN_PLIES: [usize; 21] =
    [20, 35, 42, 48, 53, 57, 61, 65, 68, 72, 76, 80, 84, 88, 93, 98, 104, 110, 118, 130, 247];

/// The games of a batch, as moves without START.
pub struct Games(Vec<Vec<MoveToken>>);

impl Games {
    /// So many games of the file named by `CWM_BENCH_GAMES`, else of random play.
    pub fn open(count: usize) -> Self {
        match std::env::var_os("CWM_BENCH_GAMES") {
            None => Self::random(count),
            Some(path) => {
                let text = fs::read_to_string(&path)
                    .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
                let games: Vec<_> = text.lines().take(count).map(parse).collect();
                assert!(games.len() == count, "{} holds fewer than {count} games", path.display());
                Games(games)
            }
        }
    }

    fn random(count: usize) -> Self {
        let mut lengths = human_lengths(count);
        let mut games = Vec::with_capacity(count);
        for mut game in RandomPlay::new(0, 10) {
            // The longest length still wanted that the game has.
            let fitting = lengths.iter().rposition(|&plies| plies <= game.moves.len());
            let Some(place) = fitting else { continue };
            game.moves.truncate(lengths.remove(place));
            games.push(game.moves);
            if lengths.is_empty() {
                break;
            }
        }
        Games(games)
    }

    /// The games as a batch.
    pub fn batch(&self) -> Batch {
        let games: Vec<&[MoveToken]> = self.0.iter().map(Vec::as_slice).collect();
        Batch::new(&games, EnPassant::Always)
    }

    /// The games with their states.
    pub fn trajectories(&self) -> Vec<Trajectory> {
        self.0.iter().map(|moves| Trajectory::replay(moves)).collect()
    }

    /// States in all.
    pub fn valid_steps(&self) -> usize {
        self.0.iter().map(|moves| moves.len() + 1).sum()
    }
}

/// Lengths of a batch, ascending, spread evenly over the distribution of human games.
fn human_lengths(count: usize) -> Vec<usize> {
    let spans = HUMAN_PLIES.len() - 1;
    let length = |game: usize| {
        let place = (2 * game + 1) * spans;
        let (span, part) = (place / (2 * count), place % (2 * count));
        let (low, high) = (HUMAN_PLIES[span], HUMAN_PLIES[span + 1]);
        low + (high - low) * part / (2 * count)
    };
    (0..count).map(length).collect()
}

fn parse(line: &str) -> Vec<MoveToken> {
    let mut replayer = Replayer::default();
    for word in line.rsplit('\t').next().unwrap_or_default().split_whitespace() {
        replayer.push_uci(word.as_bytes()).unwrap_or_else(|fault| panic!("{word}: {fault:?}"));
    }
    replayer.moves().to_vec()
}
