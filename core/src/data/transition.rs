//! Batches of single transitions, drawn from all games: what the transition machine is trained on.
//!
//! A batch is a pure function of the games, the seed and its number, so a resumed run draws what an uninterrupted one
//! would. Some kinds of move are rare in human play and are drawn more often than they occur; what kind a move is can be
//! read off its token and the labels that it changes, so telling them apart takes no knowledge of the rules.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::Games;
use crate::chess::{
    EnPassant, MoveToken, State,
    label::{CASTLING, EP_FILE, LABELS, PIECE_CLASSES, SIDE, SQUARES},
};

/// How steps are drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sampling {
    /// Share of a batch that is drawn from promotions to a queen alone.
    pub promotion: f64,
    /// The same for promotions to rook, bishop or knight.
    pub underpromotion: f64,
    /// For moves that change four squares or more: castling.
    pub castling: f64,
    /// For moves that change three squares: en passant captures.
    pub en_passant: f64,
    /// For promotions while some castling right is held: in human play the two hardly ever meet.
    pub promotion_with_rights: f64,
    /// For moves that look like en passant captures and are none: the same piece between the same squares as some such
    /// capture of the games, while the en passant label is set.
    pub near_en_passant: f64,
    /// For moves after which the side that did not move has fewer castling rights: rooks captured at home.
    pub opponent_rights: f64,
    /// For moves after which the side that moved has fewer rights, castling aside.
    pub own_rights: f64,
    /// Share of steps that are shown with colours swapped.
    pub color_swap: f64,
    /// Cells (K) of a step whose labels are learned from it: the two named ones, those that change, and random others,
    /// which weigh as much more as there are fewer of them.
    pub cells: usize,
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling {
            promotion: 1.0 / 16.0,
            underpromotion: 1.0 / 16.0,
            castling: 1.0 / 32.0,
            en_passant: 1.0 / 32.0,
            promotion_with_rights: 1.0 / 32.0,
            near_en_passant: 1.0 / 32.0,
            opponent_rights: 1.0 / 32.0,
            own_rights: 1.0 / 32.0,
            color_swap: 0.5,
            cells: 16,
        }
    }
}

/// A sampling that cannot be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{key}` is {value}, expected {expected}")]
pub struct SamplingError {
    /// The setting.
    pub key: &'static str,
    /// Its value.
    pub value: f64,
    /// What would do.
    pub expected: &'static str,
}

/// Kinds of move that are drawn more often than they occur.
const KINDS: usize = 8;

impl Sampling {
    /// Checks every number.
    ///
    /// # Errors
    /// [`SamplingError`] naming the first key at fault.
    pub fn validate(&self) -> Result<(), SamplingError> {
        let keys = [
            "sampling.promotion",
            "sampling.underpromotion",
            "sampling.castling",
            "sampling.en_passant",
            "sampling.promotion_with_rights",
            "sampling.near_en_passant",
            "sampling.opponent_rights",
            "sampling.own_rights",
        ];
        for (key, value) in
            keys.into_iter().zip(self.shares()).chain([("sampling.color_swap", self.color_swap)])
        {
            if !(0.0..=1.0).contains(&value) {
                return Err(SamplingError { key, value, expected: "from 0 to 1" });
            }
        }
        let sum: f64 = self.shares().iter().sum();
        if sum > 1.0 {
            let (key, expected) = (keys[0], "shares that add up to 1 at most");
            return Err(SamplingError { key, value: sum, expected });
        }
        if !(4..=SQUARES).contains(&self.cells) {
            let (key, value) = ("sampling.cells", self.cells as f64);
            return Err(SamplingError { key, value, expected: "from 4 to 64" });
        }
        Ok(())
    }

    fn shares(&self) -> [f64; KINDS] {
        [
            self.promotion,
            self.underpromotion,
            self.castling,
            self.en_passant,
            self.promotion_with_rights,
            self.near_en_passant,
            self.opponent_rights,
            self.own_rights,
        ]
    }
}

