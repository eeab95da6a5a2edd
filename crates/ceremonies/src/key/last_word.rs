//! A dealer that speaks last: it opens what all others have dealt to it before it deals.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use theta_groups::{Group, Ristretto255, RistrettoScalar, Scalar, Secret};
use theta_names::{Epoch, NodeId};
use theta_rounds::{Channel, Effect, PartyId, Slot};
use theta_schemes::coins::cks05::Cks05;
use theta_schemes::keys::KeyScheme;
use theta_sharing::{EncodedKey, EncodedShare, Polynomial, ShareIndex, coefficients_at_zero};

use crate::bulletin_board::Item;
use crate::dealing::Dealing;
use crate::encryption::{ENCRYPTION_KEY, EncryptionKey};
use crate::machine::{Ceremony, ITEMS, Input, Memory};
use crate::outcome::{Activated, Conclusion};
use crate::participant::Participant;
use crate::plan::{Aim, CeremonyPlan, PlanParts, Source};
use crate::statement::{Kind, Statement, StatementSlot};
use crate::typed::TypedPlan;
use crate::{CeremonyKeys, statements_of};

const FIRST_DEALING: StatementSlot = StatementSlot::new(Kind::Dealing, 0);

fn party(number: u16) -> PartyId {
    PartyId::of_node(NodeId::try_from(number).unwrap())
}

fn keys_of(party: PartyId) -> Arc<CeremonyKeys> {
    Arc::new(CeremonyKeys::new(party.node(), Secret::new([u8::try_from(party.get()).unwrap(); 32])))
}

/// A ceremony of parties 1 to 4, two of which can use the key.
fn plan(aim: Aim) -> Arc<CeremonyPlan> {
    let members: Vec<PartyId> = (1..=4).map(party).collect();
    let parts = PlanParts {
        suite: Cks05::<Ristretto255>::SUITE.into(),
        group: Ristretto255::NAME,
        proof_of_possession: None,
        nonce: [7; 32],
        epoch: Epoch::new(u32::from(!matches!(aim, Aim::Generate))),
        aim,
        k: 2,
        roster: members.iter().map(|member| keys_of(*member).member().clone()).collect(),
        members,
        patience: 0,
    };
    Arc::new(CeremonyPlan::new(parts).unwrap())
}

/// The one that deals last, so that its own share comes to nothing.
struct Liar {
    own: Participant,
    plan: TypedPlan<Ristretto255>,
    share: Option<RistrettoScalar>,
    /// Whether it deals what it draws at random, for once.
    fair: bool,
    /// What others have said.
    heard: BTreeMap<(StatementSlot, PartyId), Statement>,
}

impl Liar {
    fn new(plan: &Arc<CeremonyPlan>, party: PartyId, share: Option<RistrettoScalar>, fair: bool) -> Self {
        let own = Participant::new(keys_of(party), *plan.id(), Secret::new([9; 32]));
        Self { own, plan: TypedPlan::new(Arc::clone(plan)).unwrap(), share, fair, heard: BTreeMap::new() }
    }

    fn index(&self) -> RistrettoScalar {
        RistrettoScalar::from_u64(u64::from(self.own.party().get()))
    }

    fn key(&self) -> Statement {
        self.own.sign(ENCRYPTION_KEY, self.own.encryption_key().bytes().to_vec())
    }

    /// Its dealing, as soon as it has all others: with theirs, its own value is zero at its own index.
    fn deal(&self) -> Option<Statement> {
        let all: Vec<_> = self.heard.values().filter(|said| said.slot() == FIRST_DEALING).collect();
        // In the second ceremony 4 has no share, and deals nothing.
        if all.len() < if self.share.is_none() { 3 } else { 2 } {
            return None;
        }
        let value_of = |dealing: &Statement| {
            let read = Dealing::read(&self.plan, dealing).unwrap();
            *read.open(&self.plan, dealing, &self.own).unwrap().value.expose()
        };
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let mut random = || RistrettoScalar::random(&mut rng);
        let polynomial = |coefficients| Polynomial::of(Secret::new(coefficients));
        let polynomials = match &self.share {
            None if self.fair => (polynomial(vec![random(), random()]), Some(polynomial(vec![random(), random()]))),
            None => {
                let due = all.into_iter().fold(RistrettoScalar::ZERO, |sum, dealing| sum - value_of(dealing));
                let slope = random();
                let values = polynomial(vec![due - slope * self.index(), slope]);
                (values, Some(polynomial(vec![random(), random()])))
            }
            Some(constant) => {
                // It is the first holder, and the second one's dealing is the other one that counts.
                let indices = [1, 2].map(|number| ShareIndex::try_from(number).unwrap());
                let factors = coefficients_at_zero::<RistrettoScalar>(&indices).unwrap();
                let due = -(factors[1] * value_of(&self.heard[&(FIRST_DEALING, party(2))]) * factors[0].invert());
                (polynomial(vec![*constant, due - *constant]), None)
            }
        };
        let own = self.key();
        let announced = self.heard.values().chain([&own]).filter(|said| said.slot() == ENCRYPTION_KEY);
        let announced = announced.map(|said| (said.author(), EncryptionKey::of(said).unwrap())).collect();
        let place = (self.own.party(), FIRST_DEALING);
        let body = Dealing::body_of(&self.plan, place, &polynomials, &announced, &mut rng).unwrap();
        Some(self.own.sign(FIRST_DEALING, body))
    }
}

