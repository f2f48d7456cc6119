//! A checkpoint's config: inside the file, beside it, or both; and what tensors it calls for.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    error::{CheckpointError, quoted},
    header::Header,
};
use crate::{config::ModelConfig, vocabulary::COMPACT_ROWS};
use cwm_core::chess::MoveToken;

/// The metadata key of the embedded config.
pub const CONFIG_KEY: &str = "cwm.config";
/// The longest config that is read.
const CONFIG_LIMIT_BYTES: usize = 64 << 10;
/// How messages name the config beside the file.
const CONFIG_FILE: &str = "config.json";
/// How messages name the embedded config.
const EMBEDDED: &str = "the metadata's `cwm.config`";

/// The tensor that embeds move tokens, one row a token, where a family has one.
pub(super) fn embedding_name(config: &ModelConfig) -> Option<&'static str> {
    config.shape().embedding()
}

/// Settles the config of a file with this header and, where there is one, this config.json beside it.
pub(super) fn settle(
    header: &Header,
    config_json: Option<&str>,
) -> Result<ModelConfig, CheckpointError> {
    let embedded = header.metadata.get(CONFIG_KEY).map(|text| parse(EMBEDDED, text)).transpose()?;
    let beside = config_json.map(|text| parse(CONFIG_FILE, text)).transpose()?;
    match (embedded, beside) {
        (Some(embedded), Some(beside)) if embedded != beside => {
            Err(CheckpointError::ConfigsDisagree { keys: differing_keys(&embedded, &beside) })
        }
        (Some(config), _) | (None, Some(config)) => Ok(config),
        (None, None) => Err(CheckpointError::NoConfig { key: CONFIG_KEY }),
    }
}

fn parse(place: &'static str, text: &str) -> Result<ModelConfig, CheckpointError> {
    if text.len() > CONFIG_LIMIT_BYTES {
        let (found_bytes, limit_bytes) = (text.len(), CONFIG_LIMIT_BYTES);
        return Err(CheckpointError::ConfigTooLong { place, found_bytes, limit_bytes });
    }
    let bad = |reason: &str| CheckpointError::Config { place, reason: quoted(reason) };
    let value: Value = serde_json::from_str(text).map_err(|e| bad(&e.to_string()))?;
    let object = value.as_object().ok_or_else(|| bad("it is no JSON object"))?;
    let family = object.get("family").and_then(Value::as_str);
    let family = family.ok_or_else(|| bad("the key `family` is missing or no string"))?;

    let samples = ModelConfig::samples();
    let Some(sample) = samples.iter().find(|c| c.family() == family) else {
        let known = samples.iter().map(ModelConfig::family).collect::<Vec<_>>().join(", ");
        return Err(CheckpointError::UnknownFamily { place, family: quoted(family), known });
    };
    ModelConfig::from_json(text).map_err(|error| {
        let known: Vec<String> = keys(sample).into_iter().map(|(key, _)| key).collect();
        match object.keys().find(|key| !known.contains(key)) {
            Some(key) => CheckpointError::UnknownKey {
                place,
                key: quoted(key),
                nearest: nearest(key, &known),
            },
            None => bad(&error.to_string()),
        }
    })
}

fn keys(config: &ModelConfig) -> Vec<(String, Value)> {
    match serde_json::to_value(config) {
        Ok(Value::Object(object)) => object.into_iter().collect(),
        _ => Vec::new(),
    }
}

fn nearest(key: &str, known: &[String]) -> Option<String> {
    // Similarity takes time and memory by the length of both.
    let key: String = key.chars().take(64).collect();
    let scored = known.iter().map(|k| (strsim::jaro_winkler(&key, k), k));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.7).then(|| best.1.clone())
}

fn differing_keys(a: &ModelConfig, b: &ModelConfig) -> String {
    let (a, b) = (keys(a), keys(b));
    let differs = |(key, value): &&(String, Value)| {
        b.iter().find(|(other, _)| other == key).is_none_or(|(_, other)| other != value)
    };
    let differing: Vec<_> = a.iter().filter(differs).map(|(key, _)| format!("`{key}`")).collect();
    differing.join(", ")
}

/// Whether the vocabulary is the benchmark's.
pub(super) fn has_benchmark_vocabulary(config: &ModelConfig) -> bool {
    config.move_vocab() == MoveToken::VOCAB
        && config.start_move_id() == MoveToken::START.id()
        && config.pad_move_id() == MoveToken::PAD.id()
}

/// [`has_benchmark_vocabulary`] as a check.
pub(super) fn require_benchmark_vocabulary(config: &ModelConfig) -> Result<(), CheckpointError> {
    if has_benchmark_vocabulary(config) {
        return Ok(());
    }
    Err(CheckpointError::Vocabulary {
        tokens: config.move_vocab(),
        start: config.start_move_id(),
        pad: config.pad_move_id(),
    })
}

/// Which rows of the embedding a checkpoint stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmbeddingRows {
    /// One for every token of the vocabulary.
    #[default]
    Full,
    /// The 1,968 moves that some legal game holds, ascending, then START and PAD.
    Reachable,
}

impl EmbeddingRows {
    /// The metadata key.
    pub const KEY: &'static str = "cwm.embedding";

