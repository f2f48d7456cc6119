//! The way back through the mixer of Mamba-3.

use multiversion::multiversion;

use super::{
    mamba3::{A_MAX, Extents, Weights},
    mamba3_inputs::{Common, Head, lambda},
    rotation::turn_back,
    scan::{Rows, Shape},
    scan_backward::{Gradients, ScanBackward},
    silu_and_slope, softplus, softplus_slope,
};
use crate::kernel::{math::dot, matrix::scratch};

/// Gradients of the mixer's inputs, in the shapes of [`Weights`].
pub struct MixerGradients {
    /// `[N, projected]`.
    pub u: Vec<f32>,
    /// See [`Weights`].
    pub dt_bias: Vec<f32>,
    /// See [`Weights`].
    pub b_norm: Vec<f32>,
    /// See [`Weights`].
    pub c_norm: Vec<f32>,
    /// See [`Weights`].
    pub b_bias: Vec<f32>,
    /// See [`Weights`].
    pub c_bias: Vec<f32>,
    /// See [`Weights`].
    pub d: Vec<f32>,
    /// Of `x`, `z` and `o`; empty with SISO.
    pub mimo: [Vec<f32>; 3],
}

/// Memory for one game.
struct Work {
    /// `[R T, P]`.
    y: Vec<f32>,
    v: Vec<f32>,
    /// `[R T, N]` of one head, and of all heads before bias and rotation.
    q: Vec<f32>,
    k: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
    /// `[T]` each.
    log_decay: Vec<f32>,
    scale: Vec<f32>,
    same: Vec<f32>,
    /// `[T, N / 4]`: of a head's angles, and of what all heads' angles come from.
    angles: Vec<f32>,
    turns: Vec<f32>,
    /// `[N]`.
    channels: Vec<f32>,
}

impl Work {
    fn new(e: &Extents) -> Self {
        let steps = e.longest();
        let [y, v] = [(); 2].map(|()| scratch(e.rank * steps * e.head_width));
        let [q, k, b, c] = [(); 4].map(|()| scratch(e.rank * steps * e.state_width));
        let [log_decay, scale, same] = [(); 3].map(|()| scratch(steps));
        let [angles, turns] = [(); 2].map(|()| scratch(steps * e.angles()));
        let channels = scratch(e.state_width);
        Work { y, v, q, k, b, c, log_decay, scale, same, angles, turns, channels }
    }
}

