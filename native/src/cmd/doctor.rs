//! `cwm doctor`: what this build can use on this machine, and why not what it cannot.

use std::{
    fmt::Write,
    panic::{self, AssertUnwindSafe},
    thread,
};

use cwm_models::backend::{BURN_VERSION, Backend};
use serde::Serialize;

use crate::{
    exit::Exit,
    output::{self, Format},
    version,
};

const EXAMPLES: &str = "\
Examples:
  cwm doctor
  cwm doctor --format json | jq .backends";

/// Arguments of `cwm doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// How the findings are printed
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
}

/// Everything that `cwm doctor` finds.
#[derive(Debug, Serialize)]
struct Findings {
    /// Version of this document's layout.
    format: u32,
    version: &'static str,
    revision: Option<&'static str>,
    burn: &'static str,
    target: String,
    cores: usize,
    threads: usize,
    simd: Vec<&'static str>,
    memory_total_bytes: Option<u64>,
    memory_available_bytes: Option<u64>,
    backends: Vec<BackendFinding>,
}

/// What was found about one backend.
#[derive(Debug, Serialize)]
struct BackendFinding {
    name: &'static str,
    built_in: bool,
    usable: bool,
    devices: Vec<String>,
    /// Why it cannot be used, and what to do.
    reason: Option<String>,
}

/// Runs `cwm doctor`.
pub fn run(args: Args) -> anyhow::Result<Exit> {
    let findings = examine();
    match args.format {
        Format::Text => output::print(text(&findings))?,
        Format::Json => output::print_json(&findings)?,
    }
    Ok(Exit::Done)
}

fn examine() -> Findings {
    let memory = memory_bytes();
    Findings {
        format: 1,
        version: version::VERSION,
        revision: version::GIT_REVISION,
        burn: BURN_VERSION,
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        cores: thread::available_parallelism().map_or(1, usize::from),
        threads: rayon::current_num_threads(),
        simd: simd(),
        memory_total_bytes: memory.map(|(total, _)| total),
        memory_available_bytes: memory.map(|(_, available)| available),
        backends: Backend::ALL.map(probe).into(),
    }
}

fn probe(backend: Backend) -> BackendFinding {
    let built_in = backend.built_in();
    let (devices, reason) = if built_in {
        match quietly(|| backend.devices()) {
            Some(devices) if devices.is_empty() => {
                let reason = "no device found: is a driver installed, and may this user open it?";
                (devices, Some(reason.to_string()))
            }
            Some(devices) => (devices, None),
            None => (Vec::new(), Some("its driver failed while looking for devices".to_string())),
        }
    } else {
        let feature = backend.feature().unwrap_or_default();
        (Vec::new(), Some(format!("not in this build; build with `--features {feature}`")))
    };
    BackendFinding {
        name: backend.name(),
        built_in,
        usable: built_in && reason.is_none(),
        devices,
        reason,
    }
}

/// The result of `probe`, or `None` if it panicked: a broken driver is a finding, not a crash.
fn quietly<T>(probe: impl FnOnce() -> T) -> Option<T> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let result = panic::catch_unwind(AssertUnwindSafe(probe));
    panic::set_hook(hook);
    result.ok()
}

/// Vector instructions that the fused kernels and matrix products choose between.
fn simd() -> Vec<&'static str> {
    let mut found = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        for (name, present) in [
            ("avx", is_x86_feature_detected!("avx")),
            ("avx2", is_x86_feature_detected!("avx2")),
            ("fma", is_x86_feature_detected!("fma")),
            ("avx512f", is_x86_feature_detected!("avx512f")),
        ] {
            if present {
                found.push(name);
            }
        }
    }
    #[cfg(target_arch = "aarch64")]
    found.push("neon");
    found
}

/// Total and available memory, where the system tells it in `/proc/meminfo`.
fn memory_bytes() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let field = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: u64 = line.trim_start_matches(':').split_whitespace().next()?.parse().ok()?;
        kib.checked_mul(1024)
    };
    Some((field("MemTotal")?, field("MemAvailable")?))
}

fn text(findings: &Findings) -> String {
    let gib = |bytes: Option<u64>| {
        bytes.map_or("unknown".to_string(), |b| format!("{:.1} GiB", b as f64 / (1 << 30) as f64))
    };
    let mut text = format!(
        "cwm {} (revision {}, burn {}, {})\n",
        findings.version,
        findings.revision.unwrap_or("unknown"),
        findings.burn,
        findings.target,
    );
    let simd = if findings.simd.is_empty() { "none".into() } else { findings.simd.join(" ") };
    // Writing to a string cannot fail.
    let _ =
        writeln!(text, "cores: {} ({} threads, vectors: {simd})", findings.cores, findings.threads);
    let _ = writeln!(
        text,
        "memory: {}, {} available",
        gib(findings.memory_total_bytes),
        gib(findings.memory_available_bytes)
    );
    text.push_str("backends:\n");
    for backend in &findings.backends {
        let state = match &backend.reason {
            None => format!("usable: {}", backend.devices.join(", ")),
            Some(reason) if backend.built_in => format!("not usable: {reason}"),
            Some(reason) => reason.clone(),
        };
        let _ = writeln!(text, "  {:<7} {state}", backend.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panicking_driver_is_a_finding() {
        assert_eq!(quietly(|| -> u32 { panic!("driver") }), None);
        assert_eq!(quietly(|| 7), Some(7));
    }

    #[test]
    fn every_unusable_backend_says_why() {
        for finding in examine().backends {
            assert_eq!(finding.usable, finding.reason.is_none(), "{}", finding.name);
            assert_eq!(finding.usable, !finding.devices.is_empty(), "{}", finding.name);
        }
    }
}
