//! The scalars of every step and head: how much of the recurrent state stays, and how strongly it is corrected.

/// Parameters of the gate.
#[derive(Debug, Clone, Copy)]
pub struct Gate<'a> {
    /// `[H]`: the logarithm of the decay rate.
    pub a_log: &'a [f32],
    /// `[H]`.
    pub dt_bias: &'a [f32],
    /// What the strength is multiplied by: 2 lets a transition have eigenvalues down to -1, 1 keeps them above 0.
    pub beta_scale: f32,
}

/// One head's scalars of a game.
#[derive(Debug, Default)]
pub struct Scalars {
    /// `[T]`: the logarithm of the share that stays, at most 0.
    pub log_decay: Vec<f32>,
    /// `[T]`: the strength of the correction.
    pub beta: Vec<f32>,
}

/// `ln(1 + e^x)`, exact to rounding on both sides.
fn softplus(x: f32) -> f32 {
    // Beyond 20 the function is its argument in single precision.
    if x > 20.0 { x } else { x.exp().ln_1p() }
}

fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

impl Gate<'_> {
    /// The scalars of head `head` from rows that hold `a` for every head at `offset`, and `b` behind.
    pub fn forward(&self, u: &[f32], stride: usize, offset: usize, head: usize, out: &mut Scalars) {
        let heads = self.a_log.len();
        let rate = -self.a_log[head].exp();
        out.log_decay.clear();
        out.beta.clear();
        for row in u.chunks_exact(stride) {
            let (a, b) = (row[offset + head], row[offset + heads + head]);
            out.log_decay.push(rate * softplus(a + self.dt_bias[head]));
            out.beta.push(self.beta_scale * logistic(b));
        }
    }

    /// The way back: from gradients by the scalars to those of `a` and `b` in the rows `du`, and to those of the head's
    /// `a_log` and `dt_bias`, which it returns.
    pub fn backward(
        &self,
        d: &Scalars,
        u: &[f32],
        stride: usize,
        offset: usize,
        head: usize,
        du: &mut [f32],
    ) -> (f64, f64) {
        let heads = self.a_log.len();
        let rate = -self.a_log[head].exp();
        let (mut d_a_log, mut d_dt_bias) = (0.0, 0.0);
        let rows = u.chunks_exact(stride).zip(du.chunks_exact_mut(stride));
        for ((row, du), (&d_log, &d_beta)) in rows.zip(d.log_decay.iter().zip(&d.beta)) {
            let (a, b) = (row[offset + head] + self.dt_bias[head], row[offset + heads + head]);
            let d_a = d_log * rate * logistic(a);
            let strength = logistic(b);
            du[offset + head] = d_a;
            du[offset + heads + head] = d_beta * self.beta_scale * strength * (1.0 - strength);
            d_a_log += f64::from(d_log * rate * softplus(a));
            d_dt_bias += f64::from(d_a);
        }
        (d_a_log, d_dt_bias)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softplus_is_accurate_on_both_sides() {
        for i in -400..400 {
            let x = i as f32 / 10.0;
            let truth = f64::from(x).exp().ln_1p();
            assert!((f64::from(softplus(x)) / truth - 1.0).abs() < 1e-6, "{x}");
        }
    }
}
