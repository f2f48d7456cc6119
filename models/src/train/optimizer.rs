//! AdamW with decoupled weight decay, after clipping by the global norm; the formulas are PyTorch's.

use multiversion::multiversion;
use serde::{Deserialize, Serialize};

use super::{SettingError, require};
use crate::parallel;

/// The optimiser's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimizerConfig {
    /// Base learning rate; the schedule multiplies it.
    pub lr: f64,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// Parameters without weight decay: every name that ends with one of these.
    pub no_decay: Vec<String>,
    /// The largest global norm of the gradients; 0 leaves them as they are.
    pub grad_clip: f64,
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        OptimizerConfig {
            lr: 1e-3,
            beta1: 0.9,
            beta2: 0.95,
            eps: 1e-8,
            weight_decay: 0.0,
            no_decay: Vec::new(),
            grad_clip: 1.0,
        }
    }
}

impl OptimizerConfig {
    /// Checks every number.
    ///
    /// # Errors
    /// [`SettingError`] naming the first key at fault.
    pub fn validate(&self) -> Result<(), SettingError> {
        let beta = |key, x: f64| require((0.0..1.0).contains(&x), key, x, "at least 0 and below 1");
        let positive = |key, x: f64| require(x > 0.0 && x.is_finite(), key, x, "above 0");
        let not_negative = |key, x: f64| require(x >= 0.0 && x.is_finite(), key, x, "at least 0");
        positive("optimizer.lr", self.lr)?;
        beta("optimizer.beta1", self.beta1)?;
        beta("optimizer.beta2", self.beta2)?;
        positive("optimizer.eps", self.eps)?;
        not_negative("optimizer.weight_decay", self.weight_decay)?;
        not_negative("optimizer.grad_clip", self.grad_clip)
    }

    /// The weight decay of a parameter.
    pub fn decay_of(&self, name: &str) -> f64 {
        let exempt = self.no_decay.iter().any(|ending| name.ends_with(ending.as_str()));
        if exempt { 0.0 } else { self.weight_decay }
    }
}

/// Numbers that one task updates.
const SEGMENT: usize = 1 << 16;

/// Moments of every parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct AdamW {
    /// Means of the gradients, by parameter.
    pub first: Vec<Vec<f32>>,
    /// Means of their squares, by parameter.
    pub second: Vec<Vec<f32>>,
}

/// What one step needs besides the numbers it updates.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// The settings.
    pub config: &'a OptimizerConfig,
    /// The learning rate.
    pub lr: f64,
    /// The step, counted from 1.
    pub number: u64,
    /// What the gradients are multiplied by.
    pub clip: f64,
}

/// The numbers of a step that all elements of a parameter share.
#[derive(Clone, Copy)]
struct Rates {
    clip: f32,
    beta1: f32,
    beta2: f32,
    eps: f32,
    step_size: f32,
    root_correction: f32,
    shrink: f32,
}

impl Step<'_> {
    fn rates(&self, name: &str) -> Rates {
        let config = self.config;
        let correction = |beta: f64| 1.0 - beta.powf(self.number as f64);
        Rates {
            clip: self.clip as f32,
            beta1: config.beta1 as f32,
            beta2: config.beta2 as f32,
            eps: config.eps as f32,
            step_size: (self.lr / correction(config.beta1)) as f32,
            root_correction: correction(config.beta2).sqrt() as f32,
            shrink: (1.0 - self.lr * config.decay_of(name)) as f32,
        }
    }
}

impl AdamW {
    /// Moments of zero for parameters with these lengths.
    pub fn new(lengths: impl IntoIterator<Item = usize>) -> Self {
        let first: Vec<Vec<f32>> = lengths.into_iter().map(|len| vec![0.0; len]).collect();
        AdamW { second: first.clone(), first }
    }

