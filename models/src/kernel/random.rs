//! Dropout masks from a counter: whether an element is dropped is a pure function of the run's seed, the step, the place
//! in the network and the element's position in the batch. Nothing needs to be saved to resume a run, and a mask does
//! not depend on how a batch is cut up.

/// Drops elements with probability `rate` and scales the others by `1 / (1 - rate)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    /// Probability of dropping, at least 0 and below 1.
    pub rate: f32,
    /// Names the run, the step and the place in the network.
    pub key: u64,
    /// Position in the whole batch of the first row (for attention: of the first game) that an operation sees.
    pub first: u32,
}

/// Mixes all bits of a number into all bits.
pub fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Dropout {
    /// The dropout of place `site` at step `step` of the run with `seed`; none if the rate is 0.
    pub fn at(rate: f64, seed: u64, step: u64, site: u64) -> Option<Self> {
        let key = mix(mix(mix(seed) ^ step) ^ site);
        (rate > 0.0).then_some(Dropout { rate: rate as f32, key, first: 0 })
    }

    /// The same for an operation that begins at row (or game) `first` of the batch.
    pub fn from(self, first: u32) -> Self {
        Dropout { first, ..self }
    }

    /// The mask of one head of one game (counted within the operation).
    pub fn of_head(self, game: usize, head: usize) -> Self {
        let game = u64::from(self.first) + game as u64;
        Dropout { key: mix(self.key ^ (game << 16) ^ head as u64), first: 0, ..self }
    }

    /// What a kept element is multiplied by.
    #[inline(always)]
    pub fn scale(self) -> f32 {
        1.0 / (1.0 - self.rate)
    }

    /// What element `index` is multiplied by: 0 or [`Dropout::scale`].
    #[inline(always)]
    pub fn factor(self, index: u32) -> f32 {
        let threshold = (self.rate * 4_294_967_296.0) as u32;
        if self.bits(index) < threshold { 0.0 } else { self.scale() }
    }

    /// Hashes an index under the key: two multiplications with shifts between, after `lowbias32`.
    #[inline(always)]
    fn bits(self, index: u32) -> u32 {
        let mut x = index ^ self.key as u32;
        x ^= x >> 16;
        x = x.wrapping_mul(0x7feb_352d).wrapping_add((self.key >> 32) as u32);
        x ^= x >> 15;
        x = x.wrapping_mul(0x846c_a68b);
        x ^ (x >> 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_the_asked_share_everywhere() {
        for site in 0..20 {
            let dropout = Dropout::at(0.1, 7, site / 3, site).unwrap();
            let kept = (0..100_000).filter(|&i| dropout.factor(i) != 0.0).count();
            assert!((89_500..90_500).contains(&kept), "kept {kept} of 100000 at site {site}");
        }
        assert_eq!(Dropout::at(0.0, 7, 0, 0), None);
    }

    #[test]
    fn masks_of_neighbouring_steps_and_elements_are_uncorrelated() {
        let (a, b) = (Dropout::at(0.5, 1, 10, 2).unwrap(), Dropout::at(0.5, 1, 11, 2).unwrap());
        let n = 100_000;
        let same_step = (0..n).filter(|&i| a.factor(i) == b.factor(i)).count();
        let neighbour = (0..n).filter(|&i| a.factor(i) == a.factor(i + 1)).count();
        let row_below = (0..n).filter(|&i| a.factor(i) == a.factor(i + 128)).count();
        for agree in [same_step, neighbour, row_below] {
            assert!((49_200..50_800).contains(&agree), "{agree} of {n} agree");
        }
    }
}
