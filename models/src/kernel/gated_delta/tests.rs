//! The mixer against the plain recurrence in double precision, step by step.

use proptest::prelude::*;

use super::*;

/// The parameters' and the rows' numbers, all in one.
#[derive(Clone)]
struct Numbers {
    u: Vec<f32>,
    conv: Vec<f32>,
    a_log: Vec<f32>,
    dt_bias: Vec<f32>,
    norm: Vec<f32>,
}

impl Numbers {
    fn random(shape: Shape, seed: u64) -> Self {
        let mut state = seed;
        let mut many = |count: usize, centre: f32, spread: f32| -> Vec<f32> {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
                (state >> 40) as f32 / (1 << 23) as f32 - 1.0
            };
            (0..count).map(|_| centre + spread * next()).collect()
        };
        Numbers {
            u: many(shape.rows() * shape.input(), 0.2, 1.5),
            conv: many(shape.mixed() * shape.taps, 0.1, 0.8),
            a_log: many(shape.heads, -0.5, 1.0),
            dt_bias: many(shape.heads, -1.0, 1.0),
            norm: many(shape.value, 1.0, 0.5),
        }
    }

    fn weights(&self, beta_scale: f32) -> Weights<'_> {
        Weights {
            conv: &self.conv,
            a_log: &self.a_log,
            dt_bias: &self.dt_bias,
            norm: &self.norm,
            norm_eps: 1e-6,
            beta_scale,
        }
    }

    fn parts(&mut self) -> [&mut Vec<f32>; 5] {
        [&mut self.u, &mut self.conv, &mut self.a_log, &mut self.dt_bias, &mut self.norm]
    }
}

fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

/// The mixer as its definition reads, with `numbers[i] + t directions[i]` in place of the numbers.
fn plain(numbers: &Numbers, directions: &Numbers, t: f64, shape: Shape, scale: f64) -> Vec<f64> {
    let along = |a: &[f32], d: &[f32]| -> Vec<f64> {
        a.iter().zip(d).map(|(&a, &d)| f64::from(a) + t * f64::from(d)).collect()
    };
    let u = along(&numbers.u, &directions.u);
    let conv = along(&numbers.conv, &directions.conv);
    let a_log = along(&numbers.a_log, &directions.a_log);
    let dt_bias = along(&numbers.dt_bias, &directions.dt_bias);
    let norm = along(&numbers.norm, &directions.norm);
    let Shape { heads, key, value, taps, .. } = shape;
    let (input, mixed) = (shape.input(), shape.mixed());
    let mut y = Vec::new();
    let mut first = 0;
    for &steps in shape.lengths {
        let mut states = vec![vec![0.0; key * value]; heads];
        for step in 0..steps as usize {
            let row = |step: usize| &u[(first + step) * input..][..input];
            let channel = |c: usize| {
                let sum: f64 = (0..taps)
                    .filter(|tap| step + 1 + tap >= taps)
                    .map(|tap| conv[c * taps + tap] * row(step + 1 + tap - taps)[c])
                    .sum();
                silu(sum)
            };
            let unit = |from: usize| -> Vec<f64> {
                let x: Vec<f64> = (from..from + key).map(channel).collect();
                let length = (x.iter().map(|x| x * x).sum::<f64>() + 1e-6).sqrt();
                x.iter().map(|x| x / length).collect()
            };
            for head in 0..heads {
                let q = unit(head * key);
                let k = unit((heads + head) * key);
                let v: Vec<f64> =
                    (0..value).map(|i| channel(2 * heads * key + head * value + i)).collect();
                let scalars = mixed + heads * value;
                let softplus = (row(step)[scalars + head] + dt_bias[head]).exp().ln_1p();
                let decay = (-a_log[head].exp() * softplus).exp();
                let beta = scale / (1.0 + (-row(step)[scalars + heads + head]).exp());
                let state = &mut states[head];
                state.iter_mut().for_each(|s| *s *= decay);
                let mut o = vec![0.0; value];
                for j in 0..value {
                    let answer: f64 = (0..key).map(|i| state[i * value + j] * k[i]).sum();
                    for i in 0..key {
                        state[i * value + j] += k[i] * beta * (v[j] - answer);
                        o[j] += state[i * value + j] * q[i] / (key as f64).sqrt();
                    }
                }
                let rms = (o.iter().map(|o| o * o).sum::<f64>() / value as f64 + 1e-6).sqrt();
                let gate = &row(step)[mixed + head * value..];
                y.extend((0..value).map(|j| o[j] / rms * norm[j] * silu(gate[j])));
            }
        }
        first += steps as usize;
    }
    y
}

/// Names in the order of [`Numbers::parts`].
const PARTS: [&str; 5] = ["u", "conv", "a_log", "dt_bias", "norm"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn equals_the_plain_recurrence(
        heads in 1_usize..4, key in 1_usize..20, value in 1_usize..40, taps in 1_usize..6,
        chunk in prop_oneof![1_usize..8, Just(16_usize), Just(33)], negative: bool,
        lengths in prop::collection::vec(prop_oneof![Just(1_u32), 2_u32..40], 1..4), seed: u64,
    ) {
        let shape = Shape { heads, key, value, taps, chunk, lengths: &lengths };
        let numbers = Numbers::random(shape, seed);
        let beta_scale = if negative { 2.0 } else { 1.0 };
        let weights = numbers.weights(beta_scale);
        let mut zero = numbers.clone();
        zero.parts().into_iter().for_each(|part| part.fill(0.0));

        let expected = plain(&numbers, &zero, 0.0, shape, f64::from(beta_scale));
        let (y, saved) = forward(&numbers.u, weights, shape, true);
        prop_assert_eq!(y.len(), expected.len());
        for (i, (a, b)) in y.iter().zip(&expected).enumerate() {
            prop_assert!((f64::from(*a) - b).abs() < 1e-4 * (1.0 + b.abs()), "y[{}]: {} and {}", i, a, b);
        }
        prop_assert_eq!(&y, &forward(&numbers.u, weights, shape, false).0);

        // The gradients of a random weighing of the outputs, along a random direction of each part.
        let direction = Numbers::random(shape, !seed);
        let dy: Vec<f32> = Numbers::random(shape, seed ^ 5).u[..y.len()].to_vec();
        let gradients = backward(&dy, &numbers.u, weights, shape, &saved.unwrap());
        let gradients = [&gradients.u, &gradients.conv, &gradients.a_log, &gradients.dt_bias, &gradients.norm];
        for (part, gradient) in gradients.into_iter().enumerate() {
            let mut only = zero.clone();
            only.parts()[part].clone_from(direction.clone().parts()[part]);
            let at = |t: f64| -> f64 {
                let y = plain(&numbers, &only, t, shape, f64::from(beta_scale));
                y.iter().zip(&dy).map(|(y, &dy)| y * f64::from(dy)).sum()
            };
            let h = 1e-5;
            let expected = (at(h) - at(-h)) / (2.0 * h);
            let chosen = only.parts()[part].clone();
            prop_assert_eq!(chosen.len(), gradient.len());
            let pairs = || gradient.iter().zip(&chosen).map(|(&g, &d)| f64::from(g) * f64::from(d));
            let ours: f64 = pairs().sum();
            let size: f64 = pairs().map(f64::abs).sum();
            prop_assert!(
                (ours - expected).abs() < 1e-3 * (size + 0.1),
                "gradient of {}: {} and {}", PARTS[part], ours, expected
            );
        }
    }
}
