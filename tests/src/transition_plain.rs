//! The transition machine written down a second time: plain loops in double precision over the named parameters.

use cwm_core::{
    chess::label::{LABELS, logit_range},
    data::transition::Transitions,
};
use cwm_models::Parameters;

/// The network in double precision.
pub struct Plain<'a> {
    /// The parameters.
    pub parameters: &'a Parameters,
    /// A parameter and the number in it that is moved, and by how much.
    pub moved: Option<(&'a str, usize, f64)>,
}

impl Plain<'_> {
    fn get(&self, name: &str, index: usize) -> f64 {
        let value = f64::from(self.parameters[name].data[index]);
        match self.moved {
            Some((other, at, by)) if other == name && at == index => value + by,
            _ => value,
        }
    }

    fn linear(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
        let outputs = self.parameters[&bias].data.len();
        let row = |o: usize| {
            let sum: f64 = (0..x.len()).map(|i| self.get(&weight, o * x.len() + i) * x[i]).sum();
            sum + self.get(&bias, o)
        };
        (0..outputs).map(row).collect()
    }

    fn rectified(&self, name: &str, x: &[f64]) -> Vec<f64> {
        self.linear(name, x).into_iter().map(|y| y.max(0.0)).collect()
    }

    /// Sums rows of a table.
    fn rows(&self, name: &str, rows: &[usize]) -> Vec<f64> {
        let width = self.parameters[name].shape[1];
        (0..width).map(|i| rows.iter().map(|row| self.get(name, row * width + i)).sum()).collect()
    }

    /// The logits of the heads `[28]` (`[1046]` with clocks as bytes) and of these cells `[K][13]`.
    pub fn logits(&self, token: u16, before: &[u8], cells: &[u8]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let named = (token < 20_480).then(|| {
            let squares = usize::from(token) / 5;
            ((squares / 64) ^ 56, (squares % 64) ^ 56)
        });
        let mut rows = Vec::new();
        match named {
            None => rows.extend([13, 14 + 13, 28 + 64, 93 + 64]),
            Some((from, to)) => rows.extend([
                usize::from(before[from]),
                14 + usize::from(before[to]),
                28 + from,
                93 + to,
            ]),
        }
        let promotion = usize::from(token % 5);
        if named.is_some() && promotion > 0 {
            rows.extend([158, 158 + promotion]);
        }
        rows.push(163 + usize::from(before[64]));
        rows.extend((0..4).filter(|&i| before[65 + i] == 1).map(|i| 165 + i));
        rows.extend([169 + usize::from(before[69]), 178 + usize::from(before[70])]);
        if self.clocks_are_bytes() {
            rows.extend((0..4).map(|i| 181 + 256 * i + usize::from(before[71 + i])));
        }
        let sum = self.rows("context.inputs.weight", &rows);
        let first: Vec<f64> = sum
            .iter()
            .enumerate()
            .map(|(i, x)| (x + self.get("context.inputs.bias", i)).max(0.0))
            .collect();
        let second = self.rectified("context.hidden", &first);
        let context = self.rectified("context.output", &second);
        let shared = self.linear("cell.context", &context);
        let cells = cells.iter().map(|&cell| {
            let cell = usize::from(cell);
            let mut rows = vec![usize::from(before[cell]), 13 + cell];
            let relative = self.parameters["cell.inputs.weight"].shape[0] > 77;
            for (which, base) in [77, 109].into_iter().enumerate().filter(|_| relative) {
                rows.extend(match named {
                    None => [base + 15, base + 31],
                    Some(both) => {
                        let other = if which == 0 { both.0 } else { both.1 };
                        [base + cell % 8 + 7 - other % 8, base + 16 + cell / 8 + 7 - other / 8]
                    }
                });
            }
            let own = self.rows("cell.inputs.weight", &rows);
            let first: Vec<f64> = own.iter().zip(&shared).map(|(a, b)| (a + b).max(0.0)).collect();
            let mut out = self.linear("cell.output", &self.rectified("cell.hidden", &first));
            let copy = out.pop().unwrap();
            out[usize::from(before[cell])] += copy;
            out
        });
        let cells = cells.collect();
        (self.linear("heads", &context), cells)
    }

    fn clocks_are_bytes(&self) -> bool {
        self.parameters["heads.bias"].data.len() > 28
    }

    /// The training loss of a batch.
    pub fn loss(&self, batch: &Transitions) -> f64 {
        let mut loss = 0.0;
        let k = batch.cells_per_step;
        for i in 0..batch.steps() {
            let before = &batch.before[i * LABELS..(i + 1) * LABELS];
            let after = &batch.after[i * LABELS..(i + 1) * LABELS];
            let picked = &batch.cells[i * k..(i + 1) * k];
            let (heads, cells) = self.logits(batch.tokens[i], before, picked);
            for (j, logits) in cells.iter().enumerate() {
                let p = softmax(logits)[usize::from(after[usize::from(picked[j])])];
                loss -= f64::from(batch.weights[i * k + j]) * p.ln();
            }
            let mut first = 0;
            let bytes = self.clocks_are_bytes();
            let classes = if bytes { 75 } else { 71 };
            for (label, &class) in after.iter().enumerate().take(classes).skip(64) {
                let classes = logit_range(label).len();
                if label < 73 || !batch.swapped[i] {
                    loss -= softmax(&heads[first..first + classes])[usize::from(class)].ln();
                }
                first += classes;
            }
            for label in [71, 73].into_iter().filter(|_| !bytes) {
                let p = softmax(&heads[first..first + 3]);
                first += 3;
                let value = |labels: &[u8]| u16::from_be_bytes([labels[label], labels[label + 1]]);
                let old = value(before);
                let mass: f64 = [old, old + 1, 0]
                    .iter()
                    .zip(p)
                    .filter(|(outcome, _)| **outcome == value(after))
                    .map(|(_, p)| p)
                    .sum();
                if label == 71 || !batch.swapped[i] {
                    loss -= mass.ln();
                }
            }
        }
        loss / batch.steps() as f64
    }
}

fn softmax(logits: &[f64]) -> Vec<f64> {
    let max = logits.iter().copied().fold(f64::MIN, f64::max);
    let sum: f64 = logits.iter().map(|x| (x - max).exp()).sum();
    logits.iter().map(|x| (x - max).exp() / sum).collect()
}
