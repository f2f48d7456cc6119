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
    rotation::{angles, channel_order, tanh, turn},
    scan::{Gates, Rows, Scan, Shape},
    softplus, take,
};
use crate::kernel::{
    math::{dot, sigmoid},
    matrix::scratch,
};

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

/// What all heads of a game share: keys and queries before bias and rotation, in the scan's order of rows and the
/// rotation's order of channels, and the angles.
pub(super) struct Common {
    pub order: Vec<usize>,
    /// `[R T, N]`.
    pub b: Vec<f32>,
    pub c: Vec<f32>,
    /// `[T, N / 4]`: `pi tanh(angle)`.
    pub turns: Vec<f32>,
}

impl Common {
    pub fn new(e: &Extents, halves: bool) -> Self {
        let steps = e.longest();
        Common {
            order: channel_order(e.state_width, halves),
            b: scratch(e.rank * steps * e.state_width),
            c: scratch(e.rank * steps * e.state_width),
            turns: scratch(steps * e.angles()),
        }
    }

    pub fn fill(&mut self, e: &Extents, w: &Weights, u: &[f32], steps: usize) {
        let (columns, stride, width) = (e.columns(), e.projected(), e.state_width);
        let shape = e.shape(steps);
        for (step, u) in u.chunks_exact(stride).enumerate() {
            for rank in 0..e.rank {
                let place = shape.row(step, rank) * width..(shape.row(step, rank) + 1) * width;
                let (b, c) = (columns.b + rank * width, columns.c + rank * width);
                normalise(
                    &u[b..b + width],
                    w.b_norm,
                    &self.order,
                    e.eps,
                    &mut self.b[place.clone()],
                );
                normalise(&u[c..c + width], w.c_norm, &self.order, e.eps, &mut self.c[place]);
            }
            let turns = &mut self.turns[step * e.angles()..][..e.angles()];
            for (turn, &angle) in turns.iter_mut().zip(&u[columns.angle..]) {
                *turn = std::f32::consts::PI * tanh(angle);
            }
        }
    }

    /// Biases `[H, R, N]` in the rotation's order of channels.
    pub fn ordered(&self, bias: &[f32]) -> Vec<f32> {
        let rows = bias.chunks_exact(self.order.len());
        rows.flat_map(|row| self.order.iter().map(|&channel| row[channel])).collect()
    }
}

/// What a head of a game feeds the scan.
pub(super) struct Head {
    /// `[T]` each.
    pub dt: Vec<f32>,
    pub log_decay: Vec<f32>,
    pub scale: Vec<f32>,
    pub same: Vec<f32>,
    sums: Vec<f64>,
    /// `[T, N / 4]`.
    pub cos: Vec<f32>,
    pub sin: Vec<f32>,
    /// `[R T, N]`.
    pub k: Vec<f32>,
    pub q: Vec<f32>,
    /// `[R T, P]`, with MIMO.
    pub v: Vec<f32>,
}

impl Head {
    pub fn new(e: &Extents) -> Self {
        let steps = e.longest();
        let keys = e.rank * steps * e.state_width;
        Head {
            dt: scratch(steps),
            log_decay: scratch(steps),
            scale: scratch(steps),
            same: scratch(steps),
            sums: vec![0.0; e.angles()],
            cos: scratch(steps * e.angles()),
            sin: scratch(steps * e.angles()),
            k: scratch(keys),
            q: scratch(keys),
            v: scratch(e.rank * steps * e.head_width),
        }
    }

    /// `biases` are those of [`Weights`] in the rotation's order.
    pub fn fill(
        &mut self,
        e: &Extents,
        w: &Weights,
        biases: [&[f32]; 2],
        common: &Common,
        u: &[f32],
        head: usize,
    ) {
        let (columns, stride, width) = (e.columns(), e.projected(), e.state_width);
        let steps = u.len() / stride;
        // What the step behind takes of this one; nothing is behind the last.
        let mut later = 0.0;
        for step in (0..steps).rev() {
            let u = &u[step * stride..];
            let dt = softplus(u[columns.dt + head] + w.dt_bias[head]);
            let lambda = lambda(u[columns.trap + head]);
            self.dt[step] = dt;
            self.log_decay[step] = (-softplus(u[columns.a + head])).min(A_MAX) * dt;
            self.same[step] = lambda * dt;
            self.scale[step] = lambda * dt + later;
            later = (1.0 - lambda) * dt;
        }
        let at = steps * e.angles();
        let (cos, sin) = (&mut self.cos[..at], &mut self.sin[..at]);
        angles(&common.turns[..at], &self.dt[..steps], &mut self.sums, cos, sin);
        let shape = e.shape(steps);
        for (from, bias, to) in
            [(&common.b, biases[0], &mut self.k), (&common.c, biases[1], &mut self.q)]
        {
            let bias = &bias[head * e.rank * width..][..e.rank * width];
            turn_rows(from, bias, [&self.cos, &self.sin], to, shape);
        }
        if let Some(mimo) = w.mimo {
            for (step, u) in u.chunks_exact(stride).enumerate() {
                let x = &u[columns.x + head * e.head_width..][..e.head_width];
                for rank in 0..e.rank {
                    let [factors, ..] = mimo.row(e, head, rank);
                    let v = &mut self.v[shape.row(step, rank) * e.head_width..][..e.head_width];
                    v.iter_mut().zip(x).zip(factors).for_each(|((v, x), f)| *v = x * f);
                }
            }
        }
    }

    pub fn gates(&self, steps: usize) -> Gates<'_> {
        Gates {
            log_decay: &self.log_decay[..steps],
            scale: &self.scale[..steps],
            same: &self.same[..steps],
        }
    }

    /// The values: those of MIMO, or x in place.
    pub fn values<'a>(&'a self, e: &Extents, w: &Weights, u: &'a [f32], head: usize) -> Rows<'a> {
        match w.mimo {
            Some(_) => Rows { data: &self.v, stride: e.head_width },
            None => {
                let data = &u[e.columns().x + head * e.head_width..];
                Rows { data, stride: e.projected() }
            }
        }
    }

    pub fn keys(&self, e: &Extents) -> Rows<'_> {
        Rows { data: &self.k, stride: e.state_width }
    }

    pub fn queries(&self, e: &Extents) -> Rows<'_> {
        Rows { data: &self.q, stride: e.state_width }
    }
}

/// `lambda = sigmoid(trap)`.
pub(super) fn lambda(trap: f32) -> f32 {
    1.0 / (1.0 + (-trap).exp())
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

/// `out = RMSNorm(x) w`, channels in `order`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn normalise(x: &[f32], w: &[f32], order: &[usize], eps: f32, out: &mut [f32]) {
    let inverse = 1.0 / (dot(x, x) / x.len() as f32 + eps).sqrt();
    for (out, &channel) in out.iter_mut().zip(order) {
        *out = x[channel] * inverse * w[channel];
    }
}

/// Rows `[R T, N]` with biases `[R, N]` added, turned by their step's angles.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn turn_rows(x: &[f32], bias: &[f32], [cos, sin]: [&[f32]; 2], y: &mut [f32], shape: Shape) {
    let (width, angles) = (shape.key_width, shape.key_width / 4);
    for step in 0..shape.steps {
        let (cos, sin) = (&cos[step * angles..][..angles], &sin[step * angles..][..angles]);
        for (rank, bias) in bias.chunks_exact(width).enumerate() {
            let at = shape.row(step, rank) * width;
            turn(&x[at..at + width], bias, cos, sin, &mut y[at..at + width]);
        }
    }
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
