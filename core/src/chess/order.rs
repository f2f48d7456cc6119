//! Legal moves in the order that python-chess lists them, which decides what a random draw means.
//!
//! Not in check: pieces (the king among them) by source square descending, each with its targets descending; castling,
//! king's side first; pawn captures by source, then target, descending; single advances and then double advances by
//! target descending; en passant captures by source descending. Promotions come as queen, rook, bishop, knight.
//! In check the king's moves come first and everything else keeps its order.

use shakmaty::{Move, MoveList, Position, Role};

/// A move's place in the order, as an integer that sorts so. `in_check` is of the side to move.
fn rank(m: &Move, in_check: bool) -> u32 {
    let descending = |square: shakmaty::Square| 63 - u32::from(square);
    let key = |group: u32, first: u32, second: u32, third: u32| {
        (group << 16) | (first << 9) | (second << 3) | third
    };
    match *m {
        Move::Normal { role: Role::King, from, to, .. } => {
            key(if in_check { 0 } else { 1 }, descending(from), descending(to), 0)
        }
        Move::Normal { role: Role::Pawn, from, capture, to, promotion } => {
            let promotion = match promotion {
                None | Some(Role::Queen) => 0,
                Some(Role::Rook) => 1,
                Some(Role::Bishop) => 2,
                _ => 3,
            };
            if capture.is_some() {
                key(3, descending(from), descending(to), promotion)
            } else if u32::from(from).abs_diff(u32::from(to)) == 8 {
                key(4, descending(to), 0, promotion)
            } else {
                key(5, descending(to), 0, 0)
            }
        }
        Move::Normal { from, to, .. } => key(1, descending(from), descending(to), 0),
        Move::Castle { rook, .. } => key(2, descending(rook), 0, 0),
        Move::EnPassant { from, .. } => key(6, descending(from), 0, 0),
        Move::Put { .. } => key(7, 0, 0, 0),
    }
}

/// Puts all legal moves of a position into the order.
pub fn sort<P: Position>(position: &P, moves: &mut MoveList) {
    let in_check = position.is_check();
    moves.sort_unstable_by_key(|m| rank(m, in_check));
}

/// The move at `index` in the order, without sorting the rest. `moves` are all legal moves (at most 256).
///
/// # Panics
/// If `index` is not below the number of moves.
pub fn nth(moves: &MoveList, in_check: bool, index: usize) -> Move {
    // Integers that carry the move's index select several times faster than moves by key.
    let mut ranks = [0_u32; 256];
    for (i, (slot, m)) in ranks.iter_mut().zip(moves).enumerate() {
        *slot = (rank(m, in_check) << 8) | i as u32;
    }
    let (_, nth, _) = ranks[..moves.len()].select_nth_unstable(index);
    moves[(*nth & 0xff) as usize]
}
