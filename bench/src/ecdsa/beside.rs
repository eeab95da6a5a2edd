//! Another implementation, measured in the same run by a program of its own.

use std::{
    ffi::OsStr,
    io::{self, Write},
    process::{Command, Stdio},
};

use clap::ValueEnum;
use serde::Serialize;
use theta::{exit::Failure, output::Table};

use super::{backend::Backend, row::Row};

/// What the program said: by its own clock, and its own counts of what one party sends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Figures {
    pub(super) tuples_per_second: f64,
    pub(super) kilobytes_per_tuple: f64,
    pub(super) key_generation_ms: f64,
    pub(super) sign_ms: f64,
    pub(super) sign_bytes: f64,
}

/// Both, side by side.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Comparison {
    backend: &'static str,
    nodes: u16,
    tuples: usize,
    ours_tuples_per_second: f64,
    ours_with_set_up_per_second: f64,
    /// Ours of programs that run at the same time, with all that each begins with.
    ours_at_once_per_second: f64,
    theirs_tuples_per_second: f64,
    /// Ours by theirs.
    times: f64,
    /// Ours with the set-up of each program, by theirs.
    times_with_set_up: f64,
    /// Ours of programs that run at the same time, by theirs.
    times_at_once: f64,
    ours_kilobytes_per_tuple: f64,
    theirs_kilobytes_per_tuple: f64,
    ours_key_generation_ms: f64,
    theirs_key_generation_ms: f64,
    ours_sign_ms: f64,
    theirs_sign_ms: f64,
    ours_sign_bytes: f64,
    theirs_sign_bytes: f64,
}

impl Comparison {
    pub(super) fn new(ours: &Row, theirs: &Figures) -> Self {
        let at_once = ours.tuples_per_second_at_once.unwrap_or_default();
        Self {
            backend: ours.backend,
            nodes: ours.nodes,
            tuples: ours.tuples,
            ours_tuples_per_second: ours.tuples_per_second,
            ours_with_set_up_per_second: ours.tuples_per_second_with_set_up,
            ours_at_once_per_second: at_once,
            theirs_tuples_per_second: theirs.tuples_per_second,
            times: ours.tuples_per_second / theirs.tuples_per_second.max(1e-9),
            times_with_set_up: ours.tuples_per_second_with_set_up / theirs.tuples_per_second.max(1e-9),
            times_at_once: at_once / theirs.tuples_per_second.max(1e-9),
            ours_kilobytes_per_tuple: ours.bytes_per_tuple / 1e3,
            theirs_kilobytes_per_tuple: theirs.kilobytes_per_tuple,
            // Theirs sets up when the key asks for it.
            ours_key_generation_ms: ours.set_up_ms + ours.key_generation_ms,
            theirs_key_generation_ms: theirs.key_generation_ms,
            ours_sign_ms: ours.sign_ms,
            theirs_sign_ms: theirs.sign_ms,
            ours_sign_bytes: ours.sign_bytes,
            theirs_sign_bytes: theirs.sign_bytes,
        }
    }
}

/// Runs the program for a black box. `None` if it says nothing: it has no such one.
pub(super) fn measure(program: &OsStr, backend: Backend, nodes: u16, count: usize) -> Result<Option<Figures>, Failure> {
    let name = backend.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let shown = program.to_string_lossy();
    let mut command = Command::new(program);
    command.args([name, nodes.to_string(), count.to_string()]).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| Failure::Usage(format!("cannot run {shown}: {error}")))?;
    if !output.status.success() {
        return Err(Failure::Failed(format!("{shown} ended with {}", output.status)));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    parse(&said).map_err(|line| Failure::Failed(format!("{shown} said {line:?}: five numbers were awaited")))
}

/// The five numbers of the first line; `Err` with the line if it has others.
fn parse(said: &str) -> Result<Option<Figures>, String> {
    let Some(line) = said.lines().map(str::trim).find(|line| !line.is_empty()) else { return Ok(None) };
    let numbers: Result<Vec<f64>, _> = line.split_whitespace().map(str::parse).collect();
    match numbers.as_deref() {
        Ok(&[tuples_per_second, kilobytes_per_tuple, key_generation_ms, sign_ms, sign_bytes]) => {
            Ok(Some(Figures { tuples_per_second, kilobytes_per_tuple, key_generation_ms, sign_ms, sign_bytes }))
        }
        _ => Err(line.to_owned()),
    }
}

/// The table for people.
pub(super) fn write(comparisons: &[Comparison], out: &mut dyn Write) -> io::Result<()> {
    let headers = [
        "black box",
        "n",
        "tuples/s",
        "with set-up",
        "at once",
        "theirs",
        "times",
        "with set-up",
        "at once",
        "kB/tuple",
        "theirs",
        "set-up + key ms",
        "theirs",
        "sign ms",
        "theirs",
        "sign bytes",
        "theirs",
    ];
    let mut table = Table::new(&headers, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    for it in comparisons {
        table.row([
            it.backend.to_owned(),
            it.nodes.to_string(),
            format!("{:.0}", it.ours_tuples_per_second),
            format!("{:.0}", it.ours_with_set_up_per_second),
            format!("{:.0}", it.ours_at_once_per_second),
            format!("{:.0}", it.theirs_tuples_per_second),
            format!("{:.2}", it.times),
            format!("{:.2}", it.times_with_set_up),
            format!("{:.2}", it.times_at_once),
            format!("{:.3}", it.ours_kilobytes_per_tuple),
            format!("{:.3}", it.theirs_kilobytes_per_tuple),
            format!("{:.2}", it.ours_key_generation_ms),
            format!("{:.2}", it.theirs_key_generation_ms),
            format!("{:.3}", it.ours_sign_ms),
            format!("{:.3}", it.theirs_sign_ms),
            format!("{:.0}", it.ours_sign_bytes),
            format!("{:.0}", it.theirs_sign_bytes),
        ]);
    }
    table.write(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_numbers_are_figures_and_silence_is_none() {
        let figures = parse("\n  2500.5 0.754 3.2 0.3 64\nmore\n").unwrap().unwrap();
        assert_eq!((figures.tuples_per_second, figures.sign_bytes), (2500.5, 64.0));
        assert_eq!(parse("\n \n"), Ok(None));
        assert_eq!(parse("1 2 3 4"), Err("1 2 3 4".to_owned()));
        assert_eq!(parse("mascot FAILED"), Err("mascot FAILED".to_owned()));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let refused = measure(OsStr::new("/nowhere/at-all"), Backend::Rep3, 3, 1).unwrap_err().to_string();
        assert!(refused.contains("/nowhere/at-all"), "{refused}");
        assert_eq!(measure(OsStr::new("true"), Backend::Rep3, 3, 1), Ok(None));
        let refused = measure(OsStr::new("echo"), Backend::SemiOt, 3, 10).unwrap_err().to_string();
        assert!(refused.contains("\"semi-ot 3 10\""), "{refused}");
    }
}
