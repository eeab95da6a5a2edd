//! Lies and their consequences: honest parties end with the same result, and name every liar that can be named.

mod contradictions;
mod named;

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use rand_core::Rng;
use theta_ceremonies::{CeremonyEvidence, CeremonyKeys, CeremonyPlan, ITEMS, Kind, Statement, StatementSlot, rewrite};
use theta_groups::{Group, Ristretto255, Scalar};
use theta_rounds::PartyId;
use theta_rounds::simulator::{Adversary, Behaviour, Conditions, HonestSend, SimRng, below, flip_bit, for_each_seed};
use theta_schemes::coins::cks05::Cks05;
use theta_schemes::keys::CurveScheme;
use theta_schemes::signatures::bls04::{Bls04, MinPk};

use crate::support::{Setting, keys_of, parties, party, patient};

type Coin = Cks05<Ristretto255>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    /// One recipient gets values that do not fit the commitments.
    BadShareToOne,
    /// The same, and messages to that recipient are delayed for a long time.
    BadShareToHalf,
    /// A dealing without a place for a member that has announced its key.
    LeavesOut,
    /// A dealing that is shown to one party only.
    WithheldDealing,
    /// Two dealings, one for some and one for the others.
    TwoDealings,
    /// A complaint about every dealing that comes.
    FalseComplaint,
    /// Deals, and then is silent.
    SilentAfterDeal,
    /// Never proposes.
    SilentLeader,
    /// Proposes one value to some and another one to others.
    TwoProposals,
    /// Votes for the proposal towards some and for none towards others.
    TwoVotes,
    /// A verification key that is not its own.
    FalseKey,
    /// A wrong share of the proof of possession.
    FalseProofOfPossession,
    /// Signs for another key.
    FalseActivation,
    /// Releases values that were not dealt.
    FalseRelease,
    /// Sends statements that do not decode.
    Gibberish,
}

const ALL: [Lie; 15] = [
    Lie::BadShareToOne,
    Lie::BadShareToHalf,
    Lie::LeavesOut,
    Lie::WithheldDealing,
    Lie::TwoDealings,
    Lie::FalseComplaint,
    Lie::SilentAfterDeal,
    Lie::SilentLeader,
    Lie::TwoProposals,
    Lie::TwoVotes,
    Lie::FalseKey,
    Lie::FalseProofOfPossession,
    Lie::FalseActivation,
    Lie::FalseRelease,
    Lie::Gibberish,
];

impl Lie {
    /// The offences for which every honest party notices it.
    const fn always_named(self) -> Option<&'static [&'static str]> {
        match self {
            Self::BadShareToOne | Self::BadShareToHalf => Some(&["false_dealing"]),
            Self::FalseComplaint => Some(&["false_complaint"]),
            Self::Gibberish => Some(&["malformed_statement"]),
            _ => None,
        }
    }
}

/// Replaces its honest machine's statements by lies.
pub(crate) struct Liar<G: Group> {
    plan: Arc<CeremonyPlan>,
    group: PhantomData<G>,
    keys: Arc<CeremonyKeys>,
    lie: Lie,
    victim: PartyId,
    width: usize,
}

impl<G: Group> Liar<G> {
    pub(crate) fn sign(&self, slot: StatementSlot, body: Vec<u8>) -> Statement {
        Statement::sign(self.plan.id(), &self.keys, slot, body)
    }

    /// The body with one bit changed in the part for `victims`.
    pub(crate) fn spoil(&self, body: &[u8], victims: &[PartyId]) -> Vec<u8> {
        let mut body = body.to_vec();
        let n = self.plan.members().len();
        let len = self.width * G::Scalar::ENCODED_LEN;
        for victim in victims {
            let from_end = n - self.plan.index_of(*victim).unwrap().position();
            let at = body.len() - from_end * len;
            body[at + 3] ^= 1;
        }
        body
    }

    /// The body without a place for the victim, if it has one.
    fn leave_out(&self, body: &[u8]) -> Vec<u8> {
        let threshold = self.plan.threshold();
        let commitments = if self.width == 2 { threshold.k() } else { threshold.t() };
        let mut body = body.to_vec();
        let (mut at, mut places, mut removed) = (usize::from(commitments) * G::ENCODED_LEN, 0, None);
        for member in self.plan.members() {
            if body[at] == 1 && *member == self.victim {
                body[at] = 0;
                body.drain(at + 1..at + 1 + 96);
                removed = Some(places);
            }
            let place = usize::from(body[at]);
            places += place;
            at += 1 + place * 96;
        }
        if let Some(position) = removed {
            let len = self.width * G::Scalar::ENCODED_LEN;
            let ciphertext = at + 96 + position * len;
            body.drain(ciphertext..ciphertext + len);
        }
        body
    }

