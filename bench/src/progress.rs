//! How far a run is, for a person at a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use theta::output;

/// A bar for a run of so many steps; nothing is shown where standard error is no terminal.
pub(crate) fn bar(steps: usize) -> ProgressBar {
    if !output::stderr_is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(u64::try_from(steps).unwrap_or(u64::MAX));
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos} of {len}, {elapsed}  {msg}") {
        bar.set_style(style);
    }
    bar
}
