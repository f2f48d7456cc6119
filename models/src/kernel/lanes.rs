//! Elementwise loops over equally long slices, inlined into their callers and so compiled for the instruction set that a
//! caller's `multiversion` picks.
//!
//! Plain loops on purpose: taken in groups of a vector's size, short bodies are unrolled first, and what remains is
//! vectorised across groups, with a gather for every number.

use super::math::COLUMNS;

/// `out[i] = f(out[i], a[i])`.
#[inline(always)]
pub fn update1(out: &mut [f32], a: &[f32], f: impl Fn(f32, f32) -> f32) {
    for (out, a) in out.iter_mut().zip(a) {
        *out = f(*out, *a);
    }
}

/// `out[i] = f(out[i], a[i], b[i])`.
#[inline(always)]
pub fn update2(out: &mut [f32], a: &[f32], b: &[f32], f: impl Fn(f32, f32, f32) -> f32) {
    let n = out.len();
    let (out, a, b) = (&mut out[..n], &a[..n], &b[..n]);
    for i in 0..n {
        out[i] = f(out[i], a[i], b[i]);
    }
}

/// `out[i] = f(out[i], a[i], b[i], c[i])`.
#[inline(always)]
pub fn update3(out: &mut [f32], [a, b, c]: [&[f32]; 3], f: impl Fn(f32, f32, f32, f32) -> f32) {
    let n = out.len();
    let (out, a, b, c) = (&mut out[..n], &a[..n], &b[..n], &c[..n]);
    for i in 0..n {
        out[i] = f(out[i], a[i], b[i], c[i]);
    }
}

/// The inner product of two equally long slices, in a fixed order of additions; for short ones.
#[inline(always)]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_tail) = a.as_chunks::<COLUMNS>();
    let (b, b_tail) = b.as_chunks::<COLUMNS>();
    let mut lanes = [0.0; COLUMNS];
    for (a, b) in a.iter().zip(b) {
        for i in 0..COLUMNS {
            lanes[i] += a[i] * b[i];
        }
    }
    let mut tail = 0.0;
    for (a, b) in a_tail.iter().zip(b_tail) {
        tail += a * b;
    }
    let mut quarter = [0.0; 4];
    for i in 0..4 {
        quarter[i] = (lanes[i] + lanes[i + 8]) + (lanes[i + 4] + lanes[i + 12]);
    }
    (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]) + tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length() {
        for n in 0..70 {
            let numbers = |step: usize| -> Vec<f32> {
                (0..n).map(|i| ((i * step) % 11) as f32 - 5.0).collect()
            };
            let (a, b, c, d) = (numbers(3), numbers(5), numbers(7), numbers(2));
            let plain = |f: &dyn Fn(usize) -> f32| -> Vec<f32> { (0..n).map(f).collect() };
            let mut out = d.clone();
            update1(&mut out, &a, |d, a| d - a);
            assert_eq!(out, plain(&|i| d[i] - a[i]));
            let mut out = d.clone();
            update2(&mut out, &a, &b, |d, a, b| d - a * b);
            assert_eq!(out, plain(&|i| d[i] - a[i] * b[i]));
            let mut out = d.clone();
            update3(&mut out, [&a, &b, &c], |d, a, b, c| d - a * b + c);
            assert_eq!(out, plain(&|i| d[i] - a[i] * b[i] + c[i]));
            assert_eq!(dot(&a, &b), plain(&|i| a[i] * b[i]).iter().sum::<f32>());
        }
    }
}