    fn tell(&self, to: PartyId, honest: Statement) -> Vec<Statement> {
        let (slot, me) = (honest.slot(), self.keys.member().party());
        if honest.author() != me {
            return vec![honest];
        }
        let odd = to.get() % 2 == 1;
        let forged = match (self.lie, slot.kind) {
            (Lie::BadShareToOne, Kind::Dealing) => self.spoil(honest.body(), &[self.victim]),
            (Lie::BadShareToHalf, Kind::Dealing) => {
                let half: Vec<_> = self.plan.members().iter().copied().filter(|p| p.get() % 2 == 0).collect();
                self.spoil(honest.body(), &half)
            }
            (Lie::LeavesOut, Kind::Dealing) => self.leave_out(honest.body()),
            (Lie::WithheldDealing, Kind::Dealing) if to != self.victim => return Vec::new(),
            (Lie::TwoDealings, Kind::Dealing) if odd => self.spoil(honest.body(), &[self.victim]),
            (Lie::SilentAfterDeal, kind) if kind != Kind::Dealing => return Vec::new(),
            (Lie::SilentLeader, Kind::Proposal) => return Vec::new(),
            // A selection of nothing means to abort.
            (Lie::TwoProposals, Kind::Proposal) if odd => vec![0; 4],
            (Lie::TwoVotes, Kind::Prevote | Kind::Precommit) if odd => Vec::new(),
            (Lie::FalseKey, Kind::Key) => {
                let mut body = honest.body().to_vec();
                body[..G::ENCODED_LEN].copy_from_slice(G::encode(&G::generator()).as_ref());
                body
            }
            (Lie::FalseProofOfPossession, Kind::ProofOfPossession) => {
                // Any element of the right group: another party's hash.
                let mut body = honest.body().to_vec();
                body.reverse();
                body
            }
            (Lie::FalseActivation, Kind::Activation) => {
                let mut body = honest.body().to_vec();
                body[20] ^= 1;
                body
            }
            (Lie::FalseRelease, Kind::Release) => {
                let mut body = honest.body().to_vec();
                body[40] ^= 1;
                body
            }
            (Lie::Gibberish, Kind::Dealing | Kind::Key) => honest.body()[..honest.body().len() - 1].to_vec(),
            _ => return vec![honest],
        };
        vec![self.sign(slot, forged)]
    }
}

impl<G: Group> Adversary for Liar<G> {
    fn on_send(&mut self, _rng: &mut SimRng, to: PartyId, honest: HonestSend) -> Vec<HonestSend> {
        if honest.slot != ITEMS {
            return vec![honest];
        }
        let payload = rewrite(&honest.payload, |statement| self.tell(to, statement)).unwrap();
        if payload.is_empty() { Vec::new() } else { vec![HonestSend { payload: Bytes::from(payload), ..honest }] }
    }

    fn on_receive(&mut self, rng: &mut SimRng, _from: PartyId, message: &HonestSend) -> Vec<HonestSend> {
        if self.lie != Lie::FalseComplaint || message.slot != ITEMS {
            return Vec::new();
        }
        let mut complaints = Vec::new();
        rewrite(&message.payload, |heard| {
            let me = self.keys.member().party();
            if heard.slot().kind == Kind::Dealing && heard.author() != me {
                let mut body = heard.digest().to_vec();
                let mut random = [0; 128];
                rng.fill_bytes(&mut random);
                // Once for each dealer; more would be equivocation.
                random.iter_mut().zip(heard.digest().iter().cycle()).for_each(|(to, from)| *to = *from);
                body.extend_from_slice(&random);
                let slot = StatementSlot::new(Kind::Complaint, u32::from(heard.author().get()));
                complaints.push(self.sign(slot, body));
            }
            Vec::new()
        });
        let send = |complaint: Statement| {
            let payload = Bytes::from(encode(&complaint));
            HonestSend { payload, ..message.clone() }
        };
        complaints.into_iter().map(send).collect()
    }
}

