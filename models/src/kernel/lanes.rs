//! Elementwise loops over slices of any length, [`COLUMNS`] numbers at a time and then the rest.
//!
//! Left to itself a compiler takes such a loop four vectors at a time and what remains one by one, which is most of a
//! head's 48 or 96 channels. All slices of a call are equally long; the loops are inlined into their callers, and so
//! compiled for the instruction set that a caller's `multiversion` picks.

use super::math::COLUMNS;

/// `out[i] = f(out[i], a[i])`.
#[inline(always)]
pub fn update1(out: &mut [f32], a: &[f32], f: impl Fn(f32, f32) -> f32) {
    let (out, out_tail) = out.as_chunks_mut::<COLUMNS>();
    let (a, a_tail) = a.as_chunks::<COLUMNS>();
    for (out, a) in out.iter_mut().zip(a) {
        for i in 0..COLUMNS {
            out[i] = f(out[i], a[i]);
        }
    }
    for (out, a) in out_tail.iter_mut().zip(a_tail) {
        *out = f(*out, *a);
    }
}

/// `out[i] = f(out[i], a[i], b[i])`.
#[inline(always)]
pub fn update2(out: &mut [f32], a: &[f32], b: &[f32], f: impl Fn(f32, f32, f32) -> f32) {
    let (out, out_tail) = out.as_chunks_mut::<COLUMNS>();
    let (a, a_tail) = a.as_chunks::<COLUMNS>();
    let (b, b_tail) = b.as_chunks::<COLUMNS>();
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        for i in 0..COLUMNS {
            out[i] = f(out[i], a[i], b[i]);
        }
    }
    for ((out, a), b) in out_tail.iter_mut().zip(a_tail).zip(b_tail) {
        *out = f(*out, *a, *b);
    }
}

/// `out[i] = f(out[i], a[i], b[i], c[i])`.
#[inline(always)]
pub fn update3(out: &mut [f32], [a, b, c]: [&[f32]; 3], f: impl Fn(f32, f32, f32, f32) -> f32) {
    let (out, out_tail) = out.as_chunks_mut::<COLUMNS>();
    let (a, a_tail) = a.as_chunks::<COLUMNS>();
    let (b, b_tail) = b.as_chunks::<COLUMNS>();
    let (c, c_tail) = c.as_chunks::<COLUMNS>();
    for (((out, a), b), c) in out.iter_mut().zip(a).zip(b).zip(c) {
        for i in 0..COLUMNS {
            out[i] = f(out[i], a[i], b[i], c[i]);
        }
    }
    for (((out, a), b), c) in out_tail.iter_mut().zip(a_tail).zip(b_tail).zip(c_tail) {
        *out = f(*out, *a, *b, *c);
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
