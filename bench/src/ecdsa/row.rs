//! The figures of one black box among one group over one network.

use std::time::Duration;

use serde::Serialize;
use theta_sharing::Threshold;

use super::{
    cost::{Runs, float},
    measure::Figures,
    phase::Phase,
};

/// Tuples, once there is a key.
const TUPLES: [Phase; 2] = [Phase::Nonces, Phase::Binding];
/// The same in a program that does nothing else.
const WITH_SET_UP: [Phase; 3] = [Phase::SetUp, Phase::Nonces, Phase::Binding];
/// A signature where there is a key and nothing else.
const ON_DEMAND: [Phase; 4] = [Phase::SetUp, Phase::Nonces, Phase::Binding, Phase::Signing];

/// What was measured, and where.
pub(super) struct Subject<'a> {
    pub(super) curve: &'static str,
    pub(super) backend: &'static str,
    pub(super) is_active: bool,
    pub(super) threshold: Threshold,
    pub(super) network: &'a str,
    pub(super) is_modelled: bool,
}

/// A line of the table. Bytes are payloads that one party sends, on average over the parties.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) curve: &'static str,
    pub(super) backend: &'static str,
    pub(super) active: bool,
    pub(super) nodes: u16,
    pub(super) corrupt: u16,
    pub(super) network: String,
    /// Whether the times are those of a model, and not of sockets.
    pub(super) modelled: bool,
    pub(super) set_up_ms: f64,
    pub(super) key_generation_ms: f64,
    pub(super) tuples: usize,
    /// How many programs it takes for them, one after the other.
    pub(super) programs: usize,
    pub(super) presigning_ms: f64,
    /// By the median of the programs' times.
    pub(super) tuples_per_second: f64,
    /// The same if the set-up of each program counts.
    pub(super) tuples_per_second_with_set_up: f64,
    /// Of programs that run at the same time, each with its set-up and a key; none in a model.
    pub(super) tuples_per_second_at_once: Option<f64>,
    /// Of one party.
    pub(super) cpu_us_per_tuple: f64,
    pub(super) set_up_cpu_ms: f64,
    pub(super) on_demand_ms: f64,
    pub(super) sign_ms: f64,
    /// How many signatures one program makes at once, and what each of them takes then.
    pub(super) signed_together: usize,
    pub(super) sign_together_ms: Option<f64>,
    pub(super) set_up_bytes: f64,
    pub(super) key_generation_bytes: f64,
    pub(super) bytes_per_tuple: f64,
    pub(super) on_demand_bytes: f64,
    pub(super) sign_bytes: f64,
    pub(super) set_up_rounds: u16,
    pub(super) key_generation_rounds: u16,
    /// Of one program.
    pub(super) presigning_rounds: u16,
    pub(super) on_demand_rounds: u16,
    pub(super) sign_rounds: u16,
}

/// What each party sent in a phase of one program. The same over every network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Traffic {
    pub(super) phase: Phase,
    /// For how many tuples; none where it does not depend on them.
    pub(super) tuples: usize,
    pub(super) rounds: u16,
    /// By party.
    pub(super) bytes: Vec<u64>,
}

/// A line of the table, with what each party sent.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Outcome {
    #[serde(flatten)]
    pub(super) row: Row,
    pub(super) traffic: Vec<Traffic>,
}

