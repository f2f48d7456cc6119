//! Random legal play to the end of the game: uniform, bit-identical to the reference's generator (paper, section B.1),
//! or by a [`Policy`] that seeks out a rule.
//!
//! One stream of random numbers runs through all games of a seed, so a game depends on all games before it.
//! A game ends by mate, stalemate, insufficient material, or as soon as a draw by fifty moves or by threefold
//! repetition may be claimed: also by announcing a legal move that would complete the condition.
//! Where a policy has nobody claim draws, they come without a claim: after 75 moves or at the fifth repetition.

use shakmaty::{CastlingSide, Chess, Color, Move, MoveList, Position, Role, Square};

use super::{MoveToken, mt19937::PythonRandom, order, policy::Policy};
use crate::data::GameResult;

/// Why a game is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Termination {
    /// The side to move is mated.
    Checkmate,
    /// The side to move has no legal move and is not in check.
    Stalemate,
    /// Neither side can mate by any series of legal moves.
    InsufficientMaterial,
    /// 75 moves by each side without a capture or pawn move.
    SeventyFiveMoves,
    /// A position for the fifth time.
    FivefoldRepetition,
    /// 50 moves by each side without a capture or pawn move, or 49 1/2 and a move that completes them.
    FiftyMoves,
    /// A position for the third time, or a move that leads to it.
    ThreefoldRepetition,
    /// Broken off, since the policy plays no further.
    PlyLimit,
}

/// One random game.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RandomGame {
    /// `cwm_random_00000`, or with the policy's name, numbered by games played (games that are too short leave gaps).
    pub id: String,
    /// The moves, without START.
    pub moves: Vec<MoveToken>,
    /// The result; unknown if the game was broken off.
    pub result: GameResult,
    /// Why the game ended.
    pub termination: Termination,
}

/// Plays random games of a seed, one after the other, for ever.
///
/// Games of fewer than `2 * min_fullmoves` plies are played and left out.
#[derive(Debug, Clone)]
pub struct RandomPlay {
    rng: PythonRandom,
    policy: Policy,
    min_plies: usize,
    played: u64,
    referee: Referee,
}

impl RandomPlay {
    /// The uniformly random games of `seed`.
    /// Hardly any game passes 600 full moves: a larger minimum may be waited for in vain.
    pub fn new(seed: u64, min_fullmoves: u32) -> Self {
        Self::with_policy(Policy::Uniform, seed, min_fullmoves)
    }

    /// The games of a policy and `seed`. A minimum above [`Policy::max_min_fullmoves`] may be waited for in vain.
    pub fn with_policy(policy: Policy, seed: u64, min_fullmoves: u32) -> Self {
        RandomPlay {
            rng: PythonRandom::new(seed),
            policy,
            min_plies: 2 * min_fullmoves as usize,
            played: 0,
            referee: Referee::default(),
        }
    }

    /// Games played so far, those left out included.
    pub fn played(&self) -> u64 {
        self.played
    }

    /// Plays the next game; `None` if it is too short to be kept.
    pub fn play(&mut self) -> Option<RandomGame> {
        let policy = self.policy;
        let id = policy.game_id(self.played);
        self.played += 1;
        self.referee.reset(Chess::default());
        let mut moves = Vec::with_capacity(512);
        let termination = loop {
            let mut legal = self.referee.position().legal_moves();
            let in_check = self.referee.position().is_check();
            let verdict = if policy.claims_draws() {
                self.referee.verdict(&legal, in_check)
            } else {
                self.referee.verdict_without_claims(&legal, in_check)
            };
            if let Some(termination) = verdict {
                break termination;
            }
            if moves.len() >= policy.max_plies() {
                break Termination::PlyLimit;
            }
            if policy != Policy::Uniform {
                policy.keep_wanted(self.referee.position(), &mut legal);
            }
            let index = self.rng.randrange(legal.len() as u32) as usize;
            let m = order::nth(&legal, in_check, index);
            moves.push(MoveToken::from_move(m));
            self.referee.play(m);
        };
        if moves.len() < self.min_plies {
            return None;
        }
        let result = self.referee.result(termination);
        Some(RandomGame { id, moves, result, termination })
    }
}