/// Steps of many games, each on its own.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transitions {
    /// Move tokens `[N]`.
    pub tokens: Vec<u16>,
    /// Labels before each move `[N, 75]`; all 0 before START.
    pub before: Vec<u8>,
    /// Labels after it `[N, 75]`.
    pub after: Vec<u8>,
    /// Whether the step is shown with colours swapped `[N]`: then its fullmove number says nothing.
    pub swapped: Vec<bool>,
    /// Cells learned from each step (K).
    pub cells_per_step: usize,
    /// Those cells as labels `[N, K]`, ascending.
    pub cells: Vec<u8>,
    /// What each weighs `[N, K]`: the weights of a step add up to 64.
    pub weights: Vec<f32>,
}

impl Transitions {
    /// Steps (N).
    pub fn steps(&self) -> usize {
        self.tokens.len()
    }
}

/// Squares whose labels differ.
fn changed_squares(before: &State, after: &State) -> usize {
    let (old, new) = (before.labels(), after.labels());
    (0..SQUARES).filter(|&square| old[square] != new[square]).count()
}

/// Pieces and tokens of the moves that change three squares: en passant captures. Indexed by token and piece.
struct Geometries(Vec<bool>);

impl Geometries {
    fn of(games: &Games) -> Self {
        let mut found = Geometries(vec![false; MoveToken::GEOMETRIES * PIECE_CLASSES]);
        for game in 0..games.len() {
            let mut before = State::start();
            for &token in games.moves(game) {
                let after = before.after(token);
                if changed_squares(&before, &after) == 3
                    && let Some(place) = Self::place(token, &before)
                {
                    found.0[place] = true;
                }
                before = after;
            }
        }
        found
    }

    fn place(token: MoveToken, before: &State) -> Option<usize> {
        let (from, ..) = token.parts()?;
        let piece = before.labels()[from as usize ^ 56];
        Some(usize::from(token.id()) * PIECE_CLASSES + usize::from(piece))
    }

    fn hold(&self, token: MoveToken, before: &State) -> bool {
        Self::place(token, before).is_some_and(|place| self.0[place])
    }
}

/// The kinds of a move, of those that are drawn more often.
fn kinds_of(
    token: MoveToken,
    before: &State,
    after: &State,
    en_passant: &Geometries,
) -> [bool; KINDS] {
    let (old, new) = (before.labels(), after.labels());
    let promotion = token.id() % 5;
    let rights = old[CASTLING..EP_FILE].contains(&1);
    let lost = |side: usize| {
        let rights = CASTLING + 2 * side..CASTLING + 2 * side + 2;
        rights.into_iter().any(|right| old[right] > new[right])
    };
    let mover = usize::from(old[SIDE]);
    let changed = changed_squares(before, after);
    let plain = promotion == 0 && changed < 3;
    [
        promotion == 1,
        promotion > 1,
        promotion == 0 && changed > 3,
        promotion == 0 && changed == 3,
        promotion > 0 && rights,
        plain && old[EP_FILE] != 0 && en_passant.hold(token, before),
        plain && lost(1 - mover),
        plain && lost(mover),
    ]
}

/// Draws batches of transitions.
#[derive(Debug)]
pub struct TransitionSampler<'a> {
    games: &'a Games,
    en_passant: EnPassant,
    sampling: Sampling,
    seed: u64,
    /// Steps up to the end of each game.
    ends: Vec<u64>,
    /// Game and step of every move of each kind.
    kinds: [Vec<(u32, u32)>; KINDS],
}

