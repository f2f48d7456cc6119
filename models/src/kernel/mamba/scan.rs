//! The chunked scan that Mamba-2 and Mamba-3 share, for one game and heads with common keys and queries.
//!
//! With the log-decay `a_t <= 0` of a head, its keys `k [N]`, queries `q [N]` and values `v [P]`, R of each a step:
//!
//! ```text
//! y_t = sum over s < t of exp(a_{s+1} + .. + a_t) scale_s (q_t . k_s) v_s  +  same_t (q_t . k_t) v_t
//! ```
//!
//! and the same over all pairs of ranks. Mamba-2 has `scale = same = dt`; the trapezoidal rule of Mamba-3 shares a step's
//! input between the step itself (`same`) and the steps behind it (`scale`).
//!
//! Steps go in chunks. Within a chunk this is a product of masked scores with values, cut into blocks of queries so that
//! the upper triangle is left out, as in attention; what came before the chunk stands in the state `S [N, P]`. Short
//! games are one chunk and need no state at all. Scores are held transposed, `[keys, queries]`, so that inner loops run
//! over queries.
//!
//! Rows of a game are ordered chunk after chunk, rank after rank within a chunk, step after step within a rank
//! ([`Shape::row`]); with one rank that is step after step.

use multiversion::multiversion;

use crate::kernel::{
    math::{COLUMNS, exp},
    matrix::{Matrix, multiply, scratch},
};

/// Queries in a block, with one rank.
const QUERIES: usize = 64;

/// Extents of a scan over one game.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Steps (T).
    pub steps: usize,
    /// Keys, queries and values a step (R).
    pub rank: usize,
    /// Heads that share keys and queries.
    pub heads: usize,
    /// Numbers in a key or query (N).
    pub key_width: usize,
    /// Numbers in a value of one head (P).
    pub value_width: usize,
    /// Steps in a chunk.
    pub chunk: usize,
}

/// Part of a game.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk {
    /// First step.
    pub start: usize,
    pub steps: usize,
    pub last: bool,
}

/// Queries of a chunk that see the same keys: those up to the block's end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    /// First step, in the chunk.
    pub start: usize,
    pub queries: usize,
    /// Columns of one rank: the queries with padding.
    pub columns: usize,
    /// Steps whose keys the block sees.
    pub keys: usize,
}

impl Shape {
    /// Values of all heads in a row.
    pub fn width(&self) -> usize {
        self.heads * self.value_width
    }

    /// Where step `step`'s row of rank `rank` stands.
    pub fn row(&self, step: usize, rank: usize) -> usize {
        let start = step - step % self.chunk;
        let steps = self.chunk.min(self.steps - start);
        start * self.rank + rank * steps + (step - start)
    }

    pub(super) fn chunks(self) -> impl DoubleEndedIterator<Item = Chunk> + ExactSizeIterator {
        let Shape { steps, chunk, .. } = self;
        (0..steps.div_ceil(chunk)).map(move |i| {
            let start = i * chunk;
            Chunk { start, steps: chunk.min(steps - start), last: start + chunk >= steps }
        })
    }

    /// With more than one rank a chunk is one block: rows of a rank are not next to those of another.
    pub(super) fn blocks(self, chunk: Chunk) -> impl Iterator<Item = Block> {
        let (rank, size) = (self.rank, if self.rank == 1 { QUERIES } else { chunk.steps });
        (0..chunk.steps).step_by(size).map(move |start| {
            let queries = size.min(chunk.steps - start);
            let columns = if rank == 1 { queries.next_multiple_of(COLUMNS) } else { queries };
            Block { start, queries, columns, keys: start + queries }
        })
    }
}

/// Rows inside a slice.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    /// The first row begins here.
    pub data: &'a [f32],
    /// From a row to the next.
    pub stride: usize,
}

