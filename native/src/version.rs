//! What this build is: version, source revision, Burn, backends.

use std::sync::LazyLock;

use cwm_models::backend::{BURN_VERSION, Backend};

/// The version of the package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that the build was made from, where the build knew it.
pub const GIT_REVISION: Option<&str> = option_env!("CWM_GIT_REVISION");

/// Names of the backends in this build, `cpu` first.
pub fn backends() -> Vec<&'static str> {
    Backend::ALL.iter().filter(|b| b.built_in()).map(|b| b.name()).collect()
}

/// What `cwm -V` prints after the name.
pub static SHORT: LazyLock<String> = LazyLock::new(|| match GIT_REVISION {
    Some(revision) => format!("{VERSION} ({revision})"),
    None => VERSION.to_string(),
});

/// What `cwm --version` prints after the name.
pub static LONG: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{VERSION}\nrevision: {}\nburn: {BURN_VERSION}\nbackends: {}",
        GIT_REVISION.unwrap_or("unknown"),
        backends().join(", "),
    )
});