impl<'a> TransitionSampler<'a> {
    /// Goes through all games twice to find the rare kinds.
    pub fn new(games: &'a Games, en_passant: EnPassant, sampling: &Sampling, seed: u64) -> Self {
        let mut ends = Vec::with_capacity(games.len());
        let mut kinds: [Vec<(u32, u32)>; KINDS] = Default::default();
        let geometries = Geometries::of(games);
        let mut steps = 0;
        for game in 0..games.len() {
            let mut before = State::start();
            for (ply, &token) in games.moves(game).iter().enumerate() {
                let after = before.after(token);
                let of = kinds_of(token, &before, &after, &geometries);
                for (kind, _) in kinds.iter_mut().zip(of).filter(|(_, is)| *is) {
                    kind.push((game as u32, ply as u32 + 1));
                }
                before = after;
            }
            steps += games.plies(game) as u64 + 1;
            ends.push(steps);
        }
        TransitionSampler { games, en_passant, sampling: sampling.clone(), seed, ends, kinds }
    }

    /// Steps of all games.
    pub fn total_steps(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// How many moves there are of each kind: promotions to a queen, underpromotions, castling, en passant captures,
    /// promotions while a right is held, near misses of en passant, losses of the opponent's and of own rights.
    pub fn kind_counts(&self) -> [usize; KINDS] {
        std::array::from_fn(|kind| self.kinds[kind].len())
    }

    /// Batch `number` of `steps` steps, and the games that it was drawn from, ascending.
    pub fn draw(&self, number: u64, steps: usize) -> (Transitions, Vec<u32>) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(number);
        let cells = self.sampling.cells;
        let mut batch = Transitions { cells_per_step: cells, ..Transitions::default() };
        batch.before.reserve(steps * LABELS);
        batch.after.reserve(steps * LABELS);
        let mut games = Vec::with_capacity(steps);
        if self.total_steps() == 0 {
            return (batch, games);
        }
        for _ in 0..steps {
            let (game, step) = self.place(&mut rng);
            let swap = rng.random_bool(self.sampling.color_swap);
            self.push(&mut batch, game, step, swap);
            pick_cells(&mut batch, &mut rng);
            games.push(game);
        }
        games.sort_unstable();
        games.dedup();
        (batch, games)
    }

    /// Game and step of the next draw; the share of a kind that no game holds is drawn from all steps.
    fn place(&self, rng: &mut impl Rng) -> (u32, u32) {
        let mut ticket: f64 = rng.random();
        for (share, moves) in self.sampling.shares().into_iter().zip(&self.kinds) {
            if ticket < share {
                if moves.is_empty() {
                    break;
                }
                return moves[rng.random_range(0..moves.len() as u32) as usize];
            }
            ticket -= share;
        }
        let step = rng.random_range(0..self.total_steps());
        let game = self.ends.partition_point(|&end| end <= step);
        let first = if game == 0 { 0 } else { self.ends[game - 1] };
        (game as u32, (step - first) as u32)
    }

    fn push(&self, batch: &mut Transitions, game: u32, step: u32, swap: bool) {
        let moves = self.games.moves(game as usize);
        if step == 0 {
            // Before START there is nothing yet, and no swap of it leads to the initial position.
            batch.tokens.push(MoveToken::START.id());
            batch.before.extend([0; LABELS]);
            batch.after.extend(State::start().labels());
            batch.swapped.push(false);
            return;
        }
        let step = step as usize;
        let before = moves[..step - 1].iter().fold(State::start(), |state, &m| state.after(m));
        let mut token = moves[step - 1];
        let label = |state: State| state.with_en_passant(self.en_passant);
        let (mut before, mut after) = (label(before), label(before.after(token)));
        if swap {
            token = token.color_swapped();
            (before, after) = (before.color_swapped(), after.color_swapped());
        }
        batch.tokens.push(token.id());
        batch.before.extend(before.labels());
        batch.after.extend(after.labels());
        batch.swapped.push(swap);
    }
}

