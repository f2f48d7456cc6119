//! Views of storages to tensors: checked against the archive and each other before a number is read.

use std::collections::BTreeMap;

use super::{TorchError, archive::Archive, globals::StorageDtype, value::Tensor};
use crate::{
    checkpoint::{
        codec,
        error::{CheckpointError, quoted},
        header::Dtype,
    },
    parameters::NamedTensor,
};

/// The number format of a tensor, where it is one that checkpoints have.
pub(super) fn dtype_of(name: &str, tensor: &Tensor<'_>) -> Result<Dtype, CheckpointError> {
    match tensor.storage.dtype {
        StorageDtype::F32 => Ok(Dtype::F32),
        StorageDtype::F16 => Ok(Dtype::F16),
        other => Err(CheckpointError::Dtype { name: quoted(name), dtype: other.name().into() }),
    }
}

/// Reads one tensor.
pub(super) fn read(
    name: &str,
    tensor: &Tensor<'_>,
    archive: &Archive<'_>,
) -> Result<NamedTensor, CheckpointError> {
    let dtype = dtype_of(name, tensor)?;
    let storage = storage(name, tensor, dtype, archive)?;
    let size = dtype.bytes();
    let span = span(name, tensor)?;
    // The span lies in the storage, whose bytes are at hand: all that follows fits usize.
    let within = &storage[tensor.offset as usize * size..span.end as usize * size];
    let shape: Vec<usize> = tensor.shape.iter().map(|&extent| extent as usize).collect();
    let data = if is_row_major(tensor) {
        codec::decode(name, dtype, within)?
    } else {
        codec::decode(name, dtype, &gathered(within, &shape, tensor, size))?
    };
    Ok(NamedTensor { shape, data })
}

/// The bytes of a tensor's storage, as many as the pickle says.
fn storage<'a>(
    name: &str,
    tensor: &Tensor<'_>,
    dtype: Dtype,
    archive: &Archive<'a>,
) -> Result<&'a [u8], TorchError> {
    let key = tensor.storage.key;
    let found = archive.get(&format!("data/{key}"));
    let found = found
        .ok_or_else(|| TorchError::MissingStorage { name: quoted(name), storage: quoted(key) })?;
    let expected_bytes = tensor.storage.elements.saturating_mul(dtype.bytes() as u64);
    if found.len() as u64 == expected_bytes {
        return Ok(found);
    }
    let (name, storage, found_bytes) = (quoted(name), quoted(key), found.len() as u64);
    Err(TorchError::StorageLength { name, storage, expected_bytes, found_bytes })
}

/// The elements of the storage from a tensor's first to its last; checks that no two elements are the same.
fn span(name: &str, tensor: &Tensor<'_>) -> Result<std::ops::Range<u64>, TorchError> {
    let (shape, strides) = (tensor.shape.clone(), tensor.strides.clone());
    if shape.contains(&0) {
        return Ok(
            tensor.offset.min(tensor.storage.elements)..tensor.offset.min(tensor.storage.elements)
        );
    }
    // From the innermost stride out, each must step over all that lies within.
    let mut extents: Vec<(u64, u64)> = strides.iter().copied().zip(shape.iter().copied()).collect();
    extents.retain(|&(_, extent)| extent > 1);
    extents.sort_unstable();
    let mut reach = Some(1_u64);
    for &(stride, extent) in &extents {
        if reach.is_some_and(|reach| stride < reach) {
            return Err(TorchError::Strides { name: quoted(name), shape, strides });
        }
        reach = reach.and_then(|reach| stride.checked_mul(extent - 1)?.checked_add(reach));
    }
    let end = reach.and_then(|reach| tensor.offset.checked_add(reach));
    match end.filter(|&end| end <= tensor.storage.elements) {
        Some(end) => Ok(tensor.offset..end),
        None => Err(TorchError::BeyondStorage { name: quoted(name), shape, strides }),
    }
}

fn is_row_major(tensor: &Tensor<'_>) -> bool {
    let mut within = 1_u64;
    tensor.shape.iter().zip(&tensor.strides).rev().all(|(&extent, &stride)| {
        let fits = extent <= 1 || stride == within;
        within = within.saturating_mul(extent);
        fits
    })
}

/// A tensor's bytes in row-major order; its span was checked.
fn gathered(within: &[u8], shape: &[usize], tensor: &Tensor<'_>, size: usize) -> Vec<u8> {
    let count: usize = shape.iter().product();
    let mut bytes = Vec::with_capacity(count * size);
    let mut index = vec![0; shape.len()];
    for _ in 0..count {
        let at: usize =
            index.iter().zip(&tensor.strides).map(|(&i, &stride)| i * stride as usize).sum();
        bytes.extend(&within[at * size..][..size]);
        for (i, &extent) in index.iter_mut().zip(shape).rev() {
            *i += 1;
            if *i < extent {
                break;
            }
            *i = 0;
        }
    }
    bytes
}

/// Checks that no two tensors share elements.
pub(super) fn check_apart(tensors: &BTreeMap<&str, &Tensor<'_>>) -> Result<(), TorchError> {
    let mut spans = Vec::new();
    for (&name, tensor) in tensors {
        let span = span(name, tensor)?;
        spans.push((tensor.storage.key, span.start, span.end, name));
    }
    spans.sort_unstable();
    for pair in spans.windows(2) {
        let ((key, _, end, first), (other, start, _, second)) = (pair[0], pair[1]);
        if key == other && start < end {
            return Err(TorchError::Alias { first: quoted(first), second: quoted(second) });
        }
    }
    Ok(())
}
