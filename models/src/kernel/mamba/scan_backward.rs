//! The way back through the chunked scan: chunks in reverse, with the gradient of the state between them.

use multiversion::multiversion;

use super::scan::{Block, Chunk, Gates, Rows, Scan, Shape};
use crate::kernel::{
    math::{dot, exp},
    matrix::{Matrix, multiply, scratch},
};

/// Gradients of a scan's inputs.
pub struct Gradients<'a> {
    /// `[R T, N]`, overwritten.
    pub q: &'a mut [f32],
    /// From a row of `q` to the next.
    pub q_stride: usize,
    /// `[R T, N]`, overwritten.
    pub k: &'a mut [f32],
    /// From a row of `k` to the next.
    pub k_stride: usize,
    /// `[R T, width]`, added to.
    pub v: &'a mut [f32],
    /// From a row of `v` to the next.
    pub v_stride: usize,
    /// `[heads, T]` each, overwritten.
    pub log_decay: &'a mut [f32],
    /// See [`Gates::scale`].
    pub scale: &'a mut [f32],
    /// See [`Gates::same`].
    pub same: &'a mut [f32],
}

/// Memory for the way back, used again and again.
pub struct ScanBackward {
    scan: Scan,
    /// `[chunks, N, width]`: the state that a chunk finds.
    states: Vec<f32>,
    d_state: Vec<f32>,
    /// `[R keys, R columns]`.
    d_weighted: Vec<f32>,
    d_scores: Vec<f32>,
    /// `[R chunk, width]` and `[R chunk, N]`.
    rows: Vec<f32>,
    queries: Vec<f32>,
    /// `[columns]`: sums over keys.
    by_query: Vec<f32>,
}

impl ScanBackward {
    /// For games of at most `shape.steps` steps.
    pub fn new(shape: &Shape) -> Self {
        let scan = Scan::new(shape);
        let (len, rows) = (scan.scores.len(), scan.rows.len());
        let steps = shape.chunk.min(shape.steps);
        let chunks = if shape.steps > shape.chunk { shape.chunks().len() } else { 0 };
        ScanBackward {
            states: scratch(chunks * scan.state.len()),
            d_state: scratch(scan.state.len()),
            d_weighted: scratch(len),
            d_scores: scratch(len),
            rows: scratch(rows),
            queries: scratch(shape.rank * steps * shape.key_width),
            by_query: scratch(steps.next_multiple_of(64)),
            scan,
        }
    }

    /// From the forward's inputs and `dy [R T, width]`.
    #[expect(clippy::too_many_arguments, reason = "the forward's inputs and two gradients")]
    pub fn backward(
        &mut self,
        shape: &Shape,
        gates: Gates,
        q: Rows,
        k: Rows,
        v: Rows,
        dy: Rows,
        d: &mut Gradients,
    ) {
        self.remember_states(shape, gates, k, v);
        self.d_state.fill(0.0);
        for gradient in [&mut *d.log_decay, &mut *d.scale, &mut *d.same] {
            gradient[..shape.heads * shape.steps].fill(0.0);
        }
        for chunk in shape.chunks().rev() {
            self.scan.add_up(shape, chunk, gates.log_decay);
            self.through_state(shape, chunk, gates, q, k, v, dy, d);
            for block in shape.blocks(chunk) {
                self.through_block(shape, chunk, block, gates, q, k, v, dy, d);
            }
            // A log-decay stands in the sum of its step and in all later ones of the chunk.
            for head in 0..shape.heads {
                let d = &mut d.log_decay[head * shape.steps + chunk.start..][..chunk.steps];
                let mut sum = 0.0_f64;
                for d in d.iter_mut().rev() {
                    sum += f64::from(*d);
                    *d = sum as f32;
                }
            }
        }
    }

    /// The states that the chunks find.
    fn remember_states(&mut self, shape: &Shape, gates: Gates, k: Rows, v: Rows) {
        let len = self.d_state.len();
        self.scan.state.fill(0.0);
        for (i, chunk) in shape.chunks().enumerate() {
            if chunk.start > 0 {
                self.states[i * len..][..len].copy_from_slice(&self.scan.state);
            }
            if !chunk.last {
                self.scan.add_up(shape, chunk, gates.log_decay);
                self.scan.advance(shape, chunk, gates, k, v);
            }
        }
    }

