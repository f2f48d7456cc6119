//! Writes files as `torch.save` does, sound ones and damaged ones: a stored zip archive with a pickle of protocol 2.

use cwm_models::{ModelConfig, Parameters};

/// A value to pickle.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// `None`.
    None,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// Text.
    Str(String),
    /// A list.
    List(Vec<Item>),
    /// A dict.
    Dict(Vec<(Item, Item)>),
    /// An OrderedDict.
    Ordered(Vec<(Item, Item)>),
    /// An `argparse.Namespace`.
    Namespace(Vec<(Item, Item)>),
    /// A `torch.torch_version.TorchVersion`.
    Version(String),
    /// A tensor.
    Tensor(View),
    /// Instructions as they are, which leave one value.
    Raw(Vec<u8>),
}

/// A tensor's place in a storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The storage's class in module `torch`.
    pub class: String,
    /// The storage's key.
    pub storage: String,
    /// Numbers in the storage.
    pub elements: i64,
    /// The first number.
    pub offset: i64,
    /// The shape.
    pub shape: Vec<i64>,
    /// The strides.
    pub strides: Vec<i64>,
    /// Whether it is wrapped in a parameter.
    pub parameter: bool,
}

impl From<&str> for Item {
    fn from(text: &str) -> Self {
        Item::Str(text.to_string())
    }
}

/// A dict's entries with text keys.
pub fn entries<const N: usize>(pairs: [(&str, Item); N]) -> Vec<(Item, Item)> {
    pairs.into_iter().map(|(key, value)| (key.into(), value)).collect()
}

/// Pickles a value, protocol 2.
pub fn pickle(item: &Item) -> Vec<u8> {
    let mut out = vec![0x80, 2];
    item.write(&mut out);
    out.push(b'.');
    out
}

/// The instruction that asks for a class.
pub fn global(module: &str, name: &str) -> Vec<u8> {
    format!("c{module}\n{name}\n").into_bytes()
}

impl Item {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Item::None => out.push(b'N'),
            Item::Bool(value) => out.push(if *value { 0x88 } else { 0x89 }),
            Item::Int(value) => {
                match (u8::try_from(*value), u16::try_from(*value), i32::try_from(*value)) {
                    (Ok(byte), ..) => out.extend([b'K', byte]),
                    (_, Ok(short), _) => {
                        out.push(b'M');
                        out.extend(short.to_le_bytes());
                    }
                    (.., Ok(word)) => {
                        out.push(b'J');
                        out.extend(word.to_le_bytes());
                    }
                    _ => {
                        out.extend([0x8a, 8]);
                        out.extend(value.to_le_bytes());
                    }
                }
            }
            Item::Float(value) => {
                out.push(b'G');
                out.extend(value.to_be_bytes());
            }
            Item::Str(text) => {
                out.push(b'X');
                out.extend((text.len() as u32).to_le_bytes());
                out.extend(text.as_bytes());
            }
            Item::List(items) => {
                out.extend(b"](");
                items.iter().for_each(|item| item.write(out));
                out.push(b'e');
            }
            Item::Dict(pairs) => {
                out.push(b'}');
                write_pairs(pairs, out);
            }
            Item::Ordered(pairs) => {
                out.extend(global("collections", "OrderedDict"));
                out.extend(b")R");
                write_pairs(pairs, out);
            }
            Item::Namespace(pairs) => {
                out.extend(global("argparse", "Namespace"));
                out.extend([b')', 0x81]);
                out.push(b'}');
                write_pairs(pairs, out);
                out.push(b'b');
            }
            Item::Version(text) => {
                out.extend(global("torch.torch_version", "TorchVersion"));
                Item::Str(text.clone()).write(out);
                out.extend([0x85, 0x81]);
            }
            Item::Tensor(view) => view.write(out),
            Item::Raw(instructions) => out.extend(instructions),
        }
    }
}

