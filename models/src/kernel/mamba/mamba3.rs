//! The mixer of Mamba-3 between its projections: norms, biases and rotation of keys and queries, the scan by the
//! trapezoidal rule, skip and gate; with one input a step (SISO) or R of them (MIMO).
//!
//! A projected row holds `z [D'], x [D'], B [R, N], C [R, N], dt [H], A [H], trap [H], angle [N / 4]`, D' = H P. With
//! `dt = softplus(dt + dt_bias)`, `A = min(-softplus(A), -1e-4)` and `lambda = sigmoid(trap)`,
//!
//! ```text
//! S_t = exp(A dt) S_{t-1} + (1 - lambda_t) dt_t exp(A dt) KV_{t-1} + lambda_t dt_t KV_t
//! ```
//!
//! so that a step counts `lambda dt` at once and `(1 - lambda) dt` of the step behind it from then on. `KV` sums the outer
//! products of R keys, which are B through a norm, a bias and the rotation, with R values, `x mimo_x[r]`. Out come R rows
//! `S C_r + D x_r`, gated by `silu(z mimo_z[r])` and summed with `mimo_o[r]`. SISO is one row without these three.

use multiversion::multiversion;

use super::{
    mamba3_inputs::{Common, Head},
    scan::{Scan, Shape},
    take,
};
use crate::kernel::{math::sigmoid, matrix::scratch};

/// The reference's bound on `A`.
pub const A_MAX: f32 = -1e-4;

/// Steps in a chunk of the scan unless told otherwise: the fewer, the more inputs a step has.
pub fn chunk_steps(rank: usize) -> usize {
    if rank == 1 { 128 } else { (64 / rank).max(8) }
}

/// Extents of the mixer, and its games.
#[derive(Debug, Clone, Copy)]
pub struct Extents<'a> {
    /// Heads H.
    pub heads: usize,
    /// Channels of a head P.
    pub head_width: usize,
    /// State width N, a multiple of 4.
    pub state_width: usize,
    /// Inputs a step R; 1 with SISO.
    pub rank: usize,
    /// Whether there are several inputs a step, or could be.
    pub mimo: bool,
    /// Steps in a chunk of the scan.
    pub chunk: usize,
    /// Added to the mean square in the norms of B and C.
    pub eps: f32,
    /// Steps of each game; they add up to the rows.
    pub lengths: &'a [u32],
}

impl Extents<'_> {
    /// Channels of all heads (D').
    pub fn inner(&self) -> usize {
        self.heads * self.head_width
    }

    /// Angles (N / 4).
    pub fn angles(&self) -> usize {
        self.state_width / 4
    }

    /// Numbers in a projected row.
    pub fn projected(&self) -> usize {
        self.columns().angle + self.angles()
    }

    pub(super) fn columns(&self) -> Columns {
        let keys = self.rank * self.state_width;
        let x = self.inner();
        let b = x + self.inner();
        let (c, dt) = (b + keys, b + 2 * keys);
        let (a, trap) = (dt + self.heads, dt + 2 * self.heads);
        Columns { x, b, c, dt, a, trap, angle: trap + self.heads }
    }

    pub(super) fn shape(&self, steps: usize) -> Shape {
        Shape {
            steps,
            rank: self.rank,
            heads: 1,
            key_width: self.state_width,
            value_width: self.head_width,
            chunk: self.chunk,
        }
    }

    pub(super) fn longest(&self) -> usize {
        self.lengths.iter().copied().max().unwrap_or(0) as usize
    }
}

/// Where the parts of a projected row begin; z begins it.
#[derive(Clone, Copy)]
pub(super) struct Columns {
    pub x: usize,
    pub b: usize,
    pub c: usize,
    pub dt: usize,
    pub a: usize,
    pub trap: usize,
    pub angle: usize,
}

/// The mixer's parameters.
#[derive(Clone, Copy)]
pub struct Weights<'a> {
    /// `[H]`.
    pub dt_bias: &'a [f32],
    /// `[N]`.
    pub b_norm: &'a [f32],
    /// `[N]`.
    pub c_norm: &'a [f32],
    /// `[H, R, N]`.
    pub b_bias: &'a [f32],
    /// `[H, R, N]`.
    pub c_bias: &'a [f32],
    /// `[H]`.
    pub d: &'a [f32],
    /// The factors of MIMO, which SISO does not have.
    pub mimo: Option<Mimo<'a>>,
}

