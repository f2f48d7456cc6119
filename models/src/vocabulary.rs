//! Which embedding rows a model holds, and how tokens find theirs.
//!
//! Of the 20,482 rows of the benchmark's embedding, 18,512 stand for geometries that no legal game holds: they are never
//! read and never receive a gradient. A compact table keeps the other 1,970, in the order of [`compact_tokens`].

use cwm_core::chess::MoveToken;

/// Rows of a compact table: the reachable moves, START and PAD.
pub const COMPACT_ROWS: usize = 1970;

/// Marks a token without a row.
const NO_ROW: u16 = u16::MAX;

/// The tokens of a compact table in row order: reachable moves ascending, START, PAD.
pub fn compact_tokens() -> impl ExactSizeIterator<Item = u16> {
    let reachable = MoveToken::reachable();
    (0..COMPACT_ROWS).map(move |row| {
        reachable.get(row).map_or(MoveToken::START.id() + (row as u16 - 1968), |token| token.id())
    })
}

/// A token for which a table has no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("token {token} has no embedding row in this model: {reason}")]
pub struct NoRow {
    /// The token's id.
    pub token: u16,
    /// Why.
    pub reason: &'static str,
}

/// Maps token ids to embedding rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenRows {
    /// Row = id, for this many ids.
    Full(usize),
    /// The rows of [`compact_tokens`]; indexed by id.
    Compact(Box<[u16]>),
}

impl TokenRows {
    /// The compact table where the vocabulary is the benchmark's, else the full one.
    pub fn for_vocabulary(move_vocab: usize) -> Self {
        if move_vocab == MoveToken::VOCAB { Self::compact() } else { Self::Full(move_vocab) }
    }

    /// The compact table of the benchmark's vocabulary.
    pub fn compact() -> Self {
        let mut rows = vec![NO_ROW; MoveToken::VOCAB].into_boxed_slice();
        for (row, token) in compact_tokens().enumerate() {
            rows[usize::from(token)] = row as u16;
        }
        Self::Compact(rows)
    }

    /// Rows of the table.
    pub fn len(&self) -> usize {
        match self {
            Self::Full(rows) => *rows,
            Self::Compact(_) => COMPACT_ROWS,
        }
    }

    /// Whether the table has no row at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row of a token.
    ///
    /// # Errors
    /// [`NoRow`] if the table has none for it.
    #[inline]
    pub fn row(&self, token: u16) -> Result<u32, NoRow> {
        match self {
            Self::Full(rows) if usize::from(token) < *rows => Ok(u32::from(token)),
            Self::Full(_) => Err(NoRow { token, reason: "it is outside the vocabulary" }),
            Self::Compact(rows) => match rows.get(usize::from(token)) {
                Some(&row) if row != NO_ROW => Ok(u32::from(row)),
                Some(_) => Err(NoRow { token, reason: "no legal game holds this move" }),
                None => Err(NoRow { token, reason: "it is outside the vocabulary" }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_rows_are_reachable_moves_then_start_then_pad() {
        let rows = TokenRows::compact();
        let tokens: Vec<u16> = compact_tokens().collect();
        assert_eq!(tokens.len(), MoveToken::reachable().len() + 2);
        assert_eq!(tokens[1968..], [MoveToken::START.id(), MoveToken::PAD.id()]);
        for (row, &token) in tokens.iter().enumerate() {
            assert_eq!(rows.row(token), Ok(row as u32));
        }
        let known = (0..=u16::MAX).filter(|&token| rows.row(token).is_ok()).count();
        assert_eq!(known, COMPACT_ROWS);
        assert!(rows.row(1).unwrap_err().to_string().contains("no legal game"));
    }

    #[test]
    fn other_vocabularies_keep_their_rows() {
        let rows = TokenRows::for_vocabulary(96);
        assert_eq!(rows.row(95), Ok(95));
        assert!(rows.row(96).is_err());
    }
}
