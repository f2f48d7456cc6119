//! The checkpoints that come with the binary.

/// A checkpoint inside the binary.
#[derive(Debug, Clone, Copy)]
pub struct Shipped {
    /// The name of its folder under `models/checkpoints`.
    pub name: &'static str,
    /// The safetensors file.
    pub weights: &'static [u8],
    /// The config beside it.
    pub config: &'static str,
}

/// All of them, by name. The list is made when the binary is built.
pub const SHIPPED: &[Shipped] = include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// The shipped checkpoint of that name.
pub fn shipped(name: &str) -> Option<&'static Shipped> {
    SHIPPED.iter().find(|shipped| shipped.name == name)
}
