//! The reference's PyTorch checkpoints: what is in them is read, what is wrong with them is named.

use cwm_models::{
    ModelConfig, NamedTensor, Parameters, TransformerConfig,
    checkpoint::{Checkpoint, Dtype, EmbeddingRows, FileKind, WriteOptions, write},
};
use cwm_tests::{
    fuzz_bodies::{tiny_config, tiny_torch},
    memory::requested_by,
    torch_file::{Item, TorchFile, zip},
};
use half::f16;

use crate::torch_faults::{sound, tensors};

fn read(bytes: &[u8]) -> Checkpoint {
    Checkpoint::read_any_vocabulary(bytes, None).unwrap_or_else(|e| panic!("{e} [{}]", e.code()))
}

#[test]
fn what_the_reference_writes_is_read() {
    let checkpoint = read(&sound().bytes());
    assert_eq!(checkpoint.config, tiny_config());
    assert!(checkpoint.tensors == tensors());
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
        assert_eq!(checkpoint.config, tiny_config());
        assert!(checkpoint.tensors == tensors());
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
    assert!(halves.tensors == tensors());
    assert_eq!(halves.info.dtypes.keys().collect::<Vec<_>>(), [&Dtype::F16]);
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
