//! The reference's rotary positions.
//!
//! They are not the textbook's: the angle of channel `c` at position `p` is `p * f[c mod (K / 2)]`, yet the partners are
//! neighbours, `(2i, 2i + 1)`. The two channels of a pair so turn by different angles; the map is linear in the pair
//! but no rotation, and its backward is the transpose.

/// Cosines and signed sines of every position and channel of a head.
#[derive(Debug)]
pub struct RopeTable {
    width: usize,
    steps: usize,
    /// `[T, K]`: cosine of channel c.
    cos: Vec<f32>,
    /// `[T, K]`: the factor of the partner's value: minus the sine in even channels, the sine in odd ones.
    partner: Vec<f32>,
}

const BASE: f32 = 10_000.0;

impl RopeTable {
    /// The table of heads of `width` channels for positions `0..steps`.
    pub fn new(width: usize, steps: usize) -> Self {
        let half = width / 2;
        let frequencies: Vec<f32> =
            (0..half).map(|i| 1.0 / BASE.powf((2 * i) as f32 / width as f32)).collect();
        let mut cos = Vec::with_capacity(steps * width);
        let mut partner = Vec::with_capacity(steps * width);
        for position in 0..steps {
            let angles: Vec<(f32, f32)> = frequencies
                .iter()
                .map(|f| {
                    // The angle as the reference has it, in single precision; its sine from double precision.
                    let (sin, cos) = f64::from(position as f32 * f).sin_cos();
                    (sin as f32, cos as f32)
                })
                .collect();
            for channel in 0..width {
                let (s, c) = angles[channel % half];
                cos.push(c);
                partner.push(if channel % 2 == 0 { -s } else { s });
            }
        }
        RopeTable { width, steps, cos, partner }
    }

    /// Channels of a head.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Positions in the table.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The factors of position `position`: cosines, and what the partners' values are multiplied by.
    #[inline(always)]
    pub fn at(&self, position: usize) -> (&[f32], &[f32]) {
        let range = position * self.width..(position + 1) * self.width;
        (&self.cos[range.clone()], &self.partner[range])
    }

    /// Turns one head's row `x` at `position` and scales it, into `out`.
    #[inline(always)]
    pub fn turn(&self, position: usize, x: &[f32], scale: f32, out: &mut [f32]) {
        let (cos, partner) = self.at(position);
        let pairs = x.chunks_exact(2).zip(out.chunks_exact_mut(2));
        for ((x, out), (c, s)) in pairs.zip(cos.chunks_exact(2).zip(partner.chunks_exact(2))) {
            out[0] = (x[0] * c[0] + x[1] * s[0]) * scale;
            out[1] = (x[1] * c[1] + x[0] * s[1]) * scale;
        }
    }

    /// The transpose of [`RopeTable::turn`]: from the gradient of the turned row to that of the row.
    #[inline(always)]
    pub fn turn_back(&self, position: usize, d: &[f32], scale: f32, out: &mut [f32]) {
        let (cos, partner) = self.at(position);
        let pairs = d.chunks_exact(2).zip(out.chunks_exact_mut(2));
        for ((d, out), (c, s)) in pairs.zip(cos.chunks_exact(2).zip(partner.chunks_exact(2))) {
            out[0] = (d[0] * c[0] + d[1] * s[1]) * scale;
            out[1] = (d[1] * c[1] + d[0] * s[0]) * scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partners_are_neighbours_with_angles_of_their_own() {
        let table = RopeTable::new(4, 3);
        // Channels 0 and 2 turn by `p`, channels 1 and 3 by `p / 100`.
        let mut out = [0.0; 4];
        table.turn(2, &[1.0, 0.0, 0.0, 1.0], 1.0, &mut out);
        let expected = [2.0_f32.cos(), 0.02_f32.sin(), -(2.0_f32.sin()), 0.02_f32.cos()];
        for (a, b) in out.iter().zip(expected) {
            assert!((a - b).abs() < 1e-6, "{out:?} is not {expected:?}");
        }
    }

    #[test]
    fn backward_is_the_transpose() {
        let table = RopeTable::new(6, 10);
        let x = [0.3, -1.0, 2.0, 0.7, 0.1, -0.4];
        let d = [1.0, 0.5, -0.2, 0.9, -1.3, 0.4];
        let (mut y, mut dx) = ([0.0; 6], [0.0; 6]);
        table.turn(7, &x, 0.5, &mut y);
        table.turn_back(7, &d, 0.5, &mut dx);
        let a: f32 = y.iter().zip(d).map(|(a, b)| a * b).sum();
        let b: f32 = x.iter().zip(dx).map(|(a, b)| a * b).sum();
        assert!((a - b).abs() < 1e-5);
    }
}
