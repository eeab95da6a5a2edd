//! Runs a check on thousands of seeds, or replays the one that failed.

use core::any::Any;
use std::env;
use std::panic::{self, AssertUnwindSafe};

/// Runs `check` on seeds 0 to `usual` - 1. The variable `THETA_SEEDS` sets another number of seeds; `THETA_SEED`
/// selects one single seed.
///
/// # Errors
/// The first failure or panic, with its seed and how to replay it; or a variable that is not a number.
pub fn for_each_seed(usual: u64, mut check: impl FnMut(u64) -> Result<(), String>) -> Result<(), String> {
    let seeds = match (variable("THETA_SEED")?, variable("THETA_SEEDS")?) {
        (Some(seed), _) => seed..seed.saturating_add(1),
        (None, number) => 0..number.unwrap_or(usual),
    };
    for seed in seeds {
        let checked = panic::catch_unwind(AssertUnwindSafe(|| check(seed)));
        let failure = match checked {
            Ok(Ok(())) => continue,
            Ok(Err(failure)) => failure,
            Err(panic) => format!("panic: {}", text(panic.as_ref())),
        };
        return Err(format!("seed {seed}: {failure}; replay with THETA_SEED={seed}"));
    }
    Ok(())
}

fn variable(name: &str) -> Result<Option<u64>, String> {
    let Ok(value) = env::var(name) else { return Ok(None) };
    value.parse().map(Some).map_err(|_| format!("{name}={value:?} is not a number"))
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no text)")
}
