//! What is fuzzed: each body takes any bytes and panics if a parser of untrusted input breaks its promise.
//!
//! The targets under `tests/fuzz` call these, and so does the ordinary test suite with seeded inputs. The promises:
//! no panic, no hang, and whatever is accepted holds together.

use cwm_core::{
    chess::{
        MoveToken, Trajectory,
        parse::parse_games,
        pgn::{Lexer, Token},
        san,
    },
    report::{self, Detail, EvalReport},
};
use cwm_models::{
    ModelConfig, NamedTensor, Parameters, TransformerConfig,
    checkpoint::{Card, Checkpoint, Dtype, EmbeddingRows, Header, WriteOptions, write},
};

use crate::torch_file::{TorchFile, zip};

/// The smallest network that is one, of a small vocabulary.
pub fn tiny_config() -> ModelConfig {
    ModelConfig::Transformer(TransformerConfig {
        move_vocab: 3,
        start_move_id: 1,
        pad_move_id: 2,
        ff_mult: 1,
        ..TransformerConfig::new(2, 1, 1)
    })
}

/// A valid file of [`tiny_config`], its numbers all different as far as f16 can tell.
pub fn tiny_file() -> Vec<u8> {
    let config = tiny_config();
    let mut next = 0_u32;
    let mut tensors = Parameters::new();
    for (name, shape) in config.parameter_shapes() {
        let data = (0..shape.iter().product::<usize>()).map(|_| {
            next += 1;
            (next % 4096) as f32 / 8.0 - 200.0
        });
        let data = data.collect();
        tensors.insert(name, NamedTensor { shape, data });
    }
    let options = WriteOptions { dtype: Dtype::F16, rows: EmbeddingRows::Full };
    write(&config, &tensors, None, options).expect("a sound network can be written")
}

/// A PyTorch file of the same network.
pub fn tiny_torch() -> Vec<u8> {
    let read = Checkpoint::read_any_vocabulary(&tiny_file(), None).expect("it was written");
    TorchFile::new(&tiny_config(), &read.tensors).bytes()
}

/// A pickle inside a sound archive with the storages of [`tiny_torch`]: what is accepted is that network.
pub fn torch_pickle(bytes: &[u8]) {
    let read = Checkpoint::read_any_vocabulary(&tiny_file(), None).expect("it was written");
    let file = TorchFile::new(&tiny_config(), &read.tensors);
    checkpoint(&zip(&file.entries_with(bytes.to_vec())));
}

/// A safetensors header: what is accepted lies within the file and leaves no byte out.
pub fn checkpoint_header(bytes: &[u8]) {
    let Ok(header) = Header::parse(bytes) else { return };
    let head_bytes = Header::head_bytes(bytes, bytes.len() as u64).expect("it was parsed");
    let mut spans: Vec<_> = header.tensors.values().collect();
    spans.sort_by_key(|entry| (entry.span_bytes.start, entry.span_bytes.end));
    let mut covered = head_bytes;
    for entry in spans {
        assert_eq!(entry.span_bytes.start, covered);
        covered = entry.span_bytes.end;
        let elements: u64 = entry.shape.iter().product();
        assert_eq!(entry.elements(), elements);
        assert_eq!(entry.bytes(bytes).len() as u64, elements * entry.dtype.bytes() as u64);
    }
    assert_eq!(covered, bytes.len() as u64);
    let from_head = Header::parse_head(&bytes[..head_bytes as usize], bytes.len() as u64);
    assert_eq!(from_head.expect("the head is enough"), header);
}

/// A lone checkpoint, safetensors or PyTorch: what is accepted can be described, and written and read without loss.
pub fn checkpoint(bytes: &[u8]) {
    let Ok(read) = Checkpoint::read_any_vocabulary(bytes, None) else { return };
    assert!(read.tensors.values().all(|t| t.data.iter().all(|v| v.is_finite())));
    let summary = read.describe();
    assert_eq!(summary.file_bytes, bytes.len() as u64);
    let card = Card { name: "fuzz", summary: &summary, report: None }.render();
    assert!(card.starts_with("---\n"));
    let options = WriteOptions { dtype: Dtype::F32, rows: read.info.rows };
    let facts = read.info.training.as_ref();
    let file = write(&read.config, &read.tensors, facts, options).expect("it was read");
    let again = Checkpoint::read_any_vocabulary(&file, None).expect("it was written");
    assert_eq!((&again.config, &again.tensors), (&read.config, &read.tensors));
}

/// A config.json beside a valid file whose own config it must agree with.
pub fn checkpoint_config(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(read) = Checkpoint::read_any_vocabulary(&tiny_file(), Some(&text)) {
        assert_eq!(read.config, tiny_config());
    }
}

/// PGN as the lexer takes it apart: every step gets on, and the words are there.
pub fn pgn(bytes: &[u8]) {
    let mut lexer = Lexer::new(bytes);
    let mut steps = 0;
    while lexer.next_game() {
        steps += 1;
        while let Some(tag) = lexer.next_tag() {
            steps += 1;
            let _ = tag.value();
        }
        while let Some(token) = lexer.next_token() {
            steps += 1;
            if let Token::Word(word) = token {
                assert!(!word.is_empty());
                let _ = san::parse(word);
            }
        }
        assert!(steps <= 3 * bytes.len() + 3, "the lexer does not get on");
    }
}

/// A text with games: what is accepted is legal, and so is what comes before a fault.
pub fn move_list(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match parse_games(&text) {
        Ok(games) => games.iter().for_each(|game| replay(&game.moves)),
        Err(error) => {
            assert!(error.line >= 1 && error.column >= 1);
            replay(&error.prefix);
        }
    }
}

fn replay(moves: &[MoveToken]) {
    let trajectory = Trajectory::replay(moves);
    assert_eq!(trajectory.plies(), moves.len());
}

/// An evaluation report: what is accepted can be shown, and reads back as it was.
pub fn eval_report(bytes: &[u8]) {
    let Ok(report) = EvalReport::from_json(&String::from_utf8_lossy(bytes)) else { return };
    let detail = Detail { breakdown: true, ..Detail::default() };
    let _ = report::text(&report, detail);
    let _ = report::markdown(&report, detail);
    let _ = (report::tsv::summary(&report), report::tsv::prefix_bins(&report));
    let again = EvalReport::from_json(&report.to_json()).expect("it was written");
    // Real numbers of a foreign document lose digits beyond the twelfth once, then never again.
    assert_eq!(EvalReport::from_json(&again.to_json()).expect("it was written"), again);
}
