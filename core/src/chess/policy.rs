//! Rule-stratified play: seeded policies that seek out the rules that uniformly random play hardly ever meets.
//!
//! A policy is a mover. At every ply it picks uniformly among the *wanted* legal moves if there are any, and uniformly
//! among all legal moves otherwise. Everything else is random-uniform play ([`super::random`]): the generator, the order
//! that the picks refer to, the start position, and the ends of games. Only [`Policy::Long`] ends its games differently.

use std::{fmt, str::FromStr};

use shakmaty::{CastlingSide, Chess, Move, MoveList, Position, Role, Square, attacks};

/// What a mover wants.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Nothing in particular: the benchmark's random-uniform play.
    #[default]
    Uniform,
    /// Castling.
    Castling,
    /// An en passant capture; if there is none, a double push after which one is legal.
    EnPassant,
    /// A promotion, to any role.
    Promotion,
    /// A promotion to rook, bishop or knight.
    Underpromotion,
    /// The capture of a rook on the square that it would castle from, while that right stands.
    HomeRookCapture,
    /// Neither a capture nor a pawn move, so that the halfmove clock climbs. Castling is quiet.
    Quiet,
    /// Nothing in particular, but nobody claims a draw: a game ends by mate, stalemate, insufficient material, the draws
    /// that need no claim (75 moves, the fifth repetition), or after 600 plies.
    Long,
}

/// A word that names no policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a policy (expected uniform, or a stratum such as castling)")]
pub struct NotAPolicy;

impl Policy {
    /// Every policy, the uniform one first.
    pub const ALL: [Policy; 8] = [
        Policy::Uniform,
        Policy::Castling,
        Policy::EnPassant,
        Policy::Promotion,
        Policy::Underpromotion,
        Policy::HomeRookCapture,
        Policy::Quiet,
        Policy::Long,
    ];

    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Policy::Uniform => "uniform",
            Policy::Castling => "castling",
            Policy::EnPassant => "en-passant",
            Policy::Promotion => "promotion",
            Policy::Underpromotion => "underpromotion",
            Policy::HomeRookCapture => "home-rook-capture",
            Policy::Quiet => "quiet",
            Policy::Long => "long",
        }
    }

    /// What is wanted, in a few words.
    pub const fn about(self) -> &'static str {
        match self {
            Policy::Uniform => "every legal move is equally likely",
            Policy::Castling => "castling where it is legal",
            Policy::EnPassant => "en passant captures, else double pushes that allow one",
            Policy::Promotion => "promotions",
            Policy::Underpromotion => "promotions to rook, bishop or knight",
            Policy::HomeRookCapture => "captures of a rook that could still castle",
            Policy::Quiet => "neither captures nor pawn moves",
            Policy::Long => "uniform, but no draw is claimed; up to 600 plies",
        }
    }

    /// The name of a set of such games in reports: `random-uniform`, `stratum:castling`, ...
    pub fn dataset_name(self) -> String {
        match self {
            Policy::Uniform => "random-uniform".to_string(),
            _ => format!("stratum:{}", self.name()),
        }
    }

    /// The id of the `index`-th game played: `cwm_random_00000`, `cwm_castling_00000`, ...
    pub fn game_id(self, index: u64) -> String {
        let name = if self == Policy::Uniform { "random" } else { self.name() };
        format!("cwm_{name}_{index:05}")
    }

    /// Whether draws are claimed as soon as they can be.
    pub const fn claims_draws(self) -> bool {
        !matches!(self, Policy::Long)
    }

    /// The plies after which a game is broken off.
    pub const fn max_plies(self) -> usize {
        match self {
            Policy::Long => 600,
            _ => usize::MAX,
        }
    }

    /// The largest minimum of full moves with which games are still found in reasonable time.
    pub const fn max_min_fullmoves(self) -> u32 {
        match self {
            // Only a forced capture or pawn move keeps the draws away: half as long on average as other games.
            Policy::Quiet => 150,
            _ => 300,
        }
    }

    /// Leaves the wanted moves of `legal` (all legal moves of `position`) if there are any; their order stays.
    pub fn keep_wanted(self, position: &Chess, legal: &mut MoveList) {
        let any = keep_if_any(legal, |m| self.is_event(position, m));
        if self == Policy::EnPassant && !any {
            keep_if_any(legal, |m| allows_en_passant(position, m));
        }
    }

    /// Whether a legal move is what the policy is about. The double push before an en passant capture is not.
    pub fn is_event(self, position: &Chess, m: Move) -> bool {
        match self {
            Policy::Uniform | Policy::Long => false,
            Policy::Castling => m.is_castle(),
            Policy::EnPassant => m.is_en_passant(),
            Policy::Promotion => m.is_promotion(),
            Policy::Underpromotion => m.promotion().is_some_and(|role| role != Role::Queen),
            Policy::HomeRookCapture => captures_home_rook(position, m),
            Policy::Quiet => !m.is_zeroing(),
        }
    }
}

