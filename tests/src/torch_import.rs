//! The reference's PyTorch checkpoints: what is in them is read, what is wrong with them is named.

use std::fs;

use cwm_models::{
    ModelConfig, NamedTensor, Parameters, TransformerConfig,
    checkpoint::{Checkpoint, Dtype, EmbeddingRows, FileKind, WriteOptions, write},
};
use cwm_tests::{
    cwm::fixture,
    fuzz_bodies::{tiny_config, tiny_torch},
    memory::requested_by,
    torch_file::{Item, TorchFile, zip},
};
use half::f16;
use safetensors::SafeTensors;
use serde_json::Value;

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
        let (_, tensor) = tensors().into_iter().nth(key.parse().unwrap()).unwrap();
        let halves = tensor.data;
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

/// The arguments of every golden model, as the reference's command line takes them, give its config.
#[test]
fn every_family_is_read_by_its_arguments() {
    let mut folders: Vec<_> = fs::read_dir(fixture("models"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("weights.safetensors").is_file())
        .collect();
    folders.sort();
    assert!(folders.len() >= 5, "{folders:?}");
    for folder in folders {
        let json = fs::read(folder.join("config.json")).unwrap();
        let settings: Value = serde_json::from_slice(&json).unwrap();
        let args = settings.as_object().unwrap().iter().filter_map(|(key, value)| {
            let value = match value {
                Value::Null => Item::None,
                Value::Bool(value) => Item::Bool(*value),
                Value::Number(n) => {
                    n.as_i64().map_or_else(|| Item::Float(n.as_f64().unwrap()), Item::Int)
                }
                Value::String(text) => Item::Str(text.clone()),
                // What the reference makes of the arguments is no argument.
                _ => return None,
            };
            Some((key.as_str().into(), value))
        });
        let number = |key: &str| settings[key].as_u64().unwrap() as usize;
        let vocabulary = ["move_vocab", "start_move_id", "pad_move_id"].map(number);
        let bytes = fs::read(folder.join("weights.safetensors")).unwrap();
        let tensors: Parameters = SafeTensors::deserialize(&bytes)
            .unwrap()
            .tensors()
            .into_iter()
            .map(|(name, view)| {
                let data =
                    view.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
                (name, NamedTensor { shape: view.shape().to_vec(), data })
            })
            .collect();
        let mut file = TorchFile::of(args.collect(), vocabulary, &tensors);
        let checkpoint = read(&file.bytes());
        assert!(checkpoint.tensors == tensors, "{}", folder.display());
        let config: Value = serde_json::from_str(&checkpoint.config.to_json()).unwrap();
        for (ours, theirs) in [
            ("d_model", "d_model"),
            ("n_layers", "n_layers"),
            ("n_heads", "n_heads"),
            ("ff_mult", "ff_mult"),
            ("dropout", "dropout"),
            ("block_size", "slice_block_size"),
            ("scale", "slice_scale"),
            ("init_std", "slice_init_std"),
            ("head_dim", "gated_deltanet_head_dim"),
            ("expand_v", "gated_deltanet_expand_v"),
            ("allow_neg_eigval", "gated_deltanet_allow_neg_eigval"),
            ("conv_size", "gated_deltanet_conv_size"),
            ("norm_eps", "gated_deltanet_norm_eps"),
            ("d_state", "mamba_d_state"),
            ("d_conv", "mamba_d_conv"),
            ("expand", "mamba_expand"),
            ("headdim", "mamba_headdim"),
            ("mimo_rank", "mamba3_mimo_rank"),
        ] {
            if !config[ours].is_null() {
                assert_eq!(config[ours], settings[theirs], "{ours} of {}", folder.display());
            }
        }
        // A variant outside the benchmark is refused by the argument's name.
        let odd = [
            ("slice", "slice_final_norm"),
            ("gated_deltanet", "gated_deltanet_use_gate"),
            ("mamba", "mamba_rms_norm"),
        ];
        if let Some((_, key)) = odd.iter().find(|(arch, _)| settings["arch"] == *arch) {
            let flag = file.within("args", key);
            *flag = Item::Bool(*flag != Item::Bool(true));
            let error = Checkpoint::read_any_vocabulary(&file.bytes(), None).unwrap_err();
            assert_eq!(error.code(), "CKPT-PT-ARGUMENT");
            assert!(error.to_string().contains(&format!("`args.{key}`")), "{error}");
        }
    }
}
