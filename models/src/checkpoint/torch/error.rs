//! What can be wrong with a PyTorch checkpoint: one variant, one stable code and one next step for each fault.

/// Why bytes are no usable checkpoint of the reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TorchError {
    /// PyTorch's format before version 1.6, a bare pickle.
    #[error("a PyTorch file of the format before PyTorch 1.6, which is not read")]
    OldFormat,
    /// The zip archive cannot be taken apart.
    #[error("the zip archive is damaged: {reason}")]
    Archive {
        /// What the zip reader says.
        reason: String,
    },
    /// More entries than any checkpoint has.
    #[error("the zip archive has more than {limit} entries")]
    EntryCount {
        /// The most that is read.
        limit: usize,
    },
    /// An entry that is not stored as it is.
    #[error(
        "entry `{entry}` of the zip archive is compressed or encrypted; PyTorch stores entries as they are"
    )]
    NotStored {
        /// The entry.
        entry: String,
    },
    /// Entries that claim more bytes than there are, or the same ones twice.
    #[error("the entries of the zip archive claim more bytes than the file has, at `{entry}`")]
    EntryLength {
        /// The entry with which the claims grew too large.
        entry: String,
    },
    /// Two entries of one name.
    #[error("the zip archive holds `{entry}` twice")]
    EntryTwice {
        /// The entry.
        entry: String,
    },
    /// An entry whose bytes are not those that were written.
    #[error("entry `{entry}` of the zip archive does not match its checksum")]
    Checksum {
        /// The entry.
        entry: String,
    },
    /// A zip archive without the entry that every PyTorch file has.
    #[error("the zip archive holds no `{entry}`: PyTorch did not write it")]
    MissingEntry {
        /// What was looked for.
        entry: &'static str,
    },
    /// Numbers in another byte order.
    #[error("the file's byte order is `{found}`; little-endian numbers are read")]
    ByteOrder {
        /// As written.
        found: String,
    },
    /// A pickle that is too long to describe a checkpoint.
    #[error("the pickle has {found_bytes} bytes, more than the {limit_bytes} allowed")]
    PickleLength {
        /// Its length.
        found_bytes: usize,
        /// The most that is read.
        limit_bytes: usize,
    },
    /// A pickle of another protocol.
    #[error("the pickle is of protocol {found}; protocol 2, PyTorch's own, is read")]
    Protocol {
        /// As written.
        found: u8,
    },
    /// A pickle that ends within an instruction, or without the last one.
    #[error("the pickle ends too early, at byte {at_byte}")]
    PickleEnd {
        /// Offset in the pickle.
        at_byte: usize,
    },
    /// An instruction that no checkpoint needs.
    #[error("the pickle has instruction 0x{code:02x} at byte {at_byte}, which no checkpoint needs")]
    Instruction {
        /// The instruction.
        code: u8,
        /// Offset in the pickle.
        at_byte: usize,
    },
    /// A pickle that asks for a class or function other than those that a checkpoint is made of.
    #[error(
        "the pickle asks for `{name}`, which is none of the classes that a checkpoint is made of; nothing was run"
    )]
    Foreign {
        /// Module and name.
        name: String,
    },
    /// A class or function of a checkpoint, used in another way than a checkpoint does.
    #[error("the pickle misuses `{name}` at byte {at_byte}")]
    Misuse {
        /// Module and name.
        name: &'static str,
        /// Offset in the pickle.
        at_byte: usize,
    },
    /// Instructions that do not fit together.
    #[error("the pickle makes no sense at byte {at_byte}: {what}")]
    Malformed {
        /// Offset in the pickle.
        at_byte: usize,
        /// What does not fit.
        what: &'static str,
    },
    /// More values than any checkpoint has.
    #[error("the pickle makes more than {limit} values")]
    ValueCount {
        /// The most that is read.
        limit: usize,
    },
    /// The payload lacks something that the reference writes.
    #[error("the checkpoint has no `{key}`, which the reference writes")]
    MissingKey {
        /// Dotted key in the payload.
        key: String,
    },
    /// A value of another kind than the reference writes.
    #[error("`{key}` of the checkpoint is {found}, expected {expected}")]
    WrongKind {
        /// Dotted key in the payload.
        key: String,
        /// What the reference writes.
        expected: &'static str,
        /// What stands there.
        found: &'static str,
    },
    /// A setting under which the reference builds a network that this program does not have.
    #[error("`args.{key}` of the checkpoint is {found}; {supported} is supported")]
    Argument {
        /// The reference's name of the setting.
        key: String,
        /// Its value.
        found: String,
        /// What would do.
        supported: String,
    },
    /// A tensor whose storage is not in the archive.
    #[error("tensor `{name}` lies in storage `{storage}`, which the zip archive does not hold")]
    MissingStorage {
        /// The tensor.
        name: String,
        /// The storage's key.
        storage: String,
    },
    /// A storage that is cut short or too long.
    #[error(
        "storage `{storage}` of tensor `{name}` has {found_bytes} bytes, the pickle says {expected_bytes}"
    )]
    StorageLength {
        /// The tensor.
        name: String,
        /// The storage's key.
        storage: String,
        /// As the pickle says.
        expected_bytes: u64,
        /// In the archive.
        found_bytes: u64,
    },
    /// A tensor whose elements lie outside its storage.
    #[error(
        "tensor `{name}` of shape {shape:?} and strides {strides:?} reaches beyond its storage"
    )]
    BeyondStorage {
        /// The tensor.
        name: String,
        /// Its shape.
        shape: Vec<u64>,
        /// Its strides, in elements.
        strides: Vec<u64>,
    },
    /// A tensor some of whose elements are one and the same.
    #[error(
        "tensor `{name}` of shape {shape:?} has strides {strides:?}: its elements share memory"
    )]
    Strides {
        /// The tensor.
        name: String,
        /// Its shape.
        shape: Vec<u64>,
        /// Its strides, in elements.
        strides: Vec<u64>,
    },
    /// Two tensors in the same place of one storage.
    #[error(
        "tensors `{first}` and `{second}` share memory; no network of the benchmark ties weights"
    )]
    Alias {
        /// One tensor.
        first: String,
        /// The other.
        second: String,
    },
}

