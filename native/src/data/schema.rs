//! The columns of a shard, and rows to and from Arrow batches.
//!
//! `id: string`, `moves: list<uint16>` without START, `result: string`, `plies: uint16`; and, only in datasets made
//! under the reference's quirks, the nullable `rules` and `start_fen`.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, ListArray, RecordBatch, StringArray, UInt16Array,
    builder::{ListBuilder, StringBuilder, UInt16Builder},
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use cwm_core::{
    chess::MoveToken,
    data::{Game, GameResult, spec::MAX_PLIES},
};

use super::{Replay, Row};

/// The schema of a shard.
pub fn schema(quirks: bool) -> SchemaRef {
    let mut fields = vec![
        Field::new("id", DataType::Utf8, false),
        Field::new("moves", DataType::List(Arc::new(moves_item())), false),
        Field::new("result", DataType::Utf8, false),
        Field::new("plies", DataType::UInt16, false),
    ];
    if quirks {
        fields.push(Field::new("rules", DataType::Utf8, true));
        fields.push(Field::new("start_fen", DataType::Utf8, true));
    }
    Arc::new(Schema::new(fields))
}

fn moves_item() -> Field {
    Field::new("item", DataType::UInt16, false)
}

/// Collects rows into columns.
#[derive(Debug)]
pub struct Columns {
    ids: StringBuilder,
    moves: ListBuilder<UInt16Builder>,
    results: StringBuilder,
    plies: UInt16Builder,
    quirks: Option<(StringBuilder, StringBuilder)>,
    rows: usize,
}

impl Columns {
    /// No rows yet.
    pub fn new(quirks: bool) -> Self {
        Columns {
            ids: StringBuilder::new(),
            moves: ListBuilder::new(UInt16Builder::new()).with_field(moves_item()),
            results: StringBuilder::new(),
            plies: UInt16Builder::new(),
            quirks: quirks.then(Default::default),
            rows: 0,
        }
    }

    /// Adds a game of at most [`MAX_PLIES`] plies.
    pub fn push(
        &mut self,
        id: &str,
        moves: &[MoveToken],
        result: GameResult,
        replay: Option<&Replay>,
    ) {
        debug_assert!(moves.len() <= MAX_PLIES);
        self.ids.append_value(id);
        for token in moves {
            self.moves.values().append_value(token.id());
        }
        self.moves.append(true);
        self.results.append_value(result.as_str());
        self.plies.append_value(moves.len() as u16);
        if let Some((rules, fens)) = &mut self.quirks {
            rules.append_option(replay.map(|r| r.rules.as_str()));
            fens.append_option(replay.and_then(|r| r.start_fen.as_deref()));
        }
        self.rows += 1;
    }

    /// Rows collected.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Takes the rows as a batch, leaving none.
    ///
    /// # Errors
    /// Only if the columns disagree with the schema, which would be a defect of this module.
    pub fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        self.rows = 0;
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.ids.finish()),
            Arc::new(self.moves.finish()),
            Arc::new(self.results.finish()),
            Arc::new(self.plies.finish()),
        ];
        if let Some((rules, fens)) = &mut self.quirks {
            columns.push(Arc::new(rules.finish()));
            columns.push(Arc::new(fens.finish()));
        }
        RecordBatch::try_new(schema(self.quirks.is_some()), columns)
    }
}

/// What is wrong with a shard's schema, if anything.
pub fn schema_fault(found: &Schema) -> Option<String> {
    for wanted in schema(false).fields() {
        match found.field_with_name(wanted.name()) {
            Err(_) => return Some(format!("has no column `{}`", wanted.name())),
            Ok(field) if !same_type(field.data_type(), wanted.data_type()) => {
                return Some(format!(
                    "column `{}` is of type {}, expected {}",
                    wanted.name(),
                    field.data_type(),
                    wanted.data_type()
                ));
            }
            Ok(_) => {}
        }
    }
    for name in ["rules", "start_fen"] {
        if let Ok(field) = found.field_with_name(name)
            && field.data_type() != &DataType::Utf8
        {
            return Some(format!(
                "column `{name}` is of type {}, expected Utf8",
                field.data_type()
            ));
        }
    }
    None
}

/// Equal but for the name and nullability of list items, which other writers choose otherwise.
fn same_type(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::List(a), DataType::List(b)) => a.data_type() == b.data_type(),
        _ => a == b,
    }
}