/// Leaves the moves that are wanted, in their order; all of them if none is. Says which.
fn keep_if_any(moves: &mut MoveList, wanted: impl Fn(Move) -> bool) -> bool {
    let any = moves.iter().any(|&m| wanted(m));
    if any {
        moves.retain(|m| wanted(*m));
    }
    any
}

fn captures_home_rook(position: &Chess, m: Move) -> bool {
    let owner = !position.turn();
    m.capture() == Some(Role::Rook)
        && CastlingSide::ALL
            .into_iter()
            .any(|side| position.castles().rook(owner, side) == Some(m.to()))
}

/// Whether a move is a double push that the other side may capture en passant.
fn allows_en_passant(position: &Chess, m: Move) -> bool {
    let Move::Normal { role: Role::Pawn, from, to, .. } = m else { return false };
    if u32::from(from).abs_diff(u32::from(to)) != 16 {
        return false;
    }
    // Most pushes are refused without playing them: no enemy pawn attacks the square passed over.
    let passed = Square::new((u32::from(from) + u32::from(to)) / 2);
    let capturers = attacks::pawn_attacks(position.turn(), passed) & position.their(Role::Pawn);
    capturers.any() && {
        let mut next = position.clone();
        next.play_unchecked(m);
        // A capturer may be pinned, or its king in check.
        next.legal_ep_square().is_some()
    }
}

impl FromStr for Policy {
    type Err = NotAPolicy;

    fn from_str(name: &str) -> Result<Self, NotAPolicy> {
        Self::ALL.into_iter().find(|policy| policy.name() == name).ok_or(NotAPolicy)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use shakmaty::{CastlingMode, fen::Fen};

    use super::*;

    /// The moves that are left in a position, in UCI notation, sorted.
    fn kept(policy: Policy, fen: &str) -> Vec<String> {
        let position: Chess =
            fen.parse::<Fen>().unwrap().into_position(CastlingMode::Standard).unwrap();
        let mut moves = position.legal_moves();
        policy.keep_wanted(&position, &mut moves);
        let mut names: Vec<String> =
            moves.iter().map(|m| m.to_uci(CastlingMode::Standard).to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn wanted_moves_are_kept_alone() {
        let castle = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
        assert_eq!(kept(Policy::Castling, castle), ["e1c1", "e1g1"]);
        // The rooks face each other: both captures are wanted, but not where the right is gone.
        assert_eq!(kept(Policy::HomeRookCapture, castle), ["a1a8", "h1h8"]);
        let one_right = "r3k2r/8/8/8/8/8/8/R3K2R w KQk - 0 1";
        assert_eq!(kept(Policy::HomeRookCapture, one_right), ["h1h8"]);
        // Promoting on the rook's square captures it as well.
        let promoting = "r3k3/1P6/8/8/8/8/8/4K3 w q - 0 1";
        let onto = ["b7a8b", "b7a8n", "b7a8q", "b7a8r"];
        assert_eq!(kept(Policy::HomeRookCapture, promoting), onto);
        assert_eq!(kept(Policy::Promotion, promoting).len(), 8);
        assert_eq!(kept(Policy::Underpromotion, promoting).len(), 6);
        assert_eq!(kept(Policy::Quiet, promoting), ["e1d1", "e1d2", "e1e2", "e1f1", "e1f2"]);
    }

    #[test]
    fn en_passant_comes_in_two_steps() {
        let push = "4k3/8/8/8/3p4/8/2P1P1P1/4K3 w - - 0 1";
        assert_eq!(kept(Policy::EnPassant, push), ["c2c4", "e2e4"]);
        let capture = "4k3/2p5/8/3Pp3/8/8/8/4K3 w - e6 0 1";
        assert_eq!(kept(Policy::EnPassant, capture), ["d5e6"]);
        // Black's pawn is pinned along the file: the push allows nothing and is not wanted.
        let pinned = "3k4/8/8/8/3p4/8/2P5/3RK3 w - - 0 1";
        let all = kept(Policy::Uniform, pinned);
        assert_eq!(kept(Policy::EnPassant, pinned), all);
        assert!(all.contains(&"c2c4".to_string()));
    }

    #[test]
    fn without_a_wanted_move_all_are_kept() {
        let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
        for policy in Policy::ALL {
            let expected = if policy == Policy::Quiet { 4 } else { 20 };
            assert_eq!(kept(policy, start).len(), expected, "{policy}");
        }
        let forced = "7k/8/8/8/8/8/1r6/K7 w - - 0 1";
        assert_eq!(kept(Policy::Quiet, forced), ["a1b2"], "only a capture is legal");
    }

    #[test]
    fn names_are_read_back() {
        for policy in Policy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
            let json = serde_json::to_string(&policy).unwrap();
            assert_eq!(json, format!("\"{policy}\""));
            assert_eq!(serde_json::from_str::<Policy>(&json).unwrap(), policy);
        }
        assert_eq!("Castling".parse::<Policy>(), Err(NotAPolicy));
    }
}
