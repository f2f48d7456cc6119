//! The named training jobs of `models/presets`: a model with the optimiser settings that the paper selected for it.
//!
//! A preset is TOML with the tables `model` ([`crate::ModelConfig`]), `optimizer`, `schedule` (`crate::train`) and
//! `train` (the job itself, read by the command line).

const PRESETS: &[(&str, &str)] = &[
    ("transformer-d128", include_str!("../presets/transformer-d128.toml")),
    ("transformer-d256", include_str!("../presets/transformer-d256.toml")),
    ("transformer-d384", include_str!("../presets/transformer-d384.toml")),
    ("transformer-d512", include_str!("../presets/transformer-d512.toml")),
    ("slice-d128", include_str!("../presets/slice-d128.toml")),
    ("slice-d256", include_str!("../presets/slice-d256.toml")),
    ("slice-d384", include_str!("../presets/slice-d384.toml")),
    ("slice-d512", include_str!("../presets/slice-d512.toml")),
    ("slice-diagonal-d128", include_str!("../presets/slice-diagonal-d128.toml")),
    ("slice-diagonal-d256", include_str!("../presets/slice-diagonal-d256.toml")),
    ("slice-diagonal-d384", include_str!("../presets/slice-diagonal-d384.toml")),
    ("slice-diagonal-d512", include_str!("../presets/slice-diagonal-d512.toml")),
    ("gated-deltanet-d128", include_str!("../presets/gated-deltanet-d128.toml")),
    ("gated-deltanet-d256", include_str!("../presets/gated-deltanet-d256.toml")),
    ("gated-deltanet-d384", include_str!("../presets/gated-deltanet-d384.toml")),
    ("gated-deltanet-d512", include_str!("../presets/gated-deltanet-d512.toml")),
    ("gated-deltanet-positive-d128", include_str!("../presets/gated-deltanet-positive-d128.toml")),
    ("gated-deltanet-positive-d256", include_str!("../presets/gated-deltanet-positive-d256.toml")),
    ("gated-deltanet-positive-d384", include_str!("../presets/gated-deltanet-positive-d384.toml")),
    ("gated-deltanet-positive-d512", include_str!("../presets/gated-deltanet-positive-d512.toml")),
    ("mamba2-d128", include_str!("../presets/mamba2-d128.toml")),
    ("mamba2-d256", include_str!("../presets/mamba2-d256.toml")),
    ("mamba2-d384", include_str!("../presets/mamba2-d384.toml")),
    ("mamba2-d512", include_str!("../presets/mamba2-d512.toml")),
    ("mamba3-d128", include_str!("../presets/mamba3-d128.toml")),
    ("mamba3-d256", include_str!("../presets/mamba3-d256.toml")),
    ("mamba3-d384", include_str!("../presets/mamba3-d384.toml")),
    ("mamba3-d512", include_str!("../presets/mamba3-d512.toml")),
    ("mamba3-mimo4-d128", include_str!("../presets/mamba3-mimo4-d128.toml")),
    ("mamba3-mimo4-d256", include_str!("../presets/mamba3-mimo4-d256.toml")),
    ("mamba3-mimo4-d384", include_str!("../presets/mamba3-mimo4-d384.toml")),
    ("mamba3-mimo4-d512", include_str!("../presets/mamba3-mimo4-d512.toml")),
    ("transformer-labels-d128", include_str!("../presets/transformer-labels-d128.toml")),
    ("transition", include_str!("../presets/transition.toml")),
];

/// The names: each family's smallest model first.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    PRESETS.iter().map(|(name, _)| *name)
}

/// The text of a preset.
pub fn get(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(other, _)| *other == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelConfig;

    #[test]
    fn every_preset_reads_and_has_the_papers_size() {
        let counts = [
            ("transformer", &[3_128_150, 7_831_126, 18_048_726, 36_662_614][..]),
            ("slice", &[3_144_662, 7_962_966, 18_641_238, 38_241_110]),
            ("slice-diagonal", &[3_029_078, 7_041_878, 14_501_718, 27_209_558]),
            ("gated_deltanet", &[3_161_402, 7_703_846, 16_886_406, 35_136_502]),
            ("gated_deltanet-positive", &[3_161_402, 7_703_846, 16_886_406, 35_136_502]),
            ("mamba2", &[3_195_362, 8_230_534, 19_643_750, 40_648_822]),
            ("mamba3", &[3_198_942, 8_250_998, 19_719_478, 40_826_902]),
            ("mamba3-mimo4", &[3_303_390, 8_668_790, 20_972_854, 43_333_654]),
            ("transformer-labels", &[3_128_150 + 1878 * 128 + 128]),
            ("transition", &[93_354]),
        ];
        let counts =
            counts.iter().flat_map(|(variant, counts)| counts.iter().map(|c| (*variant, *c)));
        assert_eq!(counts.clone().count(), names().count());
        for (name, (variant, count)) in names().zip(counts) {
            let table: toml::Table = get(name).unwrap().parse().unwrap();
            let model: ModelConfig = table["model"].clone().try_into().unwrap();
            model.validate().unwrap();
            assert_eq!(model.parameter_count(), count, "{name}");
            let size = model.size();
            let sized = format!("{variant}-{}", size.split('/').next().unwrap()).replace('_', "-");
            assert_eq!(model.variant(), variant, "{name}");
            assert!(name == sized || name == variant, "{name}");
            #[cfg(feature = "train")]
            {
                let optimizer: crate::train::OptimizerConfig =
                    table["optimizer"].clone().try_into().unwrap();
                optimizer.validate().unwrap();
                let schedule: crate::train::ScheduleConfig =
                    table["schedule"].clone().try_into().unwrap();
                schedule.validate().unwrap();
            }
        }
        assert_eq!(get("transformer-d64"), None);
    }
}
