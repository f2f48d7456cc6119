//! The mixer of Gated DeltaNet over packed games (paper, section 3.2): short convolutions, queries and keys of unit
//! length, the gated delta rule, and the gated RMSNorm.
//!
//! It reads rows `u` with all projections of a step side by side,
//!
//! ```text
//! [ queries H K | keys H K | values H V | output gates H V | a, H | b, H ]
//! ```
//!
//! and writes rows of H V numbers, ready for the output projection. Games and heads are independent.

mod backward;
mod chunk;
mod conv;
mod forward;
mod gate;
mod norm;

pub use backward::{Gradients, backward};
pub use forward::{Saved, forward};

use gate::Gate;
use norm::GatedNorm;

/// Sizes of a mixer over packed rows.
#[derive(Debug, Clone, Copy)]
pub struct Shape<'a> {
    /// Heads H.
    pub heads: usize,
    /// Key width K of a head.
    pub key: usize,
    /// Value width V of a head.
    pub value: usize,
    /// Steps that a short convolution sees, its own included.
    pub taps: usize,
    /// Steps that go through matrix products together.
    pub chunk: usize,
    /// Steps of each game; they add up to the rows.
    pub lengths: &'a [u32],
}

impl Shape<'_> {
    /// Channels that are convolved: queries, keys and values.
    pub fn mixed(&self) -> usize {
        self.heads * (2 * self.key + self.value)
    }

    /// Numbers in an output row.
    pub fn output(&self) -> usize {
        self.heads * self.value
    }

    /// Numbers in an input row.
    pub fn input(&self) -> usize {
        self.mixed() + self.output() + 2 * self.heads
    }

    fn rows(&self) -> usize {
        self.lengths.iter().map(|&steps| steps as usize).sum()
    }

    fn longest(&self) -> usize {
        self.lengths.iter().copied().max().unwrap_or(0) as usize
    }

    /// Where `a` stands in an input row.
    fn scalars(&self) -> usize {
        self.mixed() + self.output()
    }

    /// What queries are multiplied by.
    fn query_scale(&self) -> f32 {
        1.0 / (self.key as f32).sqrt()
    }

    /// The chunks of a game: first step and steps.
    fn chunks(&self, steps: usize) -> impl DoubleEndedIterator<Item = (usize, usize)> + use<> {
        let chunk = self.chunk;
        (0..steps.div_ceil(chunk)).map(move |i| (i * chunk, chunk.min(steps - i * chunk)))
    }
}

/// Parameters of a mixer.
#[derive(Debug, Clone, Copy)]
pub struct Weights<'a> {
    /// `[H (2 K + V), W]`: the convolutions' weights, channel after channel in the order of the rows.
    pub conv: &'a [f32],
    /// `[H]`: the logarithm of the decay rate.
    pub a_log: &'a [f32],
    /// `[H]`: added to `a`.
    pub dt_bias: &'a [f32],
    /// `[V]`: the gated RMSNorm's weight.
    pub norm: &'a [f32],
    /// Added to its mean square.
    pub norm_eps: f32,
    /// 2 for eigenvalues from -1 to 1, 1 for eigenvalues from 0 to 1.
    pub beta_scale: f32,
}

impl<'a> Weights<'a> {
    fn gate(&self) -> Gate<'a> {
        Gate { a_log: self.a_log, dt_bias: self.dt_bias, beta_scale: self.beta_scale }
    }

    fn gated_norm(&self) -> GatedNorm<'a> {
        GatedNorm { weight: self.norm, eps: self.norm_eps }
    }
}

/// One head's queries, keys and values of a game.
struct Head {
    /// `[2n, K]` for every chunk of n steps: queries, then keys.
    queries_keys: Vec<f32>,
    /// `[T, V]`.
    values: Vec<f32>,
}

impl Head {
    fn new(shape: Shape) -> Self {
        let longest = shape.longest();
        Head {
            queries_keys: vec![0.0; longest * 2 * shape.key],
            values: vec![0.0; longest * shape.value],
        }
    }

    /// Gathers head `head` from a game's rows after convolution and SiLU.
    fn gather(&mut self, activated: &[f32], shape: Shape, head: usize) {
        gather(self, activated, shape, head);
    }
}

#[multiversion::multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn gather(out: &mut Head, activated: &[f32], shape: Shape, head: usize) {
    let Shape { heads, key, value, .. } = shape;
    let mixed = shape.mixed();
    for (start, n) in shape.chunks(activated.len() / mixed) {
        let (queries, keys) =
            out.queries_keys[2 * start * key..2 * (start + n) * key].split_at_mut(n * key);
        for i in 0..n {
            let row = &activated[(start + i) * mixed..][..mixed];
            let range = i * key..(i + 1) * key;
            norm::unit(&row[head * key..][..key], shape.query_scale(), &mut queries[range.clone()]);
            norm::unit(&row[(heads + head) * key..][..key], 1.0, &mut keys[range]);
            out.values[(start + i) * value..][..value]
                .copy_from_slice(&row[2 * heads * key + head * value..][..value]);
        }
    }
}

#[cfg(test)]
mod tests;
