//! The phases of a program: when each ended at a party, what the party sent in it, and in which rounds.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use serde::Serialize;
use theta::exit::Failure;

/// What a program does at a time, in this order; programs leave out what they do not need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Phase {
    /// Seeds, oblivious transfer, MAC keys: what a black box needs before it can do anything.
    SetUp,
    /// A secret key, and its public key opened.
    KeyGeneration,
    /// Tuples as far as they depend on no key: triples or what is in their place, and R opened.
    Nonces,
    /// Tuples bound to a key: one product for each.
    Binding,
    /// One signature.
    Signing,
}

impl Phase {
    /// What people call it.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::SetUp => "set-up",
            Self::KeyGeneration => "key generation",
            Self::Nonces => "nonces",
            Self::Binding => "binding",
            Self::Signing => "signing",
        }
    }
}

/// What one party did in one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// When it ended.
    pub(super) end: Duration,
    /// The CPU time of the party in it.
    pub(super) cpu: Duration,
    /// The payloads that the party sent in it.
    pub(super) bytes: u64,
    /// The last round in which it sent anything.
    pub(super) last_round: u16,
}

/// What one party did in a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// When it began.
    pub(super) begin: Duration,
    /// What it did, by phase.
    pub(super) parts: BTreeMap<Phase, Part>,
}

/// What times are read from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Clock {
    /// The time since then.
    Wall(Instant),
    /// Virtual time: it was `now` when this thread had used so much CPU time, and goes on as that does.
    Virtual {
        /// The virtual time of the reading.
        now: Duration,
        /// The CPU time of the thread at the reading.
        cpu: Duration,
    },
}

impl Clock {
    /// The present time. Who moves to another thread with virtual time has to read it there anew.
    pub(super) fn now(&self) -> Duration {
        match self {
            Self::Wall(epoch) => epoch.elapsed(),
            Self::Virtual { now, cpu } => *now + cpu_time().saturating_sub(*cpu),
        }
    }

    /// Virtual time, which is this now.
    pub(super) fn virtual_at(now: Duration) -> Self {
        Self::Virtual { now, cpu: cpu_time() }
    }
}

/// CPU time of this thread so far.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

struct State {
    clock: Clock,
    /// The CPU time of the thread until which it is counted.
    counted: Duration,
    phase: Phase,
    record: Record,
}

impl State {
    /// Counts the CPU time since the last count for the present phase.
    fn count(&mut self) -> &mut Part {
        let now = cpu_time();
        let part = self.record.parts.entry(self.phase).or_default();
        part.cpu += now.saturating_sub(self.counted);
        self.counted = now;
        part
    }
}

/// Notes what a party does in a program. The program says which phase it is in, and whoever carries its messages when the party computes and what
/// it sends.
pub(super) struct Meter(Mutex<State>);

impl Meter {
    /// For a program that begins with this phase.
    pub(super) fn new(first: Phase) -> Self {
        let (clock, record) = (Clock::Wall(Instant::now()), Record::default());
        Self(Mutex::new(State { clock, counted: Duration::ZERO, phase: first, record }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program begins, by this clock, on this thread.
    pub(super) fn begin(&self, clock: Clock) {
        self.resume(clock);
        self.state().record.begin = clock.now();
    }

    /// The party computes from now on, by this clock, on this thread.
    pub(super) fn resume(&self, clock: Clock) {
        let mut state = self.state();
        (state.clock, state.counted) = (clock, cpu_time());
    }

    /// The party computes no more for now. Returns the present time.
    pub(super) fn pause(&self) -> Duration {
        let mut state = self.state();
        state.count();
        state.clock.now()
    }

    /// The present phase has ended, and another one begins.
    pub(super) fn enter(&self, next: Phase) {
        self.end();
        self.state().phase = next;
    }

    /// The last phase has ended.
    pub(super) fn end(&self) {
        let mut state = self.state();
        let now = state.clock.now();
        state.count().end = now;
    }

    /// A message of so many bytes leaves in this round.
    pub(super) fn sent(&self, bytes: usize, round: u16) -> Result<(), Failure> {
        let mut guard = self.state();
        let State { phase, record, .. } = &mut *guard;
        let part = record.parts.entry(*phase).or_default();
        part.bytes += u64::try_from(bytes).map_err(Failure::internal)?;
        part.last_round = part.last_round.max(round);
        Ok(())
    }

    /// What was noted.
    pub(super) fn record(&self) -> Record {
        self.state().record.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_counts_for_the_phase_in_which_it_is() {
        let meter = Meter::new(Phase::SetUp);
        meter.begin(Clock::virtual_at(Duration::from_secs(1)));
        meter.sent(10, 1).unwrap();
        meter.sent(20, 2).unwrap();
        meter.enter(Phase::Nonces);
        meter.sent(5, 3).unwrap();
        meter.end();
        meter.sent(1, 4).unwrap();
        let record = meter.record();
        assert!((Duration::from_secs(1)..Duration::from_secs(2)).contains(&record.begin));
        let [set_up, nonces] = [Phase::SetUp, Phase::Nonces].map(|phase| record.parts[&phase]);
        assert_eq!((set_up.bytes, set_up.last_round, nonces.bytes, nonces.last_round), (30, 2, 6, 4));
        assert!(record.begin <= set_up.end && set_up.end <= nonces.end);
        assert_eq!(record.parts.len(), 2);
    }
}
