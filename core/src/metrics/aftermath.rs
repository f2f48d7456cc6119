//! What happens to a tracker at the moves that a policy seeks out, and how long its errors last (rule-stratified play).
//!
//! For each event, the state at its step and some steps later: exact or not. For each label group, the errors: an
//! error begins at a step where some label of the group is wrong that step before was all right, and lasts until all are
//! right again. Games that end meanwhile censor it, so half-lives come from the Kaplan-Meier estimate.

use shakmaty::{Chess, Position};

use super::record::compare;
use crate::{
    chess::{Policy, Trajectory, label::LabelGroup},
    tracker::Prediction,
};

/// Steps behind an event at which states are looked at.
pub const LAGS: [usize; 7] = [0, 1, 2, 4, 8, 16, 32];

const GROUPS: usize = LabelGroup::ALL.len();

/// Counts over a set of games. Merging them is exact.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Aftermath {
    /// Events.
    pub events: u64,
    /// Games with an event.
    pub games: u64,
    /// For each of [`LAGS`]: events with so many steps behind them, and those whose state there is exact.
    pub lags: [LagCounts; LAGS.len()],
    /// Errors by label group, in the order of [`LabelGroup::ALL`].
    pub errors: [Errors; GROUPS],
}

/// States at one distance from events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LagCounts {
    /// States.
    pub steps: u64,
    /// Those with all 75 labels right.
    pub exact_steps: u64,
}

/// Errors of one label group by how long they last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Errors {
    /// Errors that ended after this many steps; as long as the longest needs.
    pub ended: Vec<u64>,
    /// Errors that still stood when their game ended, after this many steps.
    pub censored: Vec<u64>,
}

impl Errors {
    /// Errors made.
    pub fn made(&self) -> u64 {
        self.corrected() + self.censored.iter().sum::<u64>()
    }

    /// Errors that ended.
    pub fn corrected(&self) -> u64 {
        self.ended.iter().sum()
    }

    /// The smallest number of steps after which half of the errors are over, if half of them ever are.
    pub fn half_life_steps(&self) -> Option<u64> {
        let mut at_risk = self.made();
        let mut standing = 1.0;
        for steps in 0..self.ended.len().max(self.censored.len()) {
            let of = |counts: &[u64]| counts.get(steps).copied().unwrap_or(0);
            if of(&self.ended) > 0 {
                standing *= 1.0 - of(&self.ended) as f64 / at_risk as f64;
                // Rounding must not hide that exactly half are over.
                if standing <= 0.5 + 1e-12 {
                    return Some(steps as u64);
                }
            }
            at_risk -= of(&self.ended) + of(&self.censored);
        }
        None
    }

    fn add(&mut self, steps: usize, ended: bool) {
        let counts = if ended { &mut self.ended } else { &mut self.censored };
        counts.resize(counts.len().max(steps + 1), 0);
        counts[steps] += 1;
    }
}

impl Aftermath {
    /// Counts one more game of a policy's play.
    pub fn add(&mut self, policy: Policy, game: &Trajectory, prediction: &Prediction) {
        let mut exact = Vec::with_capacity(game.steps());
        let mut since: [Option<usize>; GROUPS] = [None; GROUPS];
        compare(game, prediction, |step, right| {
            exact.push(!right.contains(&false));
            for (group, (since, errors)) in
                LabelGroup::ALL.into_iter().zip(since.iter_mut().zip(&mut self.errors))
            {
                let wrong = right[group.labels()].contains(&false);
                match *since {
                    None if wrong => *since = Some(step),
                    Some(start) if !wrong => {
                        errors.add(step - start, true);
                        *since = None;
                    }
                    _ => {}
                }
            }
        });
        for (since, errors) in since.into_iter().zip(&mut self.errors) {
            if let Some(start) = since {
                errors.add(game.steps() - start, false);
            }
        }
        let events = event_steps(policy, game);
        self.games += u64::from(!events.is_empty());
        self.events += events.len() as u64;
        for step in events {
            for (counts, lag) in self.lags.iter_mut().zip(LAGS) {
                if let Some(&exact) = exact.get(step + lag) {
                    counts.steps += 1;
                    counts.exact_steps += u64::from(exact);
                }
            }
        }
    }
}

