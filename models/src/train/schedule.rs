//! The learning rate by step: a linear warm-up, then constant, linear or cosine to a floor.

use serde::{Deserialize, Serialize};

use super::{SettingError, require};

/// What the learning rate does after the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScheduleKind {
    /// Stays.
    Constant,
    /// Falls in a straight line.
    Linear,
    /// Falls along half a cosine.
    #[default]
    Cosine,
}

/// How the learning rate changes over a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScheduleConfig {
    /// The shape after the warm-up.
    pub kind: ScheduleKind,
    /// Steps of the warm-up.
    pub warmup_steps: u64,
    /// The step from which the floor holds; 0 stands for the end of the run.
    pub decay_steps: u64,
    /// The floor, as a share of the base learning rate.
    pub floor_ratio: f64,
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        let kind = ScheduleKind::Cosine;
        ScheduleConfig { kind, warmup_steps: 0, decay_steps: 0, floor_ratio: 0.1 }
    }
}

impl ScheduleConfig {
    /// Checks every number.
    ///
    /// # Errors
    /// [`SettingError`] naming the first key at fault.
    pub fn validate(&self) -> Result<(), SettingError> {
        let ratio = self.floor_ratio;
        require(
            ratio > 0.0 && ratio <= 1.0,
            "schedule.floor_ratio",
            ratio,
            "above 0 and at most 1",
        )?;
        let decays = self.kind != ScheduleKind::Constant && self.decay_steps > 0;
        require(
            !decays || self.warmup_steps < self.decay_steps,
            "schedule.warmup_steps",
            self.warmup_steps as f64,
            "fewer than the steps of the decay",
        )
    }

    /// The learning rate of the step after `done` steps, as a share of the base.
    pub fn factor(&self, done: u64) -> f64 {
        if done < self.warmup_steps {
            return ((done + 1) as f64 / self.warmup_steps as f64).max(1e-8);
        }
        let span = self.decay_steps.saturating_sub(self.warmup_steps);
        if span == 0 {
            return 1.0;
        }
        let progress = (done.min(self.decay_steps) - self.warmup_steps) as f64 / span as f64;
        let share = match self.kind {
            ScheduleKind::Constant => 1.0,
            ScheduleKind::Linear => 1.0 - progress,
            ScheduleKind::Cosine => 0.5 * (1.0 + (std::f64::consts::PI * progress).cos()),
        };
        self.floor_ratio + (1.0 - self.floor_ratio) * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(kind: ScheduleKind) -> ScheduleConfig {
        ScheduleConfig { kind, warmup_steps: 4, decay_steps: 12, floor_ratio: 0.1 }
    }

    #[test]
    fn warms_up_falls_and_stays_on_the_floor() {
        for kind in [ScheduleKind::Linear, ScheduleKind::Cosine] {
            let schedule = schedule(kind);
            let factors: Vec<f64> = (0..20).map(|done| schedule.factor(done)).collect();
            assert_eq!(factors[..5], [0.25, 0.5, 0.75, 1.0, 1.0]);
            assert!(factors[4..13].windows(2).all(|w| w[1] < w[0]), "{factors:?}");
            assert!(factors[12..].iter().all(|f| (f - 0.1).abs() < 1e-12), "{factors:?}");
        }
        assert_eq!(schedule(ScheduleKind::Constant).factor(100), 1.0);
    }

    #[test]
    fn a_warm_up_longer_than_the_run_is_refused() {
        let mut bad = schedule(ScheduleKind::Cosine);
        bad.warmup_steps = 12;
        assert!(bad.validate().unwrap_err().to_string().contains("warmup_steps"));
        bad = ScheduleConfig { floor_ratio: 0.0, ..schedule(ScheduleKind::Linear) };
        assert!(bad.validate().unwrap_err().to_string().contains("floor_ratio"));
    }
}