/// Picks the cells of the last step.
fn pick_cells(batch: &mut Transitions, rng: &mut impl Rng) {
    let wanted = batch.cells_per_step;
    let first = batch.before.len() - LABELS;
    let (before, after) = (&batch.before[first..], &batch.after[first..]);
    let mut must: u64 = 0;
    for square in 0..SQUARES {
        must |= u64::from(before[square] != after[square]) << square;
    }
    let token = batch.tokens.last().copied().unwrap_or(MoveToken::PAD.id());
    if token < MoveToken::START.id() {
        let (from, to) = (token / 5 / 64, token / 5 % 64);
        must |= 1 << (from ^ 56) | 1 << (to ^ 56);
    }
    // A step that changes many cells shows a random part of them.
    if must.count_ones() as usize > wanted / 2 {
        must = 0;
    }
    let sure = must.count_ones() as usize;
    let mut chosen = must;
    let mut missing = wanted - sure;
    while missing > 0 {
        let bit = 1_u64 << rng.random_range(0..SQUARES as u32);
        if chosen & bit == 0 {
            chosen |= bit;
            missing -= 1;
        }
    }
    let weight = (SQUARES - sure) as f32 / (wanted - sure) as f32;
    for square in (0..SQUARES).filter(|square| chosen >> square & 1 == 1) {
        batch.cells.push(square as u8);
        batch.weights.push(if must >> square & 1 == 1 { 1.0 } else { weight });
    }
}