    /// What goes through the states before and behind a chunk. Until the chunk is done, `d.log_decay` holds gradients
    /// of the sums of log-decays.
    #[expect(clippy::too_many_arguments, reason = "the forward's inputs and two gradients")]
    fn through_state(
        &mut self,
        shape: &Shape,
        chunk: Chunk,
        gates: Gates,
        q: Rows,
        k: Rows,
        v: Rows,
        dy: Rows,
        d: &mut Gradients,
    ) {
        let Shape { steps, rank, heads, key_width, value_width, .. } = *shape;
        let (first, count, width) = (chunk.start * rank, chunk.steps * rank, shape.width());
        let d_q = &mut d.q[first * d.q_stride..];
        let d_k = &mut d.k[first * d.k_stride..];
        for row in 0..count {
            d_q[row * d.q_stride..][..key_width].fill(0.0);
            d_k[row * d.k_stride..][..key_width].fill(0.0);
        }
        let keys = k.part(first, count, 0, key_width);
        if !chunk.last {
            // The state behind: S' = left S + sum of k (w v).
            self.scan.leave(shape, chunk, gates, v);
            let d_state = Matrix::new(&self.d_state, key_width, width);
            let left = Matrix::new(&self.scan.rows, count, width);
            multiply(d_k, d.k_stride, false, left, d_state.t());
            multiply(&mut self.rows, width, false, keys, d_state);
            for head in 0..heads {
                let scale = Gates::of(gates.scale, shape, chunk, head);
                let at = head * steps + chunk.start;
                let offset = head * value_width;
                let mut all = 0.0_f64;
                for row in 0..count {
                    let step = row % chunk.steps;
                    let to_end = self.scan.to_end(chunk, head, step);
                    let seen = &self.rows[row * width + offset..][..value_width];
                    let values = v.row(first + row, offset, value_width);
                    let along = to_end * dot(seen, values);
                    d.scale[at + step] += along;
                    d.log_decay[at + step] -= scale[step] * along;
                    all += f64::from(scale[step] * along);
                    let factor = scale[step] * to_end;
                    let d_v = &mut d.v[(first + row) * d.v_stride + offset..][..value_width];
                    d_v.iter_mut().zip(seen).for_each(|(d, x)| *d += factor * x);
                }
                d.log_decay[at + chunk.steps - 1] += all as f32;
            }
        }
        let len = self.d_state.len();
        let index = chunk.start / shape.chunk;
        for head in 0..heads {
            let end = chunk.steps - 1;
            let left = exp(self.scan.sums(chunk, head).0[end]);
            let mut along = 0.0;
            for (n, row) in self.d_state.chunks_exact_mut(width).enumerate() {
                let row = &mut row[head * value_width..][..value_width];
                if chunk.start > 0 {
                    let state = &self.states[index * len + n * width + head * value_width..];
                    along += dot(row, &state[..value_width]);
                }
                row.iter_mut().for_each(|x| *x *= left);
            }
            d.log_decay[head * steps + chunk.start + end] += left * along;
        }
        if chunk.start == 0 {
            return;
        }
        // The state before: y += decay (q S).
        let state = &self.states[index * len..][..len];
        for head in 0..heads {
            let (high, _) = self.scan.sums(chunk, head);
            let offset = head * value_width;
            for row in 0..count {
                let decay = exp(high[row % chunk.steps]);
                let to = &mut self.rows[row * width + offset..][..value_width];
                let from = dy.row(first + row, offset, value_width);
                to.iter_mut().zip(from).for_each(|(y, x)| *y = decay * x);
            }
            multiply(
                &mut self.queries,
                key_width,
                false,
                Matrix::strided(&self.rows[offset..], count, value_width, width),
                Matrix::strided(&state[offset..], key_width, value_width, width).t(),
            );
            for row in 0..count {
                let from = &self.queries[row * key_width..][..key_width];
                let at = head * steps + chunk.start + row % chunk.steps;
                d.log_decay[at] += dot(from, q.row(first + row, 0, key_width));
                let to = &mut d_q[row * d.q_stride..][..key_width];
                to.iter_mut().zip(from).for_each(|(d, x)| *d += x);
            }
        }
        let queries = q.part(first, count, 0, key_width);
        let d_rows = Matrix::new(&self.rows, count, width);
        multiply(&mut self.d_state, width, true, queries.t(), d_rows);
    }

