//! What was measured, for people and programs.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use serde::Serialize;
use theta::{exit::Failure, output::Table};

use super::{
    beside::{self, Comparison},
    row::{Outcome, Row, kilobytes},
};
use crate::machine::Machine;

const HEADERS: [&str; 15] = [
    "network",
    "curve",
    "black box",
    "n",
    "set-up ms",
    "key ms",
    "tuples/s",
    "with set-up",
    "at once",
    "CPU us",
    "kB/tuple",
    "on demand ms",
    "sign ms",
    "together",
    "rounds",
];

/// The result in JSON.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    pub(super) machine: &'a Machine,
    pub(super) results: &'a [Outcome],
    /// Other figures beside ours, if there are any.
    #[serde(skip_serializing_if = "<[Comparison]>::is_empty")]
    pub(super) beside: &'a [Comparison],
}

impl Report<'_> {
    /// Writes the tables for people.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Machine { date, .. } = self.machine;
        let (cpu, cores, commit) = (self.machine.cpu(), self.machine.cores(), self.machine.commit());
        let (build, load) = (self.machine.build(), self.machine.load());
        writeln!(out, "{cpu}, {cores} cores; {build} build of {commit}; {date}, load {load}\n")?;
        write_times(self.results, out)?;
        if self.results.iter().any(|result| result.row.modelled) {
            writeln!(out, "\nProfiles are a model: virtual time, no loss, no jitter, no TLS, no congestion.")?;
        }
        write_programs(self.results, out)?;
        if !self.beside.is_empty() {
            writeln!(out, "\nBeside the other implementation; times: ours by theirs:\n")?;
            beside::write(self.beside, out)?;
        }
        writeln!(out, "\nPayloads that one party sends:\n")?;
        write_traffic(self.results, out)
    }
}

fn write_times(results: &[Outcome], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(&HEADERS, &[3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
    for Outcome { row, .. } in results {
        table.row([
            row.network.clone(),
            row.curve.to_owned(),
            row.backend.to_owned(),
            row.nodes.to_string(),
            format!("{:.2}", row.set_up_ms),
            format!("{:.2}", row.key_generation_ms),
            rate(row.tuples_per_second),
            rate(row.tuples_per_second_with_set_up),
            row.tuples_per_second_at_once.map_or_else(|| "-".to_owned(), rate),
            format!("{:.1}", row.cpu_us_per_tuple),
            format!("{:.3}", row.bytes_per_tuple / 1e3),
            format!("{:.2}", row.on_demand_ms),
            format!("{:.3}", row.sign_ms),
            row.sign_together_ms.map_or_else(|| "-".to_owned(), |each| format!("{each:.3}")),
            rounds(row),
        ]);
    }
    table.write(out)?;
    writeln!(
        out,
        "\nAt once: tuples a second of programs that run at the same time, each with a set-up and a key. CPU of one party for a tuple. Together: what a signature takes of up to 1,000 that one program makes from stock. Rounds: set-up + key generation, tuples of one program, a signature on demand, a signature."
    )
}

/// Tuples a second: few over far networks, many at home.
fn rate(per_second: f64) -> String {
    if per_second < 100.0 { format!("{per_second:.1}") } else { format!("{per_second:.0}") }
}

fn rounds(row: &Row) -> String {
    let Row { set_up_rounds, key_generation_rounds, presigning_rounds, on_demand_rounds, sign_rounds, .. } = row;
    format!("{set_up_rounds}+{key_generation_rounds}, {presigning_rounds}, {on_demand_rounds}, {sign_rounds}")
}

/// Says in how many programs tuples were made, where one may not send enough.
fn write_programs(results: &[Outcome], out: &mut dyn Write) -> io::Result<()> {
    let mut said: Vec<(&str, usize, usize)> = Vec::new();
    for Outcome { row: Row { backend, tuples, programs, .. }, .. } in results {
        let line = (*backend, *tuples, *programs);
        if !said.contains(&line) {
            said.push(line);
            let words = if *programs == 1 {
                "one program"
            } else {
                "programs, one after the other, each with a set-up and a key"
            };
            let count = if *programs == 1 { String::new() } else { format!("{programs} ") };
            writeln!(out, "{backend}: {tuples} tuples by {count}{words}")?;
        }
    }
    Ok(())
}

fn write_traffic(results: &[Outcome], out: &mut dyn Write) -> io::Result<()> {
    let headers = ["curve", "black box", "n", "phase", "tuples", "rounds", "bytes by party"];
    let mut table = Table::new(&headers, &[2, 4, 5]);
    for (place, result) in results.iter().enumerate() {
        // They are the same over every network.
        if results.iter().take(place).any(|before| before.is_of_the_same(result)) {
            continue;
        }
        for traffic in &result.traffic {
            let bytes: Vec<String> = traffic.bytes.iter().map(|bytes| kilobytes(*bytes)).collect();
            table.row([
                result.row.curve.to_owned(),
                result.row.backend.to_owned(),
                result.row.nodes.to_string(),
                traffic.phase.words().to_owned(),
                if traffic.tuples == 0 { "-".to_owned() } else { traffic.tuples.to_string() },
                traffic.rounds.to_string(),
                bytes.join(", "),
            ]);
        }
    }
    table.write(out)
}

/// Payloads depend on the network in nothing.
pub(super) fn check_traffic(results: &[Outcome]) -> Result<(), Failure> {
    for (place, result) in results.iter().enumerate() {
        let before = results.iter().take(place).find(|before| before.is_of_the_same(result));
        if before.is_some_and(|before| before.traffic != result.traffic) {
            let Row { backend, nodes, network, .. } = &result.row;
            return Err(Failure::internal(format!("{backend} among {nodes} sends something else over {network}")));
        }
    }
    Ok(())
}

/// Writes `results.csv`, `traffic.csv`, `machine.txt`, and `beside.csv` if there is anything beside.
pub(super) fn write_files(folder: &Path, report: &Report<'_>) -> Result<(), Failure> {
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(|error| Failure::writing(&path, &error))
    };
    fs::create_dir_all(folder).map_err(|error| Failure::writing(folder, &error))?;
    write("results.csv", &as_csv(report.results.iter().map(|result| &result.row))?)?;
    write("traffic.csv", &as_csv(report.results.iter().flat_map(Outcome::traffic_lines))?)?;
    if !report.beside.is_empty() {
        write("beside.csv", &as_csv(report.beside.iter())?)?;
    }
    write("machine.txt", report.machine.text().as_bytes())
}

fn as_csv(lines: impl Iterator<Item = impl Serialize>) -> Result<Vec<u8>, Failure> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in lines {
        writer.serialize(line).map_err(Failure::internal)?;
    }
    writer.into_inner().map_err(Failure::internal)
}
