//! The device a user names. Every device is probed before Burn is told to use it: a driver that is missing is an error
//! here, and would be a panic at the first tensor.

use std::{fmt, str::FromStr};

pub use burn::tensor::Device;

use crate::backend::Backend;

/// A device by the name on the command line: `cpu`, `wgpu`, `vulkan` or `cuda`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceChoice(Backend);

/// The GPU of a browser.
#[cfg(feature = "webgpu")]
pub mod webgpu {
    use super::Device;

    /// An open GPU.
    #[derive(Debug, Clone)]
    pub struct Opened {
        /// The device.
        pub device: Device,
        /// The largest tensor that fits one of its buffers.
        pub buffer_bytes_max: u64,
    }

    /// Asks the browser for its GPU.
    ///
    /// # Errors
    /// The browser's reason, in words.
    pub async fn open() -> Result<Opened, String> {
        let (device, setup) = Device::wgpu_options()
            .init_with_setup_async()
            .await
            .map_err(|error| format!("the browser does not give a GPU: {error}"))?;
        let limits = setup.device.limits();
        let buffer_bytes_max =
            limits.max_buffer_size.min(u64::from(limits.max_storage_buffer_binding_size));
        Ok(Opened { device, buffer_bytes_max })
    }
}

/// A device that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// No such name.
    #[error("unknown device `{0}`, expected cpu, wgpu, vulkan or cuda")]
    Unknown(String),
    /// Not in this build.
    #[error("this build has no device `{name}`: build with `--features {name}`")]
    NotBuilt {
        /// The device's name and the feature's.
        name: &'static str,
    },
    /// Nothing of the kind on this machine.
    #[error("no device `{name}` on this machine: check its driver, or use `cpu`")]
    NotFound {
        /// The device's name.
        name: &'static str,
    },
}

impl DeviceChoice {
    /// The CPU, which is always there.
    pub const CPU: DeviceChoice = DeviceChoice(Backend::Cpu);

    /// Looks for the device.
    ///
    /// # Errors
    /// [`DeviceError`] if this build or this machine does not have it.
    pub fn open(self) -> Result<Device, DeviceError> {
        let name = self.0.name();
        if !self.0.built_in() {
            return Err(DeviceError::NotBuilt { name });
        }
        if self.0.devices().is_empty() {
            return Err(DeviceError::NotFound { name });
        }
        match self.0 {
            Backend::Cpu => Ok(Device::flex()),
            #[cfg(feature = "wgpu")]
            Backend::Wgpu => Ok(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)),
            #[cfg(feature = "vulkan")]
            Backend::Vulkan => Ok(Device::vulkan(burn::tensor::DeviceKind::DefaultDevice)),
            #[cfg(feature = "cuda")]
            Backend::Cuda => Ok(Device::cuda(0_usize)),
            #[allow(unreachable_patterns)]
            _ => Err(DeviceError::NotBuilt { name }),
        }
    }
}

impl Default for DeviceChoice {
    fn default() -> Self {
        Self::CPU
    }
}

impl FromStr for DeviceChoice {
    type Err = DeviceError;
    fn from_str(name: &str) -> Result<Self, DeviceError> {
        let backend = Backend::ALL.into_iter().find(|backend| backend.name() == name);
        let backend = backend.ok_or_else(|| DeviceError::Unknown(name.into()))?;
        if backend.built_in() {
            Ok(DeviceChoice(backend))
        } else {
            Err(DeviceError::NotBuilt { name: backend.name() })
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_device_say_which_are() {
        assert_eq!("cpu".parse::<DeviceChoice>().unwrap().open(), Ok(Device::flex()));
        let error = "tpu".parse::<DeviceChoice>().unwrap_err().to_string();
        assert!(error.contains("`tpu`") && error.contains("cpu, wgpu"), "{error}");
    }

    #[test]
    #[cfg(not(feature = "cuda"))]
    fn devices_that_are_not_built_name_the_feature() {
        let error = "cuda".parse::<DeviceChoice>().unwrap_err().to_string();
        assert!(error.contains("--features cuda"), "{error}");
    }
}