/// The columns of a batch, checked.
#[derive(Debug)]
pub struct Batch {
    ids: StringArray,
    moves: ListArray,
    values: UInt16Array,
    results: StringArray,
    plies: UInt16Array,
    rules: Option<StringArray>,
    fens: Option<StringArray>,
}

fn column<T: Array + Clone + 'static>(batch: &RecordBatch, name: &str) -> Result<T, String> {
    batch
        .column_by_name(name)
        .ok_or_else(|| format!("has no column `{name}`"))?
        .as_any()
        .downcast_ref::<T>()
        .cloned()
        .ok_or_else(|| format!("column `{name}` is of another type"))
}

impl Batch {
    /// Takes a batch apart.
    ///
    /// # Errors
    /// What is wrong: another schema, or a null where none may be.
    pub fn new(batch: &RecordBatch) -> Result<Self, String> {
        let moves: ListArray = column(batch, "moves")?;
        let values = moves
            .values()
            .as_any()
            .downcast_ref::<UInt16Array>()
            .cloned()
            .ok_or("column `moves` is of another type")?;
        let this = Batch {
            ids: column(batch, "id")?,
            values,
            results: column(batch, "result")?,
            plies: column(batch, "plies")?,
            rules: batch.column_by_name("rules").map(|_| column(batch, "rules")).transpose()?,
            fens: batch
                .column_by_name("start_fen")
                .map(|_| column(batch, "start_fen"))
                .transpose()?,
            moves,
        };
        let nulls = [
            ("id", this.ids.null_count()),
            ("moves", this.moves.null_count() + this.values.null_count()),
            ("result", this.results.null_count()),
            ("plies", this.plies.null_count()),
        ];
        match nulls.iter().find(|(_, nulls)| *nulls > 0) {
            Some((name, nulls)) => Err(format!("column `{name}` holds {nulls} nulls")),
            None => Ok(this),
        }
    }

    /// Rows in the batch.
    pub fn rows(&self) -> usize {
        self.ids.len()
    }

    /// The id of a row.
    pub fn id(&self, row: usize) -> &str {
        self.ids.value(row)
    }

    /// Reads a row's moves into `tokens` (cleared first).
    ///
    /// # Errors
    /// What is wrong: a move outside the vocabulary, START or PAD among the moves, or a length that `plies` contradicts.
    pub fn moves_into(&self, row: usize, tokens: &mut Vec<MoveToken>) -> Result<(), String> {
        tokens.clear();
        let offsets = self.moves.value_offsets();
        let ids = &self.values.values()[offsets[row] as usize..offsets[row + 1] as usize];
        if ids.len() != usize::from(self.plies.value(row)) {
            return Err(format!(
                "has {} moves, but `plies` says {}",
                ids.len(),
                self.plies.value(row)
            ));
        }
        for (ply, &id) in ids.iter().enumerate() {
            match MoveToken::new(u32::from(id)) {
                Ok(token) if !token.is_special() => tokens.push(token),
                Ok(token) => return Err(format!("holds {token} at ply {}", ply + 1)),
                Err(e) => return Err(format!("at ply {}: {e}", ply + 1)),
            }
        }
        Ok(())
    }

    /// The result of a row.
    ///
    /// # Errors
    /// If it is none of the four.
    pub fn result(&self, row: usize) -> Result<GameResult, String> {
        let word = self.results.value(row);
        word.parse().map_err(|e| format!("result `{}`: {e}", word.escape_debug()))
    }

    /// How to replay a row that is not plain.
    pub fn replay(&self, row: usize) -> Option<Replay> {
        let text = |column: &Option<StringArray>| {
            column.as_ref().filter(|c| c.is_valid(row)).map(|c| c.value(row).to_string())
        };
        let (rules, start_fen) = (text(&self.rules), text(&self.fens));
        if rules.is_none() && start_fen.is_none() {
            return None;
        }
        Some(Replay { rules: rules.unwrap_or_else(|| "standard".into()), start_fen })
    }

    /// A whole row.
    ///
    /// # Errors
    /// As [`Batch::moves_into`] and [`Batch::result`].
    pub fn row(&self, row: usize) -> Result<Row, String> {
        let mut moves = Vec::new();
        self.moves_into(row, &mut moves)?;
        let game = Game { id: self.id(row).to_string(), moves, result: self.result(row)? };
        Ok(Row { game, replay: self.replay(row) })
    }
}
