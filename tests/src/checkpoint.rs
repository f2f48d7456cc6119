//! Checkpoints: round trips over random networks, damage at every byte, and other libraries' files.

use std::collections::{BTreeMap, HashMap};

use burn::tensor::Device;
use cwm_core::chess::MoveToken;
use cwm_models::{
    Model, ModelConfig, NamedTensor, Parameters, TransformerConfig,
    checkpoint::{
        Checkpoint, Dtype, EmbeddingRows, Header, TrainingFacts, WriteOptions, config::CONFIG_KEY,
        write,
    },
};
use cwm_tests::{
    cwm::fixture,
    fuzz_bodies::{tiny_config, tiny_file},
};
use proptest::{
    prelude::*,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};
use safetensors::{SafeTensors, tensor::TensorView};

/// Property tests whose cases are the same on every run.
fn check<S: Strategy>(cases: u32, strategy: S, test: impl Fn(S::Value)) {
    let config = ProptestConfig { cases, failure_persistence: None, ..Default::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let result = runner.run(&strategy, |value| {
        test(value);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

fn small_configs() -> impl Strategy<Value = ModelConfig> {
    (1_usize..4, 1_usize..3, 1_usize..3, 1_usize..3, 3_usize..40, 0_u8..90).prop_map(
        |(half_head, heads, n_layers, ff_mult, move_vocab, dropout)| {
            ModelConfig::Transformer(TransformerConfig {
                ff_mult,
                dropout: f64::from(dropout) / 100.0,
                move_vocab,
                start_move_id: move_vocab as u16 - 2,
                pad_move_id: move_vocab as u16 - 1,
                ..TransformerConfig::new(2 * half_head * heads, n_layers, heads)
            })
        },
    )
}

/// Weights by a function of their running number.
fn weights(config: &ModelConfig, value: impl Fn(u32) -> f32) -> Parameters {
    let mut next = 0;
    let mut tensors = Parameters::new();
    for (name, shape) in config.parameter_shapes() {
        let data = (0..shape.iter().product::<usize>()).map(|_| {
            next += 1;
            value(next)
        });
        let data = data.collect();
        tensors.insert(name, NamedTensor { shape, data });
    }
    tensors
}

/// Any finite f32, from a seed: also subnormals, zeros of both signs and the largest.
fn any_finite(seed: u32) -> impl Fn(u32) -> f32 {
    move |i| {
        let mixed = (i ^ seed).wrapping_mul(0x9e37_79b9).rotate_left(13).wrapping_mul(0x85eb_ca6b);
        let value = f32::from_bits(mixed);
        if value.is_finite() { value } else { -0.0 }
    }
}

fn bits(tensors: &Parameters) -> BTreeMap<&str, Vec<u32>> {
    let bits = |t: &NamedTensor| t.data.iter().map(|v| v.to_bits()).collect();
    tensors.iter().map(|(name, tensor)| (name.as_str(), bits(tensor))).collect()
}

#[test]
fn f32_round_trips_bit_for_bit() {
    check(24, (small_configs(), any::<u32>(), any::<u64>()), |(config, seed, steps)| {
        let tensors = weights(&config, any_finite(seed));
        let facts = TrainingFacts { steps, ..Default::default() };
        let file = write(&config, &tensors, Some(&facts), WriteOptions::EXACT).unwrap();
        let read = Checkpoint::read_any_vocabulary(&file, Some(&config.to_json())).unwrap();
        assert_eq!((&read.config, read.info.training), (&config, Some(facts.clone())));
        assert_eq!(bits(&read.tensors), bits(&tensors));
        let again = write(&config, &read.tensors, Some(&facts), WriteOptions::EXACT).unwrap();
        assert!(again == file, "the same checkpoint gave other bytes");
    });
}

#[test]
fn f16_rounds_once() {
    check(24, (small_configs(), any::<u32>()), |(config, seed)| {
        let tensors = weights(&config, |i| (any_finite(seed)(i) % 60_000.0) * 1e-3);
        let options = WriteOptions { dtype: Dtype::F16, rows: EmbeddingRows::Full };
        let file = write(&config, &tensors, None, options).unwrap();
        let read = Checkpoint::read_any_vocabulary(&file, None).unwrap();
        for (name, tensor) in &tensors {
            for (&given, &got) in tensor.data.iter().zip(&read.tensors[name].data) {
                assert_eq!(half::f16::from_f32(given).to_f32().to_bits(), got.to_bits(), "{name}");
            }
        }
        assert!(write(&config, &read.tensors, None, options).unwrap() == file);
    });
}

#[test]
fn pruning_keeps_every_row_that_a_game_can_read() {
    let config = ModelConfig::Transformer(TransformerConfig::new(2, 1, 1));
    let tensors = weights(&config, |i| i as f32 * 0.25);
    let pruned = write(&config, &tensors, None, WriteOptions::EXACT).unwrap();
    let full = write(&config, &tensors, None, WriteOptions::REFERENCE).unwrap();
    let data_bytes = |file: &[u8]| file.len() as u64 - Header::head_bytes(file, u64::MAX).unwrap();
    assert_eq!(data_bytes(&full) - data_bytes(&pruned), 18_512 * 2 * 4);
    let pruned = Checkpoint::read(&pruned, None).unwrap().full_tensors();
    let full = Checkpoint::read(&full, None).unwrap().full_tensors();
    let reachable = MoveToken::reachable().iter().copied();
    let read: Vec<MoveToken> = reachable.chain([MoveToken::START, MoveToken::PAD]).collect();
    for (name, tensor) in &full {
        if name != "tok_emb.weight" {
            assert_eq!(tensor, &pruned[name]);
            continue;
        }
        for id in 0..MoveToken::VOCAB {
            let row = |t: &NamedTensor| [t.data[2 * id], t.data[2 * id + 1]];
            let token = MoveToken::new(id as u32).unwrap();
            let kept = if read.contains(&token) { row(tensor) } else { [0.0, 0.0] };
            assert_eq!(row(&pruned[name]), kept, "{token}");
        }
    }
}

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    let file = tiny_file();
    for length in 0..file.len() {
        let error = Checkpoint::read_any_vocabulary(&file[..length], None).unwrap_err();
        let head = Header::head_bytes(&file, file.len() as u64).unwrap() as usize;
        let expected = if length < head { "CKPT-TRUNCATED" } else { "CKPT-RANGE" };
        assert_eq!(error.code(), expected, "cut to {length} bytes");
    }
}

#[test]
fn a_flipped_bit_anywhere_is_refused_or_harmless() {
    let mut file = tiny_file();
    let sound = Checkpoint::read_any_vocabulary(&file, None).unwrap();
    let head = Header::head_bytes(&file, file.len() as u64).unwrap() as usize;
    for at in 0..file.len() {
        // Every bit of the header; of the weights, one bit of each byte.
        let flips = if at < head { 0..8 } else { at % 8..at % 8 + 1 };
        for bit in flips {
            file[at] ^= 1 << bit;
            if let Ok(read) = Checkpoint::read_any_vocabulary(&file, None) {
                let changed: usize = read
                    .tensors
                    .iter()
                    .map(|(name, tensor)| {
                        let before = &sound.tensors[name];
                        assert_eq!(before.shape, tensor.shape);
                        before.data.iter().zip(&tensor.data).filter(|(a, b)| a != b).count()
                    })
                    .sum();
                assert!(changed <= usize::from(at >= head), "bit {bit} of byte {at}");
            }
            file[at] ^= 1 << bit;
        }
    }
}

#[test]
fn the_safetensors_library_reads_what_is_written() {
    let file = tiny_file();
    let ours = Checkpoint::read_any_vocabulary(&file, None).unwrap();
    let theirs = SafeTensors::deserialize(&file).unwrap();
    assert_eq!(theirs.len(), ours.tensors.len());
    for (name, view) in theirs.tensors() {
        let values = view.data().as_chunks::<2>().0.iter().map(|b| half::f16::from_le_bytes(*b));
        let values: Vec<f32> = values.map(half::f16::to_f32).collect();
        assert_eq!(
            (view.shape(), &values),
            (&ours.tensors[&name].shape[..], &ours.tensors[&name].data)
        );
    }
    let (_, metadata) = SafeTensors::read_metadata(&file).unwrap();
    assert_eq!(metadata.metadata().as_ref().unwrap()[CONFIG_KEY], tiny_config().to_json());
}

/// A file as other programs write it.
fn foreign(tensors: &Parameters, metadata: Option<HashMap<String, String>>) -> Vec<u8> {
    let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
        .iter()
        .map(|(n, t)| {
            (n.clone(), t.shape.clone(), t.data.iter().flat_map(|v| v.to_le_bytes()).collect())
        })
        .collect();
    let views = bytes.iter().map(|(name, shape, data)| {
        (name, TensorView::new(safetensors::Dtype::F32, shape.clone(), data).unwrap())
    });
    safetensors::serialize(views, metadata).unwrap()
}

#[test]
fn what_other_programs_write_is_read_with_the_config_beside_it() {
    let config = tiny_config();
    let tensors = weights(&config, |i| i as f32);
    let file = foreign(&tensors, None);
    let code = |file: &[u8], config: Option<&str>| {
        Checkpoint::read_any_vocabulary(file, config).unwrap_err().code()
    };
    assert_eq!(code(&file, None), "CKPT-NO-CONFIG");
    let read = Checkpoint::read_any_vocabulary(&file, Some(&config.to_json())).unwrap();
    assert_eq!(read.tensors, tensors);
    // Benchmark checkpoints have the benchmark's vocabulary.
    let strict = Checkpoint::read(&file, Some(&config.to_json())).unwrap_err();
    assert_eq!(strict.code(), "CKPT-VOCABULARY");
    let json = |change: (&str, &str)| config.to_json().replace(change.0, change.1);
    assert_eq!(code(&file, Some(&json(("\"n_layers\":1", "\"n_layers\":2")))), "CKPT-MISSING");
    assert_eq!(code(&file, Some(&json(("\"move_vocab\":3", "\"move_vocab\":4")))), "CKPT-SHAPE");
    assert_eq!(code(&file, Some(&json(("transformer", "lstm")))), "CKPT-FAMILY");
}

#[test]
fn faults_behind_a_sound_header_have_their_own_codes() {
    let config = tiny_config();
    let tensors = weights(&config, |i| i as f32);
    let code = |change: &dyn Fn(&mut Parameters, &mut HashMap<String, String>)| {
        let mut tensors = tensors.clone();
        let mut metadata = HashMap::from([(CONFIG_KEY.to_string(), config.to_json())]);
        change(&mut tensors, &mut metadata);
        let file = foreign(&tensors, Some(metadata));
        Checkpoint::read_any_vocabulary(&file, None).map_or_else(|e| e.code(), |_| "fine")
    };
    let set = |m: &mut HashMap<String, String>, key: &str, value: &str| {
        m.insert(key.into(), value.into());
    };
    assert_eq!(code(&|_, _| ()), "fine");
    assert_eq!(code(&|t, _| drop(t.remove("final_norm.weight"))), "CKPT-MISSING");
    assert_eq!(
        code(&|t, _| {
            let spare = t["final_norm.weight"].clone();
            t.insert("spare.weight".into(), spare);
        }),
        "CKPT-EXTRA"
    );
    assert_eq!(
        code(&|t, _| t.get_mut("blocks.0.attn.qkv.weight").unwrap().shape.reverse()),
        "CKPT-SHAPE"
    );
    assert_eq!(
        code(&|t, _| t.get_mut("tok_emb.weight").unwrap().data[1] = f32::NAN),
        "CKPT-NON-FINITE"
    );
    assert_eq!(code(&|_, m| set(m, "cwm.format", "2")), "CKPT-FORMAT");
    assert_eq!(code(&|_, m| set(m, "cwm.embedding", "sparse")), "CKPT-EMBEDDING");
    assert_eq!(code(&|_, m| set(m, "cwm.embedding", "reachable")), "CKPT-VOCABULARY");
    assert_eq!(code(&|_, m| set(m, CONFIG_KEY, "{}")), "CKPT-CONFIG");
    assert_eq!(code(&|_, m| set(m, "cwm.training", "no JSON")), "fine");
}

#[test]
fn the_documentation_lists_every_code() {
    let source = concat!(
        include_str!("../../models/src/checkpoint/error.rs"),
        include_str!("../../models/src/checkpoint/torch/error.rs")
    );
    let documented = include_str!("../../docs/formats.md");
    let codes: Vec<&str> = source.split('"').filter(|word| word.starts_with("CKPT-")).collect();
    assert!(codes.len() > 55, "the codes are no longer where this test looks");
    for code in codes {
        assert!(documented.contains(&format!("| `{code}` |")), "docs/formats.md lacks {code}");
    }
}

#[test]
fn the_references_weights_load_and_come_back() {
    let file = std::fs::read(fixture("models/transformer/weights.safetensors")).unwrap();
    let config = ModelConfig::Transformer(TransformerConfig {
        move_vocab: 96,
        start_move_id: 94,
        pad_move_id: 95,
        dropout: 0.0,
        ..TransformerConfig::new(32, 2, 2)
    });
    let read = Checkpoint::read_any_vocabulary(&file, Some(&config.to_json())).unwrap();
    let device = Device::flex();
    let model = Model::from_parameters(&config, &read.tensors, &device).unwrap();
    let back = model.named_parameters();
    assert_eq!(bits(&back), bits(&read.tensors));
    let written = write(&config, &back, None, WriteOptions::EXACT).unwrap();
    let again = Checkpoint::read_any_vocabulary(&written, None).unwrap();
    assert_eq!(bits(&again.tensors), bits(&read.tensors));
}

#[test]
fn a_model_survives_its_checkpoint_in_every_form() {
    let config = ModelConfig::Transformer(TransformerConfig::new(8, 2, 2));
    let device = Device::flex();
    let model = Model::new(&config, 7, &device).unwrap();
    let parameters = model.named_parameters();
    for options in [WriteOptions::EXACT, WriteOptions::REFERENCE] {
        let file = write(&config, &parameters, None, options).unwrap();
        let read = Checkpoint::read(&file, None).unwrap();
        assert_eq!(read.info.rows, options.rows);
        let loaded = Model::from_parameters(&read.config, &read.tensors, &device).unwrap();
        assert_eq!(bits(&loaded.named_parameters()), bits(&parameters));
    }
}
