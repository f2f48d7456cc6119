//! What Mamba-3 feeds the scan: keys and queries behind norm, bias and rotation, values, and the gates of the trapezoidal
//! rule.

use multiversion::multiversion;

use super::{
    mamba3::{A_MAX, Extents, Weights},
    rotation::{angles, channel_order, tanh, turn},
    scan::{Gates, Rows, Shape},
    softplus,
};
use crate::kernel::{math::dot, matrix::scratch};

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
