//! Cross-entropy over the 75 labels (paper, section 3.3), as a composition of Burn's operations.
//!
//! The loss of a batch is the sum over its valid steps and labels, divided by 75 times the valid steps. Packed rows hold
//! no padding, so there is nothing to mask.

use std::ops::Range;

use burn::tensor::{Int, Tensor, TensorData, activation};
use cwm_core::chess::label::{LABELS, LOGIT_OFFSETS, class_count};

/// Neighbouring labels with equally many classes: one matrix of logits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRun {
    /// The labels.
    pub labels: Range<usize>,
    /// Classes of each.
    pub classes: usize,
    /// Their logits.
    pub logits: Range<usize>,
}

/// All labels in runs, in order.
pub fn label_runs() -> Vec<LabelRun> {
    let mut runs: Vec<LabelRun> = Vec::new();
    for label in 0..LABELS {
        let (classes, end) = (class_count(label), LOGIT_OFFSETS[label + 1]);
        match runs.last_mut().filter(|run| run.classes == classes) {
            Some(run) => {
                run.labels.end = label + 1;
                run.logits.end = end;
            }
            None => {
                let logits = LOGIT_OFFSETS[label]..end;
                runs.push(LabelRun { labels: label..label + 1, classes, logits });
            }
        }
    }
    runs
}

/// The cross-entropy of each row of `logits [N, 1878]` against `labels [N, 75]`, summed over labels, as `[N]`.
pub fn cross_entropy_by_row(logits: Tensor<2>, labels: &[u8]) -> Tensor<1> {
    let [rows, _] = logits.dims();
    let device = logits.device();
    let mut sum = Tensor::zeros([rows], &device);
    for run in label_runs() {
        let (count, classes) = (run.labels.len(), run.classes);
        let part = logits.clone().narrow(1, run.logits.start, run.logits.len());
        let part = activation::log_softmax(part.reshape([rows * count, classes]), 1);
        let truth: Vec<i32> = labels
            .chunks_exact(LABELS)
            .flat_map(|row| row[run.labels.clone()].iter().map(|&class| i32::from(class)))
            .collect();
        let truth = Tensor::<2, Int>::from_data(TensorData::new(truth, [rows * count, 1]), &device);
        let likelihood = part.gather(1, truth).reshape([rows, count]).sum_dim(1);
        sum = sum - likelihood.reshape([rows]);
    }
    sum
}

/// The sum of the cross-entropy of `logits [N, 1878]` against `labels [N, 75]`, as `[1]`.
pub fn cross_entropy(logits: Tensor<2>, labels: &[u8]) -> Tensor<1> {
    cross_entropy_by_row(logits, labels).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cwm_core::chess::label::LOGITS;

    #[test]
    fn runs_cover_all_labels_and_logits() {
        let runs = label_runs();
        let sizes: Vec<(usize, usize)> =
            runs.iter().map(|run| (run.labels.len(), run.classes)).collect();
        assert_eq!(sizes, [(64, 13), (5, 2), (1, 9), (1, 3), (4, 256)]);
        assert_eq!(runs.iter().map(|run| run.logits.len()).sum::<usize>(), LOGITS);
    }
}