impl<'a> Rows<'a> {
    /// `count` rows from `first`, of the numbers from `offset` in each.
    pub(super) fn part(
        self,
        first: usize,
        count: usize,
        offset: usize,
        width: usize,
    ) -> Matrix<'a> {
        Matrix::strided(&self.data[first * self.stride + offset..], count, width, self.stride)
    }

    /// One row's numbers from `offset`.
    pub(super) fn row(self, row: usize, offset: usize, width: usize) -> &'a [f32] {
        &self.data[row * self.stride + offset..][..width]
    }
}

/// What weighs the steps, each `[heads, T]`.
#[derive(Clone, Copy)]
pub struct Gates<'a> {
    /// Logarithm of what a step leaves of the state.
    pub log_decay: &'a [f32],
    /// Weight of a step's input in the steps behind it.
    pub scale: &'a [f32],
    /// Weight of a step's input in the step itself.
    pub same: &'a [f32],
}

impl Gates<'_> {
    pub(super) fn of<'a>(gate: &'a [f32], shape: &Shape, chunk: Chunk, head: usize) -> &'a [f32] {
        &gate[head * shape.steps + chunk.start..][..chunk.steps]
    }
}

/// Memory for scans of games up to some length, used again and again.
pub struct Scan {
    /// Sums of log-decays from the chunk's start through a step, `[heads, columns]`, as a rounded number and what
    /// rounding has taken: differences of sums stay exact where the sums are large.
    high: Vec<f32>,
    low: Vec<f32>,
    /// `[keys, columns]`: decay from a key's step to a query's, 0 unless the key's step is before.
    pub(super) decays: Vec<f32>,
    /// `[R keys, R columns]`.
    pub(super) scores: Vec<f32>,
    pub(super) weighted: Vec<f32>,
    /// `[R chunk, width]`.
    pub(super) rows: Vec<f32>,
    /// `[N, width]`.
    pub(super) state: Vec<f32>,
}

impl Scan {
    /// For games of at most `shape.steps` steps.
    pub fn new(shape: &Shape) -> Self {
        let steps = shape.chunk.min(shape.steps);
        let columns = if shape.rank == 1 { QUERIES } else { steps };
        let padded = steps.next_multiple_of(QUERIES);
        let scores = shape.rank * steps * shape.rank * columns;
        Scan {
            high: scratch(shape.heads * padded),
            low: scratch(shape.heads * padded),
            decays: scratch(steps * columns),
            scores: scratch(scores),
            weighted: scratch(scores),
            rows: scratch(shape.rank * steps * shape.width()),
            state: scratch(shape.key_width * shape.width()),
        }
    }

    /// Outputs of a game into `y`, rows of `shape.width()` numbers, each `y_stride` after the one before.
    ///
    /// `q` and `k` are `[R T, N]`, `v` is `[R T, width]`.
    #[expect(clippy::too_many_arguments, reason = "three inputs, one output and their strides")]
    pub fn forward(
        &mut self,
        shape: &Shape,
        gates: Gates,
        q: Rows,
        k: Rows,
        v: Rows,
        y: &mut [f32],
        y_stride: usize,
    ) {
        let Shape { rank, heads, key_width, value_width, .. } = *shape;
        let width = shape.width();
        self.state.fill(0.0);
        for chunk in shape.chunks() {
            let (first, count) = (chunk.start * rank, chunk.steps * rank);
            self.add_up(shape, chunk, gates.log_decay);
            let y = &mut y[first * y_stride..];
            let carried = chunk.start > 0;
            if carried {
                let state = Matrix::new(&self.state, key_width, width);
                multiply(&mut self.rows, width, false, q.part(first, count, 0, key_width), state);
                for head in 0..heads {
                    let (high, _) = self.sums(chunk, head);
                    for row in 0..count {
                        let decay = exp(high[row % chunk.steps]);
                        let offset = head * value_width;
                        let from = &self.rows[row * width + offset..][..value_width];
                        let to = &mut y[row * y_stride + offset..][..value_width];
                        to.iter_mut().zip(from).for_each(|(y, x)| *y = decay * x);
                    }
                }
            }
            for block in shape.blocks(chunk) {
                let (keys, columns) = (rank * block.keys, rank * block.columns);
                self.score(shape, chunk, block, q, k);
                for head in 0..heads {
                    self.decay(chunk, block, head);
                    let scale = Gates::of(gates.scale, shape, chunk, head);
                    let same = Gates::of(gates.same, shape, chunk, head);
                    let scores = &self.scores[..keys * columns];
                    let weighted = &mut self.weighted[..keys * columns];
                    weigh(weighted, scores, &self.decays, block, rank, scale, same);
                    let offset = head * value_width;
                    multiply(
                        &mut y[block.start * y_stride + offset..],
                        y_stride,
                        carried,
                        Matrix::strided(weighted, keys, rank * block.queries, columns).t(),
                        v.part(first, keys, offset, value_width),
                    );
                }
            }
            if !chunk.last {
                self.advance(shape, chunk, gates, k, v);
            }
        }
    }