impl<'a> Weights<'a> {
    /// Takes apart the parameters in a row, in the order of the fields.
    pub fn split(row: &'a [f32], e: &Extents) -> Self {
        let biases = e.heads * e.rank * e.state_width;
        let factors = if e.mimo { e.heads * e.rank * e.head_width } else { 0 };
        let counts = [
            e.heads,
            e.state_width,
            e.state_width,
            biases,
            biases,
            e.heads,
            factors,
            factors,
            factors,
        ];
        let [dt_bias, b_norm, c_norm, b_bias, c_bias, d, x, z, o] = take(row, counts);
        let mimo = e.mimo.then_some(Mimo { x, z, o });
        Weights { dt_bias, b_norm, c_norm, b_bias, c_bias, d, mimo }
    }
}

/// What makes R rows of one and one of R, each `[H, R, P]`.
#[derive(Clone, Copy)]
pub struct Mimo<'a> {
    /// Of the values.
    pub x: &'a [f32],
    /// Inside the gate.
    pub z: &'a [f32],
    /// Of the outputs.
    pub o: &'a [f32],
}

impl<'a> Mimo<'a> {
    /// `[P]` of each of the three.
    pub(super) fn row(self, e: &Extents, head: usize, rank: usize) -> [&'a [f32]; 3] {
        let range =
            (head * e.rank + rank) * e.head_width..(head * e.rank + rank + 1) * e.head_width;
        [self.x, self.z, self.o].map(|factors| &factors[range.clone()])
    }
}

/// `u [N, projected]` to `[N, D']`; and if `save`, what scan and skip give, `[R T, P]` head by head, game by game.
pub fn forward(u: &[f32], w: Weights, e: Extents, save: bool) -> (Vec<f32>, Vec<f32>) {
    let (inner, stride, width) = (e.inner(), e.projected(), e.head_width);
    let rows = u.len() / stride;
    let mut out = scratch(rows * inner);
    let mut saved = scratch(if save { rows * e.rank * inner } else { 0 });
    let mut own = scratch(if save { 0 } else { e.rank * e.longest() * width });
    let mut common = Common::new(&e, w.mimo.is_some());
    let biases = [common.ordered(w.b_bias), common.ordered(w.c_bias)];
    let mut head = Head::new(&e);
    let mut scan = Scan::new(&e.shape(e.longest()));
    let mut row = 0;
    for &steps in e.lengths {
        let steps = steps as usize;
        let shape = e.shape(steps);
        let u = &u[row * stride..(row + steps) * stride];
        let out = &mut out[row * inner..(row + steps) * inner];
        common.fill(&e, &w, u, steps);
        for h in 0..e.heads {
            head.fill(&e, &w, [&biases[0], &biases[1]], &common, u, h);
            let len = e.rank * steps * width;
            let y = if save {
                &mut saved[row * e.rank * inner + h * len..][..len]
            } else {
                &mut own[..len]
            };
            let values = head.values(&e, &w, u, h);
            let (q, k) = (head.queries(&e), head.keys(&e));
            scan.forward(&shape, head.gates(steps), q, k, values, y, width);
            for (row, y) in y.chunks_exact_mut(width).enumerate() {
                let v = values.row(row, 0, width);
                y.iter_mut().zip(v).for_each(|(y, v)| *y += w.d[h] * v);
            }
            gate_rows(out, u, y, &w, &e, h, shape);
        }
        row += steps;
    }
    (out, saved)
}

/// Rows `y [R T, P]` of a head through the gate, into its columns of `out [T, D']`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn gate_rows(
    out: &mut [f32],
    u: &[f32],
    y: &[f32],
    w: &Weights,
    e: &Extents,
    head: usize,
    shape: Shape,
) {
    let width = e.head_width;
    let rows = out.chunks_exact_mut(e.inner()).zip(u.chunks_exact(e.projected()));
    for (step, (out, u)) in rows.enumerate() {
        let out = &mut out[head * width..][..width];
        let z = &u[head * width..][..width];
        match w.mimo {
            None => {
                let y = &y[step * width..][..width];
                for i in 0..width {
                    out[i] = y[i] * (z[i] * sigmoid(z[i]));
                }
            }
            Some(mimo) => {
                out.fill(0.0);
                for rank in 0..e.rank {
                    let [_, inside, outside] = mimo.row(e, head, rank);
                    let y = &y[shape.row(step, rank) * width..][..width];
                    for i in 0..width {
                        let gate = z[i] * inside[i];
                        out[i] += y[i] * (gate * sigmoid(gate)) * outside[i];
                    }
                }
            }
        }
    }
}
