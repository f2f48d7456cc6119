//! Move tokens to rows of width D.

use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use crate::{kernel::random::Dropout, ops::Path};

/// The table of move embeddings, compact or full (see [`crate::vocabulary`]).
#[derive(Module, Debug)]
pub struct Embedding {
    /// `[V, D]`.
    pub weight: Param<Tensor<2>>,
}

impl Embedding {
    /// # Shapes
    /// row numbers `[N]` to `[N, D]`
    pub fn forward(&self, path: Path, rows: Arc<[u32]>, dropout: Option<Dropout>) -> Tensor<2> {
        path.dropout(path.gather(self.weight.val(), rows), dropout)
    }
}
