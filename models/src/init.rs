//! Initial parameters, drawn from our own generator: the same on every backend and in every build.
//!
//! Distributions are PyTorch's defaults, which the reference leaves as they are: embeddings N(0, 1); weights and biases
//! of a linear map or a convolution uniform within `1 / sqrt(inputs)`; norms 1. A family's configuration names those of
//! its parameters that start otherwise (`Shape::initial`).

use rand::Rng;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use crate::{
    config::{Initial, ModelConfig},
    kernel::random::mix,
    parameters::{NamedTensor, Parameters},
    vocabulary::{TokenRows, compact_tokens},
};

/// Every parameter of a new model, the embedding with the rows of `rows`.
///
/// Each embedding row and each other parameter has a random stream of its own, so a compact table starts with the very
/// numbers that the full one would.
pub fn initial_parameters(config: &ModelConfig, seed: u64, rows: &TokenRows) -> Parameters {
    let shapes = config.parameter_shapes();
    let mut parameters = Parameters::new();
    for (name, shape) in &shapes {
        let stream = Streams::new(seed, name);
        let tensor = if is_embedding(name) {
            embedding(&stream, shape[1], rows, embedding_deviation(config, name, shape))
        } else {
            let initial = config.shape().initial(name, shape);
            let initial = initial.unwrap_or_else(|| default_initial(name, shape, &shapes));
            let mut rng = stream.get(0);
            let data = (0..shape.iter().product()).map(|_| draw(initial, &mut rng)).collect();
            NamedTensor { shape: shape.clone(), data }
        };
        parameters.insert(name.clone(), tensor);
    }
    parameters
}

/// PyTorch's default for a parameter of this name and shape.
fn default_initial(name: &str, shape: &[usize], shapes: &[(String, Vec<usize>)]) -> Initial {
    if name.contains("norm") {
        return Initial::Constant(1.0);
    }
    // A bias is drawn within the bound of its weight.
    let weight = name.replace(".bias", ".weight");
    let weight = shapes.iter().find(|(other, _)| *other == weight);
    let shape = weight.map_or(shape, |(_, shape)| shape);
    let inputs: usize = shape.iter().skip(1).product();
    Initial::Uniform(1.0 / (inputs as f64).sqrt())
}

fn draw(initial: Initial, rng: &mut ChaCha8Rng) -> f32 {
    match initial {
        Initial::Uniform(bound) => ((2.0 * unit(rng) - 1.0) * bound) as f32,
        Initial::Normal(deviation) => (f64::from(normal(rng)) * deviation) as f32,
        Initial::Constant(number) => number,
        Initial::Of(map) => map(unit(rng)) as f32,
    }
}

/// The embedding with all its rows as a new model of this seed would have it.
pub fn initial_embedding(config: &ModelConfig, seed: u64) -> Option<NamedTensor> {
    let (name, shape) =
        config.parameter_shapes().into_iter().find(|(name, _)| is_embedding(name))?;
    let deviation = embedding_deviation(config, &name, &shape);
    Some(embedding(&Streams::new(seed, &name), shape[1], &TokenRows::Full(shape[0]), deviation))
}

/// Whether a parameter is the table of move embeddings.
pub fn is_embedding(name: &str) -> bool {
    ["emb.weight", "embedding.weight", "embeddings.weight"].iter().any(|end| name.ends_with(end))
}

/// The standard deviation that embeddings start with.
fn embedding_deviation(config: &ModelConfig, name: &str, shape: &[usize]) -> f64 {
    match config.shape().initial(name, shape) {
        Some(Initial::Normal(deviation)) => deviation,
        _ => 1.0,
    }
}

fn embedding(stream: &Streams, width: usize, rows: &TokenRows, deviation: f64) -> NamedTensor {
    let tokens: Vec<u16> = match rows {
        TokenRows::Full(rows) => (0..*rows as u16).collect(),
        TokenRows::Compact(_) => compact_tokens().collect(),
    };
    let mut data = Vec::with_capacity(tokens.len() * width);
    for &token in &tokens {
        let mut rng = stream.get(u64::from(token));
        data.extend((0..width).map(|_| (f64::from(normal(&mut rng)) * deviation) as f32));
    }
    NamedTensor { shape: vec![tokens.len(), width], data }
}

/// The random streams of one parameter.
struct Streams {
    seed: u64,
    name: u64,
}

impl Streams {
    fn new(seed: u64, name: &str) -> Self {
        let name = name.bytes().fold(0, |hash, byte| mix(hash ^ u64::from(byte)));
        Streams { seed, name }
    }

    fn get(&self, index: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(mix(self.name ^ mix(index)));
        rng
    }
}

/// Uniform on [0, 1), 53 bits.
fn unit(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Standard normal, by Box and Muller.
fn normal(rng: &mut ChaCha8Rng) -> f32 {
    let radius = (-2.0 * (1.0 - unit(rng)).ln()).sqrt();
    (radius * (std::f64::consts::TAU * unit(rng)).cos()) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TransformerConfig;

    #[test]
    fn compact_and_full_tables_start_alike() {
        let config = ModelConfig::Transformer(TransformerConfig::new(4, 1, 2));
        let full = initial_embedding(&config, 3).unwrap();
        let compact = initial_parameters(&config, 3, &TokenRows::compact());
        assert_eq!(full.compact_rows().unwrap(), compact["tok_emb.weight"]);
        assert_ne!(full, initial_embedding(&config, 4).unwrap());
    }

    #[test]
    fn statistics_are_the_references() {
        let config = ModelConfig::Transformer(TransformerConfig::new(128, 1, 2));
        let parameters = initial_parameters(&config, 0, &TokenRows::Full(20_482));
        for (name, tensor) in &parameters {
            let n = tensor.data.len() as f64;
            let mean = tensor.data.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
            let square = tensor.data.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / n;
            let std = (square - mean * mean).max(0.0).sqrt();
            let expected = if is_embedding(name) {
                1.0
            } else if name.contains("norm") {
                0.0
            } else {
                let inputs = if name.contains("mlp.out_proj") { 512.0_f64 } else { 128.0 };
                (1.0 / inputs / 3.0).sqrt()
            };
            let error = 5.0 * expected / n.sqrt();
            assert!((std - expected).abs() <= error, "{name}: standard deviation {std}");
            let centre = if name.contains("norm") { 1.0 } else { 0.0 };
            assert!((mean - centre).abs() <= error, "{name}: mean {mean}");
        }
    }
}