impl Iterator for RandomPlay {
    type Item = RandomGame;

    fn next(&mut self) -> Option<RandomGame> {
        loop {
            if let Some(game) = self.play() {
                return Some(game);
            }
        }
    }
}

/// Follows a game and says when it is over.
#[derive(Debug, Clone, Default)]
pub struct Referee {
    position: Chess,
    hash: u64,
    /// Positions since the last capture or pawn move, the current one last, and the hash of each.
    since: Vec<Chess>,
    hashes: Vec<u64>,
    /// Hashes of positions that occurred at least twice since then. Without one, no move can complete a repetition.
    twice: Vec<u64>,
}

impl Referee {
    /// Begins a game at `position`.
    pub fn reset(&mut self, position: Chess) {
        self.hash = placement_hash(&position);
        self.forget();
        self.hashes.push(self.hash);
        self.since.push(position.clone());
        self.position = position;
    }

    /// The position reached.
    pub fn position(&self) -> &Chess {
        &self.position
    }

    /// Plays a legal move.
    pub fn play(&mut self, m: Move) {
        if m.is_zeroing() {
            self.forget();
            self.position.play_unchecked(m);
            self.hash = placement_hash(&self.position);
        } else {
            self.hash = self.hash_after(m);
            self.position.play_unchecked(m);
            if self.count(self.hash, &self.position) > 0 && !self.twice.contains(&self.hash) {
                self.twice.push(self.hash);
            }
        }
        self.hashes.push(self.hash);
        self.since.push(self.position.clone());
    }

    fn forget(&mut self) {
        self.hashes.clear();
        self.since.clear();
        self.twice.clear();
    }

    /// Occurrences of a position since the last irreversible move.
    fn count(&self, hash: u64, position: &Chess) -> usize {
        let same = self.hashes.iter().zip(&self.since).filter(|(h, _)| **h == hash);
        same.filter(|(_, earlier)| *earlier == position).count()
    }

    /// Whether the position reached has occurred at least so often (twice or more).
    fn occurred(&self, times: usize) -> bool {
        self.twice.contains(&self.hash) && self.count(self.hash, &self.position) >= times
    }

    /// Why the game is over, if it is, draws being claimed as soon as they can be. `legal` are all legal moves, in any
    /// order.
    pub fn verdict(&self, legal: &MoveList, in_check: bool) -> Option<Termination> {
        self.verdict_without_claims(legal, in_check).or_else(|| {
            if self.fifty_claimable(legal) {
                Some(Termination::FiftyMoves)
            } else if self.threefold_claimable(legal) {
                Some(Termination::ThreefoldRepetition)
            } else {
                None
            }
        })
    }

    /// Why the game is over, if it is although nobody claims a draw.
    pub fn verdict_without_claims(&self, legal: &MoveList, in_check: bool) -> Option<Termination> {
        if legal.is_empty() && in_check {
            Some(Termination::Checkmate)
        } else if self.position.is_insufficient_material() {
            Some(Termination::InsufficientMaterial)
        } else if legal.is_empty() {
            Some(Termination::Stalemate)
        } else if self.position.halfmoves() >= 150 {
            Some(Termination::SeventyFiveMoves)
        } else if self.occurred(5) {
            Some(Termination::FivefoldRepetition)
        } else {
            None
        }
    }

    /// Whether a draw by fifty moves may be claimed, also by announcing a move.
    fn fifty_claimable(&self, legal: &MoveList) -> bool {
        match self.position.halfmoves() {
            0..99 => false,
            99 => legal.iter().any(|&m| {
                !m.is_zeroing() && {
                    let mut next = self.position.clone();
                    next.play_unchecked(m);
                    !next.legal_moves().is_empty()
                }
            }),
            _ => true,
        }
    }

    /// Whether a draw by threefold repetition may be claimed, also by announcing a move.
    fn threefold_claimable(&self, legal: &MoveList) -> bool {
        if self.twice.is_empty() {
            return false;
        }
        if self.occurred(3) {
            return true;
        }
        legal.iter().any(|&m| {
            if m.is_zeroing() {
                return false;
            }
            let hash = self.hash_after(m);
            self.twice.contains(&hash) && {
                let mut next = self.position.clone();
                next.play_unchecked(m);
                self.count(hash, &next) >= 2
            }
        })
    }