    /// The metadata value.
    pub const fn name(self) -> &'static str {
        match self {
            EmbeddingRows::Full => "full",
            EmbeddingRows::Reachable => "reachable",
        }
    }

    /// What the metadata say; absent means full.
    pub(super) fn of(header: &Header) -> Result<Self, CheckpointError> {
        match header.metadata.get(Self::KEY).map(String::as_str) {
            None | Some("full") => Ok(EmbeddingRows::Full),
            Some("reachable") => Ok(EmbeddingRows::Reachable),
            Some(other) => Err(CheckpointError::EmbeddingKind { found: quoted(other) }),
        }
    }
}

/// Names and shapes of the tensors that a checkpoint of this config holds, in the reference's order.
pub fn expected_tensors(config: &ModelConfig, rows: EmbeddingRows) -> Vec<(String, Vec<usize>)> {
    let mut shapes = config.parameter_shapes();
    if rows == EmbeddingRows::Reachable {
        let embedding = embedding_name(config);
        for (name, shape) in &mut shapes {
            if Some(name.as_str()) == embedding
                && let Some(first) = shape.first_mut()
            {
                *first = COMPACT_ROWS;
            }
        }
    }
    shapes
}

/// Compares a file's tensors, shapes by name, with what its config calls for.
pub(super) fn check_tensors(
    tensors: &BTreeMap<&str, &[u64]>,
    config: &ModelConfig,
    rows: EmbeddingRows,
) -> Result<(), CheckpointError> {
    // A short config may call for thousands of blocks: one more than the file can hold shows what is missing.
    let expected = expected_tensors(&config.shape().clipped(tensors.len() + 1), rows);
    let mut known = std::collections::BTreeSet::new();
    for (name, shape) in &expected {
        let Some(found) = tensors.get(name.as_str()) else {
            return Err(CheckpointError::MissingTensor { name: name.clone() });
        };
        if !found.iter().copied().eq(shape.iter().map(|&d| d as u64)) {
            return Err(CheckpointError::WrongShape {
                name: name.clone(),
                expected: shape.clone(),
                found: found.to_vec(),
            });
        }
        known.insert(name.as_str());
    }
    match tensors.keys().find(|name| !known.contains(**name)) {
        Some(name) => Err(CheckpointError::ExtraTensor { name: quoted(name) }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: &str = r#"{"family":"transformer","d_model":8,"n_layers":1,"n_heads":2}"#;

    fn fault(text: &str) -> CheckpointError {
        parse(CONFIG_FILE, text).unwrap_err()
    }

    #[test]
    fn faults_of_a_config_are_told_apart() {
        assert!(parse(CONFIG_FILE, TINY).is_ok());
        assert_eq!(fault("").code(), "CKPT-CONFIG");
        assert_eq!(fault("[1]").code(), "CKPT-CONFIG");
        assert_eq!(fault(r#"{"d_model":8}"#).code(), "CKPT-CONFIG");
        assert_eq!(fault(r#"{"family":3}"#).code(), "CKPT-CONFIG");
        assert_eq!(fault(&TINY.replace("transformer", "lstm")).code(), "CKPT-FAMILY");
        assert_eq!(fault(&TINY.replace(":8", ":0")).code(), "CKPT-CONFIG");
        assert_eq!(fault(&TINY.replace(":8", ":-8")).code(), "CKPT-CONFIG");
        assert_eq!(fault(&TINY.replace(r#""d_model":8,"#, "")).code(), "CKPT-CONFIG");
        assert_eq!(fault(&(TINY.to_owned() + &" ".repeat(1 << 16))).code(), "CKPT-CONFIG-LENGTH");
        assert_eq!(
            fault(&TINY.replace('}', &(",\"x\":".to_owned() + &"[".repeat(500)))).code(),
            "CKPT-CONFIG"
        );
        let typo = fault(&TINY.replace("n_heads", "n_head"));
        assert_eq!(typo.code(), "CKPT-CONFIG-KEY");
        assert_eq!(typo.hint(), "did you mean `n_heads`?");
    }

    #[test]
    fn two_configs_must_agree() {
        let mut header = Header::default();
        assert_eq!(settle(&header, None).unwrap_err().code(), "CKPT-NO-CONFIG");
        assert!(settle(&header, Some(TINY)).is_ok());
        header.metadata.insert(CONFIG_KEY.into(), TINY.into());
        assert!(settle(&header, None).is_ok());
        assert!(settle(&header, Some(TINY)).is_ok());
        let other = TINY.replace(":8", ":16").replace("\"n_layers\":1", "\"n_layers\":2");
        let error = settle(&header, Some(&other)).unwrap_err();
        assert_eq!(error.code(), "CKPT-CONFIGS-DISAGREE");
        assert!(error.to_string().ends_with("about `d_model`, `n_layers`"), "{error}");
    }

    #[test]
    fn a_config_of_many_blocks_costs_nothing() {
        let config = parse(CONFIG_FILE, &TINY.replace("rs\":1", "rs\":1024")).unwrap();
        let error = check_tensors(&BTreeMap::new(), &config, EmbeddingRows::Full).unwrap_err();
        assert_eq!(error.code(), "CKPT-MISSING");
    }
}
