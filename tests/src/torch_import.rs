//! The reference's PyTorch checkpoints: what is in them is read, what is wrong with them is named.

use cwm_models::{
    ModelConfig, NamedTensor, Parameters, TransformerConfig,
    checkpoint::{Checkpoint, Dtype, EmbeddingRows, FileKind, WriteOptions, write},
};
use cwm_tests::{
    fuzz_bodies::{tiny_config, tiny_torch},
    memory::requested_by,
    torch_file::{Entry, Item, TorchFile, View, entries, global, pickle, zip},
};
use half::f16;

fn read(bytes: &[u8]) -> Checkpoint {
    Checkpoint::read_any_vocabulary(bytes, None).unwrap_or_else(|e| panic!("{e} [{}]", e.code()))
}

fn tensors() -> Parameters {
    let mut next = 0;
    let shapes = tiny_config().parameter_shapes().into_iter();
    let tensors = shapes.map(|(name, shape)| {
        let data = (0..shape.iter().product::<usize>()).map(|_| {
            next += 1;
            next as f32 * 0.125 - 100.0
        });
        let data = data.collect();
        (name, NamedTensor { shape, data })
    });
    tensors.collect()
}

fn sound() -> TorchFile {
    TorchFile::new(&tiny_config(), &tensors())
}

/// The message and code of the fault that a change brings about.
fn fault(change: impl FnOnce(&mut TorchFile)) -> (&'static str, String) {
    let mut file = sound();
    change(&mut file);
    fault_of(&file.bytes())
}

fn fault_of(bytes: &[u8]) -> (&'static str, String) {
    let error = Checkpoint::read_any_vocabulary(bytes, None).expect_err("it is damaged");
    assert!(!error.hint().is_empty() && error.to_string().len() < 600, "{error}");
    (error.code(), error.to_string())
}

#[test]
fn what_the_reference_writes_is_read() {
    let checkpoint = read(&sound().bytes());
    assert_eq!(checkpoint.config, tiny_config());
    assert_eq!(checkpoint.tensors, tensors());
    let info = &checkpoint.info;
    assert_eq!((info.kind, info.rows), (FileKind::Torch, EmbeddingRows::Full));
    let facts = info.training.as_ref().unwrap();
    assert_eq!((facts.steps, facts.seed), (96, Some(7)));
    // The last part of a path says which data; the rest is nobody's business, and neither is the account.
    assert_eq!(facts.dataset.as_ref().unwrap().name, "rand123");
    let told: Vec<_> = facts.settings.keys().map(String::as_str).collect();
    assert_eq!(
        told,
        [
            "args.arch",
            "args.cpu",
            "args.d_model",
            "args.dropout",
            "args.ff_mult",
            "args.lr",
            "args.n_heads",
            "args.n_layers",
            "args.seed"
        ]
    );
    assert_eq!(facts.settings["args.lr"], "0.003");
    let imported = facts.imported.as_ref().unwrap();
    assert_eq!(imported.torch_version.as_deref(), Some("2.15.0"));
    assert_eq!((imported.epoch, &imported.sha256), (Some(8), &info.sha256));

    // The facts go along into our own format, and the weights are the same to the last bit.
    let file =
        write(&checkpoint.config, &checkpoint.tensors, Some(facts), WriteOptions::EXACT).unwrap();
    let again = Checkpoint::read_any_vocabulary(&file, None).unwrap();
    assert_eq!((again.tensors, again.info.training.as_ref()), (checkpoint.tensors, Some(facts)));
}