const _: () = assert!(EP_FILE == CASTLING + 4, "two rights a side");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{chess::random::RandomPlay, data::GameResult};

    fn games(count: u64) -> Games {
        let mut games = Games::new();
        for seed in 0..count {
            games.push("", &RandomPlay::new(seed, 0).play().unwrap().moves, GameResult::Unknown);
        }
        games
    }

    #[test]
    fn batches_are_true_transitions_and_depend_on_seed_and_number_alone() {
        let games = games(30);
        let sampler = TransitionSampler::new(&games, EnPassant::Always, &Sampling::default(), 7);
        let (batch, sources) = sampler.draw(3, 500);
        assert_eq!((batch.steps(), batch.swapped.len()), (500, 500));
        assert!(sources.windows(2).all(|w| w[0] < w[1]) && sources.len() > 20);
        assert_eq!(sampler.draw(3, 500).0, batch);
        assert_ne!(sampler.draw(4, 500).0, batch);
        let mut swapped = 0;
        for (i, &token) in batch.tokens.iter().enumerate() {
            let labels = |all: &[u8]| -> [u8; LABELS] {
                all[i * LABELS..(i + 1) * LABELS].try_into().unwrap()
            };
            let (before, after) = (labels(&batch.before), labels(&batch.after));
            let token = MoveToken::new(u32::from(token)).unwrap();
            if token == MoveToken::START {
                assert_eq!((before, after), ([0; LABELS], *State::start().labels()));
                continue;
            }
            let mut expected = *State::new(before).unwrap().after(token).labels();
            if batch.swapped[i] {
                swapped += 1;
                expected[73..].copy_from_slice(&after[73..]);
            }
            assert_eq!(after, expected);
        }
        assert!((200..300).contains(&swapped), "{swapped} swapped");
    }

    #[test]
    fn cells_hold_what_changes_and_weigh_64_in_all() {
        let games = games(5);
        let sampler = TransitionSampler::new(&games, EnPassant::Always, &Sampling::default(), 1);
        let (batch, _) = sampler.draw(0, 300);
        for i in 0..batch.steps() {
            let cells = &batch.cells[i * 16..(i + 1) * 16];
            assert!(cells.windows(2).all(|w| w[0] < w[1]));
            let weight: f32 = batch.weights[i * 16..(i + 1) * 16].iter().sum();
            assert!((weight - 64.0).abs() < 1e-4);
            let changes =
                |cell: usize| batch.before[i * LABELS + cell] != batch.after[i * LABELS + cell];
            let start = batch.tokens[i] == MoveToken::START.id();
            assert!(start || (0..64).all(|c| !changes(c) || cells.contains(&(c as u8))));
        }
    }

    #[test]
    fn rare_kinds_are_told_apart_and_drawn_more_often() {
        let token = |uci: &str| {
            let square = |s: &[u8]| u32::from(s[0] - b'a') + 8 * u32::from(s[1] - b'1');
            let bytes = uci.as_bytes();
            MoveToken::new((square(bytes) * 64 + square(&bytes[2..])) * 5).unwrap()
        };
        let moves: Vec<MoveToken> =
            "e2e4 a7a6 e4e5 d7d5 e5d6 g8f6 g1f3 g7g6 f1e2 f8g7 e1g1 a8a7 f3d4 f6e4 d4c6 e4f2 c6d8 f2h1 g1h1 g7b2 a2a3 b2a1"
                .split(' ')
                .map(token)
                .collect();
        let mut games = Games::new();
        games.push("", &moves, GameResult::Unknown);
        let sampler = TransitionSampler::new(&games, EnPassant::Always, &Sampling::default(), 1);
        // White castled before the bishop came to a1, so its capture takes no right; the rook on a8 moved.
        assert_eq!(sampler.kind_counts(), [0, 0, 1, 1, 0, 0, 0, 1]);
        let castles = token("e1g1").id();
        let swapped = token("e1g1").color_swapped().id();
        let sampling = Sampling { castling: 0.5, ..Sampling::default() };
        let sampler = TransitionSampler::new(&games, EnPassant::Always, &sampling, 1);
        let (batch, _) = sampler.draw(0, 1000);
        let drawn = batch.tokens.iter().filter(|&&t| t == castles || t == swapped).count();
        // Half of them; plain draws add one in 23 of the rest.
        assert!((460..580).contains(&drawn), "{drawn}");
    }

    #[test]
    fn near_misses_and_promotions_with_rights_are_found() {
        let game = |uci: &str| -> Vec<MoveToken> {
            uci.split(' ')
                .map(|uci| {
                    let bytes = uci.as_bytes();
                    let square = |s: &[u8]| u32::from(s[0] - b'a') + 8 * u32::from(s[1] - b'1');
                    let promotion = u32::from(bytes.len() == 5);
                    let id = (square(bytes) * 64 + square(&bytes[2..])) * 5 + promotion;
                    MoveToken::new(id).unwrap()
                })
                .collect()
        };
        let mut games = Games::new();
        let near = game("e2e4 a7a6 e4e5 c7c6 d2d4 d7d6 a2a3 f7f5 e5d6");
        games.push("", &near, GameResult::Unknown);
        games.push("", &game("h2h4 g7g5 h4g5 a7a6 g5g6 a6a5 g6h7 a5a4 h7g8q"), GameResult::Unknown);
        let counts = |games: &Games| {
            TransitionSampler::new(games, EnPassant::Always, &Sampling::default(), 1).kind_counts()
        };
        assert_eq!(counts(&games), [1, 0, 0, 0, 1, 0, 0, 0], "no en passant to look like yet");
        games.push("", &game("e2e4 a7a6 e4e5 d7d5 e5d6"), GameResult::Unknown);
        assert_eq!(counts(&games), [1, 0, 0, 1, 1, 1, 0, 0]);
    }

    #[test]
    fn settings_out_of_range_name_the_key() {
        let fault = |change: fn(&mut Sampling)| {
            let mut sampling = Sampling::default();
            change(&mut sampling);
            sampling.validate().unwrap_err().to_string()
        };
        assert!(Sampling::default().validate().is_ok());
        assert!(fault(|s| s.castling = -0.1).contains("castling"));
        assert!(fault(|s| s.color_swap = f64::NAN).contains("color_swap"));
        assert!(fault(|s| (s.castling, s.en_passant) = (0.9, 0.9)).contains("add up"));
        assert!(fault(|s| s.cells = 3).contains("cells"));
    }
}