    /// What goes through the scores of a block.
    #[expect(clippy::too_many_arguments, reason = "the forward's inputs and two gradients")]
    fn through_block(
        &mut self,
        shape: &Shape,
        chunk: Chunk,
        block: Block,
        gates: Gates,
        q: Rows,
        k: Rows,
        v: Rows,
        dy: Rows,
        d: &mut Gradients,
    ) {
        let Shape { steps, rank, heads, key_width, value_width, .. } = *shape;
        let first = chunk.start * rank;
        let (keys, columns) = (rank * block.keys, rank * block.columns);
        let queries = rank * block.queries;
        self.scan.score(shape, chunk, block, q, k);
        for head in 0..heads {
            self.scan.decay(chunk, block, head);
            let offset = head * value_width;
            let d_y = dy.part(first + block.start, queries, offset, value_width);
            let values = v.part(first, keys, offset, value_width);
            let d_weighted = &mut self.d_weighted[..keys * columns];
            multiply(d_weighted, columns, false, values, d_y.t());
            let at = head * steps + chunk.start;
            let by_query = &mut self.by_query[..block.columns];
            by_query.fill(0.0);
            weigh_back(
                Products {
                    scores: &self.scan.scores[..keys * columns],
                    decays: &self.scan.decays,
                    d_weighted,
                    weighted: &mut self.scan.weighted[..keys * columns],
                    d_scores: &mut self.d_scores[..keys * columns],
                    by_query,
                    first: head == 0,
                },
                block,
                rank,
                Gates {
                    log_decay: &[],
                    scale: Gates::of(gates.scale, shape, chunk, head),
                    same: Gates::of(gates.same, shape, chunk, head),
                },
                [
                    &mut d.log_decay[at..at + chunk.steps],
                    &mut d.scale[at..at + chunk.steps],
                    &mut d.same[at..at + chunk.steps],
                ],
            );
            multiply(
                &mut d.v[first * d.v_stride + offset..],
                d.v_stride,
                true,
                Matrix::strided(&self.scan.weighted, keys, queries, columns),
                d_y,
            );
        }
        let d_scores = Matrix::strided(&self.d_scores, keys, queries, columns);
        multiply(
            &mut d.q[(first + block.start) * d.q_stride..],
            d.q_stride,
            true,
            d_scores.t(),
            k.part(first, keys, 0, key_width),
        );
        multiply(
            &mut d.k[first * d.k_stride..],
            d.k_stride,
            true,
            d_scores,
            q.part(first + block.start, queries, 0, key_width),
        );
    }
}

/// Scores of a block and what becomes of them.
struct Products<'a> {
    scores: &'a [f32],
    decays: &'a [f32],
    d_weighted: &'a [f32],
    weighted: &'a mut [f32],
    d_scores: &'a mut [f32],
    by_query: &'a mut [f32],
    /// Whether `d_scores` is to be overwritten, not added to.
    first: bool,
}

/// From scores and the gradient of the weighted ones: the weighted ones, the scores' gradient, and those of the sums of
/// log-decays, of `scale` and of `same`, which are added to.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn weigh_back(
    products: Products,
    block: Block,
    rank: usize,
    gates: Gates,
    [d_sums, d_scale, d_same]: [&mut [f32]; 3],
) {
    let Block { start, queries, columns, keys } = block;
    let Products { scores, decays, d_weighted, weighted, d_scores, by_query, first } = products;
    for row in 0..rank * keys {
        let key = row % keys;
        let scale = gates.scale[key];
        let decays = &decays[key * columns..][..columns];
        let mut of_key = 0.0;
        for r in 0..rank {
            let range = (row * rank + r) * columns..(row * rank + r + 1) * columns;
            let (scores, d_weighted) = (&scores[range.clone()], &d_weighted[range.clone()]);
            let (weighted, d_scores) = (&mut weighted[range.clone()], &mut d_scores[range]);
            if first {
                d_scores.fill(0.0);
            }
            of_key += part_back(scores, decays, d_weighted, weighted, d_scores, by_query, scale);
            if key >= start {
                let i = key - start;
                weighted[i] = scores[i] * gates.same[key];
                d_scores[i] += d_weighted[i] * gates.same[key];
                d_same[key] += d_weighted[i] * scores[i];
            }
        }
        d_scale[key] += of_key;
        d_sums[key] -= scale * of_key;
    }
    for (d, x) in d_sums[start..start + queries].iter_mut().zip(by_query) {
        *d += *x;
    }
}