#[test]
fn other_ways_to_write_the_same_are_read() {
    let same = |change: &dyn Fn(&mut TorchFile)| {
        let mut file = sound();
        change(&mut file);
        let checkpoint = read(&file.bytes());
        assert_eq!((checkpoint.config, checkpoint.tensors), (tiny_config(), tensors()));
    };
    same(&|file| {
        let Item::Dict(args) = file.get("args").clone() else { panic!() };
        *file.get("args") = Item::Namespace(args);
    });
    same(&|file| file.tensor("final_norm.weight").parameter = true);
    // A matrix stored by columns.
    same(&|file| {
        let view = file.tensor("blocks.0.attn.qkv.weight");
        assert_eq!((&view.shape[..], &view.strides[..]), (&[6, 2][..], &[2, 1][..]));
        view.strides = vec![1, 6];
        let key = view.storage.clone();
        let (_, bytes) = file.storages.iter_mut().find(|(k, _)| *k == key).unwrap();
        let rows: Vec<[u8; 4]> = bytes.as_chunks::<4>().0.to_vec();
        *bytes = (0..12).flat_map(|i| rows[(i % 6) * 2 + i / 6]).collect();
    });
    // Two tensors in one storage, side by side.
    same(&|file| {
        let (a, b) = ("blocks.0.norm1.weight", "blocks.0.norm2.weight");
        let (first, second) = (file.tensor(a).storage.clone(), file.tensor(b).storage.clone());
        let of = |file: &TorchFile, key: &str| {
            file.storages.iter().find(|(k, _)| k == key).unwrap().1.clone()
        };
        let joined = [of(file, &first), of(file, &second)].concat();
        file.storages.push(("both".into(), joined));
        for (name, offset) in [(a, 0), (b, 2)] {
            let view = file.tensor(name);
            (view.storage, view.elements, view.offset) = ("both".into(), 4, offset);
        }
    });
    // Numbers as f16 are exact.
    let mut file = sound();
    for (key, bytes) in &mut file.storages {
        let (name, _) = tiny_config().parameter_shapes().swap_remove(key.parse().unwrap());
        let halves = tensors()[&name].data.clone();
        *bytes = halves.iter().flat_map(|v| f16::from_f32(*v).to_le_bytes()).collect();
    }
    for (name, _) in tiny_config().parameter_shapes() {
        file.tensor(&name).class = "HalfStorage".into();
    }
    let halves = read(&file.bytes());
    assert_eq!(halves.tensors, tensors());
    assert_eq!(halves.info.dtypes.keys().collect::<Vec<_>>(), [&Dtype::F16]);
}

#[test]
fn a_pickle_that_asks_for_anything_else_is_refused_by_name() {
    for (module, name) in [
        ("os", "system"),
        ("builtins", "eval"),
        ("posix", "system"),
        ("torch", "load"),
        ("torch.storage", "UntypedStorage"),
        ("numpy.core.multiarray", "scalar"),
        ("collections", "defaultdict"),
    ] {
        // Called, as an attack would; and only looked up.
        let mut call = global(module, name);
        call.extend(b"X\x04\0\0\0true\x85R");
        for raw in [call, global(module, name)] {
            let (code, message) = fault(|file| file.payload.push(("extra".into(), Item::Raw(raw))));
            assert_eq!(code, "CKPT-PT-FOREIGN");
            assert!(message.contains(&format!("`{module}.{name}`")), "{message}");
        }
    }
    let (_, message) = fault(|file| {
        file.payload.push(("extra".into(), Item::Raw(global("\u{1b}[2J", &"x".repeat(4000)))));
    });
    assert!(message.contains("\\u{1b}[2J.xxx") && message.len() < 300, "{message}");
}

