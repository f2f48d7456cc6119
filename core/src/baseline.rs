//! Trackers that need no network: what a score means is seen beside them.
//!
//! | name | it knows |
//! |---|---|
//! | `start-board` | the start position, whatever is played |
//! | `naive-mover` | a piece goes from its source to its target square (promoted if the token says so), sides alternate, the clocks count; no castling rook moves, no en passant pawn falls, castling rights stay, the en passant label stays empty |
//! | `naive-mover+rights` | also that a right falls when its king's or rook's home square is touched |
//! | `naive-mover+rights+ep` | also that a double push sets the en passant label |
//! | `oracle` | the rules of chess |
//!
//! The naive movers judge what is a pawn move or a capture on the board that they believe in. None gives a loss.

use crate::{
    chess::{
        EnPassant, MoveToken, State, Trajectory,
        label::{CASTLING, EP_FILE, EP_RANK, FULLMOVE, HALFMOVE, SIDE},
    },
    tracker::{Prediction, TrackError, Tracker},
};

/// A tracker without a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// Always the start position.
    StartBoard,
    /// Moves pieces and counts.
    NaiveMover,
    /// Moves pieces, counts, and keeps castling rights.
    NaiveMoverRights,
    /// Moves pieces, counts, keeps castling rights and the en passant label.
    NaiveMoverRightsEp,
    /// Knows the rules: right at every step, for games labelled with this en passant mode.
    Oracle(EnPassant),
}

impl Baseline {
    /// Every baseline, from the one that knows least; the oracle for the benchmark's own labels.
    pub const ALL: [Baseline; 5] = [
        Baseline::StartBoard,
        Baseline::NaiveMover,
        Baseline::NaiveMoverRights,
        Baseline::NaiveMoverRightsEp,
        Baseline::Oracle(EnPassant::Always),
    ];

    /// The name in tables and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Baseline::StartBoard => "start-board",
            Baseline::NaiveMover => "naive-mover",
            Baseline::NaiveMoverRights => "naive-mover+rights",
            Baseline::NaiveMoverRightsEp => "naive-mover+rights+ep",
            Baseline::Oracle(_) => "oracle",
        }
    }

    /// The baseline of that name.
    pub fn from_name(name: &str) -> Option<Baseline> {
        Self::ALL.into_iter().find(|baseline| baseline.name() == name)
    }

    /// The baseline as it answers for labels of this en passant mode: the oracle follows it, the others know one.
    #[must_use]
    pub const fn for_labels(self, en_passant: EnPassant) -> Self {
        match self {
            Baseline::Oracle(_) => Baseline::Oracle(en_passant),
            other => other,
        }
    }

    /// The state that the baseline believes in after `token`, if it believed in `state` before.
    fn after(self, state: &State, token: MoveToken) -> State {
        match self {
            Baseline::StartBoard => *state,
            Baseline::NaiveMover => naive_after(state, token, false, false),
            Baseline::NaiveMoverRights => naive_after(state, token, true, false),
            Baseline::NaiveMoverRightsEp => naive_after(state, token, true, true),
            Baseline::Oracle(_) => state.after(token),
        }
    }
}

/// What a naive mover believes after `token`.
fn naive_after(state: &State, token: MoveToken, rights: bool, en_passant: bool) -> State {
    let Some((from, to, promotion)) = token.parts() else {
        return *state;
    };
    let mut labels = *state.labels();
    let (source, target) = (from as usize ^ 56, to as usize ^ 56);
    let black = labels[SIDE] != 0;
    let moved = labels[source];
    let is_pawn = moved == 1 || moved == 7;
    let is_capture = labels[target] != 0;
    labels[source] = 0;
    labels[target] = match promotion {
        None => moved,
        Some(role) => role as u8 + if black { 6 } else { 0 },
    };
    labels[SIDE] = u8::from(!black);
    if rights {
        for (i, homes) in RIGHT_HOMES.iter().enumerate() {
            if homes.contains(&source) || homes.contains(&target) {
                labels[CASTLING + i] = 0;
            }
        }
    }
    if en_passant {
        let double_push = is_pawn && source.abs_diff(target) == 16;
        labels[EP_FILE] = if double_push { (source % 8) as u8 + 1 } else { 0 };
        labels[EP_RANK] = if double_push { 1 + u8::from(black) } else { 0 };
    }
    let clock = u16::from_be_bytes([labels[HALFMOVE], labels[HALFMOVE + 1]]);
    let clock = if is_pawn || is_capture { 0 } else { clock.saturating_add(1) };
    labels[HALFMOVE..FULLMOVE].copy_from_slice(&clock.to_be_bytes());
    if black {
        let number = u16::from_be_bytes([labels[FULLMOVE], labels[FULLMOVE + 1]]);
        labels[FULLMOVE..].copy_from_slice(&number.saturating_add(1).to_be_bytes());
    }
    // Every class written above exists, so this never falls back.
    State::new(labels).unwrap_or(*state)
}

