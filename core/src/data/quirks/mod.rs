//! The reference's reading of PGN, oddities included: what its pipeline keeps of a file, and how that is replayed.
//!
//! The reference reads with python-chess, whose leniency it inherits:
//! * an error in the main line keeps the legal moves before it; the rest of the game is passed over, its result too;
//! * text that looks like no move vanishes, so that an error shows only at the next move;
//! * games from a FEN, of Chess960 and of known variants are kept and replayed by their rules;
//! * a null move is packed as 0 (a1a1), castling in Chess960 as king takes rook;
//! * a missing Site is `?`, so that all such games share one id; an empty one stops the whole run;
//! * a game ends at a blank line; two blank lines behind the tags make an empty game and one without tags.
//!
//! Not carried over, and counted as skipped: Crazyhouse (a packed move cannot say which piece was dropped), Suicide and
//! Giveaway (shakmaty has no rules for them), positions that shakmaty refuses (no king, a side to move that could take
//! the king, pawns on the last ranks), null moves while in check, and games whose main line continues behind a damaged
//! variation in a way that is not legal. A Result tag other than PGN's four words becomes `*`.

mod board;
mod reader;
mod words;

pub use board::{QuirkBoard, ReplayError, replay};
pub use reader::{QuirkGame, QuirkReader};
