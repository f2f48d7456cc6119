//! What can be wrong with a checkpoint: one variant, one stable code and one next step for each fault.
//!
//! A message says what is wrong and where; [`CheckpointError::hint`] says what to do next. Text that comes from the
//! file is escaped and cut ([`quoted`]), so that a hostile name can neither flood nor steer a terminal.

pub use super::quote::quoted;
use super::torch::TorchError;

/// Why bytes are no usable checkpoint, or why a checkpoint cannot be written.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CheckpointError {
    /// The file is of another kind altogether.
    #[error("not a safetensors file: it looks like {kind}")]
    OtherKind {
        /// What the first bytes look like.
        kind: &'static str,
    },
    /// The file ends before its header does.
    #[error(
        "the file is cut short: its header needs {needed_bytes} bytes, the file has {file_bytes}"
    )]
    Truncated {
        /// Bytes up to the end of the header.
        needed_bytes: u64,
        /// Bytes in the file.
        file_bytes: u64,
    },
    /// The header claims to be longer than any checkpoint's.
    #[error("the header claims {claimed_bytes} bytes, more than the {limit_bytes} allowed")]
    HeaderTooLong {
        /// Length as the first eight bytes give it.
        claimed_bytes: u64,
        /// The most that is read.
        limit_bytes: u64,
    },
    /// The header is no UTF-8.
    #[error("the header is not UTF-8 at byte {at_byte}")]
    HeaderUtf8 {
        /// Offset in the file.
        at_byte: u64,
    },
    /// The header nests deeper than the format does.
    #[error("the header's JSON nests deeper than {limit} levels at byte {at_byte}")]
    HeaderTooDeep {
        /// Offset in the file.
        at_byte: u64,
        /// Levels that the format needs.
        limit: usize,
    },
    /// The header is no JSON.
    #[error("the header is not valid JSON: {reason}")]
    HeaderJson {
        /// The parser's words.
        reason: String,
    },
    /// The header is JSON of another shape.
    #[error("the header's entry `{name}` is malformed: {reason}")]
    HeaderEntry {
        /// The tensor, or `__metadata__`.
        name: String,
        /// What is malformed.
        reason: String,
    },
    /// A key occurs twice in one object.
    #[error("the key `{key}` occurs twice in {place}")]
    DuplicateKey {
        /// The key.
        key: String,
        /// The object.
        place: String,
    },
    /// More tensors than any checkpoint has.
    #[error("the header lists more than {limit} tensors")]
    TooManyTensors {
        /// The most that is read.
        limit: usize,
    },
    /// The file has no tensors.
    #[error("the file holds no tensors")]
    NoTensors,
    /// A number format that is not read.
    #[error("tensor `{name}` has dtype `{dtype}`; F32 and F16 are read")]
    Dtype {
        /// The tensor.
        name: String,
        /// Its dtype as written.
        dtype: String,
    },
    /// The end of a tensor's bytes lies before their start.
    #[error("tensor `{name}` has reversed offsets: {begin}..{end}")]
    ReversedOffsets {
        /// The tensor.
        name: String,
        /// First byte, counted from the end of the header.
        begin: u64,
        /// One past the last byte.
        end: u64,
    },
    /// A shape whose size in bytes does not fit 64 bits.
    #[error("tensor `{name}` has a shape whose size overflows")]
    ShapeOverflow {
        /// The tensor.
        name: String,
    },
    /// The bytes of a tensor are not what its shape and dtype need.
    #[error(
        "tensor `{name}` spans {found_bytes} bytes, but its shape and dtype need {expected_bytes}"
    )]
    WrongLength {
        /// The tensor.
        name: String,
        /// Shape x dtype.
        expected_bytes: u64,
        /// As the offsets say.
        found_bytes: u64,
    },
    /// A tensor's bytes lie beyond the end of the file.
    #[error("tensor `{name}` ends at byte {end} of the data, but the file has only {data_bytes}")]
    OutOfRange {
        /// The tensor.
        name: String,
        /// One past its last byte, counted from the end of the header.
        end: u64,
        /// Bytes behind the header.
        data_bytes: u64,
    },
    /// Two tensors share bytes.
    #[error("tensors `{first}` and `{second}` overlap at byte {at} of the data")]
    Overlap {
        /// The tensor that starts first.
        first: String,
        /// The other.
        second: String,
        /// First shared byte, counted from the end of the header.
        at: u64,
    },
    /// Bytes that no tensor owns, before or between tensors.
    #[error("{bytes} bytes before tensor `{name}` belong to no tensor")]
    Gap {
        /// The tensor behind the gap.
        name: String,
        /// Length of the gap.
        bytes: u64,
    },
    /// Bytes that no tensor owns, behind the last one.
    #[error("{bytes} bytes behind the last tensor belong to no tensor")]
    TrailingBytes {
        /// How many.
        bytes: u64,
    },
    /// A version of our metadata that this program does not know.
    #[error("the checkpoint's format is `{found}`; this version reads `{known}`")]
    Format {
        /// As the metadata says.
        found: String,
        /// What is read.
        known: &'static str,
    },
    /// No config, neither in the file nor beside it.
    #[error(
        "the checkpoint has no config: neither `{key}` in its metadata nor a config.json beside it"
    )]
    NoConfig {
        /// The metadata key that was looked for.
        key: &'static str,
    },
    /// A config that is too long to be one.
    #[error("{place} is {found_bytes} bytes long, more than the {limit_bytes} allowed")]
    ConfigTooLong {
        /// `config.json` or the metadata key.
        place: &'static str,
        /// Its length.
        found_bytes: usize,
        /// The most that is read.
        limit_bytes: usize,
    },
    /// A config that cannot be read.
    #[error("{place} is not a valid config: {reason}")]
    Config {
        /// `config.json` or the metadata key.
        place: &'static str,
        /// What is wrong, and where.
        reason: String,
    },
    /// A config of a family that this program does not know.
    #[error("unknown family `{family}` in {place}; known: {known}")]
    UnknownFamily {
        /// `config.json` or the metadata key.
        place: &'static str,
        /// As written.
        family: String,
        /// The families.
        known: String,
    },
    /// A key that no config of the family has.
    #[error("unknown key `{key}` in {place}")]
    UnknownKey {
        /// `config.json` or the metadata key.
        place: &'static str,
        /// As written.
        key: String,
        /// The nearest known key, if one is near.
        nearest: Option<String>,
    },
    /// config.json and the embedded config describe different networks.
    #[error("config.json and the config inside the file disagree about {keys}")]
    ConfigsDisagree {
        /// The keys that differ.
        keys: String,
    },
    /// A vocabulary that is not the benchmark's.
    #[error(
        "the checkpoint's vocabulary has {tokens} tokens with START {start} and PAD {pad}; \
         the benchmark's has 20482, 20480 and 20481"
    )]
    Vocabulary {
        /// Tokens in the checkpoint's.
        tokens: usize,
        /// Its START.
        start: u16,
        /// Its PAD.
        pad: u16,
    },
    /// Metadata names a kind of embedding that this program does not know.
    #[error("unknown kind of embedding `{found}` in the metadata; known: full, reachable")]
    EmbeddingKind {
        /// As written.
        found: String,
    },
    /// A tensor that the config needs is absent.
    #[error("tensor `{name}` is missing, which the config calls for")]
    MissingTensor {
        /// The first one missing.
        name: String,
    },
    /// A tensor that the config does not know.
    #[error("tensor `{name}` does not belong to the network of the config")]
    ExtraTensor {
        /// The first one too many.
        name: String,
    },
    /// A tensor of another shape than the config says.
    #[error("tensor `{name}` has shape {found:?}, the config says {expected:?}")]
    WrongShape {
        /// The tensor.
        name: String,
        /// As the config says.
        expected: Vec<usize>,
        /// As the file says.
        found: Vec<u64>,
    },
    /// A weight is infinite or not a number.
    #[error("tensor `{name}` holds {value} at element {index}")]
    NonFinite {
        /// The tensor.
        name: String,
        /// Row-major position.
        index: usize,
        /// `NaN`, `inf` or `-inf`.
        value: f32,
    },
    /// A weight is too large for f16 (writing only).
    #[error("tensor `{name}` holds {value} at element {index}, which f16 cannot hold")]
    F16Range {
        /// The tensor.
        name: String,
        /// Row-major position.
        index: usize,
        /// The weight.
        value: f32,
    },
    /// The data of a tensor are fewer or more than its shape says (writing only).
    #[error("tensor `{name}` of shape {shape:?} has {found} values")]
    Inconsistent {
        /// The tensor.
        name: String,
        /// Its shape.
        shape: Vec<usize>,
        /// Values present.
        found: usize,
    },
    /// A fault of a PyTorch checkpoint.
    #[error(transparent)]
    Torch(#[from] TorchError),
}

