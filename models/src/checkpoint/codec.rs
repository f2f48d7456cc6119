//! Numbers as bytes: little-endian f32 and f16 to and from `f32`, none of them infinite or NaN.

use half::f16;

use super::{
    error::{CheckpointError, quoted},
    header::Dtype,
};

/// Reads the numbers of the tensor called `name`; `bytes` holds a whole number of them (the header check sees to it).
///
/// # Errors
/// [`CheckpointError::NonFinite`].
pub(super) fn decode(name: &str, dtype: Dtype, bytes: &[u8]) -> Result<Vec<f32>, CheckpointError> {
    let values: Vec<f32> = match dtype {
        Dtype::F32 => bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
        Dtype::F16 => {
            bytes.as_chunks::<2>().0.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect()
        }
    };
    check_finite(name, &values)?;
    Ok(values)
}

/// Appends the numbers of the tensor called `name` to `out`; f16 rounds to nearest, ties to even.
///
/// # Errors
/// [`CheckpointError::NonFinite`] and [`CheckpointError::F16Range`].
pub(super) fn encode(
    name: &str,
    dtype: Dtype,
    values: &[f32],
    out: &mut Vec<u8>,
) -> Result<(), CheckpointError> {
    check_finite(name, values)?;
    out.reserve(values.len() * dtype.bytes());
    match dtype {
        Dtype::F32 => out.extend(values.iter().flat_map(|v| v.to_le_bytes())),
        Dtype::F16 => {
            for (index, &value) in values.iter().enumerate() {
                let short = f16::from_f32(value);
                if !short.is_finite() {
                    return Err(CheckpointError::F16Range { name: quoted(name), index, value });
                }
                out.extend(short.to_le_bytes());
            }
        }
    }
    Ok(())
}

fn check_finite(name: &str, values: &[f32]) -> Result<(), CheckpointError> {
    match values.iter().position(|v| !v.is_finite()) {
        Some(index) => {
            Err(CheckpointError::NonFinite { name: quoted(name), index, value: values[index] })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finite_half_survives_both_ways() {
        let halves: Vec<u8> = (0..=u16::MAX)
            .filter(|&bits| f16::from_bits(bits).is_finite())
            .flat_map(u16::to_le_bytes)
            .collect();
        let values = decode("w", Dtype::F16, &halves).unwrap();
        let mut back = Vec::new();
        encode("w", Dtype::F16, &values, &mut back).unwrap();
        assert_eq!(back, halves);
    }

    #[test]
    fn what_no_network_should_hold_is_refused() {
        let code = |dtype, values: &[f32]| {
            encode("w", dtype, values, &mut Vec::new()).map_or_else(|e| e.code(), |()| "fine")
        };
        assert_eq!(code(Dtype::F32, &[0.0, f32::NAN]), "CKPT-NON-FINITE");
        assert_eq!(code(Dtype::F16, &[f32::NEG_INFINITY]), "CKPT-NON-FINITE");
        assert_eq!(code(Dtype::F32, &[70_000.0]), "fine");
        assert_eq!(code(Dtype::F16, &[65_519.0]), "fine");
        assert_eq!(code(Dtype::F16, &[65_520.0]), "CKPT-F16-RANGE");
        let error = decode("w", Dtype::F32, &[0, 0, 0, 0, 0, 0, 0x80, 0x7f]).unwrap_err();
        assert_eq!(error.to_string(), "tensor `w` holds inf at element 1");
        assert_eq!(decode("w", Dtype::F16, &[0, 0x7c]).unwrap_err().code(), "CKPT-NON-FINITE");
    }
}
