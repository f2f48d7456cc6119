//! The mixer of Mamba-2 between its projections: short convolution, scan, skip, gate and norm.
//!
//! A projected row holds `z [D'], x [D'], B [N], C [N], dt [H]`, D' = H P. Convolution and SiLU go over x, B and C; then
//! `dt = softplus(dt + dt_bias)`, `S = exp(-exp(A_log) dt) S + dt B x`, `y = S C + D x`, and out comes
//! `RMSNorm(y silu(z))`: the gate stands before the norm.

use multiversion::multiversion;

use super::{
    conv,
    scan::{Gates, Rows, Scan, Shape},
    scan_backward::{Gradients, ScanBackward},
    silu_and_slope, softplus, softplus_slope, take,
};
use crate::kernel::{
    math::{dot, sigmoid},
    matrix::scratch,
};

/// Steps in a chunk of the scan unless told otherwise.
pub const CHUNK_STEPS: usize = 128;

/// Extents of the mixer, and its games.
#[derive(Debug, Clone, Copy)]
pub struct Extents<'a> {
    /// Heads H.
    pub heads: usize,
    /// Channels of a head P.
    pub head_width: usize,
    /// State width N.
    pub state_width: usize,
    /// Numbers that the convolution sees W.
    pub conv_width: usize,
    /// Steps in a chunk of the scan.
    pub chunk: usize,
    /// Added to the mean square in the norm.
    pub eps: f32,
    /// Steps of each game; they add up to the rows.
    pub lengths: &'a [u32],
}

impl Extents<'_> {
    /// Channels of all heads (D').
    pub fn inner(&self) -> usize {
        self.heads * self.head_width
    }

    /// Channels that the convolution sees.
    pub fn conv_channels(&self) -> usize {
        self.inner() + 2 * self.state_width
    }

    /// Numbers in a projected row.
    pub fn projected(&self) -> usize {
        2 * self.inner() + 2 * self.state_width + self.heads
    }

    fn shape(&self, steps: usize) -> Shape {
        Shape {
            steps,
            rank: 1,
            heads: self.heads,
            key_width: self.state_width,
            value_width: self.head_width,
            chunk: self.chunk,
        }
    }

    fn longest(&self) -> usize {
        self.lengths.iter().copied().max().unwrap_or(0) as usize
    }
}

/// The mixer's parameters.
#[derive(Clone, Copy)]
pub struct Weights<'a> {
    /// `[C, W]`.
    pub conv: &'a [f32],
    /// `[C]`.
    pub conv_bias: &'a [f32],
    /// `[H]`.
    pub dt_bias: &'a [f32],
    /// `[H]`.
    pub a_log: &'a [f32],
    /// `[H]`.
    pub d: &'a [f32],
    /// `[D']`.
    pub norm: &'a [f32],
}

impl<'a> Weights<'a> {
    /// Takes apart the parameters in a row, in the order of the fields.
    pub fn split(row: &'a [f32], e: &Extents) -> Self {
        let channels = e.conv_channels();
        let counts = [channels * e.conv_width, channels, e.heads, e.heads, e.heads, e.inner()];
        let [conv, conv_bias, dt_bias, a_log, d, norm] = take(row, counts);
        Weights { conv, conv_bias, dt_bias, a_log, d, norm }
    }
}

/// One game's numbers between projection and scan.
struct Game {
    /// `[T, C]` before and after SiLU: x, B, C.
    before: Vec<f32>,
    after: Vec<f32>,
    /// `[H, T]`.
    dt: Vec<f32>,
    log_decay: Vec<f32>,
}

impl Game {
    fn new(e: &Extents) -> Self {
        let (steps, channels) = (e.longest(), e.conv_channels());
        Game {
            before: scratch(steps * channels),
            after: scratch(steps * channels),
            dt: scratch(steps * e.heads),
            log_decay: scratch(steps * e.heads),
        }
    }

    fn fill(&mut self, e: &Extents, w: &Weights, taps: &[f32], u: &[f32], steps: usize) {
        let (channels, stride) = (e.conv_channels(), e.projected());
        let len = steps * channels;
        let (before, after) = (&mut self.before[..len], &mut self.after[..len]);
        conv::forward(u, stride, e.inner(), taps, w.conv_bias, before, after);
        for head in 0..e.heads {
            let rate = w.a_log[head].exp();
            for step in 0..steps {
                let dt = u[step * stride + e.inner() + channels + head] + w.dt_bias[head];
                let dt = softplus(dt);
                self.dt[head * steps + step] = dt;
                self.log_decay[head * steps + step] = -rate * dt;
            }
        }
    }

