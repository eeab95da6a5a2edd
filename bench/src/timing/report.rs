//! What was found, for people and programs.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use serde::Serialize;
use theta::{exit::Failure, output::Table};

use super::{
    dudect::{Finding, Outcome, Verdict},
    targets::Target,
};
use crate::machine::Machine;

/// What was found of one step.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    step: String,
    /// What tells the two classes apart.
    classes: &'static str,
    /// Whether it leaks on purpose.
    control: bool,
    measurements: u64,
    median_ns: f64,
    /// Welch's t of the means, the largest of all percentiles up to which times were compared, and which that was.
    t: f64,
    percent: u32,
    /// The mean with the fixed secret less that with random ones, up to that percentile.
    difference_ns: f64,
    /// The same of the squared distances from the means.
    t_second: f64,
    percent_second: u32,
    verdict: Verdict,
}

/// The result in JSON.
#[derive(Serialize)]
pub(super) struct Summary<'a> {
    pub(super) machine: &'a Machine,
    pub(super) seconds: u64,
    pub(super) steps: &'a [Row],
}

impl Row {
    pub(super) fn new(target: &Target, outcome: &Outcome) -> Self {
        let Outcome { measurements, median_ns, first, second, verdict } = *outcome;
        let Finding { t, percent, difference } = first;
        Self {
            step: target.name.clone(),
            classes: target.classes,
            control: target.is_control,
            measurements,
            median_ns,
            t,
            percent,
            difference_ns: difference,
            t_second: second.t,
            percent_second: second.percent,
            verdict,
        }
    }

    /// One line, while others are still tested.
    pub(super) fn line(&self) -> String {
        let Self { step, measurements, t, t_second, verdict, .. } = self;
        format!("{step}: {}, t {t:.1} and {t_second:.1}, {measurements} measurements", verdict.words())
    }

    fn verdict_words(&self) -> String {
        let words = self.verdict.words();
        match (self.control, self.verdict) {
            (true, Verdict::Leaks) => format!("{words}, as it has to"),
            (true, _) => format!("{words}: NOT FOUND"),
            (false, _) => words.to_owned(),
        }
    }
}

/// The table for people.
pub(super) fn write_table(rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    let headers = ["step", "measurements", "median us", "t", "up to", "differ by ns", "t of squares", "up to", ""];
    let mut table = Table::new(&headers, &[1, 2, 3, 4, 5, 6, 7]);
    for row in rows {
        table.row([
            row.step.clone(),
            row.measurements.to_string(),
            format!("{:.3}", row.median_ns / 1e3),
            format!("{:.2}", row.t),
            format!("{} %", row.percent),
            format!("{:.1}", row.difference_ns),
            format!("{:.2}", row.t_second),
            format!("{} %", row.percent_second),
            row.verdict_words(),
        ]);
    }
    table.write(out)
}

/// The table as CSV, and the machine.
pub(super) fn write_files(folder: &Path, machine: &Machine, rows: &[Row]) -> Result<(), Failure> {
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(|error| Failure::writing(&path, &error))
    };
    fs::create_dir_all(folder).map_err(|error| Failure::writing(folder, &error))?;
    write("results.csv", &as_csv(rows)?)?;
    write("machine.txt", machine.text().as_bytes())
}

fn as_csv(rows: &[Row]) -> Result<Vec<u8>, Failure> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    rows.iter().try_for_each(|row| writer.serialize(row)).map_err(Failure::internal)?;
    writer.into_inner().map_err(Failure::internal)
}

/// How the command ends.
pub(super) fn verdict(rows: &[Row]) -> Result<(), Failure> {
    let missed = named(rows, |row| row.control && row.verdict != Verdict::Leaks);
    if !missed.is_empty() {
        return Err(Failure::Failed(format!(
            "what leaks on purpose was not found ({missed}), so that the rest means nothing: give more --seconds, on a machine that does nothing else"
        )));
    }
    let mut failures = Vec::new();
    let leaks = named(rows, |row| !row.control && row.verdict == Verdict::Leaks);
    if !leaks.is_empty() {
        failures.push(format!("times depend on secrets: {leaks}"));
    }
    // A step of which nothing is known has not passed.
    let few = named(rows, |row| !row.control && row.verdict == Verdict::TooFew);
    if !few.is_empty() {
        failures.push(format!("too few measurements to say anything of {few}: give these more --seconds, with --only"));
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::Failed(failures.join("; "))) }
}

fn named(rows: &[Row], which: impl Fn(&Row) -> bool) -> String {
    rows.iter().filter(|row| which(row)).map(|row| row.step.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(step: &str, control: bool, verdict: Verdict) -> Row {
        Row {
            step: step.to_owned(),
            classes: "scalar 1, or random",
            control,
            measurements: 20_000,
            median_ns: 1_500.0,
            t: -3.3,
            percent: 95,
            difference_ns: -1.5,
            t_second: 0.5,
            percent_second: 100,
            verdict,
        }
    }

    #[test]
    fn it_fails_for_a_leak_for_too_little_and_for_a_control_that_is_not_found() {
        let control = || row("control", true, Verdict::Leaks);
        let good = [control(), row("a", false, Verdict::NoLeakSeen), row("b", false, Verdict::Suspect)];
        assert_eq!(verdict(&good), Ok(()));
        let failed = |rows: &[Row]| match verdict(rows) {
            Err(Failure::Failed(text)) => text,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            failed(&[control(), row("a", false, Verdict::Leaks), row("b", false, Verdict::NoLeakSeen)]),
            "times depend on secrets: a"
        );
        let few = "too few measurements to say anything of b: give these more --seconds, with --only";
        assert_eq!(failed(&[control(), row("a", false, Verdict::NoLeakSeen), row("b", false, Verdict::TooFew)]), few);
        let both = failed(&[control(), row("a", false, Verdict::Leaks), row("b", false, Verdict::TooFew)]);
        assert_eq!(both, format!("times depend on secrets: a; {few}"));
        for verdict in [Verdict::NoLeakSeen, Verdict::Suspect, Verdict::TooFew] {
            let text = failed(&[row("control", true, verdict), row("a", false, Verdict::Leaks)]);
            assert!(text.contains("was not found (control)"), "{text}");
        }
    }

    #[test]
    fn tables_say_what_was_found() {
        let rows = [row("control", true, Verdict::Leaks), row("p256-mul", false, Verdict::NoLeakSeen)];
        let text = String::from_utf8(as_csv(&rows).unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let header =
            "step,classes,control,measurements,median_ns,t,percent,difference_ns,t_second,percent_second,verdict";
        assert_eq!(lines[0], header);
        assert_eq!(lines[2], "p256-mul,\"scalar 1, or random\",false,20000,1500.0,-3.3,95,-1.5,0.5,100,no-leak-seen");
        let mut table = Vec::new();
        write_table(&rows, &mut table).unwrap();
        let table = String::from_utf8(table).unwrap();
        assert!(table.contains("LEAKS, as it has to") && table.contains("1.500  -3.30   95 %"), "{table}");
        assert_eq!(rows[1].line(), "p256-mul: no leak seen, t -3.3 and 0.5, 20000 measurements");
    }

    #[test]
    fn files_are_written_into_a_new_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new");
        write_files(&path, &Machine::look(), &[row("a", false, Verdict::TooFew)]).unwrap();
        assert!(fs::read_to_string(path.join("results.csv")).unwrap().contains("too-few"));
        assert!(fs::read_to_string(path.join("machine.txt")).unwrap().contains("cpu: "));
    }
}