#[test]
fn a_damaged_archive_is_named() {
    let with = |change: &dyn Fn(&mut Vec<Entry>)| {
        let mut entries = sound().entries();
        change(&mut entries);
        fault_of(&zip(&entries))
    };
    assert_eq!(fault_of(b"PK\x03\x04").0, "CKPT-PT-ZIP");
    assert_eq!(fault_of(b"\x80\x02\x8a\x0al\xfc").0, "CKPT-PT-OLD");
    assert_eq!(fault_of(&zip(&[])).0, "CKPT-HEADER-LENGTH");
    let (code, message) = with(&|entries| entries[3].method = 8);
    assert_eq!(code, "CKPT-PT-STORED");
    assert!(message.contains("`latest/data/1`"), "{message}");
    let (code, message) = with(&|entries| entries[2].crc = Some(1));
    assert_eq!(code, "CKPT-PT-CHECKSUM");
    assert!(message.contains("`latest/data/0`"), "{message}");
    assert_eq!(with(&|entries| entries.push(entries[2].clone())).0, "CKPT-PT-ENTRY-TWICE");
    assert_eq!(with(&|entries| drop(entries.remove(0))).0, "CKPT-PT-NO-PICKLE");
    assert_eq!(with(&|entries| entries[0].name = "a/b/data.pkl".into()).0, "CKPT-PT-NO-PICKLE");
    assert_eq!(with(&|entries| entries[0].name = "data.pkl".into()).0, "CKPT-PT-NO-PICKLE");
    assert_eq!(with(&|entries| entries[1].data = b"big".to_vec()).0, "CKPT-PT-BYTE-ORDER");
    let many = |entries: &mut Vec<Entry>| {
        entries.extend((0..20_000).map(|i| Entry::new(&i.to_string(), [])));
    };
    assert_eq!(with(&many).0, "CKPT-PT-ENTRIES");
    // Two directory entries for the same bytes: the second claims what is not there.
    let big = Entry::new("latest/data/x", vec![7; 5000]);
    let mut entries = sound().entries();
    entries.push(big.clone());
    let mut file = zip(&entries);
    let of = |needle: &[u8], file: &[u8]| {
        file.windows(needle.len()).rposition(|part| part == needle).unwrap()
    };
    let at = of(b"latest/data/x", &file) - 46;
    let record = file[at..at + 46 + big.name.len()].to_vec();
    let end = of(b"PK\x05\x06", &file);
    let patch = |file: &mut Vec<u8>, end: usize| {
        let count = u16::from_le_bytes([file[end + 8], file[end + 9]]) + 1;
        file[end + 8..end + 10].copy_from_slice(&count.to_le_bytes());
        file[end + 10..end + 12].copy_from_slice(&count.to_le_bytes());
        let size = u32::from_le_bytes(file[end + 12..end + 16].try_into().unwrap());
        file[end + 12..end + 16].copy_from_slice(&(size + record.len() as u32).to_le_bytes());
    };
    patch(&mut file, end);
    drop(file.splice(end..end, record.iter().copied()));
    let code = fault_of(&file).0;
    assert!(["CKPT-PT-ENTRY-LENGTH", "CKPT-PT-ENTRY-TWICE"].contains(&code), "{code}");
}

