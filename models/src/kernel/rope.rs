//! The reference's rotary positions.
//!
//! They are not the textbook's: the angle of channel `c` at position `p` is `p * f[c mod (K / 2)]`, yet the partners are
//! neighbours, `(2i, 2i + 1)`. The two channels of a pair so turn by different angles; the map is linear in the pair
//! but no rotation, and its backward is the transpose.

use std::sync::{Arc, RwLock};

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
        let (x, x_tail) = x.as_chunks::<LANES>();
        let (out, out_tail) = out.as_chunks_mut::<LANES>();
        let (cos, cos_tail) = cos.as_chunks::<LANES>();
        let (partner, partner_tail) = partner.as_chunks::<LANES>();
        let chunks = x.len().min(out.len()).min(cos.len()).min(partner.len());
        for i in 0..chunks {
            let (x, cos, partner) = (&x[i], &cos[i], &partner[i]);
            let neighbours = swap_neighbours(x);
            for c in 0..LANES {
                out[i][c] = (x[c] * cos[c] + neighbours[c] * partner[c]) * scale;
            }
        }
        for c in 0..out_tail.len() {
            out_tail[c] = (x_tail[c] * cos_tail[c] + x_tail[c ^ 1] * partner_tail[c]) * scale;
        }
    }

    /// The transpose of [`RopeTable::turn`]: from the gradient of the turned row to that of the row.
    #[inline(always)]
    pub fn turn_back(&self, position: usize, d: &[f32], scale: f32, out: &mut [f32]) {
        let (cos, partner) = self.at(position);
        let (d, d_tail) = d.as_chunks::<LANES>();
        let (out, out_tail) = out.as_chunks_mut::<LANES>();
        let (cos, cos_tail) = cos.as_chunks::<LANES>();
        let (partner, partner_tail) = partner.as_chunks::<LANES>();
        let chunks = d.len().min(out.len()).min(cos.len()).min(partner.len());
        for i in 0..chunks {
            let (d, cos, partner) = (&d[i], &cos[i], &partner[i]);
            let (neighbours, partner) = (swap_neighbours(d), swap_neighbours(partner));
            for c in 0..LANES {
                out[i][c] = (d[c] * cos[c] + neighbours[c] * partner[c]) * scale;
            }
        }
        for c in 0..out_tail.len() {
            let neighbour = d_tail[c ^ 1] * partner_tail[c ^ 1];
            out_tail[c] = (d_tail[c] * cos_tail[c] + neighbour) * scale;
        }
    }
}

/// Channels that are turned together.
const LANES: usize = 16;

/// Channels `2i` and `2i + 1` change places: one shuffle of a vector register.
#[inline(always)]
fn swap_neighbours(x: &[f32; LANES]) -> [f32; LANES] {
    [
        x[1], x[0], x[3], x[2], x[5], x[4], x[7], x[6], x[9], x[8], x[11], x[10], x[13], x[12],
        x[15], x[14],
    ]
}

/// A table that grows as longer games come; clones share it.
#[derive(Debug, Clone)]
pub struct RopeCache(Arc<RwLock<Arc<RopeTable>>>);

impl RopeCache {
    /// An empty table of heads of `width` channels.
    pub fn new(width: usize) -> Self {
        RopeCache(Arc::new(RwLock::new(Arc::new(RopeTable::new(width, 0)))))
    }

    /// Factors for at least `steps` positions.
    pub fn get(&self, steps: usize) -> Arc<RopeTable> {
        let table = match self.0.read() {
            Ok(table) => table.clone(),
            Err(poisoned) => poisoned.into_inner().clone(),
        };
        if table.steps() >= steps {
            return table;
        }
        let table = Arc::new(RopeTable::new(table.width(), steps.next_power_of_two()));
        match self.0.write() {
            Ok(mut slot) => *slot = table.clone(),
            Err(poisoned) => *poisoned.into_inner() = table.clone(),
        }
        table
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
    fn pairs_turn_alike_at_every_width() {
        for width in (2..=70).step_by(2) {
            let table = RopeTable::new(width, 10);
            let (cos, partner) = table.at(7);
            let x: Vec<f32> = (0..width).map(|c| (c * 7 % 11) as f32 - 5.0).collect();
            let d: Vec<f32> = (0..width).map(|c| (c * 5 % 13) as f32 - 6.0).collect();
            let (mut y, mut dx) = (vec![9.0; width], vec![9.0; width]);
            table.turn(7, &x, 0.5, &mut y);
            table.turn_back(7, &d, 0.5, &mut dx);
            for c in 0..width {
                let other = c ^ 1;
                assert_eq!(y[c], (x[c] * cos[c] + x[other] * partner[c]) * 0.5, "{c} of {width}");
                let back = (d[c] * cos[c] + d[other] * partner[other]) * 0.5;
                assert_eq!(dx[c], back, "{c} of {width}");
            }
        }
    }
}