/// From `dy [N, D']`, the forward's inputs and what it saved.
pub fn backward(dy: &[f32], saved: &[f32], u: &[f32], w: Weights, e: Extents) -> MixerGradients {
    let (inner, stride, width) = (e.inner(), e.projected(), e.head_width);
    let zeros = |like: &[f32]| vec![0.0; like.len()];
    let mut d = MixerGradients {
        u: zeros(u),
        dt_bias: zeros(w.dt_bias),
        b_norm: zeros(w.b_norm),
        c_norm: zeros(w.c_norm),
        b_bias: zeros(w.b_bias),
        c_bias: zeros(w.c_bias),
        d: zeros(w.d),
        mimo: w.mimo.map_or_else(Default::default, |m| [zeros(m.x), zeros(m.z), zeros(m.o)]),
    };
    let mut common = Common::new(&e, w.mimo.is_some());
    let biases = [common.ordered(w.b_bias), common.ordered(w.c_bias)];
    let mut head = Head::new(&e);
    let mut scan = ScanBackward::new(&e.shape(e.longest()));
    let mut work = Work::new(&e);
    let mut row = 0;
    for &steps in e.lengths {
        let steps = steps as usize;
        let shape = e.shape(steps);
        let range = row * stride..(row + steps) * stride;
        let u = &u[range.clone()];
        let dy = &dy[row * inner..(row + steps) * inner];
        common.fill(&e, &w, u, steps);
        let keys = e.rank * steps * e.state_width;
        work.b[..keys].fill(0.0);
        work.c[..keys].fill(0.0);
        work.turns[..steps * e.angles()].fill(0.0);
        for h in 0..e.heads {
            head.fill(&e, &w, [&biases[0], &biases[1]], &common, u, h);
            let len = e.rank * steps * width;
            let y = &saved[row * e.rank * inner + h * len..][..len];
            let d_u = &mut d.u[range.clone()];
            ungate([dy, u, y], &mut work.y[..len], d_u, &mut d.mimo, &w, &e, h, shape);
            let values = head.values(&e, &w, u, h);
            for row in 0..e.rank * steps {
                let (d_y, v) = (&work.y[row * width..][..width], values.row(row, 0, width));
                let d_v = &mut work.v[row * width..][..width];
                d_v.iter_mut().zip(d_y).for_each(|(dv, dy)| *dv = w.d[h] * dy);
                d.d[h] += dot(d_y, v);
            }
            scan.backward(
                &shape,
                head.gates(steps),
                head.queries(&e),
                head.keys(&e),
                values,
                Rows { data: &work.y, stride: width },
                &mut Gradients {
                    q: &mut work.q,
                    q_stride: e.state_width,
                    k: &mut work.k,
                    k_stride: e.state_width,
                    v: &mut work.v,
                    v_stride: width,
                    log_decay: &mut work.log_decay,
                    scale: &mut work.scale,
                    same: &mut work.same,
                },
            );
            to_values(&work.v, u, d_u, &mut d.mimo[0], &w, &e, h, shape);
            let angles = &mut work.angles[..steps * e.angles()];
            angles.fill(0.0);
            let bias = h * e.rank * e.state_width..(h + 1) * e.rank * e.state_width;
            for (d_turned, turned, d_bias, d_row) in [
                (&mut work.k, &head.k, &mut d.b_bias[bias.clone()], &mut work.b),
                (&mut work.q, &head.q, &mut d.c_bias[bias], &mut work.c),
            ] {
                let turns = [&head.cos[..], &head.sin[..]];
                turn_rows_back(d_turned, turned, turns, angles, d_bias, d_row, shape);
            }
            d.dt_bias[h] += to_gates(&mut work, &head, &common, u, d_u, &w, &e, h);
        }
        to_projection(&mut work, &common, u, &mut d, range, &w, &e, shape);
        row += steps;
    }
    // Biases were summed in the rotation's order.
    for bias in [&mut d.b_bias, &mut d.c_bias] {
        for row in bias.chunks_exact_mut(e.state_width) {
            unorder(row, &common.order, &mut work.channels);
            row.copy_from_slice(&work.channels);
        }
    }
    d
}

/// Numbers in the rotation's order of channels, in the reference's.
fn unorder(x: &[f32], order: &[usize], out: &mut [f32]) {
    for (x, &channel) in x.iter().zip(order) {
        out[channel] = *x;
    }
}

/// Back through the gate of a head: `dy [T, D']` to the gradient of `y [R T, P]`, and that of z into `d_u`.
#[expect(clippy::too_many_arguments, reason = "three inputs, three outputs and their layout")]
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn ungate(
    [dy, u, y]: [&[f32]; 3],
    d_rows: &mut [f32],
    d_u: &mut [f32],
    d_mimo: &mut [Vec<f32>; 3],
    w: &Weights,
    e: &Extents,
    head: usize,
    shape: Shape,
) {
    let width = e.head_width;
    let rows = u.chunks_exact(e.projected()).zip(d_u.chunks_exact_mut(e.projected()));
    for (step, (dy, (u, d_u))) in dy.chunks_exact(e.inner()).zip(rows).enumerate() {
        let range = head * width..(head + 1) * width;
        let (dy, z, d_z) = (&dy[range.clone()], &u[range.clone()], &mut d_u[range]);
        let Some(mimo) = w.mimo else {
            let (y, d_row) = (&y[step * width..][..width], &mut d_rows[step * width..][..width]);
            for i in 0..width {
                let (silu, slope) = silu_and_slope(z[i]);
                d_row[i] = dy[i] * silu;
                d_z[i] = dy[i] * y[i] * slope;
            }
            continue;
        };
        for rank in 0..e.rank {
            let [_, inside, outside] = mimo.row(e, head, rank);
            let at = shape.row(step, rank) * width;
            let (y, d_row) = (&y[at..at + width], &mut d_rows[at..at + width]);
            let [_, d_inside, d_outside] = &mut *d_mimo;
            let factors = (head * e.rank + rank) * width;
            let d_inside = &mut d_inside[factors..factors + width];
            let d_outside = &mut d_outside[factors..factors + width];
            for i in 0..width {
                let (silu, slope) = silu_and_slope(z[i] * inside[i]);
                d_row[i] = dy[i] * outside[i] * silu;
                d_outside[i] += dy[i] * y[i] * silu;
                let d_gate = dy[i] * outside[i] * y[i] * slope;
                d_inside[i] += d_gate * z[i];
                d_z[i] += d_gate * inside[i];
            }
        }
    }
}

