//! Parameters as plain numbers under the reference's names, every matrix as `[out, in]`: what checkpoints hold.

use std::{borrow::Cow, collections::BTreeMap};

use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};
use cwm_core::chess::MoveToken;

use crate::{
    config::ModelConfig,
    init::is_embedding,
    linear::{Linear, Projection},
    norm::RmsNorm,
    vocabulary::{COMPACT_ROWS, TokenRows, compact_tokens},
};

/// One parameter, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedTensor {
    /// Extents, outermost first.
    pub shape: Vec<usize>,
    /// As many numbers as the product of `shape`.
    pub data: Vec<f32>,
}

/// A model's parameters by the reference's names.
pub type Parameters = BTreeMap<String, NamedTensor>;

/// Parameters that do not fit a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// A parameter that the model has was not given.
    #[error("parameter `{0}` is missing")]
    Missing(String),
    /// A parameter was given that the model does not have.
    #[error("parameter `{0}` does not belong to this model")]
    Unknown(String),
    /// A parameter of another shape.
    #[error("parameter `{name}` has shape {found:?}, this model wants {expected:?}")]
    Shape {
        /// The parameter.
        name: String,
        /// Its shape as given.
        found: Vec<usize>,
        /// The shape that the model has.
        expected: Vec<usize>,
    },
    /// As many numbers as the shape does not say.
    #[error("parameter `{name}` of shape {shape:?} holds {found} numbers")]
    Length {
        /// The parameter.
        name: String,
        /// Its shape.
        shape: Vec<usize>,
        /// The numbers found.
        found: usize,
    },
}

impl NamedTensor {
    /// Joins a shape and its numbers.
    ///
    /// Returns `None` unless there are as many numbers as the shape says.
    pub fn new(shape: Vec<usize>, data: Vec<f32>) -> Option<Self> {
        let tensor = NamedTensor { shape, data };
        tensor.is_consistent().then_some(tensor)
    }

    /// Whether there are as many numbers as the shape says.
    pub fn is_consistent(&self) -> bool {
        let len = self.shape.iter().try_fold(1_usize, |len, &extent| len.checked_mul(extent));
        len == Some(self.data.len())
    }

    /// Keeps the [`COMPACT_ROWS`] rows of an embedding of the benchmark's vocabulary that some legal game reads.
    ///
    /// Returns `None` unless this is a matrix of 20,482 rows.
    pub fn compact_rows(&self) -> Option<NamedTensor> {
        let &[MoveToken::VOCAB, width] = &self.shape[..] else { return None };
        let mut data = Vec::with_capacity(COMPACT_ROWS * width);
        for token in compact_tokens() {
            let first = usize::from(token) * width;
            data.extend_from_slice(&self.data[first..first + width]);
        }
        NamedTensor::new(vec![COMPACT_ROWS, width], data)
    }

    /// Writes the rows of a compact embedding into `full`, an embedding of the benchmark's vocabulary that gives the
    /// rows which the compact one does not hold.
    ///
    /// Returns `None` unless both have the expected rows and equal widths.
    pub fn expand_rows_into(&self, full: &mut NamedTensor) -> Option<()> {
        let &[COMPACT_ROWS, width] = &self.shape[..] else { return None };
        if full.shape != [MoveToken::VOCAB, width] {
            return None;
        }
        for (row, token) in compact_tokens().enumerate() {
            let first = usize::from(token) * width;
            full.data[first..first + width]
                .copy_from_slice(&self.data[row * width..(row + 1) * width]);
        }
        Some(())
    }
}

/// Parameters that have been checked against a model's shape, as tensors.
pub(crate) struct TensorSource<'a>(BTreeMap<&'a str, Cow<'a, NamedTensor>>);