    /// The hash after a move that is neither a capture nor a pawn's.
    fn hash_after(&self, m: Move) -> u64 {
        let color = self.position.turn();
        let toggle = |role, square| KEYS[color as usize][role as usize - 1][square as usize];
        match m {
            Move::Normal { role, from, to, .. } => {
                self.hash ^ toggle(role, from) ^ toggle(role, to)
            }
            Move::Castle { king, rook } => {
                let side = CastlingSide::from_queen_side(rook < king);
                let at = |file| Square::from_coords(file, king.rank());
                self.hash
                    ^ toggle(Role::King, king)
                    ^ toggle(Role::King, at(side.king_to_file()))
                    ^ toggle(Role::Rook, rook)
                    ^ toggle(Role::Rook, at(side.rook_to_file()))
            }
            _ => self.hash,
        }
    }

    /// The result of a finished game.
    pub fn result(&self, termination: Termination) -> GameResult {
        match (termination, self.position.turn()) {
            (Termination::Checkmate, Color::White) => GameResult::BlackWins,
            (Termination::Checkmate, Color::Black) => GameResult::WhiteWins,
            (Termination::PlyLimit, _) => GameResult::Unknown,
            _ => GameResult::Draw,
        }
    }
}

/// Random keys by colour, role and square. The hash covers piece placement only; whoever finds two equal ones compares
/// the positions (side to move, castling rights and legal en passant captures included).
static KEYS: [[[u64; 64]; 6]; 2] = {
    let mut keys = [[[0; 64]; 6]; 2];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut i = 0;
    while i < 768 {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        keys[i / 384][i / 64 % 6][i % 64] = z ^ (z >> 31);
        i += 1;
    }
    keys
};

fn placement_hash(position: &Chess) -> u64 {
    let board = position.board();
    board.occupied().into_iter().fold(0, |hash, square: Square| {
        board.piece_at(square).map_or(hash, |piece| {
            hash ^ KEYS[piece.color as usize][piece.role as usize - 1][square as usize]
        })
    })
}

#[cfg(test)]
mod tests {
    use shakmaty::{KnownOutcome, Outcome};

    use super::*;

    #[test]
    fn games_end_by_the_rules_that_were_named() {
        for game in RandomPlay::new(3, 10).take(40) {
            let mut position = Chess::default();
            for token in &game.moves {
                let m = token.to_uci().unwrap().to_move(&position).unwrap();
                position = position.play(m).unwrap();
            }
            let outcome = position.outcome();
            match game.termination {
                Termination::Checkmate => {
                    let Outcome::Known(KnownOutcome::Decisive { winner }) = outcome else {
                        panic!("{outcome:?}")
                    };
                    let wins = if winner.is_white() { "1-0" } else { "0-1" };
                    assert_eq!(game.result.as_str(), wins);
                }
                Termination::Stalemate => assert!(position.is_stalemate()),
                Termination::InsufficientMaterial => assert!(position.is_insufficient_material()),
                Termination::FiftyMoves => assert_eq!(position.halfmoves(), 99),
                Termination::ThreefoldRepetition => assert_eq!(outcome, Outcome::Unknown),
                Termination::SeventyFiveMoves | Termination::FivefoldRepetition => {
                    panic!("claimed long before")
                }
                Termination::PlyLimit => panic!("played to the end"),
            }
            assert!(game.moves.len() >= 20);
        }
    }

    #[test]
    fn the_incremental_hash_equals_a_fresh_one() {
        for game in RandomPlay::new(11, 0).take(20) {
            let mut referee = Referee::default();
            referee.reset(Chess::default());
            for token in &game.moves {
                let m = token.to_uci().unwrap().to_move(referee.position()).unwrap();
                referee.play(m);
                assert_eq!(referee.hash, placement_hash(&referee.position), "after {m}");
            }
        }
    }
}
