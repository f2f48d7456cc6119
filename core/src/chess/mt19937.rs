//! The Mersenne Twister as CPython's `random.Random` drives it: seeding by an integer, `randrange`, `shuffle`.
//!
//! The benchmark's random-uniform split and its order of shards are defined by this generator.

const N: usize = 624;
const M: usize = 397;

/// `random.Random(seed)`.
#[derive(Clone)]
pub struct PythonRandom {
    state: [u32; N],
    next: usize,
}

impl PythonRandom {
    /// Seeds as CPython does: by the 32-bit words of the seed, least significant first; 0 has one word.
    /// (CPython drops the sign of a negative seed.)
    pub fn new(seed: u64) -> Self {
        let words = [seed as u32, (seed >> 32) as u32];
        Self::from_key(if words[1] == 0 { &words[..1] } else { &words })
    }

    fn from_key(key: &[u32]) -> Self {
        let mut state = [0_u32; N];
        state[0] = 19_650_218;
        for i in 1..N {
            let last = state[i - 1];
            state[i] = (last ^ (last >> 30)).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        let mut i = 1;
        let wrap = |state: &mut [u32; N], i: &mut usize| {
            *i += 1;
            if *i == N {
                state[0] = state[N - 1];
                *i = 1;
            }
        };
        for step in 0..N.max(key.len()) {
            let j = step % key.len();
            let last = state[i - 1];
            state[i] = (state[i] ^ (last ^ (last >> 30)).wrapping_mul(1_664_525))
                .wrapping_add(key[j])
                .wrapping_add(j as u32);
            wrap(&mut state, &mut i);
        }
        for _ in 1..N {
            let last = state[i - 1];
            state[i] = (state[i] ^ (last ^ (last >> 30)).wrapping_mul(1_566_083_941))
                .wrapping_sub(i as u32);
            wrap(&mut state, &mut i);
        }
        state[0] = 0x8000_0000;
        PythonRandom { state, next: N }
    }

    fn twist(&mut self) {
        let mix = |high: u32, low: u32| {
            let y = (high & 0x8000_0000) | (low & 0x7fff_ffff);
            (y >> 1) ^ if y & 1 == 0 { 0 } else { 0x9908_b0df }
        };
        let s = &mut self.state;
        for i in 0..N - M {
            s[i] = s[i + M] ^ mix(s[i], s[i + 1]);
        }
        for i in N - M..N - 1 {
            s[i] = s[i + M - N] ^ mix(s[i], s[i + 1]);
        }
        s[N - 1] = s[M - 1] ^ mix(s[N - 1], s[0]);
        self.next = 0;
    }

    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        if self.next == N {
            self.twist();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// `randrange(n)` for `n` up to 2^32 - 1: as many bits as `n` itself has, drawn until they are below `n`.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn randrange(&mut self, n: u32) -> u32 {
        assert!(n > 0, "an empty range");
        let shift = n.leading_zeros();
        loop {
            let drawn = self.next_u32() >> shift;
            if drawn < n {
                return drawn;
            }
        }
    }

    /// `shuffle`: the reference orders its shards with it.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.randrange(i as u32 + 1) as usize;
            items.swap(i, j);
        }
    }
}

impl std::fmt::Debug for PythonRandom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PythonRandom(at word {})", self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_cpythons() {
        // fixtures data/random/rng.json, seed 0; the rest of that file is checked by the integration tests.
        let mut rng = PythonRandom::new(0);
        let words: Vec<_> = (0..3).map(|_| rng.next_u32()).collect();
        assert_eq!(words, [3_626_764_237, 1_654_615_998, 3_255_389_356]);
    }
}