fn write_pairs(pairs: &[(Item, Item)], out: &mut Vec<u8>) {
    out.push(b'(');
    for (key, value) in pairs {
        key.write(out);
        value.write(out);
    }
    out.push(b'u');
}

impl View {
    /// A tensor that lies in a storage of its own, row by row.
    pub fn whole(storage: &str, shape: &[usize]) -> Self {
        let shape: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
        let strides = (0..shape.len()).map(|i| shape[i + 1..].iter().product());
        View {
            class: "FloatStorage".into(),
            storage: storage.into(),
            elements: shape.iter().product(),
            offset: 0,
            strides: strides.collect(),
            shape,
            parameter: false,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        if self.parameter {
            out.extend(global("torch._utils", "_rebuild_parameter"));
        }
        out.extend(global("torch._utils", "_rebuild_tensor_v2"));
        out.extend(b"((");
        Item::from("storage").write(out);
        out.extend(global("torch", &self.class));
        Item::Str(self.storage.clone()).write(out);
        Item::from("cpu").write(out);
        Item::Int(self.elements).write(out);
        out.extend(b"tQ");
        Item::Int(self.offset).write(out);
        for extents in [&self.shape, &self.strides] {
            out.push(b'(');
            extents.iter().for_each(|&extent| Item::Int(extent).write(out));
            out.push(b't');
        }
        Item::Bool(false).write(out);
        Item::Ordered(Vec::new()).write(out);
        out.extend(b"tR");
        if self.parameter {
            Item::Bool(true).write(out);
            Item::Ordered(Vec::new()).write(out);
            out.extend([0x87, b'R']);
        }
    }
}

/// An entry of a zip archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path.
    pub name: String,
    /// Its bytes.
    pub data: Vec<u8>,
    /// Its compression method: 0 is stored.
    pub method: u16,
    /// Its checksum, if not the right one.
    pub crc: Option<u32>,
}

impl Entry {
    /// A stored entry.
    pub fn new(name: &str, data: impl Into<Vec<u8>>) -> Self {
        Entry { name: name.into(), data: data.into(), method: 0, crc: None }
    }
}

