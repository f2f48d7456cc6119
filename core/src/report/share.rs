//! A share with its numerator, denominator and interval, and the mean loss.

use serde::{Deserialize, Serialize};

use super::rounded;
use crate::metrics::{Interval, Loss};

/// `numerator / denominator`, with its 95 % interval where there is one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "ShareFields", try_from = "ShareFields")]
pub struct Share {
    /// How many.
    pub numerator: u64,
    /// Of how many.
    pub denominator: u64,
    /// 95 % interval over games.
    pub interval: Option<Interval>,
}

/// The mean cross-entropy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LossMean {
    /// Nats summed over steps and labels.
    pub sum: f64,
    /// Labels that the sum runs over: 75 a step.
    pub labels: u64,
    /// Nats a label; missing if some game's loss was not finite.
    pub mean: Option<f64>,
    /// 95 % interval of the mean over games.
    pub interval: Option<Interval>,
    /// Games whose loss was not finite, left out of the sum.
    pub non_finite_games: u64,
}

/// A share in JSON: readers get the quotient as well.
#[derive(Serialize, Deserialize)]
struct ShareFields {
    value: Option<f64>,
    numerator: u64,
    denominator: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    interval: Option<Interval>,
}

impl Share {
    /// A share with its interval.
    pub fn new(numerator: u64, denominator: u64, interval: Option<Interval>) -> Self {
        Share { numerator, denominator, interval: interval.map(rounded_interval) }
    }

    /// The quotient; `None` of nothing.
    pub fn value(&self) -> Option<f64> {
        (self.denominator > 0).then(|| self.numerator as f64 / self.denominator as f64)
    }
}

impl From<Share> for ShareFields {
    fn from(share: Share) -> Self {
        let Share { numerator, denominator, interval } = share;
        ShareFields { value: share.value().map(rounded), numerator, denominator, interval }
    }
}

impl TryFrom<ShareFields> for Share {
    type Error = String;
    fn try_from(fields: ShareFields) -> Result<Self, String> {
        let ShareFields { value: _, numerator, denominator, interval } = fields;
        if numerator > denominator {
            return Err(format!("a share of {numerator} out of {denominator}"));
        }
        Ok(Share { numerator, denominator, interval })
    }
}

impl LossMean {
    /// The loss of a grading; `None` if the tracker gives none.
    pub fn new(loss: &Loss, interval: Option<Interval>) -> Option<Self> {
        (loss.labels() > 0 || loss.non_finite_games() > 0).then(|| LossMean {
            sum: rounded(loss.sum()),
            labels: loss.labels(),
            mean: loss.mean().map(rounded),
            interval: interval.map(rounded_interval),
            non_finite_games: loss.non_finite_games(),
        })
    }
}

fn rounded_interval(interval: Interval) -> Interval {
    Interval { low: rounded(interval.low), high: rounded(interval.high), ..interval }
}