impl CheckpointError {
    /// A stable code for scripts, the page and the table in docs/formats.md.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::OtherKind { .. } => "CKPT-KIND",
            Self::Truncated { .. } => "CKPT-TRUNCATED",
            Self::HeaderTooLong { .. } => "CKPT-HEADER-LENGTH",
            Self::HeaderUtf8 { .. } => "CKPT-HEADER-UTF8",
            Self::HeaderTooDeep { .. } => "CKPT-HEADER-DEPTH",
            Self::HeaderJson { .. } => "CKPT-HEADER-JSON",
            Self::HeaderEntry { .. } => "CKPT-HEADER-ENTRY",
            Self::DuplicateKey { .. } => "CKPT-DUPLICATE",
            Self::TooManyTensors { .. } => "CKPT-TENSOR-COUNT",
            Self::NoTensors => "CKPT-EMPTY",
            Self::Dtype { .. } => "CKPT-DTYPE",
            Self::ReversedOffsets { .. } => "CKPT-OFFSETS",
            Self::ShapeOverflow { .. } => "CKPT-SHAPE-OVERFLOW",
            Self::WrongLength { .. } => "CKPT-LENGTH",
            Self::OutOfRange { .. } => "CKPT-RANGE",
            Self::Overlap { .. } => "CKPT-OVERLAP",
            Self::Gap { .. } => "CKPT-GAP",
            Self::TrailingBytes { .. } => "CKPT-TRAILING",
            Self::Format { .. } => "CKPT-FORMAT",
            Self::NoConfig { .. } => "CKPT-NO-CONFIG",
            Self::ConfigTooLong { .. } => "CKPT-CONFIG-LENGTH",
            Self::Config { .. } => "CKPT-CONFIG",
            Self::UnknownFamily { .. } => "CKPT-FAMILY",
            Self::UnknownKey { .. } => "CKPT-CONFIG-KEY",
            Self::ConfigsDisagree { .. } => "CKPT-CONFIGS-DISAGREE",
            Self::Vocabulary { .. } => "CKPT-VOCABULARY",
            Self::EmbeddingKind { .. } => "CKPT-EMBEDDING",
            Self::MissingTensor { .. } => "CKPT-MISSING",
            Self::ExtraTensor { .. } => "CKPT-EXTRA",
            Self::WrongShape { .. } => "CKPT-SHAPE",
            Self::NonFinite { .. } => "CKPT-NON-FINITE",
            Self::F16Range { .. } => "CKPT-F16-RANGE",
            Self::Inconsistent { .. } => "CKPT-INCONSISTENT",
            Self::Torch(error) => error.code(),
        }
    }

    /// What to do next.
    pub fn hint(&self) -> String {
        match self {
            Self::OtherKind { .. } => {
                "give a .safetensors file, or a folder with config.json and model.safetensors".into()
            }
            Self::Truncated { .. } | Self::OutOfRange { .. } => {
                "the file is incomplete: copy or download it again".into()
            }
            Self::HeaderTooLong { .. }
            | Self::HeaderUtf8 { .. }
            | Self::HeaderTooDeep { .. }
            | Self::HeaderJson { .. }
            | Self::HeaderEntry { .. } => {
                "this is no safetensors file, or a damaged one: copy or download it again".into()
            }
            Self::DuplicateKey { .. }
            | Self::ReversedOffsets { .. }
            | Self::ShapeOverflow { .. }
            | Self::WrongLength { .. }
            | Self::Overlap { .. }
            | Self::Gap { .. }
            | Self::TrailingBytes { .. } => {
                "the file breaks the safetensors format: write it again with the tool that made it".into()
            }
            Self::TooManyTensors { .. } | Self::NoTensors => {
                "this is not a checkpoint of one of the benchmark's networks".into()
            }
            Self::Dtype { .. } => "save the weights as float32 or float16".into(),
            Self::Format { .. } => "use a newer version of cwm, or export the checkpoint again".into(),
            Self::NoConfig { .. } => {
                "put the config.json of the network beside the file, or take a file that `cwm export` wrote".into()
            }
            Self::ConfigTooLong { .. } | Self::Config { .. } => {
                "compare it with the config of a checkpoint that loads; docs/formats.md lists the keys".into()
            }
            Self::UnknownFamily { .. } => {
                "the family may need a newer version of cwm; `cwm --version` tells yours".into()
            }
            Self::UnknownKey { nearest: Some(nearest), .. } => format!("did you mean `{nearest}`?"),
            Self::UnknownKey { .. } => "remove the key; docs/formats.md lists the known ones".into(),
            Self::ConfigsDisagree { .. } => {
                "the folder mixes two checkpoints: take config.json and model.safetensors from the same one".into()
            }
            Self::Vocabulary { .. } => {
                "only checkpoints of the benchmark's vocabulary can be graded; docs/formats.md describes it".into()
            }
            Self::EmbeddingKind { .. } => {
                "the file may come from a newer version of cwm: export it there with `--full`".into()
            }
            Self::MissingTensor { .. } | Self::ExtraTensor { .. } | Self::WrongShape { .. } => {
                "config and weights belong to different networks, or the names are not the reference's: \
                 docs/formats.md lists them"
                    .into()
            }
            Self::NonFinite { .. } => "the training diverged or the file is damaged: take an earlier checkpoint".into(),
            Self::F16Range { .. } => "export with `--dtype f32`".into(),
            Self::Inconsistent { .. } => "this is an error of the program that made the tensor".into(),
            Self::Torch(error) => error.hint().into(),
        }
    }
}
