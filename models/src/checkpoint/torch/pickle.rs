//! Pickle, protocol 2, as far as PyTorch's files use it: a machine that builds values and never runs anything.
//!
//! Classes and functions are looked up in an allow-list ([`Class`]); each call makes the value that it stands for. Work
//! and memory are bounded by the pickle's length, which is bounded itself.

use std::collections::BTreeMap;

use super::{
    TorchError,
    globals::Class,
    value::{Id, Storage, Tensor, Value, Values},
};

/// The longest pickle that is read; that of the largest network of the benchmark, with optimiser, has 0.2 MiB.
const LIMIT_BYTES: usize = 4 << 20;
/// The most values that are made: at 32 bytes each, and lists that name them.
const LIMIT_VALUES: usize = 1 << 18;
/// The most extents of a tensor.
const LIMIT_DIMS: usize = 8;

/// Reads a pickle: the values, and which of them is the whole.
pub(super) fn read(pickle: &[u8]) -> Result<(Values<'_>, Id), TorchError> {
    if pickle.len() > LIMIT_BYTES {
        let (found_bytes, limit_bytes) = (pickle.len(), LIMIT_BYTES);
        return Err(TorchError::PickleLength { found_bytes, limit_bytes });
    }
    let mut machine = Machine { pickle, ..Machine::default() };
    let whole = machine.run()?;
    Ok((machine.values, whole))
}

#[derive(Debug, Default)]
struct Machine<'a> {
    pickle: &'a [u8],
    /// The next byte.
    at: usize,
    /// Where the instruction began.
    began: usize,
    values: Values<'a>,
    stack: Vec<Id>,
    /// Heights of the stack at which a list of items begins.
    marks: Vec<usize>,
    memo: BTreeMap<u32, Id>,
}

impl<'a> Machine<'a> {
    fn run(&mut self) -> Result<Id, TorchError> {
        loop {
            self.began = self.at;
            let code = self.bytes::<1>()?[0];
            match code {
                0x80 => {
                    let [found] = self.bytes()?;
                    if found != 2 {
                        return Err(TorchError::Protocol { found });
                    }
                }
                b'.' => {
                    let whole = self.pop()?;
                    return if self.stack.is_empty() && self.marks.is_empty() {
                        Ok(whole)
                    } else {
                        Err(self.malformed("values are left over"))
                    };
                }
                b'N' => self.make(Value::None)?,
                0x88 => self.make(Value::Bool(true))?,
                0x89 => self.make(Value::Bool(false))?,
                b'K' => {
                    let [byte] = self.bytes()?;
                    self.make(Value::Int(byte.into()))?;
                }
                b'M' => {
                    let value = u16::from_le_bytes(self.bytes()?);
                    self.make(Value::Int(value.into()))?;
                }
                b'J' => {
                    let value = i32::from_le_bytes(self.bytes()?);
                    self.make(Value::Int(value.into()))?;
                }
                0x8a => self.long()?,
                b'G' => {
                    let value = f64::from_be_bytes(self.bytes()?);
                    self.make(Value::Float(value))?;
                }
                b'X' => {
                    let length = u32::from_le_bytes(self.bytes()?) as usize;
                    let bytes = self.slice(length)?;
                    let text = str::from_utf8(bytes)
                        .map_err(|_| self.malformed("text that is no UTF-8"))?;
                    self.make(Value::Str(text))?;
                }
                b'(' => self.marks.push(self.stack.len()),
                b')' => self.make(Value::Tuple(Vec::new()))?,
                0x85..=0x87 => {
                    let items = self.top(usize::from(code - 0x84))?;
                    self.make(Value::Tuple(items))?;
                }
                b't' => {
                    let items = self.since_mark()?;
                    self.make(Value::Tuple(items))?;
                }
                b']' => self.make(Value::List(Vec::new()))?,
                b'a' => {
                    let items = self.top(1)?;
                    self.append(items)?;
                }
                b'e' => {
                    let items = self.since_mark()?;
                    self.append(items)?;
                }
                b'}' => self.make(Value::Dict(Vec::new()))?,
                b's' => {
                    let items = self.top(2)?;
                    self.set(&items)?;
                }
                b'u' => {
                    let items = self.since_mark()?;
                    self.set(&items)?;
                }
                b'q' => {
                    let [index] = self.bytes()?;
                    self.remember(index.into())?;
                }
                b'r' => {
                    let index = u32::from_le_bytes(self.bytes()?);
                    self.remember(index)?;
                }
                b'h' => {
                    let [index] = self.bytes()?;
                    self.recall(index.into())?;
                }
                b'j' => {
                    let index = u32::from_le_bytes(self.bytes()?);
                    self.recall(index)?;
                }
                b'c' => {
                    let (module, name) = (self.line()?, self.line()?);
                    let class = Class::find(module, name)?;
                    self.make(Value::Class(class))?;
                }
                b'Q' => self.storage()?,
                b'R' => self.call()?,
                0x81 => self.new_object()?,
                b'b' => self.build()?,
                code => return Err(TorchError::Instruction { code, at_byte: self.began }),
            }
        }
    }

