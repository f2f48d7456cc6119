//! What a run's checkpoints tell of their own training.

use std::path::Path;

use cwm_models::checkpoint::{CurvePoint, TrainingFacts};

use super::{
    log::{Record, read_records},
    standing::Standing,
};

/// Points of the curve that a checkpoint carries.
const CURVE_POINTS: usize = 40;

/// The facts at `standing`: what the run began with, the sums so far, and a thinned curve from its log.
pub fn facts(run: &Path, base: &TrainingFacts, standing: &Standing) -> TrainingFacts {
    // A run that was never logged has no curve; that is no reason to lose a checkpoint.
    let records = read_records(&run.join(super::log::FILE)).unwrap_or_default();
    TrainingFacts {
        steps: standing.step,
        games_seen: Some(standing.games),
        positions_seen: Some(standing.valid_steps),
        wall_secs: Some(standing.elapsed_secs.round()),
        curve: thinned(curve(&records), CURVE_POINTS),
        ..base.clone()
    }
}

fn curve(records: &[Record]) -> Vec<CurvePoint> {
    let mut points: Vec<CurvePoint> = Vec::new();
    for record in records {
        let step = record.step();
        if points.last().is_none_or(|point| point.step != step) {
            points.push(CurvePoint { step, ..CurvePoint::default() });
        }
        let Some(point) = points.last_mut() else { continue };
        match *record {
            Record::Train { loss, .. } => point.train_loss = Some(loss),
            Record::Validation { loss, exact, .. } => {
                point.validation_loss = Some(loss);
                point.exact_state_accuracy = Some(exact);
            }
            Record::Skipped { .. } => {}
        }
    }
    points.retain(|point| point.train_loss.is_some() || point.validation_loss.is_some());
    points
}

/// Every validation and the last point, and evenly spaced others, about `limit` in all.
fn thinned(points: Vec<CurvePoint>, limit: usize) -> Vec<CurvePoint> {
    let every = points.len().div_ceil(limit).max(1);
    let last = points.len().saturating_sub(1);
    points
        .into_iter()
        .enumerate()
        .filter(|(i, point)| i % every == 0 || *i == last || point.validation_loss.is_some())
        .map(|(_, point)| point)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_curve_is_thinned_but_keeps_its_ends_and_validations() {
        let point = |step, validation_loss| CurvePoint {
            step,
            train_loss: Some(1.0),
            validation_loss,
            exact_state_accuracy: None,
        };
        let points: Vec<_> = (0..1000).map(|i| point(i, (i == 501).then_some(0.5))).collect();
        let kept: Vec<u64> = thinned(points, 40).iter().map(|p| p.step).collect();
        assert!((40..=43).contains(&kept.len()), "{kept:?}");
        assert!(kept.contains(&0) && kept.contains(&501) && kept.contains(&999));
    }
}
