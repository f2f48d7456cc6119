//! Which of Burn's backends this build has, and which of them find a device here.

#[cfg(any(feature = "wgpu", feature = "cuda"))]
use burn::tensor::{Device, DeviceType};

/// The version of Burn that the workspace pins.
pub const BURN_VERSION: &str = "0.22.1";

/// A backend that a build may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// Burn's flex: the CPU, always there.
    Cpu,
    /// wgpu with the graphics interface of its choice (feature `wgpu`).
    Wgpu,
    /// wgpu on Vulkan (feature `vulkan`).
    Vulkan,
    /// NVIDIA's CUDA (feature `cuda`).
    Cuda,
}

impl Backend {
    /// All of them.
    pub const ALL: [Backend; 4] = [Backend::Cpu, Backend::Wgpu, Backend::Vulkan, Backend::Cuda];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Cpu => "cpu",
            Backend::Wgpu => "wgpu",
            Backend::Vulkan => "vulkan",
            Backend::Cuda => "cuda",
        }
    }

    /// The cargo feature that puts it into a build; `None` if every build has it.
    pub fn feature(self) -> Option<&'static str> {
        (self != Backend::Cpu).then(|| self.name())
    }

    /// Whether this build has it.
    pub fn built_in(self) -> bool {
        match self {
            Backend::Cpu => true,
            Backend::Wgpu => cfg!(feature = "wgpu"),
            Backend::Vulkan => cfg!(feature = "vulkan"),
            Backend::Cuda => cfg!(feature = "cuda"),
        }
    }

    /// The names of its devices on this machine; none if it is not built in or finds none.
    ///
    /// Opens graphics and CUDA drivers, which may panic where an installation is broken.
    pub fn devices(self) -> Vec<String> {
        match self {
            Backend::Cpu => vec!["Burn flex".to_string()],
            #[cfg(feature = "wgpu")]
            Backend::Wgpu => device_names(DeviceType::Wgpu),
            #[cfg(feature = "vulkan")]
            Backend::Vulkan => device_names(DeviceType::Vulkan),
            #[cfg(feature = "cuda")]
            Backend::Cuda => device_names(DeviceType::Cuda),
            #[allow(unreachable_patterns)]
            _ => Vec::new(),
        }
    }
}

/// What the drivers call the devices of a kind.
#[cfg(any(feature = "wgpu", feature = "cuda"))]
fn device_names(kind: DeviceType) -> Vec<String> {
    let name = |device: &Device| {
        device.identity().map_or_else(|| format!("{device:?}"), |identity| identity.name)
    };
    Device::enumerate(kind).into_vec().iter().map(name).collect()
}
