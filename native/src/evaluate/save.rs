//! A report's files.

use std::path::Path;

use cwm_core::{
    plot::charts,
    report::{Detail, EvalReport, markdown, tsv},
};

use crate::atomic;

/// Writes `report.json`, `report.md`, `summary.tsv`, `prefix_bins.tsv` and the charts into `dir`, each file whole.
///
/// # Errors
/// If a file cannot be written.
pub fn save(report: &EvalReport, dir: &Path, detail: Detail) -> anyhow::Result<()> {
    let detail = Detail { breakdown: true, ..detail };
    let files = [
        ("report.json", report.to_json()),
        ("report.md", markdown(report, detail)),
        ("summary.tsv", tsv::summary(report)),
        ("prefix_bins.tsv", tsv::prefix_bins(report)),
    ];
    for (name, content) in files {
        atomic::write(&dir.join(name), content.as_bytes())?;
    }
    for chart in charts(report)? {
        atomic::write(&dir.join(format!("{}.svg", chart.name)), chart.svg.as_bytes())?;
    }
    Ok(())
}
