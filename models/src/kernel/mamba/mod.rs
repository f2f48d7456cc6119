//! The mixers of Mamba-2 and Mamba-3 between their two projections, forward and backward.
//!
//! Both are the same scan ([`scan`]): a recurrent state `S [N, P]` a head that decays, takes in an outer product of a key
//! and a value, and is read by a query. What makes keys, queries, values and gates of a projected row differs:
//! [`mamba2`] has a short convolution ([`conv`]), [`mamba3`] norms, biases and a rotation ([`rotation`]).

pub mod conv;
pub mod mamba2;
pub mod mamba3;
pub mod mamba3_backward;
mod mamba3_inputs;
pub mod rotation;
pub mod scan;
pub mod scan_backward;

use super::math::sigmoid;

/// `softplus(x) = ln(1 + e^x)`, as PyTorch has it: the identity above 20.
pub fn softplus(x: f32) -> f32 {
    if x > 20.0 { x } else { x.exp().ln_1p() }
}

/// The derivative of [`softplus`].
pub fn softplus_slope(x: f32) -> f32 {
    if x > 20.0 { 1.0 } else { 1.0 / (1.0 + (-x).exp()) }
}

/// `silu(x) = x sigmoid(x)` and its derivative.
#[inline(always)]
fn silu_and_slope(x: f32) -> (f32, f32) {
    let s = sigmoid(x);
    (x * s, s * (1.0 + x * (1.0 - s)))
}

/// Cuts a row into pieces of these lengths, and no rest.
fn take<const M: usize>(mut row: &[f32], counts: [usize; M]) -> [&[f32]; M] {
    let pieces = counts.map(|count| {
        let (piece, rest) = row.split_at(count);
        row = rest;
        piece
    });
    assert!(row.is_empty(), "{} parameters are left over", row.len());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softplus_and_its_slope() {
        for i in -300..300 {
            let x = i as f32 * 0.1;
            let truth = f64::from(x).exp().ln_1p();
            assert!((f64::from(softplus(x)) - truth).abs() <= 1e-6 * truth, "softplus({x})");
            let slope = 1.0 / (1.0 + (-f64::from(x)).exp());
            assert!((f64::from(softplus_slope(x)) - slope).abs() < 1e-6, "slope at {x}");
        }
    }
}