#[test]
fn a_pickle_that_makes_no_sense_is_named() {
    let code = |pickle: &[u8]| fault_of(&zip(&sound().entries_with(pickle.to_vec()))).0;
    let good = pickle(&Item::Dict(sound().payload));
    assert_eq!(code(b""), "CKPT-PT-PICKLE-END");
    assert_eq!(code(&good[..good.len() - 1]), "CKPT-PT-PICKLE-END");
    assert_eq!(code(b"\x80\x04N."), "CKPT-PT-PROTOCOL");
    assert_eq!(code(b"\x80\x02i"), "CKPT-PT-INSTRUCTION");
    assert_eq!(code(b"\x80\x02."), "CKPT-PT-PICKLE");
    assert_eq!(code(b"\x80\x02NN."), "CKPT-PT-PICKLE");
    assert_eq!(code(b"\x80\x02h\x07."), "CKPT-PT-PICKLE");
    assert_eq!(code(b"\x80\x02Na."), "CKPT-PT-PICKLE");
    assert_eq!(code(b"\x80\x02]N(a."), "CKPT-PT-PICKLE");
    assert_eq!(code(b"\x80\x02t."), "CKPT-PT-PICKLE");
    assert_eq!(code(b"\x80\x02}(Nu."), "CKPT-PT-PICKLE");
    assert_eq!(code(b"\x80\x02X\x01\0\0\0\xff."), "CKPT-PT-PICKLE");
    assert_eq!(code(b"\x80\x02\x8a\x09123456789."), "CKPT-PT-PICKLE");
    assert_eq!(code(b"\x80\x02N)R."), "CKPT-PT-PICKLE");
    assert_eq!(code(b"\x80\x02NQ."), "CKPT-PT-PICKLE");
    assert_eq!(code(b"\x80\x02X\xff\xff\xff\xffabc"), "CKPT-PT-PICKLE-END");
    assert_eq!(code(b"\x80\x02ctorch\nFloatStorage\n)R."), "CKPT-PT-MISUSE");
    assert_eq!(code(b"\x80\x02ccollections\nOrderedDict\nN\x85R."), "CKPT-PT-MISUSE");
    assert_eq!(code(b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)R."), "CKPT-PT-MISUSE");
    assert_eq!(code(b"\x80\x02N."), "CKPT-PT-KIND");
    // A list that holds itself is no payload, and no trap.
    assert_eq!(code(b"\x80\x02]q\0h\0a."), "CKPT-PT-KIND");
    assert_eq!(code(&[&b"\x80\x02"[..], &vec![b'N'; 1 << 19]].concat()), "CKPT-PT-VALUES");
    assert_eq!(code(&vec![b'('; (4 << 20) + 1]), "CKPT-PT-PICKLE-LENGTH");
}

#[test]
fn a_payload_that_is_none_is_named() {
    for key in ["model", "args", "spec"] {
        let remove = |file: &mut TorchFile| file.payload.retain(|(name, _)| *name != key.into());
        let (code, message) = fault(remove);
        assert_eq!(code, "CKPT-PT-MISSING-KEY");
        assert!(message.contains(&format!("`{key}`")), "{message}");
        assert_eq!(fault(|file| *file.get(key) = Item::Int(1)).0, "CKPT-PT-KIND");
    }
    let (code, message) = fault(|file| *file.within("args", "d_model") = Item::None);
    assert_eq!(code, "CKPT-PT-KIND");
    assert!(message.contains("`args.d_model` of the checkpoint is None"), "{message}");
    let (code, message) =
        fault(|file| *file.get("args") = Item::Dict(entries([("arch", "transformer".into())])));
    assert_eq!(code, "CKPT-PT-MISSING-KEY");
    assert!(message.contains("`args.d_model`"), "{message}");
    assert_eq!(fault(|file| *file.within("args", "arch") = "perceiver".into()).0, "CKPT-FAMILY");
    assert_eq!(fault(|file| *file.within("args", "n_heads") = Item::Int(5)).0, "CKPT-CONFIG");
    assert_eq!(fault(|file| *file.within("args", "n_layers") = Item::Int(2)).0, "CKPT-MISSING");
    assert_eq!(fault(|file| *file.within("args", "d_model") = Item::Int(4)).0, "CKPT-SHAPE");
    assert_eq!(fault(|file| *file.within("spec", "state_len") = Item::Int(74)).0, "CKPT-PT-KIND");
    assert_eq!(fault(|file| *file.within("spec", "move_vocab") = Item::Int(-1)).0, "CKPT-PT-KIND");
    assert_eq!(
        fault(|file| *file.within("model", "final_norm.weight") = Item::None).0,
        "CKPT-PT-KIND"
    );
    assert_eq!(fault(|file| *file.get("model") = Item::Ordered(Vec::new())).0, "CKPT-EMPTY");
    let twice = |file: &mut TorchFile| {
        let Item::Ordered(model) = file.get("model") else { panic!() };
        model.push(model[0].clone());
    };
    assert_eq!(fault(twice).0, "CKPT-DUPLICATE");
    let extra = |file: &mut TorchFile| {
        let Item::Ordered(model) = file.get("model") else { panic!() };
        model.push(("spare".into(), Item::Tensor(View::whole("0", &[1]))));
    };
    assert_eq!(fault(extra).0, "CKPT-EXTRA");
    let strict = Checkpoint::read(&sound().bytes(), None).unwrap_err();
    assert_eq!(strict.code(), "CKPT-VOCABULARY");
}

#[test]
fn tensors_that_do_not_fit_their_storage_are_named() {
    let tensor =
        |change: &dyn Fn(&mut View)| fault(|file| change(file.tensor("blocks.0.attn.qkv.weight")));
    assert_eq!(tensor(&|view| view.storage = "77".into()).0, "CKPT-PT-NO-STORAGE");
    assert_eq!(tensor(&|view| view.offset = 1).0, "CKPT-PT-BEYOND-STORAGE");
    assert_eq!(tensor(&|view| view.offset = i64::MAX).0, "CKPT-PT-BEYOND-STORAGE");
    assert_eq!(tensor(&|view| view.strides = vec![i64::MAX, 1]).0, "CKPT-PT-BEYOND-STORAGE");
    assert_eq!(tensor(&|view| view.strides = vec![3, 1]).0, "CKPT-PT-BEYOND-STORAGE");
    assert_eq!(tensor(&|view| view.strides = vec![1, 1]).0, "CKPT-PT-STRIDES");
    assert_eq!(tensor(&|view| view.strides = vec![0, 1]).0, "CKPT-PT-STRIDES");
    assert_eq!(tensor(&|view| view.strides = vec![-2, 1]).0, "CKPT-PT-MISUSE");
    assert_eq!(tensor(&|view| view.shape = vec![2, 6]).0, "CKPT-SHAPE");
    assert_eq!(tensor(&|view| view.shape = vec![12]).0, "CKPT-PT-MISUSE");
    assert_eq!(tensor(&|view| view.elements = 11).0, "CKPT-PT-BEYOND-STORAGE");
    assert_eq!(tensor(&|view| view.elements = 13).0, "CKPT-PT-STORAGE-LENGTH");
    assert_eq!(tensor(&|view| view.elements = i64::MAX).0, "CKPT-PT-STORAGE-LENGTH");
    assert_eq!(tensor(&|view| view.elements = -1).0, "CKPT-PT-PICKLE");
    let (code, message) = tensor(&|view| view.class = "BFloat16Storage".into());
    assert_eq!(code, "CKPT-DTYPE");
    assert!(message.contains("`BF16`"), "{message}");
    for class in [
        "DoubleStorage",
        "LongStorage",
        "BoolStorage",
        "ByteStorage",
        "CharStorage",
        "IntStorage",
        "ShortStorage",
    ] {
        assert_eq!(tensor(&|view| view.class = class.into()).0, "CKPT-DTYPE");
    }
    assert_eq!(tensor(&|view| view.class = "ComplexFloatStorage".into()).0, "CKPT-PT-FOREIGN");
    // Half as many bytes: the storage is cut short.
    assert_eq!(fault(|file| file.storages[2].1.truncate(8)).0, "CKPT-PT-STORAGE-LENGTH");
    let nan = f32::NAN.to_le_bytes();
    assert_eq!(fault(|file| file.storages[2].1[..4].copy_from_slice(&nan)).0, "CKPT-NON-FINITE");
    let (code, message) = fault(|file| {
        let other = file.tensor("blocks.0.norm1.weight").clone();
        *file.tensor("blocks.0.norm2.weight") = other;
    });
    assert_eq!(code, "CKPT-PT-ALIAS");
    assert!(message.contains("`blocks.0.norm1.weight` and `blocks.0.norm2.weight`"), "{message}");
}

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    let file = tiny_torch();
    for length in 0..file.len() {
        assert!(
            Checkpoint::read_any_vocabulary(&file[..length], None).is_err(),
            "cut to {length} bytes"
        );
    }
}