/// One rank's row: gives the sum of `scores * decays * d_weighted`.
#[inline(always)]
fn part_back(
    scores: &[f32],
    decays: &[f32],
    d_weighted: &[f32],
    weighted: &mut [f32],
    d_scores: &mut [f32],
    by_query: &mut [f32],
    scale: f32,
) -> f32 {
    const LANES: usize = 16;
    let count = decays.len();
    let mut lanes = [0.0_f32; LANES];
    let mut rest = 0.0;
    let whole = count - count % LANES;
    let mut i = 0;
    while i < whole {
        // Arrays of a fixed length, so that the compiler keeps each in one register.
        let mut along = [0.0_f32; LANES];
        let (s, w, dw) = (&scores[i..i + LANES], &decays[i..i + LANES], &d_weighted[i..i + LANES]);
        for lane in 0..LANES {
            along[lane] = s[lane] * w[lane] * dw[lane];
        }
        for lane in 0..LANES {
            lanes[lane] += along[lane];
        }
        let by_query = &mut by_query[i..i + LANES];
        for lane in 0..LANES {
            by_query[lane] += along[lane] * scale;
        }
        let weighted = &mut weighted[i..i + LANES];
        for lane in 0..LANES {
            weighted[lane] = s[lane] * (w[lane] * scale);
        }
        let d_scores = &mut d_scores[i..i + LANES];
        for lane in 0..LANES {
            d_scores[lane] += dw[lane] * (w[lane] * scale);
        }
        i += LANES;
    }
    while i < count {
        let along = scores[i] * decays[i] * d_weighted[i];
        rest += along;
        by_query[i] += along * scale;
        weighted[i] = scores[i] * (decays[i] * scale);
        d_scores[i] += d_weighted[i] * (decays[i] * scale);
        i += 1;
    }
    lanes.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::mamba::scan::tests::{Case, noise, shapes};
    use proptest::prelude::*;

    /// `sum of y dy` in double precision.
    fn objective(case: &Case, dy: &[f32]) -> f64 {
        case.recurrence().iter().zip(dy).map(|(y, d)| y * f64::from(*d)).sum()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn equals_differences_of_the_recurrence(shape in shapes(), seed: u32) {
            let seed = u64::from(seed);
            let mut case = Case::new(shape, seed);
            let (n, width) = (shape.key_width, shape.width());
            let dy = noise(case.v.len(), seed + 9, 1.0);
            let mut gradients: Vec<Vec<f32>> =
                [case.q.len(), case.k.len(), case.v.len()].iter().map(|&n| vec![0.0; n]).collect();
            gradients.extend((0..3).map(|_| vec![f32::NAN; case.scale.len()]));
            let [q, k, v, log_decay, scale, same] = &mut gradients[..] else { unreachable!() };
            let rows = |data, stride| Rows { data, stride };
            ScanBackward::new(&shape).backward(
                &shape, case.gates(), rows(&case.q, n), rows(&case.k, n), rows(&case.v, width),
                rows(&dy, width),
                &mut Gradients {
                    q, q_stride: n, k, k_stride: n, v, v_stride: width, log_decay, scale, same,
                },
            );
            for (i, gradient) in gradients.iter().enumerate() {
                // Some entries of each input, wherever the seed says.
                for j in 0..4 {
                    let at = (seed as usize + j * 7919) % gradient.len();
                    let mut moved = |by: f32| {
                        let input = match i {
                            0 => &mut case.q, 1 => &mut case.k, 2 => &mut case.v,
                            3 => &mut case.log_decay, 4 => &mut case.scale, _ => &mut case.same,
                        };
                        let before = input[at];
                        input[at] = before + by;
                        let by = f64::from(input[at]) - f64::from(before);
                        let value = objective(&case, &dy);
                        match i {
                            0 => case.q[at] = before, 1 => case.k[at] = before,
                            2 => case.v[at] = before, 3 => case.log_decay[at] = before,
                            4 => case.scale[at] = before, _ => case.same[at] = before,
                        }
                        (by, value)
                    };
                    let ((up, high), (down, low)) = (moved(1e-3), moved(-1e-3));
                    let slope = (high - low) / (up - down);
                    let ours = f64::from(gradient[at]);
                    prop_assert!((ours - slope).abs() < 2e-4 * (1.0 + slope.abs()),
                        "input {i}, entry {at}: {ours} is not {slope}");
                }
            }
        }
    }
}
