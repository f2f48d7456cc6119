//! What python-chess takes for a move or a result, byte by byte.

use shakmaty::{CastlingSide, File, Rank, Role, Square};

use crate::{chess::san::WrittenMove, data::GameResult};

/// A result at the beginning of `text`, and its length.
pub(super) fn result_at(text: &[u8]) -> Option<(GameResult, usize)> {
    GameResult::ALL
        .into_iter()
        .find(|result| text.starts_with(result.as_str().as_bytes()))
        .map(|result| (result, result.as_str().len()))
}

fn is_file(byte: u8) -> bool {
    (b'a'..=b'h').contains(&byte)
}

fn is_rank(byte: u8) -> bool {
    (b'1'..=b'8').contains(&byte)
}

/// The length of what counts as a move at the beginning of `text`, 0 for none. It need not be the beginning of a word.
pub(super) fn move_length(text: &[u8]) -> usize {
    // [NBKRQ]?[a-h]?[1-8]?[-x]? square, each part taken if that leads to a square in the end.
    let first = text.first().copied().unwrap_or(0);
    if is_file(first) || is_rank(first) || b"NBKRQ-x".contains(&first) {
        for parts in (0..16_u8).rev() {
            let mut at = 0;
            let mut take = |part: u8, fits: fn(u8) -> bool| {
                if parts & part == 0 {
                    return true;
                }
                let taken = text.get(at).copied().is_some_and(fits);
                at += usize::from(taken);
                taken
            };
            let fits = take(8, |b| b"NBKRQ".contains(&b))
                && take(4, is_file)
                && take(2, is_rank)
                && take(1, |b| b == b'-' || b == b'x');
            if fits
                && let [file, rank, behind @ ..] = &text[at..]
                && is_file(*file)
                && is_rank(*rank)
            {
                let promotes = |b: &u8| b"nbrqkNBRQK".contains(b);
                let promotion = match behind {
                    [b'=', letter, ..] if promotes(letter) => 2,
                    [letter, ..] if promotes(letter) => 1,
                    _ => 0,
                };
                return at + 2 + promotion;
            }
        }
    }
    match text {
        [b'P' | b'N' | b'B' | b'R' | b'Q' | b'K', b'@', file, rank, ..]
            if is_file(*file) && is_rank(*rank) =>
        {
            4
        }
        [b'@', file, rank, ..] if is_file(*file) && is_rank(*rank) => 3,
        [b'O', b'-', b'O', b'-', b'O', ..] | [b'0', b'-', b'0', b'-', b'0', ..] => 5,
        [b'O', b'-', b'O', ..] | [b'0', b'-', b'0', ..] => 3,
        [b'-', b'-', ..] | [b'Z', b'0', ..] => 2,
        [b'0', b'0', b'0', b'0', ..] | [b'@', b'@', b'@', b'@', ..] => 4,
        _ => 0,
    }
}

/// Reads what [`move_length`] found.
pub(super) fn written(word: &[u8]) -> Option<WrittenMove> {
    match word {
        b"O-O" | b"0-0" => return Some(WrittenMove::Castle(CastlingSide::KingSide)),
        b"O-O-O" | b"0-0-0" => return Some(WrittenMove::Castle(CastlingSide::QueenSide)),
        b"--" | b"Z0" | b"0000" | b"@@@@" => return Some(WrittenMove::Null),
        _ => {}
    }
    let role = |letter: u8| match letter.to_ascii_uppercase() {
        b'N' => Role::Knight,
        b'B' => Role::Bishop,
        b'R' => Role::Rook,
        b'Q' => Role::Queen,
        _ => Role::King,
    };
    let (word, promotion) = match word {
        [rest @ .., last] if !last.is_ascii_digit() => {
            (rest.strip_suffix(b"=").unwrap_or(rest), Some(role(*last)))
        }
        word => (word, None),
    };
    let [source @ .., to_file, to_rank] = word else { return None };
    if source.contains(&b'@') {
        return None;
    }
    let to =
        Square::from_coords(File::new((to_file - b'a').into()), Rank::new((to_rank - b'1').into()));
    let (piece, source) = match source {
        [letter @ b'A'..=b'Z', rest @ ..] => (Some(role(*letter)), rest),
        source => (None, source),
    };
    let file = source.iter().find(|b| is_file(**b)).map(|b| File::new((b - b'a').into()));
    let rank = source.iter().find(|b| is_rank(**b)).map(|b| Rank::new((b - b'1').into()));
    let role = match (piece, file, rank) {
        (None, Some(_), Some(_)) => None,
        (None, ..) => Some(Role::Pawn),
        (piece, ..) => piece,
    };
    Some(WrittenMove::Normal { role, file, rank, to, promotion })
}