/// Times, attributes and versions of the archive may differ; what is read may not.
#[test]
fn a_flipped_bit_anywhere_is_refused_or_harmless() {
    let mut file = tiny_torch();
    let sound = read(&file);
    let mut harmless = 0;
    for at in 0..file.len() {
        for bit in [at % 8, (at + 5) % 8] {
            file[at] ^= 1 << bit;
            if let Ok(read) = Checkpoint::read_any_vocabulary(&file, None) {
                assert_eq!(
                    (&read.config, &read.tensors),
                    (&sound.config, &sound.tensors),
                    "byte {at}"
                );
                assert_eq!(
                    read.info.training.unwrap().settings,
                    sound.info.training.as_ref().unwrap().settings
                );
                harmless += 1;
            }
            file[at] ^= 1 << bit;
        }
    }
    assert!(harmless < file.len() / 4, "{harmless} of {} flips were accepted", 2 * file.len());
}

#[test]
fn refusing_a_file_costs_little_memory() {
    let wrap = |pickle: Vec<u8>| zip(&sound().entries_with(pickle));
    let repeated =
        |start: &[u8], unit: &[u8], times: usize| wrap([start, &unit.repeat(times)].concat());
    let costly = [
        // Values, marks, memory and shared lists without end.
        repeated(b"\x80\x02", b"N", 1 << 18),
        repeated(b"\x80\x02", b"}", 1 << 18),
        repeated(b"\x80\x02", b"(", 1 << 20),
        repeated(b"\x80\x02]q\0", b"h\0", 1 << 20),
        repeated(b"\x80\x02]", b"Nq\xff0", 1 << 18),
        repeated(b"\x80\x02(N", b"h\0t(", 10),
        // A tensor of exabytes.
        {
            let mut file = sound();
            let view = file.tensor("tok_emb.weight");
            (view.shape, view.elements) = (vec![1 << 40, 1 << 20], 1 << 60);
            file.bytes()
        },
        // A network of a thousand wide blocks.
        {
            let mut file = sound();
            *file.within("args", "n_layers") = Item::Int(1024);
            *file.within("args", "d_model") = Item::Int(1 << 15);
            file.bytes()
        },
    ];
    for file in costly {
        let (result, requested) = requested_by(|| Checkpoint::read(&file, None));
        let error = result.unwrap_err();
        let limit = 160 * file.len() as u64 + 65_536;
        assert!(requested <= limit, "{error}: {requested} of {limit} bytes");
    }
}