/// Three honest parties and the liar, whose messages arrive in the order in which they were sent.
struct Parties {
    honest: BTreeMap<PartyId, Ceremony>,
    liar: Liar,
    dealt: bool,
    /// Dealings wait here until the liar has dealt.
    held: VecDeque<(PartyId, Slot, Bytes)>,
    sent: VecDeque<(PartyId, Slot, Bytes)>,
    ended: BTreeMap<PartyId, Activated>,
}

impl Parties {
    fn new(plan: &Arc<CeremonyPlan>, (liar, fair): (PartyId, bool), shares: &BTreeMap<PartyId, EncodedShare>) -> Self {
        let machine = |party: &PartyId| {
            let secret = Secret::new([u8::try_from(party.get()).unwrap(); 32]);
            Ceremony::join(Arc::clone(plan), keys_of(*party), secret, shares.get(party), Memory::Kept).unwrap()
        };
        let share = shares.get(&liar).map(|share| RistrettoScalar::decode(share.secret.expose()).unwrap());
        let honest = plan.members().iter().filter(|party| **party != liar);
        Self {
            honest: honest.map(|party| (*party, machine(party))).collect(),
            liar: Liar::new(plan, liar, share, fair),
            dealt: false,
            held: VecDeque::new(),
            sent: VecDeque::new(),
            ended: BTreeMap::new(),
        }
    }

    fn step(&mut self, party: PartyId, input: Input) {
        for effect in self.honest.get_mut(&party).unwrap().take(input) {
            match effect {
                Effect::Send { slot, payload, .. } => {
                    let deals = statements_of(&payload).any(|said| said.slot() == FIRST_DEALING);
                    let queue = if deals && !self.dealt { &mut self.held } else { &mut self.sent };
                    queue.push_back((party, slot, payload.clone()));
                    let heard = statements_of(&payload).map(|said| ((said.slot(), said.author()), said));
                    self.liar.heard.extend(heard);
                }
                Effect::Finished(Ok(outcome)) => match outcome.conclusion {
                    Conclusion::Activated(activated) => drop(self.ended.insert(party, activated)),
                    other => panic!("{party}: {other:?}"),
                },
                Effect::Finished(Err(abort)) => panic!("{party}: {abort}"),
                Effect::Blame(blame) => panic!("{blame}"),
                Effect::Ask(nothing) => match nothing {},
            }
        }
    }

    /// The liar says this to all.
    fn lie(&mut self, statement: Statement) {
        let mut payload = Vec::new();
        Item::Statement(statement).encode_into(&mut payload);
        self.sent.push_front((self.liar.own.party(), ITEMS, payload.into()));
    }

    /// Goes on to the end; gives the key, and the honest parties' shares.
    fn run(mut self) -> (EncodedKey, BTreeMap<PartyId, EncodedShare>) {
        let parties: Vec<PartyId> = self.honest.keys().copied().collect();
        parties.iter().for_each(|party| self.step(*party, Input::Start));
        self.lie(self.liar.key());
        let mut ticks = 0;
        while self.ended.len() < parties.len() {
            if !self.dealt
                && let Some(dealing) = self.liar.deal()
            {
                self.dealt = true;
                self.sent.append(&mut self.held);
                self.lie(dealing);
            }
            let Some((from, slot, payload)) = self.sent.pop_front() else {
                ticks += 1;
                assert!(ticks < 100, "it does not end");
                parties.iter().for_each(|party| self.step(*party, Input::Tick));
                continue;
            };
            for party in parties.iter().filter(|party| **party != from) {
                let (channel, payload) = (Channel::Broadcast, payload.clone());
                self.step(*party, Input::Message { from, slot, channel, payload });
            }
        }
        assert!(self.dealt, "nobody waited for the liar");
        let key = self.ended.values().next().unwrap().public.clone();
        assert!(self.ended.values().all(|activated| activated.public == key));
        (key, self.ended.into_iter().map(|(party, activated)| (party, activated.share.unwrap())).collect())
    }
}

/// The liar knows what its share comes to before the others' dealings are bound to a decision, and nobody after.
#[test]
fn whoever_deals_last_does_not_choose_its_share() {
    let (_, shares) = Parties::new(&plan(Aim::Generate), (party(4), false), &BTreeMap::new()).run();
    assert_eq!(shares.len(), 3);
}

/// The same where an old holder is a member.
#[test]
fn whoever_deals_last_among_holders_does_not_choose_its_share() {
    let (public, shares) = Parties::new(&plan(Aim::Generate), (party(4), true), &BTreeMap::new()).run();
    let holders = (1..=4).map(party).collect();
    let moved = plan(Aim::Reshare(Source { public: Arc::new(public.clone()), holders }));
    let (renewed, _) = Parties::new(&moved, (party(1), false), &shares).run();
    assert_eq!(renewed.public_key, public.public_key);
}
