//! The report of a run: a folder with a table, plots and a page.

mod charts;
mod page;
#[cfg(feature = "micro")]
mod png;

use std::{
    fs,
    path::{Path, PathBuf},
};

use theta::{exit::Failure, output};

use super::record::{Row, csv};
use crate::machine::Machine;

/// Writes the report into a folder. Returns the files' paths, the page first.
pub(super) fn write(folder: &Path, summary: &str, machine: &Machine, rows: &[Row]) -> Result<Vec<PathBuf>, Failure> {
    let plots = folder.join("plots");
    fs::create_dir_all(&plots).map_err(|error| Failure::writing(&plots, &error))?;
    let charts = charts::all(rows);
    let mut files = Vec::new();
    let mut keep = |path: PathBuf, contents: &[u8]| {
        fs::write(&path, contents).map_err(|error| Failure::writing(&path, &error))?;
        files.push(path);
        Ok::<_, Failure>(())
    };
    keep(folder.join("report.html"), page::page(summary, machine, &charts, rows).as_bytes())?;
    keep(folder.join("results.csv"), csv(rows).as_bytes())?;
    keep(folder.join("machine.txt"), machine.text().as_bytes())?;
    for chart in &charts {
        keep(plots.join(format!("{}.svg", chart.file)), chart.svg.as_bytes())?;
    }
    #[cfg(feature = "micro")]
    for (chart, image) in charts.iter().zip(png::all(&charts)?) {
        keep(plots.join(format!("{}.png", chart.file)), &image)?;
    }
    if cfg!(not(feature = "micro")) {
        output::note("this build counts no memory and draws no PNG: build with --features micro for these");
    }
    Ok(files)
}