impl TorchError {
    /// A stable code for scripts, the page and the table in docs/formats.md.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::OldFormat => "CKPT-PT-OLD",
            Self::Archive { .. } => "CKPT-PT-ZIP",
            Self::EntryCount { .. } => "CKPT-PT-ENTRIES",
            Self::NotStored { .. } => "CKPT-PT-STORED",
            Self::EntryLength { .. } => "CKPT-PT-ENTRY-LENGTH",
            Self::EntryTwice { .. } => "CKPT-PT-ENTRY-TWICE",
            Self::Checksum { .. } => "CKPT-PT-CHECKSUM",
            Self::MissingEntry { .. } => "CKPT-PT-NO-PICKLE",
            Self::ByteOrder { .. } => "CKPT-PT-BYTE-ORDER",
            Self::PickleLength { .. } => "CKPT-PT-PICKLE-LENGTH",
            Self::Protocol { .. } => "CKPT-PT-PROTOCOL",
            Self::PickleEnd { .. } => "CKPT-PT-PICKLE-END",
            Self::Instruction { .. } => "CKPT-PT-INSTRUCTION",
            Self::Foreign { .. } => "CKPT-PT-FOREIGN",
            Self::Misuse { .. } => "CKPT-PT-MISUSE",
            Self::Malformed { .. } => "CKPT-PT-PICKLE",
            Self::ValueCount { .. } => "CKPT-PT-VALUES",
            Self::MissingKey { .. } => "CKPT-PT-MISSING-KEY",
            Self::WrongKind { .. } => "CKPT-PT-KIND",
            Self::Argument { .. } => "CKPT-PT-ARGUMENT",
            Self::MissingStorage { .. } => "CKPT-PT-NO-STORAGE",
            Self::StorageLength { .. } => "CKPT-PT-STORAGE-LENGTH",
            Self::BeyondStorage { .. } => "CKPT-PT-BEYOND-STORAGE",
            Self::Strides { .. } => "CKPT-PT-STRIDES",
            Self::Alias { .. } => "CKPT-PT-ALIAS",
        }
    }

    /// What to do next.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::OldFormat | Self::Protocol { .. } | Self::ByteOrder { .. } => {
                "load it in Python and save it again with `torch.save` of a newer PyTorch, without options"
            }
            Self::Archive { .. }
            | Self::EntryLength { .. }
            | Self::Checksum { .. }
            | Self::PickleEnd { .. }
            | Self::StorageLength { .. }
            | Self::MissingStorage { .. } => {
                "the file is incomplete or damaged: copy or download it again"
            }
            Self::NotStored { .. } => {
                "the archive was packed again: take the file that `torch.save` wrote"
            }
            Self::EntryCount { .. }
            | Self::EntryTwice { .. }
            | Self::MissingEntry { .. }
            | Self::PickleLength { .. }
            | Self::Instruction { .. }
            | Self::Misuse { .. }
            | Self::Malformed { .. }
            | Self::ValueCount { .. }
            | Self::MissingKey { .. }
            | Self::WrongKind { .. } => {
                "checkpoints that the reference's training wrote are read (latest.pt); docs/formats.md says what they hold"
            }
            Self::Foreign { .. } => {
                "do not load this file with `weights_only=False` unless you trust who made it; in Python, \
                 `torch.load(FILE, weights_only=True)` refuses it as well"
            }
            Self::Argument { .. } => {
                "this variant of the network is not part of the benchmark's tables"
            }
            Self::BeyondStorage { .. } | Self::Strides { .. } | Self::Alias { .. } => {
                "in Python, save the state_dict with every tensor made `.clone()`"
            }
        }
    }
}