#[test]
fn any_small_transformer_comes_back_bit_for_bit() {
    for (d_model, n_layers, n_heads) in [(2, 1, 1), (12, 3, 2), (8, 2, 4)] {
        let config = ModelConfig::Transformer(TransformerConfig {
            move_vocab: 17,
            start_move_id: 15,
            pad_move_id: 16,
            dropout: 0.25,
            ..TransformerConfig::new(d_model, n_layers, n_heads)
        });
        let shapes = config.parameter_shapes().into_iter();
        let mut bits = 1_u32;
        let tensors: Parameters = shapes
            .map(|(name, shape)| {
                let data = (0..shape.iter().product::<usize>()).map(|_| {
                    bits = bits.wrapping_mul(0x9e37_79b9).wrapping_add(0x7f4a_7c15);
                    let value = f32::from_bits(bits);
                    if value.is_finite() { value } else { -0.0 }
                });
                let data = data.collect();
                (name, NamedTensor { shape, data })
            })
            .collect();
        let checkpoint = read(&TorchFile::new(&config, &tensors).bytes());
        assert_eq!(checkpoint.config, config);
        for (name, tensor) in &tensors {
            let bits = |t: &NamedTensor| t.data.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(tensor), bits(&checkpoint.tensors[name]), "{name}");
        }
    }
}
