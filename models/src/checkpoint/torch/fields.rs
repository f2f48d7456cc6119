//! A dict of settings (`args`, `spec`) with text keys, and its values as scalars.

use std::collections::BTreeMap;

use super::{
    TorchError,
    value::{Id, Value, Values},
};
use crate::checkpoint::{
    error::{CheckpointError, quoted},
    header::TENSOR_LIMIT,
};

/// The most entries of a dict that is looked into: more than any network has tensors.
const LIMIT_ENTRIES: usize = TENSOR_LIMIT;

/// One setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Field<'a> {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(&'a str),
    /// A list, a dict and the like; what it is.
    Other(&'static str),
}

impl std::fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Field::None => f.write_str("none"),
            Field::Bool(value) => write!(f, "{value}"),
            Field::Int(value) => write!(f, "{value}"),
            Field::Float(value) => write!(f, "{value:?}"),
            Field::Str(text) => f.write_str(&quoted(text)),
            Field::Other(kind) => f.write_str(kind),
        }
    }
}

/// A dict of settings under its name in the payload.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    pub(super) name: &'static str,
    pub(super) all: BTreeMap<&'a str, Field<'a>>,
}

impl<'a> Fields<'a> {
    /// Reads the dict, or namespace, that is called `name`.
    pub(super) fn read(
        values: &Values<'a>,
        id: Id,
        name: &'static str,
    ) -> Result<Self, CheckpointError> {
        let entries = named_entries(values, id, name)?;
        let field = |id: Id| match *values.get(id) {
            Value::None => Field::None,
            Value::Bool(value) => Field::Bool(value),
            Value::Int(value) => Field::Int(value),
            Value::Float(value) => Field::Float(value),
            Value::Str(text) => Field::Str(text),
            ref other => Field::Other(other.kind()),
        };
        Ok(Fields { name, all: entries.into_iter().map(|(key, id)| (key, field(id))).collect() })
    }

    /// A setting.
    pub(super) fn get(&self, key: &str) -> Option<Field<'a>> {
        self.all.get(key).copied()
    }

    /// A setting that the reference always writes.
    pub(super) fn required(&self, key: &str) -> Result<Field<'a>, TorchError> {
        let missing = || TorchError::MissingKey { key: format!("{}.{key}", self.name) };
        self.get(key).ok_or_else(missing)
    }

    /// A whole number, not negative.
    pub(super) fn count(&self, key: &str) -> Result<u64, TorchError> {
        match self.required(key)? {
            Field::Int(value @ 0..) => Ok(value as u64),
            found => Err(self.wrong(key, found, "a whole number")),
        }
    }

    /// A truth value.
    pub(super) fn flag(&self, key: &str) -> Result<bool, TorchError> {
        match self.required(key)? {
            Field::Bool(value) => Ok(value),
            found => Err(self.wrong(key, found, "a truth value")),
        }
    }

    /// Text.
    pub(super) fn text(&self, key: &str) -> Result<&'a str, TorchError> {
        match self.required(key)? {
            Field::Str(text) => Ok(text),
            found => Err(self.wrong(key, found, "text")),
        }
    }

    /// An error about a setting of another kind.
    pub(super) fn wrong(&self, key: &str, found: Field<'_>, expected: &'static str) -> TorchError {
        let found = match found {
            Field::None => "None",
            Field::Bool(_) => "a truth value",
            Field::Int(_) => "another whole number",
            Field::Float(_) => "a number with a fraction",
            Field::Str(_) => "text",
            Field::Other(kind) => kind,
        };
        TorchError::WrongKind { key: format!("{}.{key}", self.name), expected, found }
    }
}

/// The entries of a dict whose keys are text, each key once.
pub(super) fn named_entries<'a>(
    values: &Values<'a>,
    id: Id,
    name: &'static str,
) -> Result<BTreeMap<&'a str, Id>, CheckpointError> {
    let wrong = |found| TorchError::WrongKind { key: name.into(), expected: "a dict", found };
    let entries = values.entries(id).ok_or_else(|| wrong(values.get(id).kind()))?;
    if entries.len() > LIMIT_ENTRIES {
        return Err(wrong("a dict of very many entries").into());
    }
    let mut named = BTreeMap::new();
    for &(key, value) in entries {
        let Value::Str(key) = *values.get(key) else {
            return Err(wrong("a dict with keys that are no text").into());
        };
        if named.insert(key, value).is_some() {
            let (key, place) = (quoted(key), format!("`{name}`"));
            return Err(CheckpointError::DuplicateKey { key, place });
        }
    }
    Ok(named)
}
