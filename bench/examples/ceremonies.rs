//! What a ceremony costs each node: CPU time, messages and bytes of a key generation, a refresh, a reshare and a recovery,
//! with honest parties only. Run `cargo run --release -p theta-bench --example ceremonies`; the table is in `RESULTS.md`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a measurement that cannot be set up may stop at once"
)]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rand_chacha::rand_core::CryptoRng;
use theta_ceremonies::{
    Aim, Ceremony, CeremonyEvidence, CeremonyKeys, CeremonyPlan, Conclusion, Memory, Outcome, PlanParts, Source,
};
use theta_groups::{Group, Ristretto255, Secret};
use theta_names::{Epoch, NodeId};
use theta_rounds::Machine;
use theta_rounds::simulator::{Conditions, Report, Simulator};
use theta_rounds::{Effect, Effects, Input, PartyId, Recipient};
use theta_schemes::ciphers::sg02::Sg02;
use theta_schemes::keys::{CurveScheme, proof_of_possession};
use theta_schemes::signatures::bls04::{Bls04, MinPk};
use theta_sharing::{EncodedKey, EncodedShare, ShareIndex};

const GROUPS: [(u16, u16); 3] = [(3, 7), (11, 31), (43, 127)];

/// What one party has used.
#[derive(Clone, Copy, Default)]
struct Spent {
    time: Duration,
    bytes: usize,
    messages: usize,
}

/// A machine whose use is counted.
struct Metered<M> {
    machine: M,
    peers: usize,
    spent: Arc<Mutex<Vec<Spent>>>,
    place: usize,
}

impl<M: Machine> Machine for Metered<M> {
    type Output = M::Output;
    type Misbehaviour = M::Misbehaviour;
    type Ask = M::Ask;
    type Supply = M::Supply;

    fn handle(&mut self, input: Input<M::Supply>, rng: &mut dyn CryptoRng) -> Effects<Self> {
        let begin = Instant::now();
        let effects = self.machine.handle(input, rng);
        let time = begin.elapsed();
        let spent = &mut self.spent.lock().unwrap()[self.place];
        spent.time += time;
        for effect in &effects {
            if let Effect::Send { to, payload, .. } = effect {
                let copies = if *to == Recipient::All { self.peers } else { 1 };
                spent.bytes += copies * payload.len();
                spent.messages += copies;
            }
        }
        effects
    }

    fn contributions(&self) -> (usize, usize) {
        self.machine.contributions()
    }

    fn awaits(&self, party: PartyId) -> bool {
        self.machine.awaits(party)
    }

    fn is_finished(&self) -> bool {
        self.machine.is_finished()
    }

    fn lingers(&self) -> bool {
        self.machine.lingers()
    }
}

fn keys(party: PartyId) -> Arc<CeremonyKeys> {
    let mut master = [1; 32];
    master[..2].copy_from_slice(&party.get().to_le_bytes());
    Arc::new(CeremonyKeys::new(party.node(), Secret::new(master)))
}

/// The secret that a party draws for a ceremony.
fn secret(party: PartyId) -> Secret<[u8; 32]> {
    let mut secret = [2; 32];
    secret[..2].copy_from_slice(&party.get().to_le_bytes());
    Secret::new(secret)
}

