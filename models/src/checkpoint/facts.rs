//! What a checkpoint tells about its own training, for `inspect`, the model card and the page.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How the weights came to be: JSON under [`TrainingFacts::KEY`]. Every fact may be absent; unknown ones are ignored.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TrainingFacts {
    /// Optimiser steps taken.
    pub steps: u64,
    /// Games read, counted with repetition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub games_seen: Option<u64>,
    /// Valid steps (positions) read, counted with repetition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positions_seen: Option<u64>,
    /// Wall time spent training, resumed parts included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_secs: Option<f64>,
    /// What it was trained on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<DatasetFacts>,
    /// Where it was trained, e.g. `cpu (2 threads)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Version of cwm, with git revision where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Where the weights come from, if another program trained them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportFacts>,
    /// The seed of initialisation, order and dropout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Resolved settings by dotted key, e.g. `optimizer.lr`, as text.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Loss and validation over time, oldest first; a few dozen points at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<CurvePoint>,
}

/// A training set.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DatasetFacts {
    /// Its name.
    pub name: String,
    /// One sentence on where the games come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Games in its training split.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub games: Option<u64>,
    /// SHA-256 of its dataset.json.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// En passant labels: `always` or `legal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub en_passant: Option<String>,
}

/// A checkpoint of the reference that the weights were taken from, unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportFacts {
    /// The file's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The file's SHA-256, lower-case hexadecimal.
    pub sha256: String,
    /// The PyTorch that trained it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub torch_version: Option<String>,
    /// Passes over the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
}

/// One moment of the training.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CurvePoint {
    /// Optimiser steps taken.
    pub step: u64,
    /// Training loss (nats a label) since the point before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub train_loss: Option<f64>,
    /// Loss on the validation split.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_loss: Option<f64>,
    /// Exact state accuracy on the validation split, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact_state_accuracy: Option<f64>,
}

impl TrainingFacts {
    /// The metadata key.
    pub const KEY: &'static str = "cwm.training";

    /// The training time in words, e.g. `1.75 h`.
    pub fn time_text(&self) -> Option<String> {
        self.wall_secs.map(|secs| match secs {
            60.0..3600.0 => format!("{:.1} min", secs / 60.0),
            3600.0.. => format!("{:.2} h", secs / 3600.0),
            _ => format!("{secs:.0} s"),
        })
    }

    /// The facts as JSON; numbers that JSON lacks (NaN) become `null`, which reads back as absent.
    pub fn to_json(&self) -> String {
        // Strings as keys, numbers and text as values: nothing here fails to serialise.
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_round_trip_and_bear_what_they_do_not_know() {
        let facts = TrainingFacts {
            steps: 7,
            wall_secs: Some(1.5),
            settings: BTreeMap::from([("optimizer.lr".into(), "0.001".into())]),
            curve: vec![CurvePoint { step: 1, train_loss: Some(0.25), ..Default::default() }],
            ..Default::default()
        };
        assert_eq!(serde_json::from_str::<TrainingFacts>(&facts.to_json()).unwrap(), facts);
        let odd = serde_json::from_str::<TrainingFacts>(r#"{"steps":3,"mood":[{}]}"#).unwrap();
        assert_eq!(odd.steps, 3);
        let time = |secs| TrainingFacts { wall_secs: Some(secs), ..Default::default() }.time_text();
        assert_eq!(time(7.4).as_deref(), Some("7 s"));
        assert_eq!(time(90.0).as_deref(), Some("1.5 min"));
        assert_eq!(time(6300.0).as_deref(), Some("1.75 h"));
        let nan = TrainingFacts { wall_secs: Some(f64::NAN), ..Default::default() };
        assert_eq!(serde_json::from_str::<TrainingFacts>(&nan.to_json()).unwrap().wall_secs, None);
    }
}