impl<'a> TensorSource<'a> {
    /// Checks names, shapes and lengths; a full embedding becomes a compact one where the model has that.
    pub(crate) fn new(
        config: &ModelConfig,
        parameters: &'a Parameters,
        rows: &TokenRows,
    ) -> Result<Self, ParameterError> {
        let mut source = BTreeMap::new();
        for (name, mut expected) in config.parameter_shapes() {
            let (name, tensor) = parameters
                .get_key_value(&name)
                .ok_or_else(|| ParameterError::Missing(name.clone()))?;
            if !tensor.is_consistent() {
                return Err(ParameterError::Length {
                    name: name.clone(),
                    shape: tensor.shape.clone(),
                    found: tensor.data.len(),
                });
            }
            let mut tensor = Cow::Borrowed(tensor);
            if is_embedding(name) {
                if let (TokenRows::Compact(_), Some(compact)) = (rows, tensor.compact_rows()) {
                    tensor = Cow::Owned(compact);
                }
                expected[0] = rows.len();
            }
            if tensor.shape != expected {
                return Err(ParameterError::Shape {
                    name: name.clone(),
                    found: tensor.shape.clone(),
                    expected,
                });
            }
            source.insert(name.as_str(), tensor);
        }
        match parameters.keys().find(|name| !source.contains_key(name.as_str())) {
            Some(name) => Err(ParameterError::Unknown(name.clone())),
            None => Ok(TensorSource(source)),
        }
    }

    /// The numbers of this name.
    pub(crate) fn numbers(&self, name: &str) -> Result<Vec<f32>, ParameterError> {
        let tensor = self.0.get(name).ok_or_else(|| ParameterError::Missing(name.into()))?;
        Ok(tensor.data.clone())
    }

    /// The tensor of this name.
    pub(crate) fn tensor<const D: usize>(
        &self,
        name: &str,
        device: &Device,
    ) -> Result<Param<Tensor<D>>, ParameterError> {
        let tensor = self.0.get(name).ok_or_else(|| ParameterError::Missing(name.into()))?;
        let data = TensorData::new(tensor.data.clone(), tensor.shape.clone());
        Ok(Param::from_tensor(Tensor::from_data(data, device)))
    }

    /// The matrix of this name.
    pub(crate) fn matrix(
        &self,
        name: &str,
        device: &Device,
    ) -> Result<Param<Tensor<2>>, ParameterError> {
        self.tensor(name, device)
    }

    /// The linear map of this name: `weight` and `bias` below it.
    pub(crate) fn linear(&self, name: &str, device: &Device) -> Result<Linear, ParameterError> {
        Ok(Linear {
            weight: self.matrix(&format!("{name}.weight"), device)?,
            bias: self.vector(&format!("{name}.bias"), device)?,
        })
    }

    /// The linear map without bias of this name: `weight` below it.
    pub(crate) fn projection(
        &self,
        name: &str,
        device: &Device,
    ) -> Result<Projection, ParameterError> {
        Ok(Projection { weight: self.matrix(&format!("{name}.weight"), device)? })
    }

    /// The norm of this name: `weight` below it.
    pub(crate) fn norm(
        &self,
        name: &str,
        eps: f32,
        device: &Device,
    ) -> Result<RmsNorm, ParameterError> {
        Ok(RmsNorm { weight: self.vector(&format!("{name}.weight"), device)?, eps })
    }

    /// The vector of this name.
    pub(crate) fn vector(
        &self,
        name: &str,
        device: &Device,
    ) -> Result<Param<Tensor<1>>, ParameterError> {
        self.tensor(name, device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_and_expand_are_inverse() {
        let data: Vec<f32> = (0..MoveToken::VOCAB * 2).map(|i| i as f32).collect();
        let full = NamedTensor::new(vec![MoveToken::VOCAB, 2], data).unwrap();
        let compact = full.compact_rows().unwrap();
        assert_eq!(compact.shape, [COMPACT_ROWS, 2]);
        let mut expanded =
            NamedTensor::new(full.shape.clone(), vec![-1.0; full.data.len()]).unwrap();
        compact.expand_rows_into(&mut expanded).unwrap();
        assert_eq!(expanded.compact_rows().unwrap(), compact);
        let untouched = expanded.data.iter().filter(|&&x| x == -1.0).count();
        assert_eq!(untouched, (MoveToken::VOCAB - COMPACT_ROWS) * 2);
    }

    #[test]
    fn shapes_and_numbers_must_agree() {
        assert!(NamedTensor::new(vec![2, 3], vec![0.0; 5]).is_none());
        assert!(NamedTensor::new(vec![usize::MAX, 2], vec![]).is_none());
    }
}
