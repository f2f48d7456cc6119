//! The JSON of a safetensors header as typed values, read in one pass: keys that occur twice, too many tensors and
//! values of the wrong kind are faults of their own, found before anything behind them is read.

use std::{collections::BTreeMap, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::{
    error::{CheckpointError, quoted},
    header::{Dtype, NAME_LIMIT_BYTES, RANK_LIMIT, TENSOR_LIMIT},
};

/// The header as written: nothing compared with the file yet.
#[derive(Default)]
pub(super) struct RawHeader {
    /// Tensors by name.
    pub tensors: BTreeMap<String, RawEntry>,
    /// `__metadata__`.
    pub metadata: BTreeMap<String, String>,
}

/// One tensor as written.
pub(super) struct RawEntry {
    /// Number format.
    pub dtype: Dtype,
    /// Dimensions.
    pub shape: Vec<u64>,
    /// Start and end, counted from the end of the header.
    pub offsets: [u64; 2],
}

/// Reads the JSON, whose depth has been checked.
pub(super) fn parse_json(json: &str) -> Result<RawHeader, CheckpointError> {
    // serde's errors carry text alone; a fault of our own kinds travels beside them.
    let mut fault = None;
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let result = deserializer
        .deserialize_map(HeaderVisitor { fault: &mut fault })
        .and_then(|raw| deserializer.end().map(|()| raw));
    match (fault, result) {
        (Some(fault), _) => Err(fault),
        (None, Ok(raw)) => Ok(raw),
        (None, Err(e)) => Err(CheckpointError::HeaderJson { reason: quoted(&e.to_string()) }),
    }
}

/// Notes a fault and stops the parser.
fn stop<T, E: serde::de::Error>(
    slot: &mut Option<CheckpointError>,
    fault: CheckpointError,
) -> Result<T, E> {
    *slot = Some(fault);
    Err(E::custom("fault"))
}

struct HeaderVisitor<'f> {
    fault: &'f mut Option<CheckpointError>,
}

impl<'de> Visitor<'de> for HeaderVisitor<'_> {
    type Value = RawHeader;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawHeader, A::Error> {
        let mut raw = RawHeader::default();
        let mut has_metadata = false;
        while let Some(name) = map.next_key::<String>()? {
            if name == "__metadata__" {
                if std::mem::replace(&mut has_metadata, true) {
                    return stop(self.fault, duplicate(&name, "the header"));
                }
                raw.metadata = map.next_value_seed(MetadataSeed { fault: self.fault })?;
                continue;
            }
            if name.is_empty() || name.len() > NAME_LIMIT_BYTES {
                let reason =
                    format!("a name has 1 to {NAME_LIMIT_BYTES} bytes, this one {}", name.len());
                return stop(
                    self.fault,
                    CheckpointError::HeaderEntry { name: quoted(&name), reason },
                );
            }
            if raw.tensors.contains_key(&name) {
                return stop(self.fault, duplicate(&name, "the header"));
            }
            if raw.tensors.len() == TENSOR_LIMIT {
                return stop(self.fault, CheckpointError::TooManyTensors { limit: TENSOR_LIMIT });
            }
            let entry = map.next_value_seed(EntrySeed { name: &name, fault: self.fault })?;
            raw.tensors.insert(name, entry);
        }
        Ok(raw)
    }
}

fn duplicate(key: &str, place: &str) -> CheckpointError {
    CheckpointError::DuplicateKey { key: quoted(key), place: place.into() }
}

struct MetadataSeed<'f> {
    fault: &'f mut Option<CheckpointError>,
}

impl<'de> DeserializeSeed<'de> for MetadataSeed<'_> {
    type Value = BTreeMap<String, String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let MetadataSeed { fault } = self;
        let result = deserializer.deserialize_map(MetadataSeed { fault: &mut *fault });
        entry_fault(result, "__metadata__", fault)
    }
}

impl<'de> Visitor<'de> for MetadataSeed<'_> {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut metadata = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            if metadata.contains_key(&key) {
                return stop(self.fault, duplicate(&key, "`__metadata__`"));
            }
            metadata.insert(key, map.next_value()?);
        }
        Ok(metadata)
    }
}

/// Gives a value of the wrong kind the name of the entry that it stands in; faults already noted and those of the
/// syntax stay what they are.
fn entry_fault<T, E: serde::de::Error>(
    result: Result<T, E>,
    name: &str,
    slot: &mut Option<CheckpointError>,
) -> Result<T, E> {
    result.or_else(|e| {
        if slot.is_some() {
            return Err(e);
        }
        let reason = e.to_string();
        if reason.starts_with("invalid type") || reason.starts_with("invalid value") {
            return stop(
                slot,
                CheckpointError::HeaderEntry { name: quoted(name), reason: quoted(&reason) },
            );
        }
        Err(e)
    })
}

struct EntrySeed<'n, 'f> {
    name: &'n str,
    fault: &'f mut Option<CheckpointError>,
}

impl EntrySeed<'_, '_> {
    fn malformed<T, E: serde::de::Error>(self, reason: impl Into<String>) -> Result<T, E> {
        let name = quoted(self.name);
        stop(self.fault, CheckpointError::HeaderEntry { name, reason: reason.into() })
    }
}

impl<'de> DeserializeSeed<'de> for EntrySeed<'_, '_> {
    type Value = RawEntry;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RawEntry, D::Error> {
        let EntrySeed { name, fault } = self;
        let result = deserializer.deserialize_map(EntrySeed { name, fault: &mut *fault });
        entry_fault(result, name, fault)
    }
}

impl<'de> Visitor<'de> for EntrySeed<'_, '_> {
    type Value = RawEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with dtype, shape and data_offsets")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawEntry, A::Error> {
        let (mut dtype, mut shape, mut offsets) = (None, None, None);
        while let Some(key) = map.next_key::<String>()? {
            let seen = match key.as_str() {
                "dtype" => {
                    let written = map.next_value::<String>()?;
                    let known = [Dtype::F32, Dtype::F16].into_iter().find(|d| d.name() == written);
                    let Some(known) = known else {
                        let (name, dtype) = (quoted(self.name), quoted(&written));
                        return stop(self.fault, CheckpointError::Dtype { name, dtype });
                    };
                    dtype.replace(known).is_some()
                }
                "shape" => shape.replace(map.next_value_seed(Integers)?).is_some(),
                "data_offsets" => offsets.replace(map.next_value_seed(Integers)?).is_some(),
                _ => return self.malformed(format!("unknown key `{}`", quoted(&key))),
            };
            if seen {
                let place = format!("tensor `{}`", quoted(self.name));
                return stop(self.fault, duplicate(&key, &place));
            }
        }
        let (Some(dtype), Some(shape), Some(offsets)) = (dtype, shape, offsets) else {
            return self.malformed("dtype, shape and data_offsets are all needed");
        };
        let Ok(offsets) = <[u64; 2]>::try_from(offsets) else {
            return self.malformed("data_offsets are two numbers");
        };
        Ok(RawEntry { dtype, shape, offsets })
    }
}

/// A few non-negative integers.
struct Integers;

impl<'de> DeserializeSeed<'de> for Integers {
    type Value = Vec<u64>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<u64>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Integers {
    type Value = Vec<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {RANK_LIMIT} non-negative integers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<u64>, A::Error> {
        let mut numbers = Vec::new();
        while let Some(number) = seq.next_element()? {
            if numbers.len() == RANK_LIMIT {
                return Err(A::Error::invalid_value(
                    serde::de::Unexpected::Other("a longer list"),
                    &self,
                ));
            }
            numbers.push(number);
        }
        Ok(numbers)
    }
}