    /// Sums the log-decays of a chunk.
    pub(super) fn add_up(&mut self, shape: &Shape, chunk: Chunk, log_decay: &[f32]) {
        let padded = chunk.steps.next_multiple_of(QUERIES);
        for head in 0..shape.heads {
            let mut sum = 0.0_f64;
            let (high, low) = (&mut self.high[head * padded..], &mut self.low[head * padded..]);
            for (i, &a) in Gates::of(log_decay, shape, chunk, head).iter().enumerate() {
                sum += f64::from(a);
                high[i] = sum as f32;
                low[i] = (sum - f64::from(high[i])) as f32;
            }
        }
    }

    /// The sums of a head, with padding.
    pub(super) fn sums(&self, chunk: Chunk, head: usize) -> (&[f32], &[f32]) {
        let padded = chunk.steps.next_multiple_of(QUERIES);
        (&self.high[head * padded..][..padded], &self.low[head * padded..][..padded])
    }

    /// The scores of a block.
    pub(super) fn score(&mut self, shape: &Shape, chunk: Chunk, block: Block, q: Rows, k: Rows) {
        let Shape { rank, key_width, .. } = *shape;
        let first = chunk.start * rank;
        multiply(
            &mut self.scores,
            rank * block.columns,
            false,
            k.part(first, rank * block.keys, 0, key_width),
            q.part(first + block.start, rank * block.queries, 0, key_width).t(),
        );
    }

    /// The decays of a block for one head.
    pub(super) fn decay(&mut self, chunk: Chunk, block: Block, head: usize) {
        let padded = chunk.steps.next_multiple_of(QUERIES);
        let high = &self.high[head * padded..][..padded];
        let low = &self.low[head * padded..][..padded];
        decays(&mut self.decays[..block.keys * block.columns], high, low, block);
    }

    /// Takes a chunk into the state.
    pub(super) fn advance(&mut self, shape: &Shape, chunk: Chunk, gates: Gates, k: Rows, v: Rows) {
        let Shape { rank, heads, key_width, value_width, .. } = *shape;
        let (first, count, width) = (chunk.start * rank, chunk.steps * rank, shape.width());
        self.leave(shape, chunk, gates, v);
        for head in 0..heads {
            let left = exp(self.sums(chunk, head).0[chunk.steps - 1]);
            for row in self.state.chunks_exact_mut(width) {
                let row = &mut row[head * value_width..][..value_width];
                row.iter_mut().for_each(|x| *x *= left);
            }
        }
        let keys = k.part(first, count, 0, key_width);
        let values = Matrix::new(&self.rows, count, width);
        multiply(&mut self.state, width, true, keys.t(), values);
    }