/// The gradient of a head's values into that of x.
#[expect(clippy::too_many_arguments, reason = "two inputs, two outputs and their layout")]
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn to_values(
    d_values: &[f32],
    u: &[f32],
    d_u: &mut [f32],
    d_factors: &mut [f32],
    w: &Weights,
    e: &Extents,
    head: usize,
    shape: Shape,
) {
    let width = e.head_width;
    let from = e.columns().x + head * width;
    let rows = u.chunks_exact(e.projected()).zip(d_u.chunks_exact_mut(e.projected()));
    for (step, (u, d_u)) in rows.enumerate() {
        let (x, d_x) = (&u[from..from + width], &mut d_u[from..from + width]);
        let Some(mimo) = w.mimo else {
            d_x.copy_from_slice(&d_values[step * width..][..width]);
            continue;
        };
        for rank in 0..e.rank {
            let [factors, ..] = mimo.row(e, head, rank);
            let d_v = &d_values[shape.row(step, rank) * width..][..width];
            let d_factors = &mut d_factors[(head * e.rank + rank) * width..][..width];
            for i in 0..width {
                d_factors[i] += d_v[i] * x[i];
                d_x[i] += d_v[i] * factors[i];
            }
        }
    }
}

/// Back through the rotation of a head's keys or queries: gradients of the angles, of the biases and of the rows before
/// the bias are added to.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn turn_rows_back(
    d: &mut [f32],
    turned: &[f32],
    [cos, sin]: [&[f32]; 2],
    d_angles: &mut [f32],
    d_bias: &mut [f32],
    d_rows: &mut [f32],
    shape: Shape,
) {
    let (width, angles) = (shape.key_width, shape.key_width / 4);
    for step in 0..shape.steps {
        let own = step * angles..(step + 1) * angles;
        for (rank, d_bias) in d_bias.chunks_exact_mut(width).enumerate() {
            let range = shape.row(step, rank) * width..(shape.row(step, rank) + 1) * width;
            let (d, turned) = (&mut d[range.clone()], &turned[range.clone()]);
            let (cos, sin) = (&cos[own.clone()], &sin[own.clone()]);
            turn_back(d, turned, cos, sin, &mut d_angles[own.clone()]);
            d_bias.iter_mut().zip(&*d).for_each(|(sum, d)| *sum += d);
            d_rows[range].iter_mut().zip(&*d).for_each(|(sum, d)| *sum += d);
        }
    }
}

