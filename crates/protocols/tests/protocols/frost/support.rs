//! Groups on real keys.

use std::sync::Arc;

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_groups::Secret;
use theta_protocols::frost::Options;
use theta_protocols::{Misbehaviour, Outcome, Stock, start, start_with};
use theta_rounds::simulator::{Adversary, Conditions, Report, SimRng, Simulator, Tamper};
use theta_rounds::{Effect, Input, PartyId, Recipient, Slot};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, deal_any};
use theta_schemes::{Statement, Suite};
use theta_sharing::{ShareIndex, Threshold};

use crate::supplied::{SuppliedMachine, alone, supplied};

pub(crate) const MESSAGE: &[u8] = b"a message";

/// Later than everything that is not held back.
pub(crate) const HELD_BACK: u64 = 10_000;

pub(crate) fn id(number: u16) -> PartyId {
    PartyId::of_share(ShareIndex::try_from(number).unwrap())
}

/// A dealt key.
pub(crate) struct Setting {
    pub(crate) n: u16,
    pub(crate) public: AnyPublicKey,
    shares: Vec<Arc<AnyKeyShare>>,
    stocks: Vec<Arc<Stock>>,
    /// How many pairs of nonces are kept for each peer.
    pub(crate) per_peer: usize,
}

impl Setting {
    pub(crate) fn new(suite: Suite, k: u16, n: u16) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(u64::from(k) << 16 | u64::from(n));
        let (public, shares) = deal_any(suite, Threshold::new(k, n).unwrap(), &mut rng);
        let stocks = (0..n).map(|_| Arc::default()).collect();
        Self { n, public, shares: shares.into_iter().map(Arc::new).collect(), stocks, per_peer: 0 }
    }

    /// A setting whose parties have made no nonces in advance.
    pub(crate) fn cold(suite: Suite, k: u16, n: u16) -> Self {
        Self { per_peer: 8, ..Self::new(suite, k, n) }
    }

    /// A setting whose parties have made nonces in advance, as many as one signature leaves behind.
    pub(crate) fn warm(suite: Suite, k: u16, n: u16) -> Self {
        let mut setting = Self::cold(suite, k, n);
        setting.warm_up();
        setting
    }

    /// Forgets what was made in advance, and makes new nonces.
    pub(crate) fn warm_up(&mut self) {
        (1..=self.n).for_each(|number| self.forget(number));
        self.check(&self.run(99, Vec::new())).unwrap();
    }

    /// A party's nonces and its peers' commitments are gone, as after a restart.
    pub(crate) fn forget(&mut self, number: u16) {
        self.stocks[usize::from(number) - 1] = Arc::default();
    }

    pub(crate) fn machine(&self, number: u16) -> SuppliedMachine {
        self.machine_for(number, MESSAGE, &self.stocks[usize::from(number) - 1])
    }

    /// The machine of a party that knows nothing from before its restart.
    pub(crate) fn restarted(&self, number: u16) -> SuppliedMachine {
        self.machine_for(number, MESSAGE, &Arc::default())
    }

    /// The machine for another message.
    pub(crate) fn machine_on(&self, number: u16, message: &[u8]) -> SuppliedMachine {
        self.machine_for(number, message, &self.stocks[usize::from(number) - 1])
    }

    fn machine_for(&self, number: u16, message: &[u8], stock: &Arc<Stock>) -> SuppliedMachine {
        let options = frost(Options { per_peer: self.per_peer, ..Options::default() });
        let share = &self.shares[usize::from(number) - 1];
        supplied(start_with(&self.public, share, Statement::Sign(message), options).unwrap(), stock)
    }

    /// A machine that makes nothing in advance, for a signature under a re-randomised key.
    pub(crate) fn randomized(&self, number: u16, seed: &Arc<Secret<Vec<u8>>>) -> SuppliedMachine {
        let options = frost(Options { seed: Some(Arc::clone(seed)), ..Options::default() });
        let share = &self.shares[usize::from(number) - 1];
        alone(start_with(&self.public, share, Statement::Sign(MESSAGE), options).unwrap())
    }

    /// The first coordinator.
    pub(crate) fn coordinator(&self) -> u16 {
        self.coordinator_of(MESSAGE)
    }

    pub(crate) fn coordinator_of(&self, message: &[u8]) -> u16 {
        let mut machine = alone(start(&self.public, &self.shares[0], Statement::Sign(message)).unwrap());
        let effects = machine.handle(Input::Start, &mut ChaCha8Rng::seed_from_u64(1));
        match effects.as_slice() {
            [Effect::Send { to: Recipient::Party(party), .. }] => party.get(),
            [] => 1,
            other => panic!("{other:?}"),
        }
    }

    /// The other parties, beginning with the one that coordinates after the first.
    pub(crate) fn others(&self) -> Vec<u16> {
        let first = self.coordinator();
        (1..self.n).map(|offset| (first - 1 + offset) % self.n + 1).collect()
    }

    pub(crate) fn simulator(&self, seed: u64) -> Simulator<Outcome, Misbehaviour> {
        Simulator::new(seed, Conditions { ticks: u32::from(self.n) + 3, max_start: 50, ..Conditions::default() })
    }

    /// Adds all parties; those in `corrupted` are corrupted.
    pub(crate) fn populate(
        &self,
        simulator: &mut Simulator<Outcome, Misbehaviour>,
        mut corrupted: Vec<(u16, Box<dyn Adversary>)>,
    ) {
        for number in 1..=self.n {
            match corrupted.iter().position(|(culprit, _)| *culprit == number) {
                None => simulator.honest(id(number), self.machine(number)),
                Some(place) => simulator.byzantine(id(number), self.machine(number), corrupted.swap_remove(place).1),
            }
        }
    }

    pub(crate) fn run(&self, seed: u64, corrupted: Vec<(u16, Box<dyn Adversary>)>) -> Report<Outcome, Misbehaviour> {
        let mut simulator = self.simulator(seed);
        self.populate(&mut simulator, corrupted);
        simulator.run()
    }

    /// Checks that every honest party that was not restarted has a signature, and that nobody blames an honest party.
    pub(crate) fn check(&self, report: &Report<Outcome, Misbehaviour>) -> Result<(), String> {
        report.check_blame()?;
        for (party, report) in report.honest() {
            match &report.result {
                Some(Ok(outcome)) => self.check_outcome(outcome)?,
                None if report.restarted => {}
                Some(Err(abort)) => return Err(format!("party {party} gave up: {abort}")),
                None => return Err(format!("party {party} still waits")),
            }
        }
        Ok(())
    }

    pub(crate) fn check_outcome(&self, outcome: &Outcome) -> Result<(), String> {
        let threshold = self.public.threshold();
        if outcome.contributors.len() != usize::from(threshold.k()) || !outcome.proof.is_empty() {
            return Err(format!("contributors {:?}", outcome.contributors));
        }
        self.public.verify(MESSAGE, outcome.result.expose(), &[]).map_err(|error| error.to_string())
    }

    /// The offences for which honest parties blame `party`, each with the party that blames it.
    pub(crate) fn offences(report: &Report<Outcome, Misbehaviour>, party: u16) -> Vec<(u16, &'static str)> {
        report.blames_of(id(party)).map(|(by, blame)| (by.get(), blame.offence.name())).collect()
    }
}

/// An adversary that turns each message into others; it knows the recipient and the slot.
pub(crate) fn tamper(
    mut change: impl FnMut(u16, Slot, Bytes) -> Vec<(Slot, Bytes)> + Send + 'static,
) -> Box<dyn Adversary> {
    Box::new(Tamper(move |_: &mut SimRng, to: PartyId, slot: Slot, payload: Bytes| change(to.get(), slot, payload)))
}

/// Changes messages of one kind only, by turning a bit of a byte in the middle of a number.
pub(crate) fn flip(kind: u16, byte: usize) -> Box<dyn Adversary> {
    tamper(move |_, slot, payload| {
        let mut payload = payload.to_vec();
        if slot.kind == kind {
            let byte = byte % payload.len();
            payload[byte] ^= 1;
        }
        vec![(slot, payload.into())]
    })
}

/// Options of FROST among those of all protocols.
pub(crate) fn frost(frost: Options) -> theta_protocols::Options {
    theta_protocols::Options { frost, ..theta_protocols::Options::default() }
}
