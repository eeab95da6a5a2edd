//! Groups on real keys.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_names::Epoch;
use theta_protocols::ecdsa::{Filling, Majority, Making, Options, PREPARE, PROGRAM, SHARE, Security, fill};
use theta_protocols::{Misbehaviour, Outcome, Stock, start_with};
use theta_rounds::simulator::{Adversary, Conditions, HonestSend, Report, SimRng, Simulator, Tamper};
use theta_rounds::{Effect, Input, PartyId, Slot};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, deal_any};
use theta_schemes::{Delivery, Statement, Suite};
use theta_sharing::{ShareIndex, Threshold};

use crate::supplied::{SuppliedMachine, supplied};

pub(crate) type Ran = Report<Outcome, Misbehaviour>;
pub(crate) type Liar = (u16, Box<dyn Adversary>);

/// How many presignatures a stock should have.
pub(crate) const LEVEL: usize = 12;

pub(crate) fn id(number: u16) -> PartyId {
    PartyId::of_share(ShareIndex::try_from(number).unwrap())
}

/// A dealt key, and what its holders have made in advance.
pub(crate) struct Group {
    pub(crate) n: u16,
    pub(crate) public: AnyPublicKey,
    shares: Vec<Arc<AnyKeyShare>>,
    pub(crate) stocks: Vec<Arc<Stock>>,
    /// How many presignatures each stock should have.
    pub(crate) levels: Vec<usize>,
    pub(crate) delivery: Delivery,
    /// A party that believes in another one.
    pub(crate) mistaken: Option<(u16, Delivery)>,
    pub(crate) ticks: u32,
}