    /// One update of every parameter; names, parameters and gradients in the order of the moments.
    pub fn update(
        &mut self,
        step: Step,
        names: &[String],
        parameters: &mut [Vec<f32>],
        gradients: &[Vec<f32>],
    ) {
        let mut tasks = Vec::new();
        let moments = self.first.iter_mut().zip(&mut self.second);
        let parameters = parameters.iter_mut().zip(gradients).zip(names);
        for (((parameter, gradient), name), (first, second)) in parameters.zip(moments) {
            let rates = step.rates(name);
            let segments = parameter
                .chunks_mut(SEGMENT)
                .zip(gradient.chunks(SEGMENT))
                .zip(first.chunks_mut(SEGMENT).zip(second.chunks_mut(SEGMENT)));
            tasks.extend(segments.map(|((p, g), (m, v))| (p, g, m, v, rates)));
        }
        parallel::map(tasks, |(p, g, m, v, rates)| update(p, g, m, v, rates));
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn update(p: &mut [f32], g: &[f32], m: &mut [f32], v: &mut [f32], rates: Rates) {
    let moments = m.iter_mut().zip(v);
    for ((p, g), (m, v)) in p.iter_mut().zip(g).zip(moments) {
        let g = g * rates.clip;
        *p *= rates.shrink;
        *m += (g - *m) * (1.0 - rates.beta1);
        *v = *v * rates.beta2 + (g * g) * (1.0 - rates.beta2);
        *p -= rates.step_size * (*m / (v.sqrt() / rates.root_correction + rates.eps));
    }
}

/// The global norm of all gradients.
pub fn global_norm(gradients: &[Vec<f32>]) -> f64 {
    let segments: Vec<&[f32]> = gradients.iter().flat_map(|g| g.chunks(SEGMENT)).collect();
    // Added up segment by segment in a fixed order, whoever computes them.
    parallel::map(segments, square_sum).iter().sum::<f64>().sqrt()
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn square_sum(x: &[f32]) -> f64 {
    let mut lanes = [0.0_f64; 16];
    let chunks = x.chunks_exact(16);
    let tail: f64 = chunks.remainder().iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    for chunk in chunks {
        for lane in 0..16 {
            lanes[lane] += f64::from(chunk[lane]) * f64::from(chunk[lane]);
        }
    }
    lanes.iter().sum::<f64>() + tail
}

/// What the gradients are multiplied by so that their global norm is at most `max`.
pub fn clip_factor(norm: f64, max: f64) -> f64 {
    if max > 0.0 { (max / (norm + 1e-6)).min(1.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_formulas_in_double_precision() {
        let config = OptimizerConfig { weight_decay: 0.1, ..OptimizerConfig::default() };
        let names = vec!["a.weight".to_string()];
        let mut parameters = vec![vec![0.5_f32, -1.0, 2.0]];
        let mut adam = AdamW::new([3]);
        let (mut p, mut m, mut v) = ([0.5_f64, -1.0, 2.0], [0.0_f64; 3], [0.0_f64; 3]);
        for number in 1..=20 {
            let g: Vec<f32> =
                (0..3).map(|i| ((number * 7 + i * 3) % 11) as f32 / 10.0 - 0.4).collect();
            let step = Step { config: &config, lr: 0.01, number: number as u64, clip: 0.5 };
            adam.update(step, &names, &mut parameters, std::slice::from_ref(&g));
            for i in 0..3 {
                let g = f64::from(g[i]) * 0.5;
                p[i] *= 1.0 - 0.01 * 0.1;
                m[i] = 0.9 * m[i] + 0.1 * g;
                v[i] = 0.95 * v[i] + 0.05 * g * g;
                let mean = m[i] / (1.0 - 0.9_f64.powi(number));
                let square = v[i] / (1.0 - 0.95_f64.powi(number));
                p[i] -= 0.01 * mean / (square.sqrt() + 1e-8);
            }
        }
        for (a, b) in parameters[0].iter().zip(p) {
            assert!((f64::from(*a) - b).abs() < 1e-5, "{a} is not {b}");
        }
    }

    #[test]
    fn exempt_parameters_do_not_decay() {
        let no_decay = vec![".bias".into()];
        let config = OptimizerConfig { weight_decay: 0.5, no_decay, ..OptimizerConfig::default() };
        let names = vec!["x.weight".to_string(), "x.bias".to_string()];
        let mut parameters = vec![vec![1.0_f32], vec![1.0_f32]];
        let step = Step { config: &config, lr: 0.1, number: 1, clip: 1.0 };
        AdamW::new([1, 1]).update(step, &names, &mut parameters, &[vec![0.0], vec![0.0]]);
        assert_eq!(parameters, [[0.95], [1.0]]);
    }

    #[test]
    fn norm_is_global() {
        assert_eq!(global_norm(&[vec![3.0; 1], vec![4.0; 1]]), 5.0);
        assert_eq!(clip_factor(0.5, 1.0), 1.0);
        assert!((clip_factor(5.0, 1.0) - 1.0 / 5.000_001).abs() < 1e-15);
        assert_eq!(clip_factor(5.0, 0.0), 1.0);
    }
}