/// The steps behind the moves that the policy is about.
fn event_steps(policy: Policy, game: &Trajectory) -> Vec<usize> {
    let mut position = Chess::default();
    let mut steps = Vec::new();
    for (step, token) in game.tokens().iter().enumerate().skip(1) {
        let played = token.to_uci().and_then(|uci| uci.to_move(&position).ok());
        // Only legal games are graded; what is no move ends the search.
        let Some(played) = played else { break };
        if policy.is_event(&position, played) {
            steps.push(step);
        }
        position.play_unchecked(played);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::{State, parse::parse_games};

    /// A game, and a prediction that is wrong in these labels at these steps.
    fn graded(moves: &str, wrong: &[(usize, usize)]) -> (Trajectory, Prediction) {
        let game = Trajectory::replay(&parse_games(moves).unwrap()[0].moves);
        let mut labels: Vec<_> = game.states().iter().map(|state| *state.labels()).collect();
        for &(step, label) in wrong {
            labels[step][label] = u8::from(labels[step][label] == 0);
        }
        let states = labels.into_iter().map(|labels| State::new(labels).unwrap()).collect();
        (game, Prediction { states, loss_sum: None, non_finite_steps: Vec::new() })
    }

    const CASTLES: &str = "1. e4 e5 2. Nf3 Nc6 3. Bc4 Bc5 4. O-O Nf6 5. d3 O-O 6. h3";

    #[test]
    fn states_are_looked_at_behind_each_event() {
        // White castles at ply 7, Black at ply 10 of 11.
        let (game, prediction) = graded(CASTLES, &[(7, 61), (8, 61), (10, 5)]);
        let mut found = Aftermath::default();
        found.add(Policy::Castling, &game, &prediction);
        assert_eq!((found.events, found.games), (2, 1));
        let lags = found.lags.map(|lag| (lag.steps, lag.exact_steps));
        assert_eq!(lags, [(2, 0), (2, 1), (1, 1), (1, 1), (0, 0), (0, 0), (0, 0)]);
        let mut none = Aftermath::default();
        none.add(Policy::Promotion, &game, &prediction);
        assert_eq!((none.events, none.games, none.lags[0].steps), (0, 0, 0));
        assert_eq!(none.errors, found.errors);
    }

    #[test]
    fn errors_last_until_their_group_is_right_again() {
        // Pieces wrong for steps 2 to 4 (in changing labels), and from 10 to the end; the side to move at step 5.
        let wrong = [(2, 0), (3, 0), (3, 1), (4, 1), (5, 64), (10, 7), (11, 7)];
        let (game, prediction) = graded(CASTLES, &wrong);
        let mut found = Aftermath::default();
        found.add(Policy::Castling, &game, &prediction);
        let pieces = &found.errors[0];
        assert_eq!((&pieces.ended[..], &pieces.censored[..]), (&[0, 0, 0, 1][..], &[0, 0, 1][..]));
        assert_eq!((pieces.made(), pieces.corrected()), (2, 1));
        assert_eq!(found.errors[1].ended, [0, 1]);
        assert_eq!(found.errors[1].half_life_steps(), Some(1));
        assert_eq!(found.errors[2], Errors::default());
        assert_eq!(found.errors[2].half_life_steps(), None);
    }

    #[test]
    fn half_lives_allow_for_games_that_end() {
        let errors = |ended: &[u64], censored: &[u64]| Errors {
            ended: ended.to_vec(),
            censored: censored.to_vec(),
        };
        assert_eq!(errors(&[0, 2, 2], &[]).half_life_steps(), Some(1));
        assert_eq!(errors(&[0, 1, 2], &[]).half_life_steps(), Some(2));
        assert_eq!(errors(&[0, 1], &[0, 9]).half_life_steps(), None);
        // Nine of ten games end at once; of the one that is left, the error ends after three steps.
        assert_eq!(errors(&[0, 0, 0, 1], &[0, 9]).half_life_steps(), Some(3));
        assert_eq!(errors(&[], &[5]).half_life_steps(), None);
    }
}
