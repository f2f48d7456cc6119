//! What is measured.

use burn::tensor::Device;
use cwm_models::{
    Model, ModelConfig, presets,
    train::{OptimizerConfig, ScheduleConfig, Trainer},
};

/// A preset's model, if it reads sequences.
pub fn model(preset: &str, device: &Device) -> Option<Model> {
    let text = presets::get(preset).unwrap_or_else(|| panic!("there is no preset `{preset}`"));
    let table: toml::Table = text.parse().expect("presets are TOML");
    let config: ModelConfig = table["model"].clone().try_into().expect("presets name models");
    Model::new(&config, 0, device).ok()
}

/// What trains it.
pub fn trainer(model: Model) -> Trainer {
    let (optimizer, schedule) = (OptimizerConfig::default(), ScheduleConfig::default());
    Trainer::from_model(model, &optimizer, &schedule, 0).expect("default settings are valid")
}