    fn malformed(&self, what: &'static str) -> TorchError {
        TorchError::Malformed { at_byte: self.began, what }
    }

    fn slice(&mut self, length: usize) -> Result<&'a [u8], TorchError> {
        let pickle = self.pickle;
        let found = self.at.checked_add(length).and_then(|end| pickle.get(self.at..end));
        let found = found.ok_or(TorchError::PickleEnd { at_byte: pickle.len() })?;
        self.at += length;
        Ok(found)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], TorchError> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.slice(N)?);
        Ok(bytes)
    }

    fn line(&mut self) -> Result<&'a str, TorchError> {
        let rest = &self.pickle[self.at..];
        let length = rest.iter().position(|&byte| byte == b'\n');
        let length = length.ok_or(TorchError::PickleEnd { at_byte: self.pickle.len() })?;
        let line = str::from_utf8(&rest[..length])
            .map_err(|_| self.malformed("a name that is no UTF-8"))?;
        self.at += length + 1;
        Ok(line)
    }

    fn add(&mut self, value: Value<'a>) -> Result<Id, TorchError> {
        if self.values.all.len() == LIMIT_VALUES {
            return Err(TorchError::ValueCount { limit: LIMIT_VALUES });
        }
        self.values.all.push(value);
        // Within the limit, numbers fit.
        Ok(Id(self.values.all.len() as u32 - 1))
    }

    fn make(&mut self, value: Value<'a>) -> Result<(), TorchError> {
        let id = self.add(value)?;
        self.stack.push(id);
        Ok(())
    }

    /// Where the values behind the last mark begin: nobody takes from below it.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn pop(&mut self) -> Result<Id, TorchError> {
        if self.stack.len() <= self.floor() {
            return Err(self.malformed("a value is missing"));
        }
        self.stack.pop().ok_or_else(|| self.malformed("a value is missing"))
    }

    fn top(&mut self, count: usize) -> Result<Vec<Id>, TorchError> {
        match self.stack.len().checked_sub(count).filter(|&at| at >= self.floor()) {
            Some(at) => Ok(self.stack.split_off(at)),
            None => Err(self.malformed("a value is missing")),
        }
    }

    fn since_mark(&mut self) -> Result<Vec<Id>, TorchError> {
        let mark = self.marks.pop().ok_or_else(|| self.malformed("a mark is missing"))?;
        Ok(self.stack.split_off(mark))
    }

    fn target(&self) -> Result<usize, TorchError> {
        match self.stack.last() {
            Some(id) if self.stack.len() > self.floor() => Ok(id.0 as usize),
            _ => Err(self.malformed("a value is missing")),
        }
    }

    fn append(&mut self, items: Vec<Id>) -> Result<(), TorchError> {
        let target = self.target()?;
        match &mut self.values.all[target] {
            Value::List(list) => list.extend(items),
            _ => return Err(self.malformed("items for what is no list")),
        }
        Ok(())
    }

    fn set(&mut self, items: &[Id]) -> Result<(), TorchError> {
        let target = self.target()?;
        let (pairs, odd) = items.as_chunks::<2>();
        match &mut self.values.all[target] {
            Value::Dict(entries) if odd.is_empty() => {
                entries.extend(pairs.iter().map(|&[key, value]| (key, value)));
            }
            _ => return Err(self.malformed("entries for what is no dict")),
        }
        Ok(())
    }

    fn remember(&mut self, index: u32) -> Result<(), TorchError> {
        let target = self.target()? as u32;
        // As many as there are instructions that remember: bounded by the pickle's length.
        self.memo.insert(index, Id(target));
        Ok(())
    }

    fn recall(&mut self, index: u32) -> Result<(), TorchError> {
        let id = self.memo.get(&index).copied();
        self.stack.push(id.ok_or_else(|| self.malformed("nothing was remembered there"))?);
        Ok(())
    }

    fn long(&mut self) -> Result<(), TorchError> {
        let [length] = self.bytes()?;
        let bytes = self.slice(length.into())?;
        if bytes.len() > 8 {
            return Err(self.malformed("a whole number beyond 64 bits"));
        }
        // Two's complement, little-endian, as short as can be.
        let fill = if bytes.last().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 };
        let mut whole = [fill; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        self.make(Value::Int(i64::from_le_bytes(whole)))
    }

    /// A persistent id: `("storage", storage class, key, device, elements)`.
    fn storage(&mut self) -> Result<(), TorchError> {
        let id = self.pop()?;
        let Value::Tuple(parts) = self.values.get(id) else {
            return Err(self.malformed("a persistent id that is no storage"));
        };
        let parts: Vec<&Value<'a>> = parts.iter().map(|&part| self.values.get(part)).collect();
        let storage = match parts[..] {
            [
                Value::Str("storage"),
                Value::Class(Class::Storage(dtype)),
                Value::Str(key),
                Value::Str(_),
                Value::Int(elements @ 0..),
            ] => Storage { key, dtype: *dtype, elements: *elements as u64 },
            _ => return Err(self.malformed("a persistent id that is no storage")),
        };
        self.make(Value::Storage(storage))
    }

    fn call(&mut self) -> Result<(), TorchError> {
        let arguments = self.pop()?;
        let (class, arguments) = (self.class()?, self.tuple(arguments)?);
        let misuse = TorchError::Misuse { name: class.name(), at_byte: self.began };
        let parts: Vec<&Value<'a>> = arguments.iter().map(|&part| self.values.get(part)).collect();
        match (class, &parts[..]) {
            (Class::OrderedDict, []) => self.make(Value::Dict(Vec::new())),
            // Offset, shape and strides count elements; the rest (gradients, hooks, metadata) is no matter of weights.
            (
                Class::RebuildTensor,
                [
                    Value::Storage(storage),
                    Value::Int(offset @ 0..),
                    Value::Tuple(shape),
                    Value::Tuple(strides),
                    Value::Bool(_),
                    Value::Dict(_),
                    ..,
                ],
            ) if shape.len() == strides.len() && shape.len() <= LIMIT_DIMS && parts.len() <= 7 => {
                let (storage, offset) = (*storage, *offset as u64);
                let (shape, strides) = (self.extents(shape), self.extents(strides));
                let (Some(shape), Some(strides)) = (shape, strides) else { return Err(misuse) };
                self.make(Value::Tensor(Box::new(Tensor { storage, offset, shape, strides })))
            }
            (Class::RebuildParameter, [Value::Tensor(_), Value::Bool(_), Value::Dict(_)]) => {
                self.stack.push(arguments[0]);
                Ok(())
            }
            _ => Err(misuse),
        }
    }

    fn extents(&self, ids: &[Id]) -> Option<Vec<u64>> {
        let extent = |id: &Id| match self.values.get(*id) {
            Value::Int(extent @ 0..) => Some(*extent as u64),
            _ => None,
        };
        ids.iter().map(extent).collect()
    }

    fn new_object(&mut self) -> Result<(), TorchError> {
        let arguments = self.pop()?;
        let (class, arguments) = (self.class()?, self.tuple(arguments)?);
        match (class, &arguments[..]) {
            (Class::Namespace, []) => self.make(Value::Namespace(None)),
            (Class::TorchVersion, &[text]) if matches!(self.values.get(text), Value::Str(_)) => {
                self.stack.push(text);
                Ok(())
            }
            _ => Err(TorchError::Misuse { name: class.name(), at_byte: self.began }),
        }
    }

    /// Attributes for the object below: those of a namespace are its values; PyTorch notes versions on an OrderedDict.
    fn build(&mut self) -> Result<(), TorchError> {
        let state = self.pop()?;
        let target = self.target()?;
        if !matches!(self.values.get(state), Value::Dict(_)) {
            return Err(self.malformed("attributes that are no dict"));
        }
        match &mut self.values.all[target] {
            Value::Namespace(attributes @ None) => *attributes = Some(state),
            Value::Dict(_) => {}
            _ => return Err(self.malformed("attributes for what can have none")),
        }
        Ok(())
    }

    fn class(&mut self) -> Result<Class, TorchError> {
        let id = self.pop()?;
        match self.values.get(id) {
            Value::Class(class) => Ok(*class),
            _ => Err(self.malformed("a call of what cannot be called")),
        }
    }

    fn tuple(&self, id: Id) -> Result<Vec<Id>, TorchError> {
        match self.values.get(id) {
            Value::Tuple(items) => Ok(items.clone()),
            _ => Err(self.malformed("arguments that are no tuple")),
        }
    }
}