    /// Into `self.rows`: values as they stand in the state at the chunk's end.
    pub(super) fn leave(&mut self, shape: &Shape, chunk: Chunk, gates: Gates, v: Rows) {
        let Shape { rank, heads, value_width, .. } = *shape;
        let (first, count, width) = (chunk.start * rank, chunk.steps * rank, shape.width());
        for head in 0..heads {
            let scale = Gates::of(gates.scale, shape, chunk, head);
            for row in 0..count {
                let step = row % chunk.steps;
                let factor = scale[step] * self.to_end(chunk, head, step);
                let offset = head * value_width;
                let to = &mut self.rows[row * width + offset..][..value_width];
                let from = v.row(first + row, offset, value_width);
                to.iter_mut().zip(from).for_each(|(y, x)| *y = factor * x);
            }
        }
    }

    /// The decay from a step to the chunk's end.
    pub(super) fn to_end(&self, chunk: Chunk, head: usize, step: usize) -> f32 {
        let (high, low) = self.sums(chunk, head);
        let end = chunk.steps - 1;
        exp((high[end] - high[step]) + (low[end] - low[step]))
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn decays(tile: &mut [f32], high: &[f32], low: &[f32], block: Block) {
    let Block { start, queries, columns, .. } = block;
    let (query_high, query_low) = (&high[start..start + columns], &low[start..start + columns]);
    for (key, row) in tile.chunks_exact_mut(columns).enumerate() {
        let (key_high, key_low) = (high[key], low[key]);
        let (row_groups, row_rest) = row.as_chunks_mut::<COLUMNS>();
        let (high_groups, high_rest) = query_high.as_chunks::<COLUMNS>();
        let (low_groups, low_rest) = query_low.as_chunks::<COLUMNS>();
        for ((row, high), low) in row_groups.iter_mut().zip(high_groups).zip(low_groups) {
            for i in 0..COLUMNS {
                row[i] = exp((high[i] - key_high) + (low[i] - key_low));
            }
        }
        for ((row, high), low) in row_rest.iter_mut().zip(high_rest).zip(low_rest) {
            *row = exp((high - key_high) + (low - key_low));
        }
        // Queries at the key's step and before do not look back on it.
        row[..(key + 1).saturating_sub(start).min(columns)].fill(0.0);
        row[queries..].fill(0.0);
    }
}

/// `weighted = scores * decays * scale`, and `scores * same` where key and query are of one step.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn weigh(
    weighted: &mut [f32],
    scores: &[f32],
    decays: &[f32],
    block: Block,
    rank: usize,
    scale: &[f32],
    same: &[f32],
) {
    let Block { start, columns, keys, .. } = block;
    let rows = weighted.chunks_exact_mut(rank * columns).zip(scores.chunks_exact(rank * columns));
    for (row, (weighted, scores)) in rows.enumerate() {
        let key = row % keys;
        let (scale, decays) = (scale[key], &decays[key * columns..][..columns]);
        let parts = weighted.chunks_exact_mut(columns).zip(scores.chunks_exact(columns));
        for (weighted, scores) in parts {
            for i in 0..columns {
                weighted[i] = scores[i] * (decays[i] * scale);
            }
            if key >= start {
                weighted[key - start] = scores[key - start] * same[key];
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers around zero, the same for a seed.
    pub fn noise(count: usize, seed: u64, scale: f32) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0) * scale
        };
        (0..count).map(|_| next()).collect()
    }

    /// A game's inputs.
    pub struct Case {
        pub shape: Shape,
        pub q: Vec<f32>,
        pub k: Vec<f32>,
        pub v: Vec<f32>,
        pub log_decay: Vec<f32>,
        pub scale: Vec<f32>,
        pub same: Vec<f32>,
    }

    impl Case {
        pub fn new(shape: Shape, seed: u64) -> Self {
            let Shape { steps, rank, heads, key_width, .. } = shape;
            let gates = heads * steps;
            Case {
                shape,
                q: noise(rank * steps * key_width, seed, 1.0),
                k: noise(rank * steps * key_width, seed + 1, 1.0),
                v: noise(rank * steps * shape.width(), seed + 2, 1.0),
                log_decay: noise(gates, seed + 3, 0.5).iter().map(|a| -2.0 * a.abs()).collect(),
                scale: noise(gates, seed + 4, 0.5).iter().map(|a| a + 0.6).collect(),
                same: noise(gates, seed + 5, 0.5).iter().map(|a| a + 0.6).collect(),
            }
        }

        pub fn gates(&self) -> Gates<'_> {
            Gates { log_decay: &self.log_decay, scale: &self.scale, same: &self.same }
        }

        pub fn forward(&self) -> Vec<f32> {
            let Shape { key_width, .. } = self.shape;
            let width = self.shape.width();
            let mut y = vec![f32::NAN; self.v.len()];
            let rows = |data, stride| Rows { data, stride };
            let (q, k) = (rows(&self.q, key_width), rows(&self.k, key_width));
            let v = rows(&self.v, width);
            let mut scan = Scan::new(&self.shape);
            scan.forward(&self.shape, self.gates(), q, k, v, &mut y, width);
            y
        }

        /// The recurrence, step by step in double precision.
        pub fn recurrence(&self) -> Vec<f64> {
            let shape = self.shape;
            let Shape { steps, rank, heads, key_width, value_width, .. } = shape;
            let width = shape.width();
            let mut y = vec![0.0; self.v.len()];
            for head in 0..heads {
                let mut state = vec![0.0; key_width * value_width];
                for step in 0..steps {
                    let gate = |gate: &[f32]| f64::from(gate[head * steps + step]);
                    let decay = gate(&self.log_decay).exp();
                    state.iter_mut().for_each(|x| *x *= decay);
                    let mut input = vec![0.0; key_width * value_width];
                    for r in 0..rank {
                        let row = shape.row(step, r);
                        for n in 0..key_width {
                            for p in 0..value_width {
                                input[n * value_width + p] +=
                                    f64::from(self.k[row * key_width + n])
                                        * f64::from(self.v[row * width + head * value_width + p]);
                            }
                        }
                    }
                    for r in 0..rank {
                        let row = shape.row(step, r);
                        for p in 0..value_width {
                            let y = &mut y[row * width + head * value_width + p];
                            for n in 0..key_width {
                                let at = n * value_width + p;
                                let seen = state[at] + gate(&self.same) * input[at];
                                *y += f64::from(self.q[row * key_width + n]) * seen;
                            }
                        }
                    }
                    let scale = gate(&self.scale);
                    state.iter_mut().zip(&input).for_each(|(s, x)| *s += scale * x);
                }
            }
            y
        }
    }