/// King's and rook's home squares (as labels) of the rights K, Q, k, q.
const RIGHT_HOMES: [[usize; 2]; 4] = [[60, 63], [60, 56], [4, 7], [4, 0]];

/// What a baseline remembers: the state that it believes in, one a game.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Belief(Vec<State>);

impl Tracker for Baseline {
    type Memory = Belief;

    fn name(&self) -> &str {
        (*self).name()
    }

    fn start(&self, branches: usize) -> Belief {
        Belief(vec![State::start(); branches])
    }

    async fn push(
        &self,
        memory: &mut Belief,
        tokens: &[MoveToken],
    ) -> Result<Vec<State>, TrackError> {
        for (state, &token) in memory.0.iter_mut().zip(tokens) {
            *state = self.after(state, token);
        }
        Ok(match self {
            Baseline::Oracle(mode) => memory.0.iter().map(|s| s.with_en_passant(*mode)).collect(),
            _ => memory.0.clone(),
        })
    }

    async fn grade(&self, games: &[&Trajectory]) -> Result<Vec<Prediction>, TrackError> {
        let mut predictions = Vec::with_capacity(games.len());
        for game in games {
            let mut state = State::start();
            let states = game.tokens().iter().map(|&token| {
                state = self.after(&state, token);
                match self {
                    Baseline::Oracle(mode) => state.with_en_passant(*mode),
                    _ => state,
                }
            });
            predictions.push(Prediction {
                states: states.collect(),
                loss_sum: None,
                non_finite_steps: Vec::new(),
            });
        }
        Ok(predictions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(uci: &str) -> Vec<MoveToken> {
        uci.split(' ')
            .map(|m| {
                let m: shakmaty::uci::UciMove = m.parse().unwrap();
                let shakmaty::uci::UciMove::Normal { from, to, promotion } = m else { panic!() };
                MoveToken::from_parts(from, to, promotion)
            })
            .collect()
    }

    fn ready<T>(future: impl Future<Output = T>) -> T {
        crate::tracker::ready(future).expect("a baseline never waits")
    }

    /// First mistake of each baseline, in the order of [`Baseline::ALL`].
    fn first_mistakes(uci: &str) -> Vec<Option<usize>> {
        let game = Trajectory::replay(&tokens(uci));
        let first = |baseline: &Baseline| {
            let graded = ready(baseline.grade(&[&game])).unwrap();
            (0..game.steps()).find(|&step| graded[0].states[step] != game.states()[step])
        };
        Baseline::ALL.iter().map(first).collect()
    }

    #[test]
    fn each_baseline_fails_where_its_knowledge_ends() {
        // A quiet knight tour, then a double push, then the king loses its rights.
        assert_eq!(first_mistakes("g1f3 g8f6 f3g1 f6g8"), [Some(1), None, None, None, None]);
        let push = "g1f3 g8f6 e2e4 e7e6 e1e2";
        assert_eq!(first_mistakes(push), [Some(1), Some(3), Some(3), None, None]);
        let king = "e2e3 e7e6 e1e2";
        assert_eq!(first_mistakes(king), [Some(1), Some(3), None, None, None]);
        let castling = "g2g3 g7g6 f1g2 f8g7 g1f3 g8f6 e1g1";
        assert_eq!(first_mistakes(castling), [Some(1), Some(7), Some(7), Some(7), None]);
        let en_passant = "e2e3 a7a6 e3e4 a6a5 e4e5 d7d5 e5d6";
        assert_eq!(first_mistakes(en_passant), [Some(1), Some(6), Some(6), Some(7), None]);
    }

    #[test]
    fn pushing_forks_and_grading_agree() {
        let game = Trajectory::replay(&tokens("e2e4 d7d5 e4d5 d8d5 b1c3 d5e5"));
        for baseline in Baseline::ALL {
            let graded = ready(baseline.grade(&[&game])).unwrap().remove(0);
            let mut memory = baseline.start(2);
            for (step, &token) in game.tokens().iter().enumerate() {
                let mut fork = memory.clone();
                let forked = ready(baseline.push(&mut fork, &[token; 2])).unwrap();
                let pushed = ready(baseline.push(&mut memory, &[token; 2])).unwrap();
                assert_eq!(pushed, [graded.states[step]; 2], "{}, step {step}", baseline.name());
                assert_eq!(pushed, forked);
            }
        }
    }

    #[test]
    fn names_are_unique_and_found() {
        for baseline in Baseline::ALL {
            assert_eq!(Baseline::from_name(baseline.name()), Some(baseline));
        }
        assert_eq!(Baseline::from_name("naive"), None);
    }
}
