//! What a pickle describes, as plain values: a flat list whose entries name each other by number.
//!
//! Shared and even cyclic values thus cost nothing, and nobody walks them by recursion.

use super::globals::{Class, StorageDtype};

/// The number of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Id(pub(super) u32);

/// A value; text borrows from the pickle.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(&'a str),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    /// A dict or an OrderedDict, in order.
    Dict(Vec<(Id, Id)>),
    /// `argparse.Namespace`; its attributes, once they are set.
    Namespace(Option<Id>),
    /// A class or function of the allow-list, not yet called.
    Class(Class),
    Storage(Storage<'a>),
    Tensor(Box<Tensor<'a>>),
}

/// Numbers in an entry of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Storage<'a> {
    /// The entry `data/KEY`.
    pub(super) key: &'a str,
    pub(super) dtype: StorageDtype,
    pub(super) elements: u64,
}

/// A view of a storage; offset and strides count elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tensor<'a> {
    pub(super) storage: Storage<'a>,
    pub(super) offset: u64,
    pub(super) shape: Vec<u64>,
    pub(super) strides: Vec<u64>,
}

impl Value<'_> {
    /// What kind of value it is, for messages.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Bool(_) => "a truth value",
            Value::Int(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Str(_) => "text",
            Value::Tuple(_) => "a tuple",
            Value::List(_) => "a list",
            Value::Dict(_) => "a dict",
            Value::Namespace(_) => "a namespace",
            Value::Class(_) => "a class",
            Value::Storage(_) => "a storage",
            Value::Tensor(_) => "a tensor",
        }
    }
}

/// All values of a pickle.
#[derive(Debug, Default)]
pub(super) struct Values<'a> {
    pub(super) all: Vec<Value<'a>>,
}

impl<'a> Values<'a> {
    /// The value of that number; numbers come from this list alone.
    pub(super) fn get(&self, id: Id) -> &Value<'a> {
        &self.all[id.0 as usize]
    }

    /// The entries of a dict, or the attributes of a namespace.
    pub(super) fn entries(&self, id: Id) -> Option<&[(Id, Id)]> {
        match self.get(id) {
            Value::Dict(entries) => Some(entries),
            Value::Namespace(None) => Some(&[]),
            Value::Namespace(Some(attributes)) => match self.get(*attributes) {
                Value::Dict(entries) => Some(entries),
                _ => None,
            },
            _ => None,
        }
    }
}