    /// Shapes with odd sizes.
    pub fn shapes() -> impl Strategy<Value = Shape> {
        (1_usize..150, 1_usize..4, 1_usize..3, 1_usize..7, 1_usize..5, 1_usize..80).prop_map(
            |(steps, rank, heads, key_width, value_width, chunk)| Shape {
                steps,
                rank,
                heads,
                key_width,
                value_width,
                chunk,
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn equals_the_recurrence(shape in shapes(), seed: u32) {
            let case = Case::new(shape, u64::from(seed));
            for (y, truth) in case.forward().iter().zip(case.recurrence()) {
                prop_assert!((f64::from(*y) - truth).abs() < 3e-5 * (1.0 + truth.abs()), "{y} {truth}");
            }
        }
    }

    #[test]
    fn strong_decays_do_not_spoil_weak_ones_behind_them() {
        let shape =
            Shape { steps: 120, rank: 1, heads: 1, key_width: 1, value_width: 1, chunk: 120 };
        let mut case = Case::new(shape, 1);
        for step in 0..120 {
            case.log_decay[step] = if step < 100 { -97.3 } else { -1e-3 };
        }
        for (y, truth) in case.forward().iter().zip(case.recurrence()).skip(100) {
            assert!((f64::from(*y) - truth).abs() < 1e-5, "{y} {truth}");
        }
    }
}