    fn gates(&self, heads: usize, steps: usize) -> Gates<'_> {
        let dt = &self.dt[..heads * steps];
        Gates { log_decay: &self.log_decay[..heads * steps], scale: dt, same: dt }
    }

    fn rows(&self, e: &Extents, from: usize) -> Rows<'_> {
        Rows { data: &self.after[from..], stride: e.conv_channels() }
    }
}

/// `u [N, projected]` to `[N, D']`; and if `save`, what the scan and the skip give, before gate and norm.
pub fn forward(u: &[f32], w: Weights, e: Extents, save: bool) -> (Vec<f32>, Vec<f32>) {
    let (inner, stride) = (e.inner(), e.projected());
    let mut y = scratch(u.len() / stride * inner);
    let taps = conv::taps(w.conv, e.conv_width);
    let mut game = Game::new(&e);
    let mut scan = Scan::new(&e.shape(e.longest()));
    let mut row = 0;
    for &steps in e.lengths {
        let steps = steps as usize;
        let u = &u[row * stride..(row + steps) * stride];
        let y = &mut y[row * inner..(row + steps) * inner];
        game.fill(&e, &w, &taps, u, steps);
        let (x, b) = (game.rows(&e, 0), game.rows(&e, inner));
        let c = game.rows(&e, inner + e.state_width);
        scan.forward(&e.shape(steps), game.gates(e.heads, steps), c, b, x, y, inner);
        for (step, y) in y.chunks_exact_mut(inner).enumerate() {
            skip(y, x.row(step, 0, inner), w.d);
        }
        row += steps;
    }
    let saved = if save { y.clone() } else { Vec::new() };
    for (y, u) in y.chunks_exact_mut(inner).zip(u.chunks_exact(stride)) {
        gate_and_norm(y, &u[..inner], w.norm, e.eps);
    }
    (y, saved)
}

/// Gradients of the mixer's inputs.
pub struct MixerGradients {
    /// `[N, projected]`.
    pub u: Vec<f32>,
    /// See [`Weights`].
    pub conv: Vec<f32>,
    /// See [`Weights`].
    pub conv_bias: Vec<f32>,
    /// See [`Weights`].
    pub dt_bias: Vec<f32>,
    /// See [`Weights`].
    pub a_log: Vec<f32>,
    /// See [`Weights`].
    pub d: Vec<f32>,
    /// See [`Weights`].
    pub norm: Vec<f32>,
}

/// From `dy [N, D']`, the forward's inputs and what it saved.
pub fn backward(dy: &[f32], saved: &[f32], u: &[f32], w: Weights, e: Extents) -> MixerGradients {
    let (inner, stride, channels) = (e.inner(), e.projected(), e.conv_channels());
    let longest = e.longest();
    let taps = conv::taps(w.conv, e.conv_width);
    let zeros = |len: usize| vec![0.0; len];
    let mut d = MixerGradients {
        u: zeros(u.len()),
        conv: zeros(0),
        conv_bias: zeros(channels),
        dt_bias: zeros(e.heads),
        a_log: zeros(e.heads),
        d: zeros(e.heads),
        norm: zeros(inner),
    };
    let mut d_taps = zeros(taps.len());
    let mut game = Game::new(&e);
    let mut scan = ScanBackward::new(&e.shape(longest));
    let mut d_y = scratch(longest * inner);
    let mut d_after = scratch(longest * channels);
    let [mut d_q, mut d_k] = [(); 2].map(|()| scratch(longest * e.state_width));
    let [mut d_decay, mut d_scale, mut d_same] = [(); 3].map(|()| scratch(longest * e.heads));
    let mut row = 0;
    for &steps in e.lengths {
        let steps = steps as usize;
        let u = &u[row * stride..(row + steps) * stride];
        let d_u = &mut d.u[row * stride..(row + steps) * stride];
        let rows = row * inner..(row + steps) * inner;
        let (dy, saved) = (&dy[rows.clone()], &saved[rows]);
        game.fill(&e, &w, &taps, u, steps);

        let d_after = &mut d_after[..steps * channels];
        d_after.fill(0.0);
        for step in 0..steps {
            let (own, at) = (step * inner..(step + 1) * inner, step * stride);
            let d_y = &mut d_y[own.clone()];
            gate_and_norm_back(
                [&dy[own.clone()], &saved[own], &u[at..at + inner], w.norm],
                [&mut *d_y, &mut d_u[at..at + inner], &mut d.norm],
                e.eps,
            );
            let x = &game.after[step * channels..][..inner];
            skip_back(d_y, x, w.d, &mut d_after[step * channels..][..inner], &mut d.d);
        }
        let gates = game.gates(e.heads, steps);
        scan.backward(
            &e.shape(steps),
            gates,
            game.rows(&e, inner + e.state_width),
            game.rows(&e, inner),
            game.rows(&e, 0),
            Rows { data: &d_y, stride: inner },
            &mut Gradients {
                q: &mut d_q,
                q_stride: e.state_width,
                k: &mut d_k,
                k_stride: e.state_width,
                v: d_after,
                v_stride: channels,
                log_decay: &mut d_decay,
                scale: &mut d_scale,
                same: &mut d_same,
            },
        );
        let keys = d_k.chunks_exact(e.state_width).zip(d_q.chunks_exact(e.state_width));
        for (row, (d_k, d_q)) in d_after.chunks_exact_mut(channels).zip(keys) {
            row[inner..inner + e.state_width].copy_from_slice(d_k);
            row[inner + e.state_width..].copy_from_slice(d_q);
        }
        for head in 0..e.heads {
            let rate = w.a_log[head].exp();
            for step in 0..steps {
                let at = head * steps + step;
                let place = step * stride + inner + channels + head;
                let d_dt = d_scale[at] + d_same[at] - rate * d_decay[at];
                d.a_log[head] += game.log_decay[at] * d_decay[at];
                let d_raw = d_dt * softplus_slope(u[place] + w.dt_bias[head]);
                d_u[place] = d_raw;
                d.dt_bias[head] += d_raw;
            }
        }
        let before = &game.before[..steps * channels];
        conv::backward(
            d_after,
            before,
            u,
            stride,
            inner,
            &taps,
            d_u,
            &mut d_taps,
            &mut d.conv_bias,
        );
        row += steps;
    }
    d.conv = conv::taps(&d_taps, channels);
    d
}