/// Runs a ceremony of parties 1 to n without loss of messages, and prints its cost.
fn measure(
    name: &str,
    plan: &Arc<CeremonyPlan>,
    share: impl Fn(PartyId) -> Option<EncodedShare>,
) -> Report<Outcome, CeremonyEvidence> {
    let join = |party| {
        Ceremony::join(Arc::clone(plan), keys(party), secret(party), share(party).as_ref(), Memory::Kept).unwrap()
    };
    let parties: Vec<PartyId> = plan.parties().collect();
    let spent = Arc::new(Mutex::new(vec![Spent::default(); parties.len()]));
    let conditions = Conditions { max_start: 0, duplicates_per_mille: 0, ..Conditions::default() };
    let mut simulator = Simulator::new(1, conditions);
    for (place, party) in parties.iter().enumerate() {
        let spent = Arc::clone(&spent);
        simulator.honest(*party, Box::new(Metered { machine: join(*party), peers: parties.len() - 1, spent, place }));
    }
    let report = simulator.run();
    let mut spent = spent.lock().unwrap().clone();
    spent.sort_unstable_by_key(|spent| spent.time);
    let (middle, most) = (spent[spent.len() / 2], spent[spent.len() - 1]);
    let bytes = spent.iter().map(|spent| spent.bytes).sum::<usize>() / spent.len();
    let messages = spent.iter().map(|spent| spent.messages).sum::<usize>() / spent.len();
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    let threshold = plan.threshold();
    println!(
        "| {} | {} of {} | {name} | {:.0} | {:.0} | {messages} | {:.0} |",
        plan.suite(),
        threshold.k(),
        threshold.n(),
        millis(middle.time),
        millis(most.time),
        bytes as f64 / 1000.0,
    );
    report
}

fn plan<S: CurveScheme>(k: u16, n: u16, aim: Aim) -> Arc<CeremonyPlan> {
    let members: Vec<_> = (1..=n).map(|number| PartyId::of_node(NodeId::try_from(number).unwrap())).collect();
    let plan = CeremonyPlan::new(PlanParts {
        suite: S::SUITE.into(),
        group: S::KeyGroup::NAME,
        proof_of_possession: proof_of_possession::<S>(),
        nonce: [3; 32],
        epoch: Epoch::new(u32::from(!matches!(aim, Aim::Generate))),
        aim,
        k,
        roster: members.iter().map(|member| keys(*member).member().clone()).collect(),
        members,
        patience: 0,
    });
    Arc::new(plan.unwrap())
}

/// A key, and the shares of parties 1 to n.
struct Held(Arc<EncodedKey>, Vec<EncodedShare>);

impl Held {
    /// A copy of a party's share.
    fn share(&self, party: PartyId) -> EncodedShare {
        let share = &self.1[usize::from(party.get()) - 1];
        EncodedShare { index: share.index, secret: Secret::new(share.secret.expose().clone()) }
    }
}

/// Runs a ceremony for a new key or new shares, and returns the result.
fn hold(name: &str, plan: &Arc<CeremonyPlan>, old: Option<&Held>) -> Held {
    let report = measure(name, plan, |party| old.map(|held| held.share(party)));
    let mut public = None;
    let mut shares = Vec::new();
    for party in report.parties.into_values() {
        let Some(Ok(outcome)) = party.result else { panic!("not finished") };
        let Conclusion::Activated(activated) = outcome.conclusion else { panic!("aborted") };
        public = Some(activated.public);
        shares.extend(activated.share);
    }
    Held(Arc::new(public.unwrap()), shares)
}

fn suite<S: CurveScheme>() {
    for (k, n) in GROUPS {
        let held = hold("create", &plan::<S>(k, n, Aim::Generate), None);
        let source = || Source {
            public: Arc::clone(&held.0),
            holders: (1..=n).map(|number| PartyId::of_node(NodeId::try_from(number).unwrap())).collect(),
        };
        hold("refresh", &plan::<S>(k, n, Aim::Reshare(source())), Some(&held));
        hold("reshare to k + 1", &plan::<S>(k + 1, n, Aim::Reshare(source())), Some(&held));
        let lost = plan::<S>(k, n, Aim::Recover(source(), ShareIndex::try_from(1).unwrap()));
        let _ = measure("recover", &lost, |party| (party.get() != 1).then(|| held.share(party)));
    }
}

fn main() {
    println!("| suite | k of n | ceremony | CPU ms, median node | CPU ms, most | messages sent | kB sent |");
    println!("|---|---|---|---|---|---|---|");
    suite::<Sg02<Ristretto255>>();
    suite::<Bls04<MinPk>>();
}
