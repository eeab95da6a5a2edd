//! What a program cost all its parties.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::phase::{Phase, Record};

/// What a phase cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// From when the last party had ended the phase before until the last had ended this one.
    pub(super) time: Duration,
    /// The CPU time of one party, on average over the parties.
    pub(super) cpu: Duration,
    /// What each party sent: payloads.
    pub(super) bytes: Vec<u64>,
    /// In how many rounds anything was sent.
    pub(super) rounds: u16,
}

/// What a program cost, by phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost(BTreeMap<Phase, Share>);

impl Cost {
    /// From what each party did.
    pub(super) fn of(records: &[Record]) -> Self {
        let mut before = records.iter().map(|record| record.begin).min().unwrap_or_default();
        let parties = u32::try_from(records.len()).unwrap_or(u32::MAX).max(1);
        let mut rounds_before = 0;
        let mut shares = BTreeMap::new();
        let phases: BTreeSet<Phase> = records.iter().flat_map(|record| record.parts.keys().copied()).collect();
        for phase in phases {
            let parts = records.iter().map(|record| record.parts.get(&phase).copied().unwrap_or_default());
            let end = parts.clone().map(|part| part.end).max().unwrap_or_default().max(before);
            let last_round = parts.clone().map(|part| part.last_round).max().unwrap_or_default().max(rounds_before);
            let cpu = parts.clone().map(|part| part.cpu).sum::<Duration>() / parties;
            let bytes = parts.map(|part| part.bytes).collect();
            shares.insert(
                phase,
                Share { time: end.saturating_sub(before), cpu, bytes, rounds: last_round - rounds_before },
            );
            (before, rounds_before) = (end, last_round);
        }
        Self(shares)
    }

    /// What a phase cost; nothing if the program has no such phase.
    pub(super) fn phase(&self, phase: Phase) -> Share {
        self.0.get(&phase).cloned().unwrap_or_default()
    }

    /// The time of these phases together.
    pub(super) fn time(&self, phases: &[Phase]) -> Duration {
        phases.iter().map(|phase| self.phase(*phase).time).sum()
    }

    /// The rounds of these phases together.
    pub(super) fn rounds(&self, phases: &[Phase]) -> u16 {
        phases.iter().map(|phase| self.phase(*phase).rounds).sum()
    }

    /// What one party sent in these phases, on average over the parties.
    pub(super) fn bytes(&self, phases: &[Phase]) -> f64 {
        let shares = phases.iter().filter_map(|phase| self.0.get(phase));
        shares.map(|share| mean(share.bytes.iter().copied())).sum()
    }
}

/// The mean; zero of none.
fn mean(values: impl ExactSizeIterator<Item = u64>) -> f64 {
    let count = u32::try_from(values.len()).unwrap_or(u32::MAX).max(1);
    float(values.sum()) / f64::from(count)
}

/// A number of bytes as one that can be divided: exact up to four gigabytes, and close enough above.
pub(super) fn float(bytes: u64) -> f64 {
    u32::try_from(bytes).map_or_else(|_| Duration::from_micros(bytes).as_secs_f64() * 1e6, f64::from)
}

/// Costs of the same program, run several times.
pub(super) struct Runs(pub(super) Vec<Cost>);

impl Runs {
    /// The median of the times of these phases together.
    pub(super) fn median(&self, phases: &[Phase]) -> Duration {
        let mut times: Vec<Duration> = self.0.iter().map(|cost| cost.time(phases)).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }

    /// One party's CPU time in these phases of all runs, on average over the parties.
    pub(super) fn cpu(&self, phases: &[Phase]) -> Duration {
        self.0.iter().flat_map(|cost| phases.iter().map(|phase| cost.phase(*phase).cpu)).sum()
    }

    /// The most rounds that these phases took in any run.
    pub(super) fn rounds(&self, phases: &[Phase]) -> u16 {
        self.0.iter().map(|cost| cost.rounds(phases)).max().unwrap_or_default()
    }

    /// What each party sent in a phase of the first run.
    pub(super) fn first_bytes(&self, phase: Phase) -> Vec<u64> {
        self.0.first().map(|cost| cost.phase(phase).bytes).unwrap_or_default()
    }

    /// What one party sent in these phases of one run, on average over parties and runs.
    pub(super) fn bytes_each(&self, phases: &[Phase]) -> f64 {
        let runs = u32::try_from(self.0.len()).unwrap_or(u32::MAX).max(1);
        self.mean_bytes(phases) / f64::from(runs)
    }

    /// What one party sent in these phases of all runs, on average over the parties.
    pub(super) fn mean_bytes(&self, phases: &[Phase]) -> f64 {
        self.0.iter().map(|cost| cost.bytes(phases)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::phase::Part, *};

    fn record(begin: u64, parts: &[(Phase, u64, u64, u16)]) -> Record {
        let part = |&(phase, end, bytes, last_round)| {
            (phase, Part { end: Duration::from_millis(end), cpu: Duration::from_micros(bytes), bytes, last_round })
        };
        Record { begin: Duration::from_millis(begin), parts: parts.iter().map(part).collect() }
    }

    #[test]
    fn a_phase_lasts_from_the_last_party_to_the_last() {
        let records = [
            record(2, &[(Phase::SetUp, 10, 100, 4), (Phase::Nonces, 30, 7, 6)]),
            record(1, &[(Phase::SetUp, 12, 300, 3), (Phase::Nonces, 20, 9, 7)]),
        ];
        let cost = Cost::of(&records);
        let (set_up, nonces) = (cost.phase(Phase::SetUp), cost.phase(Phase::Nonces));
        assert_eq!((set_up.time, set_up.rounds), (Duration::from_millis(11), 4), "since the first party began");
        assert_eq!((nonces.time, nonces.rounds), (Duration::from_millis(18), 3));
        assert_eq!((set_up.bytes, set_up.cpu), (vec![100, 300], Duration::from_micros(200)));
        assert_eq!(cost.phase(Phase::Signing), Share::default());
        let runs = Runs(vec![cost.clone(), cost]);
        assert_eq!(runs.first_bytes(Phase::Nonces), [7, 9]);
        let both = [Phase::SetUp, Phase::Nonces];
        assert_eq!((runs.median(&both), runs.rounds(&both)), (Duration::from_millis(29), 7));
        assert_eq!(runs.cpu(&both), Duration::from_micros(416));
        assert!((runs.mean_bytes(&both) - 416.0).abs() < 1e-9);
    }

    #[test]
    fn large_numbers_of_bytes_are_close() {
        assert!((float(5 << 32) - 21_474_836_480.0).abs() < 1.0 && (float(7) - 7.0).abs() < 1e-9);
    }
}