/// Back from a head's gates and angles to dt, A and trap; the angles' part is added to `work.turns`. Gives the sum over
/// steps for `dt_bias`.
#[expect(clippy::too_many_arguments, reason = "what the head was made of")]
fn to_gates(
    work: &mut Work,
    head: &Head,
    common: &Common,
    u: &[f32],
    d_u: &mut [f32],
    w: &Weights,
    e: &Extents,
    h: usize,
) -> f32 {
    let (columns, stride, count) = (e.columns(), e.projected(), e.angles());
    let steps = u.len() / stride;
    // An angle's step stands in the sums of that step and of all later ones.
    for step in (1..steps).rev() {
        let (before, here) = work.angles.split_at_mut(step * count);
        let before = &mut before[(step - 1) * count..];
        before.iter_mut().zip(&here[..count]).for_each(|(sum, d)| *sum += d);
    }
    let mut d_bias = 0.0;
    for step in 0..steps {
        let (u, d_u) = (&u[step * stride..][..stride], &mut d_u[step * stride..][..stride]);
        let dt = head.dt[step];
        let d_angles = &work.angles[step * count..][..count];
        let turns = &common.turns[step * count..][..count];
        let mut d_dt = dot(d_angles, turns);
        let d_turns = &mut work.turns[step * count..][..count];
        d_turns.iter_mut().zip(d_angles).for_each(|(sum, d)| *sum += d * dt);

        let lambda = lambda(u[columns.trap + h]);
        // `lambda dt` counts at this step and from then on, `(1 - lambda) dt` in the step before from here on.
        let d_here = work.same[step] + work.scale[step];
        let d_before = if step > 0 { work.scale[step - 1] } else { 0.0 };
        d_dt += lambda * d_here + (1.0 - lambda) * d_before;
        d_u[columns.trap + h] = dt * (d_here - d_before) * lambda * (1.0 - lambda);

        let raw = u[columns.a + h];
        let a = -softplus(raw);
        d_dt += a.min(A_MAX) * work.log_decay[step];
        if a <= A_MAX {
            d_u[columns.a + h] = -softplus_slope(raw) * dt * work.log_decay[step];
        }
        let d_raw = d_dt * softplus_slope(u[columns.dt + h] + w.dt_bias[h]);
        d_u[columns.dt + h] = d_raw;
        d_bias += d_raw;
    }
    d_bias
}

/// Back from what all heads share to B, C and the angles of a projected row.
#[expect(clippy::too_many_arguments, reason = "what the rows were made of")]
fn to_projection(
    work: &mut Work,
    common: &Common,
    u: &[f32],
    d: &mut MixerGradients,
    range: std::ops::Range<usize>,
    w: &Weights,
    e: &Extents,
    shape: Shape,
) {
    let (columns, stride, width, count) = (e.columns(), e.projected(), e.state_width, e.angles());
    let rows = u.chunks_exact(stride).zip(d.u[range].chunks_exact_mut(stride));
    for (step, (u, d_u)) in rows.enumerate() {
        for rank in 0..e.rank {
            let at = shape.row(step, rank) * width;
            for (first, from, weight, d_weight) in [
                (columns.b + rank * width, &work.b, w.b_norm, &mut d.b_norm),
                (columns.c + rank * width, &work.c, w.c_norm, &mut d.c_norm),
            ] {
                unorder(&from[at..at + width], &common.order, &mut work.channels);
                let (x, d_x) = (&u[first..first + width], &mut d_u[first..first + width]);
                normalise_back(&mut work.channels, x, weight, e.eps, d_x, d_weight);
            }
        }
        let turns = &common.turns[step * count..][..count];
        let d_turns = &work.turns[step * count..][..count];
        let d_angles = &mut d_u[columns.angle..][..count];
        for ((d_angle, turn), d_turn) in d_angles.iter_mut().zip(turns).zip(d_turns) {
            // The derivative of pi tanh.
            let tanh = turn / std::f32::consts::PI;
            *d_angle = d_turn * std::f32::consts::PI * (1.0 - tanh * tanh);
        }
    }
}

/// From the gradient `d`, which is overwritten: that of `x`, and that of the weight, added to.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn normalise_back(d: &mut [f32], x: &[f32], w: &[f32], eps: f32, d_x: &mut [f32], d_w: &mut [f32]) {
    let width = w.len();
    let (d, x, d_x, d_w) = (&mut d[..width], &x[..width], &mut d_x[..width], &mut d_w[..width]);
    let inverse = 1.0 / (dot(x, x) / width as f32 + eps).sqrt();
    for i in 0..width {
        d_w[i] += d[i] * (x[i] * inverse);
    }
    for i in 0..width {
        d[i] *= w[i];
    }
    let along = dot(d, x) * inverse * inverse * inverse / width as f32;
    for i in 0..width {
        d_x[i] = d[i] * inverse - x[i] * along;
    }
}
