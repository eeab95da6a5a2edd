//! `cargo xtask fuzz`: every target of `fuzz/`, for a bounded time each.

use std::{fs, path::Path, process::Command};

use crate::{steps::run, tools};

const CARGO_FUZZ_VERSION: &str = "0.13.2";
const WHY: &str = "fuzzing: it builds the targets of fuzz/ with the instrumentation of libFuzzer";

/// What to run, from the command line.
pub(crate) struct Options {
    /// How long each target runs, in seconds.
    seconds: u32,
    /// Run only this target.
    target: Option<String>,
}

impl Options {
    /// Reads `[--seconds N] [TARGET]`.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self { seconds: 20, target: None };
        while let Some(argument) = arguments.next() {
            if argument == "--seconds" {
                let number = arguments.next().and_then(|number| number.parse().ok()).filter(|seconds| *seconds > 0);
                options.seconds = number.ok_or("--seconds takes a number of at least 1")?;
            } else if argument.starts_with('-') || options.target.is_some() {
                return Err(format!("{argument:?} is not understood: cargo xtask fuzz [--seconds N] [TARGET]"));
            } else {
                options.target = Some(argument);
            }
        }
        Ok(options)
    }
}

/// Builds the targets and runs them one after the other; any finding is a failure.
pub(crate) fn fuzz(root: &Path, options: &Options) -> Result<(), String> {
    let mut targets = targets(root)?;
    if let Some(only) = &options.target {
        if !targets.contains(only) {
            return Err(format!("no fuzz target {only:?}; the targets are {}", targets.join(", ")));
        }
        targets.retain(|target| target == only);
    }
    let nightly = Command::new("rustc").env("RUSTUP_TOOLCHAIN", "nightly").arg("--version").output();
    if !nightly.is_ok_and(|output| output.status.success()) {
        return Err(format!(
            "the nightly toolchain is needed for {WHY}; get it with: rustup toolchain install nightly"
        ));
    }
    let tool = tools::find_or_install(root, "cargo-fuzz", CARGO_FUZZ_VERSION, WHY)?;
    println!("building {} targets", targets.len());
    for target in &targets {
        run(root, command(&tool, "build", target))?;
    }
    let mut findings = Vec::new();
    for target in &targets {
        match run_target(root, &tool, target, options.seconds)? {
            Some(speed) => println!("{target:<20} {:>4} s  {speed:>8} executions/s  nothing found", options.seconds),
            None => findings.push(target.as_str()),
        }
    }
    if findings.is_empty() {
        Ok(())
    } else {
        Err(format!("findings in {}; the inputs are in fuzz/artifacts", findings.join(", ")))
    }
}

/// Runs one target. Returns its executions a second, or `None` for a finding, which is shown.
fn run_target(root: &Path, tool: &str, target: &str, seconds: u32) -> Result<Option<String>, String> {
    let mut command = command(tool, "run", target);
    command.args(["--", &format!("-max_total_time={seconds}"), "-print_final_stats=1", "-timeout=10"]);
    if target == "stores" {
        // A damaged file can make the database reserve gigabytes of pages, most of which it never touches.
        command.args(["-malloc_limit_mb=8192", "-rss_limit_mb=4096"]);
    }
    let output = command.current_dir(root).output().map_err(|error| format!("cargo-fuzz did not start: {error}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        eprintln!("{told}");
        return Ok(None);
    }
    let speed = told.lines().find_map(|line| line.strip_prefix("stat::average_exec_per_sec:"));
    Ok(Some(speed.unwrap_or("?").trim().to_owned()))
}

fn command(tool: &str, verb: &str, target: &str) -> Command {
    let mut command = Command::new(tool);
    // cargo-fuzz calls the cargo that this variable names; it would be the one that runs this program.
    command.args([verb, "--fuzz-dir", "fuzz", target]).env_remove("CARGO").env("RUSTUP_TOOLCHAIN", "nightly");
    command
}

/// The names of all targets: the programs in the manifest of `fuzz`.
fn targets(root: &Path) -> Result<Vec<String>, String> {
    let path = root.join("fuzz/Cargo.toml");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let manifest: toml::Table = text.parse().map_err(|error| format!("{}: {error}", path.display()))?;
    let programs = manifest.get("bin").and_then(toml::Value::as_array).into_iter().flatten();
    let mut targets: Vec<_> = programs.filter_map(|program| program.get("name")?.as_str().map(str::to_owned)).collect();
    targets.sort();
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::{Options, targets};

    fn parse(line: &str) -> Result<(u32, Option<String>), String> {
        Options::parse(line.split_whitespace().map(str::to_owned)).map(|options| (options.seconds, options.target))
    }

    #[test]
    fn arguments_are_read_or_explained() {
        assert_eq!(parse(""), Ok((20, None)));
        assert_eq!(parse("shares --seconds 5"), Ok((5, Some("shares".to_owned()))));
        for wrong in ["--seconds", "--seconds 0", "--seconds x", "--fast", "shares results"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    /// The names of the source files in a folder and those below it.
    fn sources(folder: &Path) -> BTreeSet<String> {
        let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        paths
            .flat_map(|path| {
                let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
                if path.is_dir() { sources(&path) } else { BTreeSet::from([name]) }
            })
            .collect()
    }

    #[test]
    fn every_source_is_a_target() {
        let root = crate::root();
        assert_eq!(BTreeSet::from_iter(targets(&root).unwrap()), sources(&root.join("fuzz/targets")));
    }
}
