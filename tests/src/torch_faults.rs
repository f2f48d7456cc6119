//! One test for each kind of fault that a PyTorch checkpoint can have: each is named, and nothing of the file is run.

use cwm_models::{NamedTensor, Parameters, checkpoint::Checkpoint};
use cwm_tests::{
    fuzz_bodies::tiny_config,
    torch_file::{Entry, Item, TorchFile, View, entries, global, pickle, zip},
};

/// Numbers that f16 holds exactly.
pub fn tensors() -> Parameters {
    let mut next = 0;
    let shapes = tiny_config().parameter_shapes().into_iter();
    let tensors = shapes.map(|(name, shape)| {
        let data = (0..shape.iter().product::<usize>()).map(|_| {
            next += 1;
            (next % 1800) as f32 * 0.125 - 100.0
        });
        let data = data.collect();
        (name, NamedTensor { shape, data })
    });
    tensors.collect()
}

/// A sound file of a tiny network.
pub fn sound() -> TorchFile {
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