impl Outcome {
    /// Sums up what was measured.
    pub(super) fn new(subject: &Subject<'_>, figures: &Figures) -> Self {
        let Figures { keys, batches, batch, programs, at_once, on_demand, signatures, together } = figures;
        let (key, set_up) = ([Phase::KeyGeneration], [Phase::SetUp]);
        let (tuples, made) = (number(*batch), number(*batch * batches.0.len()).max(1.0));
        let (presigning, with_set_up) = (batches.median(&TUPLES), batches.median(&WITH_SET_UP));
        let per_second = |time: Duration| tuples / time.as_secs_f64().max(1e-9);
        let row = Row {
            curve: subject.curve,
            backend: subject.backend,
            active: subject.is_active,
            nodes: subject.threshold.n(),
            corrupt: subject.threshold.t(),
            network: subject.network.to_owned(),
            modelled: subject.is_modelled,
            set_up_ms: milliseconds(keys.median(&set_up)),
            key_generation_ms: milliseconds(keys.median(&key)),
            tuples: batch * programs,
            programs: *programs,
            presigning_ms: milliseconds(presigning) * number(*programs),
            tuples_per_second: per_second(presigning),
            tuples_per_second_with_set_up: per_second(with_set_up),
            tuples_per_second_at_once: at_once.map(|(tuples, time)| number(tuples) / time.as_secs_f64().max(1e-9)),
            cpu_us_per_tuple: batches.cpu(&TUPLES).as_secs_f64() * 1e6 / made,
            set_up_cpu_ms: milliseconds(keys.cpu(&set_up)) / number(keys.0.len()).max(1.0),
            on_demand_ms: milliseconds(on_demand.median(&ON_DEMAND)),
            sign_ms: milliseconds(signatures.median(&[Phase::Signing])),
            signed_together: together.0,
            sign_together_ms: (together.0 > 0)
                .then(|| milliseconds(together.1.median(&[Phase::Signing])) / number(together.0)),
            set_up_bytes: keys.bytes_each(&set_up),
            key_generation_bytes: keys.bytes_each(&key),
            bytes_per_tuple: batches.mean_bytes(&TUPLES) / made,
            on_demand_bytes: on_demand.bytes_each(&ON_DEMAND),
            sign_bytes: signatures.bytes_each(&[Phase::Signing]),
            set_up_rounds: keys.rounds(&set_up),
            key_generation_rounds: keys.rounds(&key),
            presigning_rounds: batches.rounds(&TUPLES),
            on_demand_rounds: on_demand.rounds(&ON_DEMAND),
            sign_rounds: signatures.rounds(&[Phase::Signing]),
        };
        let of = |phase, tuples, runs: &Runs| Traffic {
            phase,
            tuples,
            rounds: runs.rounds(&[phase]),
            bytes: runs.first_bytes(phase),
        };
        let traffic = vec![
            of(Phase::SetUp, 0, keys),
            of(Phase::KeyGeneration, 0, keys),
            of(Phase::Nonces, *batch, batches),
            of(Phase::Binding, *batch, batches),
            of(Phase::Signing, 1, signatures),
        ];
        Self { row, traffic }
    }

    /// Whether another one is of the same black box, group and curve, whatever the network.
    pub(super) fn is_of_the_same(&self, other: &Self) -> bool {
        let name = |outcome: &Self| (outcome.row.curve, outcome.row.backend, outcome.row.nodes, outcome.row.tuples);
        name(self) == name(other)
    }
}

fn number(count: usize) -> f64 {
    float(u64::try_from(count).unwrap_or(u64::MAX))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// One party's bytes in one phase: a line of CSV.
#[derive(Debug, Serialize)]
pub(super) struct TrafficLine<'a> {
    curve: &'static str,
    backend: &'static str,
    nodes: u16,
    network: &'a str,
    phase: &'static str,
    tuples: usize,
    rounds: u16,
    party: usize,
    bytes: u64,
}

impl Outcome {
    /// What each party sent, a line for each phase and party.
    pub(super) fn traffic_lines(&self) -> impl Iterator<Item = TrafficLine<'_>> {
        self.traffic.iter().flat_map(|Traffic { phase, tuples, rounds, bytes }| {
            bytes.iter().enumerate().map(|(place, bytes)| TrafficLine {
                curve: self.row.curve,
                backend: self.row.backend,
                nodes: self.row.nodes,
                network: &self.row.network,
                phase: phase.words(),
                tuples: *tuples,
                rounds: *rounds,
                party: place + 1,
                bytes: *bytes,
            })
        })
    }

    /// One line, while others are still measured.
    pub(super) fn line(&self) -> String {
        let Row { curve, backend, nodes, network, tuples_per_second, key_generation_ms, sign_ms, .. } = &self.row;
        format!(
            "{backend}, n = {nodes}, {curve}, {network}: key {key_generation_ms:.2} ms, {tuples_per_second:.0} tuples/s, signature {sign_ms:.3} ms"
        )
    }
}

/// A number of bytes, for people.
pub(super) fn kilobytes(bytes: u64) -> String {
    let bytes = float(bytes);
    if bytes < 1e4 { format!("{bytes:.0} B") } else { format!("{:.1} kB", bytes / 1e3) }
}
