//! The games that went worst, kept with their moves so that somebody can look at them.

use std::cmp::Ordering;

use super::record::GameRecord;
use crate::chess::{MoveToken, Trajectory};

/// A graded game with its moves.
#[derive(Debug, Clone, PartialEq)]
pub struct WorstGame {
    /// The game's place in its set, from 0.
    pub game: u64,
    /// Its grades.
    pub record: GameRecord,
    /// Labels wrong over all steps.
    pub labels_wrong: u64,
    /// Its moves, without START.
    pub moves: Vec<MoveToken>,
}

/// The worst of the games seen so far, the worst first.
///
/// Worse is a smaller share of exact states, then an earlier first mistake, then a larger share of wrong labels, then
/// an earlier place in the set: which games are kept does not depend on the order in which they are graded.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorstGames {
    games: Vec<WorstGame>,
}

impl WorstGames {
    /// Games that are kept.
    pub const KEPT: usize = 20;

    /// Considers a graded game; one without a mistake is never among the worst.
    pub fn consider(&mut self, game: u64, trajectory: &Trajectory, record: &GameRecord) {
        if record.is_exact() {
            return;
        }
        let labels = u64::from(record.steps) * crate::chess::label::LABELS as u64;
        let mut found = WorstGame {
            game,
            record: record.clone(),
            labels_wrong: labels - record.labels_right(),
            moves: Vec::new(),
        };
        let at = self.games.partition_point(|kept| worse(kept, &found).is_lt());
        if at < Self::KEPT {
            found.moves = trajectory.tokens().iter().skip(1).copied().collect();
            self.games.truncate(Self::KEPT - 1);
            self.games.insert(at, found);
        }
    }

    /// The games, the worst first.
    pub fn games(&self) -> &[WorstGame] {
        &self.games
    }
}

/// Which of two games went worse: [`Ordering::Less`] if the first did.
fn worse(a: &WorstGame, b: &WorstGame) -> Ordering {
    let share = |x: u64, of_x: u32, y: u64, of_y: u32| {
        (u128::from(x) * u128::from(of_y)).cmp(&(u128::from(y) * u128::from(of_x)))
    };
    let (ra, rb) = (&a.record, &b.record);
    share(ra.exact_steps.into(), ra.steps, rb.exact_steps.into(), rb.steps)
        .then(ra.first_mistake.cmp(&rb.first_mistake))
        .then(share(b.labels_wrong, rb.steps, a.labels_wrong, ra.steps))
        .then(a.game.cmp(&b.game))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{chess::State, metrics::Counts, tracker::Prediction};

    /// A game of `steps` steps that is wrong at these steps.
    fn graded(steps: usize, wrong: &[usize]) -> (Trajectory, GameRecord) {
        let mut tokens = vec![MoveToken::PAD; steps];
        tokens[0] = MoveToken::START;
        let game = Trajectory::from_aligned(tokens, vec![State::start(); steps]).unwrap();
        let prediction = Prediction {
            states: vec![State::start(); steps],
            loss_sum: None,
            non_finite_steps: wrong.to_vec(),
        };
        let record = Counts::default().add(&game, &prediction);
        (game, record)
    }

    #[test]
    fn the_worst_are_kept_whatever_the_order() {
        let games = [
            graded(10, &[]),
            graded(10, &[9]),
            graded(10, &[2]),
            graded(5, &[4]),
            graded(4, &[0, 1, 2, 3]),
            graded(9, &[2, 3, 4]),
            graded(10, &[2]),
        ];
        let order = |places: &[usize]| {
            let mut worst = WorstGames::default();
            for &place in places {
                worst.consider(place as u64, &games[place].0, &games[place].1);
            }
            worst.games().iter().map(|game| game.game).collect::<Vec<_>>()
        };
        assert_eq!(order(&[0, 1, 2, 3, 4, 5, 6]), [4, 5, 3, 2, 6, 1]);
        assert_eq!(order(&[6, 5, 4, 3, 2, 1, 0]), [4, 5, 3, 2, 6, 1]);
        let mut worst = WorstGames::default();
        for place in (0..100).rev() {
            worst.consider(place, &games[1].0, &games[1].1);
        }
        let kept: Vec<u64> = worst.games().iter().map(|game| game.game).collect();
        assert_eq!(kept, (0..WorstGames::KEPT as u64).collect::<Vec<_>>());
        assert_eq!((worst.games()[0].moves.len(), worst.games()[0].labels_wrong), (9, 75));
    }
}
