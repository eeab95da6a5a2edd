//! One point: a zone is signed from nothing, and then changed.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use theta::exit::Failure;
use theta_knot::{
    KnotError,
    places::Places,
    server::{Knot, Setup},
};

use super::{MeasureArgs, agents::Agents, grid::Algorithm, rows::Row, signer::Signer};
use crate::{
    agent::{RECORDS, ZONE},
    knot_failure::failure,
};

/// What is measured.
pub(super) struct Point<'a> {
    pub(super) places: &'a Places,
    /// The server's, which is made.
    pub(super) folder: &'a Path,
    pub(super) algorithm: Algorithm,
    pub(super) names: usize,
    /// Whether the module looks ahead.
    pub(super) is_ahead: bool,
    /// Whether agents look at what is signed.
    pub(super) asks: bool,
    /// For all points.
    pub(super) args: &'a MeasureArgs,
}

/// Why a zone is not signed when patience has ended.
const LATE: &str = "not in time";
/// How long is waited before the server's log is looked at.
const GLANCE: Duration = Duration::from_secs(1);

/// The line of the name that is changed.
const FIRST: &str = "host-0 A 192.0.0.0\n";

/// The zone before it is signed: so many names with an address beside the zone's own records.
fn records(names: usize) -> String {
    let hosts: String = (0..names)
        .map(|number| format!("host-{number} A 192.{}.{}.{}\n", number >> 16 & 255, number >> 8 & 255, number & 255))
        .collect();
    format!("{RECORDS}{hosts}")
}

impl Point<'_> {
    /// What comes of it; an objection, if it fails or takes too long.
    pub(super) fn measure(&self, signer: &Signer) -> Row {
        let (algorithm, names) = (self.algorithm.to_string(), self.names);
        let (look_ahead, agents) = (self.is_ahead, self.asks);
        let mut row = Row { signer: signer.name(), algorithm, look_ahead, agents, names, ..Row::default() };
        let began = Instant::now();
        if let Err(failure) = self.sign(signer, &mut row) {
            row.objection = Some(failure.to_string());
            row.failed = true;
        }
        if row.signed_ms == 0 {
            row.signed_ms = ms(began.elapsed());
        }
        row
    }

    fn sign(&self, signer: &Signer, row: &mut Row) -> Result<(), Failure> {
        fs::create_dir(self.folder).map_err(|error| Failure::writing(self.folder, &error))?;
        let algorithm = format!("{}\n    signing-threads: {}", self.algorithm, self.args.threads);
        let config = signer.config(self, &algorithm)?;
        let records = records(self.names);
        let agents = if self.asks { signer.agents(self.algorithm, &records)? } else { None };
        let service = if self.is_ahead { signer.look_ahead(self.folder, self.algorithm, &records)? } else { None };
        row.look_ahead = service.is_some();
        let setup = Setup { folder: self.folder, zone: ZONE, records: &records, config: &config };
        let agent_cpu = agents.as_ref().map(Agents::cpu);
        let (cpu, began) = (signer.node_cpu(), Instant::now());
        let patience = self.args.patience(self.names);
        let knot = match Knot::start_within(self.places, setup, patience) {
            Ok(knot) => knot,
            // It takes no commands while it signs for the first time, and has written nothing yet.
            Err(KnotError::Late { .. }) => {
                row.signed_ms = ms(began.elapsed());
                row.objection = Some(LATE.to_owned());
                return Ok(());
            }
            Err(error) => return Err(failure(&error)),
        };
        row.objection = await_signed(&knot, patience.saturating_sub(began.elapsed()))?;
        let took = began.elapsed();
        row.signed_ms = ms(took);
        row.signatures = signatures(&knot)?;
        row.a_second = count(row.signatures) / took.as_secs_f64().max(0.001);
        let mut signatures = row.signatures;
        if row.objection.is_none() {
            knot.verify().map_err(|error| failure(&error))?;
            // What was measured before it stays, whatever becomes of a change.
            match self.change(&knot, agents.as_ref().map(|agents| (agents, records.as_str()))) {
                Ok(median) => row.change_ms = Some(median),
                Err(words) => row.no_change = Some(words),
            }
            signatures = signatures.saturating_add(usize::from(self.args.changes).saturating_mul(SIGNED_BY_CHANGE));
        }
        let each = |after: Option<Duration>, before: Option<Duration>| {
            let used = after.zip(before).map(|(after, before)| after.saturating_sub(before));
            used.map(|used| used.as_secs_f64() * 1e6 / count(signatures).max(1.0))
        };
        row.node_us = each(signer.node_cpu(), cpu);
        row.agent_us = each(agents.as_ref().map(Agents::cpu), agent_cpu);
        Ok(())
    }

    /// The median of what changes take: each gives a name that is there another address. Agents have it in their copies before.
    fn change(&self, knot: &Knot, agents: Option<(&Agents, &str)>) -> Result<f64, String> {
        let mut took = Vec::new();
        for number in 0..self.args.changes {
            let address = format!("198.51.{}.{}", number >> 8, number & 255);
            if let Some((agents, records)) = agents {
                let changed = records.replacen(FIRST, &format!("host-0 A {address}\n"), 1);
                agents.give(&changed).map_err(|error| error.to_string())?;
            }
            let began = Instant::now();
            let steps: [&[&str]; 4] = [
                &["zone-begin", ZONE],
                &["zone-unset", ZONE, "host-0", "A"],
                &["zone-set", ZONE, "host-0", "1", "A", &address],
                &["zone-commit", ZONE],
            ];
            for words in steps {
                knot.told(words).map_err(|error| {
                    let said = knot.said();
                    let last = said.lines().last().unwrap_or_default();
                    format!("{error}; its log ends with: {last}")
                })?;
            }
            took.push(began.elapsed());
        }
        took.sort();
        let median = took.get(took.len() / 2).copied().unwrap_or_default();
        Ok(median.as_secs_f64() * 1_000.0)
    }
}

/// Waits until the zone is signed; why it is not.
fn await_signed(knot: &Knot, patience: Duration) -> Result<Option<String>, Failure> {
    let began = Instant::now();
    loop {
        match knot.await_signed(GLANCE) {
            Ok(()) => return Ok(None),
            Err(KnotError::Late { .. }) => {}
            Err(error) => return Err(failure(&error)),
        }
        // It tries again after minutes, with what did not work.
        if let Some(line) = knot.said().lines().find(|line| line.contains("error:")) {
            return Ok(Some(line.to_owned()));
        }
        if began.elapsed() >= patience {
            return Ok(Some(LATE.to_owned()));
        }
    }
}

/// A changed address and the SOA record. The denial of the name stays as it is.
const SIGNED_BY_CHANGE: usize = 2;

/// The signatures in the server's file of the zone.
fn signatures(knot: &Knot) -> Result<usize, Failure> {
    let file = knot.zone_file();
    let text = fs::read_to_string(&file).map_err(|error| Failure::reading(&file, &error))?;
    Ok(text.lines().filter(|line| line.contains("\tRRSIG\t")).count())
}

fn count(signatures: usize) -> f64 {
    f64::from(u32::try_from(signatures).unwrap_or(u32::MAX))
}

fn ms(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}