impl Group {
    /// A group that makes nothing in advance.
    pub(crate) fn new(suite: Suite, k: u16, n: u16) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(u64::from(k) << 16 | u64::from(n));
        let (public, shares) = deal_any(suite, Threshold::new(k, n).unwrap(), &mut rng);
        let stocks = (0..n).map(|_| Arc::default()).collect();
        Self {
            n,
            public,
            shares: shares.into_iter().map(Arc::new).collect(),
            stocks,
            levels: vec![0; n.into()],
            delivery: Delivery::All,
            mistaken: None,
            ticks: 2 * u32::from(n) + 3,
        }
    }

    /// A group in whose programs all holders but one may cheat.
    pub(crate) fn dishonest(suite: Suite, k: u16, n: u16) -> Self {
        Self { delivery: Delivery::DishonestMajority, ..Self::new(suite, k, n) }
    }

    /// A group in which all follow the protocol.
    pub(crate) fn passive(suite: Suite, k: u16, n: u16) -> Self {
        Self { delivery: Delivery::Passive, ..Self::cold(suite, k, n) }
    }

    /// The same where exactly k holders compute.
    pub(crate) fn passive_dishonest(suite: Suite, k: u16, n: u16) -> Self {
        Self { delivery: Delivery::PassiveDishonestMajority, ..Self::new(suite, k, n) }
    }

    /// A group whose stocks are empty.
    pub(crate) fn cold(suite: Suite, k: u16, n: u16) -> Self {
        Self { levels: vec![LEVEL; n.into()], ..Self::new(suite, k, n) }
    }

    /// A group whose stocks have been filled by one program.
    pub(crate) fn warm(suite: Suite, k: u16, n: u16) -> Self {
        let group = Self::cold(suite, k, n);
        let holders = Self::filled_by(&group.fill((1, 99), &[], Vec::new()));
        assert_eq!(holders[0].len(), 2 * usize::from(k) - 1);
        group
    }

    /// What a party has made in advance, and knows of others, is gone, as after a restart.
    pub(crate) fn forget(&mut self, number: u16) {
        self.stocks[usize::from(number) - 1] = Arc::default();
    }

    /// How many presignatures in stock a holder owns, at itself.
    pub(crate) fn owned(&self, number: u16) -> usize {
        self.stocks[usize::from(number) - 1].presignatures_of(id(number))
    }

    pub(crate) fn ready(&self) -> Vec<usize> {
        self.stocks.iter().map(|stock| stock.presignatures_ready()).collect()
    }

    pub(crate) fn machine(&self, number: u16, message: &[u8]) -> SuppliedMachine {
        self.machine_from(number, message, &self.stocks[usize::from(number) - 1])
    }

    /// The machine of a party that knows nothing from before its restart.
    pub(crate) fn restarted(&self, number: u16, message: &[u8]) -> SuppliedMachine {
        self.machine_from(number, message, &Arc::default())
    }

    fn machine_from(&self, number: u16, message: &[u8], stock: &Arc<Stock>) -> SuppliedMachine {
        self.machine_with(number, message, stock, Making::default())
    }

    /// The machine of a party whose programs others wait for that ask its stock.
    pub(crate) fn maker(&self, number: u16, message: &[u8]) -> SuppliedMachine {
        let stock = &self.stocks[usize::from(number) - 1];
        self.machine_with(number, message, stock, stock.making())
    }

    fn machine_with(&self, number: u16, message: &[u8], stock: &Arc<Stock>, making: Making) -> SuppliedMachine {
        let quarantined = stock.quarantined();
        let ecdsa = Options { quarantined, set_ups: stock.set_ups(), making, ..self.options(number) };
        let mistaken = self.mistaken.filter(|(party, _)| *party == number);
        let delivery = mistaken.map_or(self.delivery, |(_, delivery)| delivery);
        let options = theta_protocols::Options { ecdsa, delivery, ..theta_protocols::Options::default() };
        let share = &self.shares[usize::from(number) - 1];
        supplied(start_with(&self.public, share, Statement::Sign(message), options).unwrap(), stock)
    }

    /// The first coordinator for a message: whoever names the holders of a program when nothing was made in advance.
    pub(crate) fn coordinator(&self, message: &[u8]) -> u16 {
        let is_named = |number: &u16| {
            let mut machine = self.restarted(*number, message);
            let effects = machine.handle(Input::Start, &mut ChaCha8Rng::seed_from_u64(1));
            effects.iter().any(|effect| matches!(effect, Effect::Send { slot, .. } if slot.kind == PREPARE))
        };
        (1..=self.n).find(is_named).unwrap()
    }

    /// A message whose first coordinator is this party.
    pub(crate) fn message_of(&self, coordinator: u16) -> [u8; 1] {
        let first = |message: &[u8; 1]| self.coordinator(message) == coordinator;
        (0..=u8::MAX).map(|message| [message]).find(first).unwrap()
    }

    /// Who names a presignature for a message, its signers, and the owner's share. Groups are made from the same seeds, so another one does the same.
    pub(crate) fn first_share(&self, message: &[u8]) -> (u16, Vec<u16>, Bytes) {
        let shares = self.shares(message);
        let mut signers: Vec<u16> = shares.iter().map(|(by, _)| *by).collect();
        signers.sort_unstable();
        let (owner, share) = shares[0].clone();
        (owner, signers, share)
    }

    /// The shares of the presignature that is named first for a message, each with who sends it, the owner's first.
    pub(crate) fn shares(&self, message: &[u8]) -> Vec<(u16, Bytes)> {
        let sent: Arc<Mutex<Vec<(u16, Bytes)>>> = Arc::default();
        let spy = |number: u16| {
            let sent = Arc::clone(&sent);
            let spy = tamper(move |slot, payload| {
                if slot.kind == SHARE {
                    sent.lock().unwrap().push((number, payload.clone()));
                }
                vec![(slot, payload)]
            });
            (number, spy)
        };
        drop(self.run(message, 1, (1..=self.n).map(spy).collect()));
        let sent = sent.lock().unwrap();
        let owner = self.coordinator(message);
        let (_, share) = sent.iter().find(|(by, _)| *by == owner).unwrap();
        let of_it = |number: &u16| sent.iter().find(|(by, other)| by == number && other[..32] == share[..32]).cloned();
        let others = (1..=self.n).filter(|number| *number != owner);
        core::iter::once(owner).chain(others).filter_map(|number| of_it(&number)).collect()
    }

    pub(crate) fn simulator(&self, seed: u64) -> Simulator<Outcome, Misbehaviour> {
        Simulator::new(seed, Conditions { ticks: self.ticks, max_start: 50, ..Conditions::default() })
    }

    pub(crate) fn run(&self, message: &[u8], seed: u64, mut corrupted: Vec<Liar>) -> Ran {
        let mut simulator = self.simulator(seed);
        for number in 1..=self.n {
            let machine = self.machine(number, message);
            match corrupted.iter().position(|(culprit, _)| *culprit == number) {
                None => simulator.honest(id(number), machine),
                Some(place) => simulator.byzantine(id(number), machine, corrupted.swap_remove(place).1),
            }
        }
        simulator.run()
    }

    fn options(&self, number: u16) -> Options {
        let (majority, security) = (Majority::of(self.delivery), Security::of(self.delivery));
        let level = self.levels[usize::from(number) - 1];
        Options { level, epoch: Epoch::FIRST, majority, security, ..Options::default() }
    }

    /// The machine of a party in a filling.
    pub(crate) fn filling(&self, number: u16, filling: &Filling) -> SuppliedMachine {
        let place = usize::from(number) - 1;
        let machine = fill(&self.public, &self.shares[place], filling, &self.options(number)).unwrap();
        supplied(machine, &self.stocks[place])
    }

    /// Fills the stocks, as one party begins it, which avoids some; these parties lie.
    pub(crate) fn fill(&self, (initiator, seed): (u16, u64), avoided: &[u16], mut corrupted: Vec<Liar>) -> Ran {
        let mut simulator = self.simulator(seed);
        let avoided = avoided.iter().map(|number| id(*number)).collect();
        let filling = Filling { initiator: id(initiator), session: [seed.to_le_bytes()[0]; 32], avoided };
        for number in 1..=self.n {
            let machine = self.filling(number, &filling);
            match corrupted.iter().position(|(culprit, _)| *culprit == number) {
                None => simulator.honest(id(number), machine),
                Some(place) => simulator.byzantine(id(number), machine, corrupted.swap_remove(place).1),
            }
        }
        let report = simulator.run();
        report.check_blame().unwrap();
        report
    }

    /// The holders of the program that filled the stocks, as honest parties have it.
    pub(crate) fn filled_by(report: &Ran) -> Vec<Vec<u16>> {
        let holders = report.honest().map(|(_, party)| match &party.result {
            Some(Ok(outcome)) => outcome.contributors.iter().map(|index| index.get()).collect(),
            other => panic!("a filling ends: {other:?}"),
        });
        holders.collect()
    }

    /// Checks that every honest party that was not restarted has a signature, and that nobody blames an honest party.
    pub(crate) fn check(&self, message: &[u8], report: &Ran) -> Result<(), String> {
        self.check_safe(message, report)?;
        for (party, report) in report.honest() {
            match &report.result {
                Some(Ok(_)) => {}
                None if report.restarted => {}
                Some(Err(abort)) => return Err(format!("party {party} gave up: {abort}")),
                None => return Err(format!("party {party} still waits")),
            }
        }
        Ok(())
    }

    /// Checks that whatever signature there is verifies, and that nobody blames an honest party.
    pub(crate) fn check_safe(&self, message: &[u8], report: &Ran) -> Result<(), String> {
        report.check_blame()?;
        for (party, report) in report.honest() {
            if let Some(Ok(outcome)) = &report.result {
                let verified = self.public.verify(message, outcome.result.expose(), &outcome.proof);
                verified.map_err(|error| format!("party {party}: {error}"))?;
                if outcome.contributors.len() < usize::from(self.public.threshold().k()) {
                    return Err(format!("contributors {:?}", outcome.contributors));
                }
            }
        }
        Ok(())
    }

    /// The offences for which honest parties blame `party`.
    pub(crate) fn offences(report: &Ran, party: u16) -> Vec<&'static str> {
        let mut names: Vec<_> = report.blames_of(id(party)).map(|(_, blame)| blame.offence.name()).collect();
        names.dedup();
        names
    }
}