/// A message of one statement: as any message of statements, with the statement in the place of the first.
fn encode(statement: &Statement) -> Vec<u8> {
    let mut bytes = vec![1];
    bytes.extend_from_slice(&statement.author().get().to_be_bytes());
    bytes.push(statement.slot().kind as u8);
    bytes.extend_from_slice(&statement.slot().number.to_be_bytes());
    bytes.extend_from_slice(&u32::try_from(statement.body().len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(statement.body());
    bytes.extend_from_slice(statement.signature());
    bytes
}

pub(crate) fn liar<S: CurveScheme>(
    setting: &Setting<S>,
    who: PartyId,
    lie: Lie,
    rng: &mut SimRng,
) -> Liar<S::KeyGroup> {
    let members = setting.plan.members();
    let others: Vec<_> = members.iter().copied().filter(|member| *member != who).collect();
    let victim = others[usize::try_from(below(rng, others.len() as u64)).unwrap()];
    liar_to(setting, who, lie, victim)
}

/// A liar that chooses nobody itself.
pub(crate) fn liar_to<S: CurveScheme>(
    setting: &Setting<S>,
    who: PartyId,
    lie: Lie,
    victim: PartyId,
) -> Liar<S::KeyGroup> {
    let width = if setting.old.is_empty() { 2 } else { 1 };
    Liar { plan: Arc::clone(&setting.plan), group: PhantomData, keys: keys_of(who), lie, victim, width }
}

/// Runs with these liars; checks that the honest parties agree, and returns what they blame each liar for.
fn run<S: CurveScheme>(
    setting: &Setting<S>,
    seed: u64,
    conditions: Conditions,
    liars: &[(PartyId, Lie)],
) -> Result<Vec<(PartyId, BTreeSet<&'static str>)>, String> {
    let mut simulator = theta_rounds::simulator::Simulator::new(seed, conditions);
    for party in setting.plan.parties() {
        match liars.iter().find(|(liar, _)| *liar == party) {
            None => simulator.honest(party, setting.boxed(party)),
            Some((_, lie)) => {
                let liar = liar(setting, party, *lie, simulator.rng());
                simulator.byzantine(party, setting.boxed(party), liar);
            }
        }
        simulator.lossy(party);
    }
    let report = simulator.run();
    let named = liars.iter().map(|(liar, _)| {
        (*liar, report.blames_of(*liar).map(|(_, blame)| blame.offence.name()).collect::<BTreeSet<_>>())
    });
    let named: Vec<_> = named.collect();
    setting.check(report).map_err(|failure| format!("{failure}, with {liars:?}"))?;
    Ok(named)
}

#[test]
fn each_lie_alone_is_survived_and_named() {
    let checked = for_each_seed(8, |seed| {
        for lie in ALL {
            let setting = Setting::<Coin>::generate(2, 4, seed);
            let who = party(1 + u16::try_from(seed % 4).unwrap());
            let conditions = Conditions { loss_per_mille: 0, ..patient() };
            let named = run(&setting, seed, conditions, &[(who, lie)])?;
            let (_, names) = &named[0];
            if let Some(expected) = lie.always_named()
                && !names.iter().any(|name| expected.contains(name))
            {
                return Err(format!("{lie:?} of {who} is called {names:?}"));
            }
        }
        Ok(())
    });
    checked.unwrap();
}

/// The bound of agreement: t liars of 3t + 1, with any lies, loss and order.
#[test]
fn a_third_may_lie_about_anything() {
    let checked = for_each_seed(100, |seed| {
        let t = 1 + u16::try_from(seed % 2).unwrap();
        let n = 3 * t + 1 + u16::try_from(seed % 3 / 2).unwrap();
        let setting = Setting::<Coin>::generate(t + 1, n, seed);
        let mut simulator =
            theta_rounds::simulator::Simulator::<(), CeremonyEvidence>::new(seed ^ 0xffff, Conditions::default());
        let rng = simulator.rng();
        let mut liars = Vec::new();
        while liars.len() < usize::from(t) {
            let who = party(1 + u16::try_from(below(rng, u64::from(n))).unwrap());
            let lie = ALL[usize::try_from(below(rng, ALL.len() as u64)).unwrap()];
            if liars.iter().all(|(other, _)| *other != who) {
                liars.push((who, lie));
            }
        }
        let conditions = Conditions { loss_per_mille: below(rng, 400), ..patient() };
        run(&setting, seed, conditions, &liars).map(drop)
    });
    checked.unwrap();
}

/// Old holders and new ones lie: t of the old, t' of the new.
#[test]
fn resharing_survives_liars_on_both_sides() {
    let setting = Setting::<Coin>::generate(2, 4, 77);
    let (public, shares) = setting.check(setting.simulate(1, patient()).run()).unwrap();
    let checked = for_each_seed(56, |seed| {
        let members = if seed % 2 == 0 { parties(1..=4) } else { parties([3, 5, 6, 7]) };
        let moved = Setting::<Coin>::reshare(&public, shares.clone(), parties(1..=4), (2, members.clone()), seed);
        let lie = ALL[usize::try_from(seed).unwrap() % ALL.len()];
        let old = party(1 + u16::try_from(seed % 4).unwrap());
        let mut liars = vec![(old, lie)];
        if !members.contains(&old) {
            liars.push((party(6), ALL[usize::try_from(seed / 3).unwrap() % ALL.len()]));
        } else if seed % 2 == 1 {
            liars = vec![(old, lie)];
        }
        let conditions = Conditions { loss_per_mille: seed % 300, ..patient() };
        run(&moved, seed, conditions, &liars).map(drop)?;
        Ok(())
    });
    checked.unwrap();
}

/// Where the key needs a proof of possession, its shares can be false too.
#[test]
fn false_shares_of_a_proof_of_possession_are_named() {
    for seed in 0..4 {
        let setting = Setting::<Bls04<MinPk>>::generate(2, 4, seed);
        let conditions = Conditions { loss_per_mille: 0, ..patient() };
        run(&setting, seed, conditions, &[(party(2), Lie::FalseProofOfPossession)]).unwrap();
        run(&setting, seed, conditions, &[(party(1), Lie::FalseKey)]).unwrap();
    }
}

/// Liars that know nothing of the protocol.
#[test]
fn noise_is_survived() {
    let noises = [
        Behaviour::Silent,
        Behaviour::Garbage,
        Behaviour::BitFlip,
        Behaviour::Truncate,
        Behaviour::Empty,
        Behaviour::WrongChannel,
        Behaviour::UnknownSlot,
        Behaviour::TwoToSame,
        Behaviour::Equivocate,
        Behaviour::CopyOthers,
        Behaviour::Flood,
        Behaviour::CrashAfter(5),
    ];
    let checked = for_each_seed(5, |seed| {
        for noise in &noises {
            let setting = Setting::<Coin>::generate(2, 4, seed);
            let mut simulator = theta_rounds::simulator::Simulator::new(seed, patient());
            for member in parties(1..=3) {
                simulator.honest(member, setting.boxed(member));
            }
            simulator.byzantine(party(4), setting.boxed(party(4)), noise.clone());
            setting.check(simulator.run()).map_err(|failure| format!("{noise:?}: {failure}"))?;
        }
        Ok(())
    });
    checked.unwrap();
}

/// Evidence is the same after encoding, and no other bytes, plan or flipped bit convict anybody.
#[test]
fn evidence_convinces_a_third_party_and_only_if_true() {
    let mut kinds = BTreeSet::new();
    for (seed, lie) in (0..).zip(ALL.iter().cycle().take(3 * ALL.len())) {
        let setting = Setting::<Coin>::generate(2, 4, seed);
        let elsewhere = Setting::<Coin>::generate(2, 4, seed + 1000);
        let mut simulator = theta_rounds::simulator::Simulator::new(seed, patient());
        for member in parties(1..=3) {
            simulator.honest(member, setting.boxed(member));
        }
        let liar = liar(&setting, party(4), *lie, simulator.rng());
        simulator.byzantine(party(4), setting.boxed(party(4)), liar);
        let mut rng = simulator.rng().clone();
        for (_, report) in simulator.run().honest() {
            let Some(Ok(outcome)) = &report.result else { panic!("{lie:?}: not finished") };
            for evidence in &outcome.evidence {
                kinds.insert(theta_rounds::Evidence::name(evidence));
                let bytes = evidence.encode();
                let read = CeremonyEvidence::decode(&bytes).unwrap();
                assert_eq!(&read, evidence);
                assert!(read.verify(&setting.plan));
                assert!(!read.verify(&elsewhere.plan), "evidence of another ceremony");
                assert_eq!(read.culprit(), party(4));
                for _ in 0..20 {
                    if let Ok(other) = CeremonyEvidence::decode(&flip_bit(&mut rng, &bytes)) {
                        assert!(other.culprit() == party(4) || !other.verify(&setting.plan));
                    }
                    let keep = below(&mut rng, bytes.len() as u64);
                    let cut = CeremonyEvidence::decode(&bytes[..usize::try_from(keep).unwrap()]);
                    assert!(cut.is_err() || !cut.unwrap().verify(&setting.plan));
                }
            }
        }
    }
    for kind in ["equivocation", "false_dealing", "false_complaint", "false_key", "malformed_statement"] {
        assert!(kinds.contains(kind), "no {kind} among {kinds:?}");
    }
}
