//! The classes and functions that a checkpoint may ask for. None of them is run: each stands for a kind of value.

use super::TorchError;
use crate::checkpoint::error::quoted;

/// A class or function of the allow-list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    OrderedDict,
    RebuildTensor,
    RebuildParameter,
    TorchVersion,
    Namespace,
    Storage(StorageDtype),
}

/// Number formats that PyTorch stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StorageDtype {
    F64,
    F32,
    F16,
    BF16,
    I64,
    I32,
    I16,
    I8,
    U8,
    Bool,
}

impl StorageDtype {
    /// Its name as safetensors has it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            StorageDtype::F64 => "F64",
            StorageDtype::F32 => "F32",
            StorageDtype::F16 => "F16",
            StorageDtype::BF16 => "BF16",
            StorageDtype::I64 => "I64",
            StorageDtype::I32 => "I32",
            StorageDtype::I16 => "I16",
            StorageDtype::I8 => "I8",
            StorageDtype::U8 => "U8",
            StorageDtype::Bool => "BOOL",
        }
    }
}

/// Every class and function that is known, by module and name.
const KNOWN: [(&str, &str, Class); 15] = [
    ("collections", "OrderedDict", Class::OrderedDict),
    ("torch._utils", "_rebuild_tensor_v2", Class::RebuildTensor),
    ("torch._utils", "_rebuild_parameter", Class::RebuildParameter),
    ("torch.torch_version", "TorchVersion", Class::TorchVersion),
    ("argparse", "Namespace", Class::Namespace),
    ("torch", "DoubleStorage", Class::Storage(StorageDtype::F64)),
    ("torch", "FloatStorage", Class::Storage(StorageDtype::F32)),
    ("torch", "HalfStorage", Class::Storage(StorageDtype::F16)),
    ("torch", "BFloat16Storage", Class::Storage(StorageDtype::BF16)),
    ("torch", "LongStorage", Class::Storage(StorageDtype::I64)),
    ("torch", "IntStorage", Class::Storage(StorageDtype::I32)),
    ("torch", "ShortStorage", Class::Storage(StorageDtype::I16)),
    ("torch", "CharStorage", Class::Storage(StorageDtype::I8)),
    ("torch", "ByteStorage", Class::Storage(StorageDtype::U8)),
    ("torch", "BoolStorage", Class::Storage(StorageDtype::Bool)),
];

impl Class {
    /// Looks a class or function up.
    ///
    /// # Errors
    /// [`TorchError::Foreign`], whose message names it.
    pub(super) fn find(module: &str, name: &str) -> Result<Self, TorchError> {
        let known = KNOWN.iter().find(|(m, n, _)| (*m, *n) == (module, name));
        known.map(|(_, _, class)| *class).ok_or_else(|| {
            let name = format!("{}.{}", quoted(module), quoted(name));
            TorchError::Foreign { name }
        })
    }

    /// Its name, for messages.
    pub(super) fn name(self) -> &'static str {
        KNOWN.iter().find(|(_, _, class)| *class == self).map_or("", |(_, name, _)| name)
    }
}