/// `y += D x`, head by head.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn skip(y: &mut [f32], x: &[f32], d: &[f32]) {
    let width = y.len() / d.len();
    for ((y, x), d) in y.chunks_exact_mut(width).zip(x.chunks_exact(width)).zip(d) {
        y.iter_mut().zip(x).for_each(|(y, x)| *y += d * x);
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn skip_back(dy: &[f32], x: &[f32], d: &[f32], dx: &mut [f32], dd: &mut [f32]) {
    let width = dy.len() / d.len();
    let rows = dy.chunks_exact(width).zip(x.chunks_exact(width)).zip(dx.chunks_exact_mut(width));
    for (((dy, x), dx), (d, dd)) in rows.zip(d.iter().zip(dd)) {
        dx.iter_mut().zip(dy).for_each(|(dx, dy)| *dx += d * dy);
        *dd += dot(dy, x);
    }
}

/// `y` becomes `RMSNorm(y silu(z))`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn gate_and_norm(y: &mut [f32], z: &[f32], norm: &[f32], eps: f32) {
    for (y, &z) in y.iter_mut().zip(z) {
        *y *= z * sigmoid(z);
    }
    let inverse = 1.0 / (dot(y, y) / y.len() as f32 + eps).sqrt();
    for (y, w) in y.iter_mut().zip(norm) {
        *y = *y * inverse * w;
    }
}

/// From the gradient, `y`, `z` and the norm's weight: the gradients of `y` and `z`, and that of the weight, added to.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn gate_and_norm_back([d, y, z, norm]: [&[f32]; 4], [d_y, d_z, d_norm]: [&mut [f32]; 3], eps: f32) {
    let width = y.len();
    let (d, z, norm) = (&d[..width], &z[..width], &norm[..width]);
    let (d_y, d_z, d_norm) = (&mut d_y[..width], &mut d_z[..width], &mut d_norm[..width]);
    for i in 0..width {
        // The gated numbers stand in `d_y` until it is their turn.
        d_y[i] = y[i] * (z[i] * sigmoid(z[i]));
    }
    let inverse = 1.0 / (dot(d_y, d_y) / width as f32 + eps).sqrt();
    for i in 0..width {
        d_norm[i] += d[i] * (d_y[i] * inverse);
        d_z[i] = d[i] * norm[i];
    }
    let along = dot(d_z, d_y) * inverse * inverse * inverse / width as f32;
    for i in 0..width {
        let d_gated = d_z[i] * inverse - d_y[i] * along;
        let (silu, slope) = silu_and_slope(z[i]);
        d_y[i] = d_gated * silu;
        d_z[i] = d_gated * y[i] * slope;
    }
}