/// An adversary that turns each message into others; it knows the slot.
pub(crate) fn tamper(mut change: impl FnMut(Slot, Bytes) -> Vec<(Slot, Bytes)> + Send + 'static) -> Box<dyn Adversary> {
    Box::new(Tamper(move |_: &mut SimRng, _: PartyId, slot: Slot, payload: Bytes| change(slot, payload)))
}

/// Adds one to the last byte of messages of one kind: of a share, of a signature, of a round.
pub(crate) fn flip(kind: u16) -> Box<dyn Adversary> {
    tamper(move |slot, payload| {
        let mut payload = payload.to_vec();
        if slot.kind.min(PROGRAM) == kind
            && let Some(last) = payload.last_mut()
        {
            *last ^= 1;
        }
        vec![(slot, payload.into())]
    })
}

/// The slots of all messages that an honest machine sends.
pub(crate) type Slots = Arc<Mutex<Vec<(u16, Slot)>>>;

/// Records the slots of what an honest machine sends, and sends it.
pub(crate) struct Recorder(pub(crate) u16, pub(crate) Slots);

impl Adversary for Recorder {
    fn on_send(&mut self, _rng: &mut SimRng, _to: PartyId, honest: HonestSend) -> Vec<HonestSend> {
        self.1.lock().unwrap().push((self.0, honest.slot));
        vec![honest]
    }
}