/// A zip archive of these entries.
pub fn zip(entries: &[Entry]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let (offset, size) = (file.len() as u32, entry.data.len() as u32);
        let mut common = Vec::new();
        // Version, flags (UTF-8 names), method, time, date.
        for field in [20, 0x800, entry.method, 0, 0x21] {
            common.extend(field.to_le_bytes());
        }
        let crc = entry.crc.unwrap_or_else(|| rawzip::crc32(&entry.data));
        [crc, size, size].iter().for_each(|field| common.extend(field.to_le_bytes()));
        common.extend((entry.name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        file.extend(b"PK\x03\x04");
        file.extend(&common);
        file.extend(entry.name.as_bytes());
        file.extend(&entry.data);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        // Comment, disk, attributes.
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(entry.name.as_bytes());
    }
    let start = file.len() as u32;
    file.extend(&directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    let count = (entries.len() as u16).to_le_bytes();
    file.extend(count.iter().chain(&count));
    file.extend((directory.len() as u32).to_le_bytes());
    file.extend(start.to_le_bytes());
    file.extend([0, 0]);
    file
}

/// A checkpoint as the reference writes it, in pieces that tests change.
#[derive(Debug, Clone, PartialEq)]
pub struct TorchFile {
    /// The payload.
    pub payload: Vec<(Item, Item)>,
    /// Storages by key.
    pub storages: Vec<(String, Vec<u8>)>,
}

impl TorchFile {
    /// A Transformer's checkpoint.
    pub fn new(config: &ModelConfig, tensors: &Parameters) -> Self {
        let ModelConfig::Transformer(shape) = config else { panic!("a Transformer") };
        let int = |value: usize| Item::Int(value as i64);
        let mut args = entries([
            ("arch", "transformer".into()),
            ("d_model", int(shape.d_model)),
            ("n_layers", int(shape.n_layers)),
            ("n_heads", int(shape.n_heads)),
            ("ff_mult", int(shape.ff_mult)),
            ("dropout", Item::Float(shape.dropout)),
            ("lr", Item::Float(0.003)),
            ("seed", Item::Int(7)),
            ("data_path", "/home/somebody/rand123/".into()),
            ("wandb_entity", "somebody".into()),
            ("max_steps", Item::None),
        ]);
        args.extend(entries([("slice_block_size", Item::Int(4)), ("cpu", Item::Bool(true))]));
        let vocabulary = [shape.move_vocab, shape.start_move_id.into(), shape.pad_move_id.into()];
        Self::of(args, vocabulary, tensors)
    }

    /// A checkpoint with these arguments and tensors; of the vocabulary its size, START and PAD.
    pub fn of(args: Vec<(Item, Item)>, vocabulary: [usize; 3], tensors: &Parameters) -> Self {
        let [move_vocab, start, pad] = vocabulary.map(|value| Item::Int(value as i64));
        let spec = entries([
            ("move_vocab", move_vocab),
            ("start_move_id", start),
            ("pad_move_id", pad),
            ("state_len", Item::Int(75)),
            ("piece_symbols", Item::List(vec![".".into(), "P".into()])),
        ]);
        let mut model = Vec::new();
        let mut storages = Vec::new();
        for (index, (name, tensor)) in tensors.iter().enumerate() {
            let key = index.to_string();
            model.push((name.as_str().into(), Item::Tensor(View::whole(&key, &tensor.shape))));
            storages.push((key, tensor.data.iter().flat_map(|v| v.to_le_bytes()).collect()));
        }
        let payload = entries([
            ("model", Item::Ordered(model)),
            ("optim", Item::Dict(entries([("state", Item::Dict(Vec::new()))]))),
            ("step", Item::Int(96)),
            ("epoch", Item::Int(8)),
            ("spec", Item::Dict(spec)),
            ("args", Item::Dict(args)),
            ("torch_version", Item::Version("2.15.0".into())),
        ]);
        TorchFile { payload, storages }
    }

    /// A value of the payload.
    pub fn get(&mut self, key: &str) -> &mut Item {
        value_of(&mut self.payload, key)
    }

    /// A value of one of the payload's dicts.
    pub fn within(&mut self, dict: &str, key: &str) -> &mut Item {
        match self.get(dict) {
            Item::Dict(pairs) | Item::Ordered(pairs) | Item::Namespace(pairs) => {
                value_of(pairs, key)
            }
            other => panic!("{dict} is {other:?}"),
        }
    }

    /// A tensor of the network.
    pub fn tensor(&mut self, name: &str) -> &mut View {
        match self.within("model", name) {
            Item::Tensor(view) => view,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// The entries of the archive, `data.pkl` first.
    pub fn entries(&self) -> Vec<Entry> {
        self.entries_with(pickle(&Item::Dict(self.payload.clone())))
    }

    /// The entries of the archive with another pickle.
    pub fn entries_with(&self, pickle: Vec<u8>) -> Vec<Entry> {
        let storages = self.storages.iter();
        let storages =
            storages.map(|(key, data)| Entry::new(&format!("latest/data/{key}"), &data[..]));
        [Entry::new("latest/data.pkl", pickle), Entry::new("latest/byteorder", "little")]
            .into_iter()
            .chain(storages)
            .chain([Entry::new("latest/version", "3\n")])
            .collect()
    }

    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        zip(&self.entries())
    }
}

fn value_of<'a>(pairs: &'a mut [(Item, Item)], key: &str) -> &'a mut Item {
    let key = Item::from(key);
    let found = pairs.iter_mut().find(|(name, _)| *name == key);
    &mut found.unwrap_or_else(|| panic!("no {key:?}")).1
}
