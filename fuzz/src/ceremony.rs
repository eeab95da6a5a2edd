//! Ceremonies that were held once, to be held again with a liar among the honest.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use theta_groups::{Ristretto255, Secret};
use theta_protocols::Machine;
use theta_protocols::ceremony::{
    Aim, CeremonyEvidence, CeremonyKeys, CeremonyPlan, ITEMS, KeyCeremony, Kind, Memory, PlanParts, QuorumCertificate,
    Recovery, SUMMARY, Slot as Place, Source, Statement, rewrite,
};
use theta_rounds::{Channel, Effect, Input, PartyId, Recipient, Slot};
use theta_schemes::coins::cks05::Cks05;
use theta_schemes::keys::{CurveScheme, KeyShare, deal};
use theta_sharing::{ShareIndex, Threshold};

use crate::rng;

type Coin = Cks05<Ristretto255>;
type Share = Arc<KeyShare<Ristretto255>>;

const K: u16 = 2;
const N: u16 = 4;
const KINDS: [Kind; 14] = [
    Kind::Dealing,
    Kind::Complaint,
    Kind::LateComplaint,
    Kind::Release,
    Kind::Proposal,
    Kind::Prevote,
    Kind::Precommit,
    Kind::Key,
    Kind::Possession,
    Kind::Activation,
    Kind::Checked,
    Kind::Request,
    Kind::Answer,
    Kind::Done,
];

/// The party of that number, which is not zero.
pub fn party(number: u16) -> PartyId {
    PartyId::try_from(number).expect("not zero")
}

fn keys(party: PartyId) -> Arc<CeremonyKeys> {
    let mut master = [7; 32];
    master[..2].copy_from_slice(&party.get().to_le_bytes());
    Arc::new(CeremonyKeys::new(party, Secret::new(master)))
}

/// A party of a ceremony of either kind; how it ends is not told.
enum Party {
    Key(Box<KeyCeremony<Coin>>),
    Recovery(Box<Recovery<Coin>>),
}

impl Party {
    /// What it sends, and whom it blames. That it gave up is a finding.
    fn handle(&mut self, input: Input) -> (Vec<(Recipient, Slot, Bytes)>, Vec<PartyId>) {
        fn sort<O>(effects: Vec<Effect<O>>) -> (Vec<(Recipient, Slot, Bytes)>, Vec<PartyId>) {
            let (mut sent, mut blamed) = (Vec::new(), Vec::new());
            for effect in effects {
                match effect {
                    Effect::Send { to, slot, payload, .. } => sent.push((to, slot, payload)),
                    Effect::Blame(blame) => blamed.push(blame.party),
                    Effect::Finished(result) => assert!(result.is_ok(), "it gave up"),
                }
            }
            (sent, blamed)
        }
        match self {
            Self::Key(machine) => sort(machine.handle(input, &mut rng())),
            Self::Recovery(machine) => sort(machine.handle(input, &mut rng())),
        }
    }

    fn revision(&self) -> u64 {
        match self {
            Self::Key(machine) => machine.revision(),
            Self::Recovery(machine) => machine.revision(),
        }
    }

    fn evidence(&self) -> &[CeremonyEvidence] {
        match self {
            Self::Key(machine) => machine.evidence(),
            Self::Recovery(machine) => machine.evidence(),
        }
    }
}

/// What the parties of a ceremony said when all were honest, and what came of one with a liar.
pub struct Recording {
    plan: Arc<CeremonyPlan<Ristretto255>>,
    shares: BTreeMap<PartyId, Share>,
    /// What reached party 1.
    heard: Vec<(PartyId, Slot, Bytes)>,
    evidence: Vec<CeremonyEvidence>,
    /// What quorums signed.
    pub certificates: BTreeSet<Vec<u8>>,
}

impl Recording {
    /// A generation, a reshare, a recovery by party 1, and one by party 2 with the help of party 1.
    pub fn all() -> Vec<Self> {
        let dealt = deal::<Coin>(Threshold::new(K, N).expect("2 of 4"), &mut rng());
        let holders: Vec<_> = (1..=N).map(party).collect();
        let source = Source { public: dealt.public, holders: holders.clone() };
        let shares: BTreeMap<_, _> = holders.into_iter().zip(dealt.shares.into_iter().map(Arc::new)).collect();
        let lost = |number| ShareIndex::try_from(number).expect("not zero");
        vec![
            Self::of(Aim::Generate, BTreeMap::new()),
            Self::of(Aim::Reshare(source.clone()), shares.clone()),
            Self::of(Aim::Recover(source.clone(), lost(1)), shares.clone()),
            Self::of(Aim::Recover(source, lost(2)), shares),
        ]
    }

    fn of(aim: Aim<Ristretto255>, mut shares: BTreeMap<PartyId, Share>) -> Self {
        if let Aim::Recover(_, lost) = &aim {
            shares.remove(&party(lost.get()));
        }
        let members: Vec<_> = (1..=N).map(party).collect();
        let plan = CeremonyPlan::new(PlanParts {
            suite: Coin::SUITE,
            nonce: [9; 32],
            epoch: u32::from(!matches!(aim, Aim::Generate)),
            aim,
            k: K,
            roster: members.iter().map(|member| keys(*member).member().clone()).collect(),
            members,
            patience: 0,
        });
        let plan = Arc::new(plan.expect("a sound plan"));
        let mut recording =
            Self { plan, shares, heard: Vec::new(), evidence: Vec::new(), certificates: BTreeSet::new() };
        recording.heard = recording.hold(&|payload| payload).0;
        let flip = |at: usize, kinds: &'static [Kind]| {
            let id = *recording.plan.id();
            move |payload: Bytes| {
                let forge = |statement: Statement| {
                    if statement.author() != party(N) || !kinds.contains(&statement.slot().kind) {
                        return vec![statement];
                    }
                    let mut body = statement.body().to_vec();
                    let at = body.len() - at;
                    body[at] ^= 1;
                    vec![Statement::sign(&id, &keys(party(N)), statement.slot(), body)]
                };
                rewrite(&payload, forge).map_or(payload, Bytes::from)
            }
        };
        let lies = [
            flip(5, &[Kind::Dealing]),
            flip(5, &[Kind::Key]),
            flip(5, &[Kind::Answer]),
            flip(5, &[Kind::Activation]),
        ];
        let evidence: Vec<_> = lies.iter().flat_map(|lie| recording.hold(lie).1).collect();
        recording.evidence = evidence;
        recording
    }

    fn join(&self, who: PartyId) -> Party {
        let (plan, share) = (Arc::clone(&self.plan), self.shares.get(&who).cloned());
        let scheme = PhantomData::<Coin>;
        if matches!(self.plan.aim(), Aim::Recover(..)) {
            let machine = Recovery::new(scheme, plan, keys(who), share, Memory::Kept);
            Party::Recovery(Box::new(machine.expect("a member")))
        } else {
            let machine = KeyCeremony::new(scheme, plan, keys(who), share, Memory::Kept);
            Party::Key(Box::new(machine.expect("a member")))
        }
    }

    /// Holds the ceremony, with `lie` between party 4 and the others. Gives what reached party 1, and all evidence.
    #[allow(clippy::type_complexity, reason = "used twice, here")]
    fn hold(&self, lie: &dyn Fn(Bytes) -> Bytes) -> (Vec<(PartyId, Slot, Bytes)>, Vec<CeremonyEvidence>) {
        let everyone: Vec<_> = (1..=N).map(party).collect();
        let mut parties: BTreeMap<_, _> = everyone.iter().map(|id| (*id, self.join(*id))).collect();
        let mut heard = Vec::new();
        let mut queue: VecDeque<_> = everyone.iter().map(|id| (*id, Input::Start)).collect();
        for _ in 0..8 {
            while let Some((to, input)) = queue.pop_front() {
                if let (1, Input::Message { from, slot, payload, .. }) = (to.get(), &input) {
                    heard.push((*from, *slot, payload.clone()));
                }
                let (sent, _) = parties.get_mut(&to).expect("a member").handle(input);
                for (recipient, slot, payload) in sent {
                    let payload = if to == party(N) && slot == ITEMS { lie(payload) } else { payload };
                    for peer in everyone.iter().filter(|peer| **peer != to) {
                        if recipient == Recipient::All || recipient == Recipient::Party(*peer) {
                            queue.push_back((*peer, message(to, slot, payload.clone())));
                        }
                    }
                }
            }
            queue.extend(everyone.iter().map(|id| (*id, Input::Tick)));
        }
        (heard, parties.values().flat_map(|party| party.evidence().to_vec()).collect())
    }

    /// Whether a quorum of this ceremony signed it.
    pub fn is_certified(&self, certificate: &QuorumCertificate) -> bool {
        certificate.is_valid(&self.plan)
    }

    /// Whether it convicts its culprit in this ceremony.
    pub fn is_proven(&self, evidence: &CeremonyEvidence) -> bool {
        evidence.verify::<Coin>(&self.plan)
    }

    /// Messages and evidence as bytes.
    pub fn seeds(&self) -> Vec<Vec<u8>> {
        let messages = self.heard.iter().map(|(_, _, payload)| payload.to_vec());
        messages.chain(self.evidence.iter().map(CeremonyEvidence::encode)).collect()
    }

    /// Scripts for [`play`]: all that was heard; and the same with one message of the liar's changed in different ways.
    pub fn scripts(&self) -> impl Iterator<Item = Vec<u8>> {
        let numbers: Vec<u8> = (0_u8..).take(self.heard.len()).collect();
        let all: Vec<u8> = numbers.iter().flat_map(|number| [0, *number]).collect();
        let number = numbers.len();
        let changed = numbers.into_iter().step_by(3).flat_map(move |changed| {
            [[1, changed, 0, 60, 1, 0], [1, changed, 0, 5, 1, 0]].map(|op| (usize::from(changed), op))
        });
        let spoilt = {
            let all = all.clone();
            move |(at, op): (usize, [u8; 6])| [&all[..2 * at], &op[..5], &all[2 * at..2 * number]].concat()
        };
        let late = [&all[..all.len() / 2], &[4, 5, 4, 4], &all[all.len() / 2..]].concat();
        [all.clone(), late].into_iter().chain(changed.map(spoilt))
    }
}

fn message(from: PartyId, slot: Slot, payload: Bytes) -> Input {
    Input::Message { from, slot, channel: Channel::Broadcast, payload }
}

/// Party 1 as the script has it, and what it ever said.
struct Stage<'a> {
    recording: &'a Recording,
    party: Party,
    journal: Vec<Input>,
    said: BTreeMap<Place, Bytes>,
}

impl Stage<'_> {
    fn give(&mut self, input: Input) {
        let before = self.party.revision();
        let (sent, blamed) = self.party.handle(input.clone());
        if self.party.revision() != before {
            self.journal.push(input);
        }
        assert!(blamed.iter().all(|party| party.get() == N), "{blamed:?} is blamed");
        for (_, slot, payload) in sent {
            if slot == ITEMS {
                let own = |statement: Statement| {
                    if statement.author() == party(1) {
                        let first = self.said.entry(statement.slot()).or_insert_with(|| statement.body().clone());
                        assert_eq!(first, statement.body(), "two things in {:?}", statement.slot());
                    }
                    Vec::new()
                };
                rewrite(&payload, own).expect("our own message");
            }
        }
    }

    fn die(&mut self) {
        self.party = self.recording.join(party(1));
        for input in std::mem::take(&mut self.journal) {
            self.give(input);
        }
    }

    /// One of the liar's messages with a statement in it changed, or a statement of its own, signed.
    fn lie(&mut self, statement: Statement, at: u16, with: u8) {
        let mut body = statement.body().to_vec();
        if let Some(place) = usize::from(at).checked_rem(body.len()) {
            let place = body.len() - 1 - place;
            body[place] ^= with;
        }
        self.say(statement.slot(), body);
    }

    fn say(&mut self, place: Place, body: Vec<u8>) {
        let statement = Statement::sign(self.recording.plan.id(), &keys(party(N)), place, body);
        self.give(message(party(N), ITEMS, Bytes::from(item(&statement))));
    }
}

/// A message of one statement.
fn item(statement: &Statement) -> Vec<u8> {
    let mut bytes = vec![1];
    bytes.extend_from_slice(&statement.author().get().to_be_bytes());
    bytes.push(statement.slot().kind as u8);
    bytes.extend_from_slice(&statement.slot().number.to_be_bytes());
    bytes.extend_from_slice(&u32::try_from(statement.body().len()).expect("short").to_be_bytes());
    bytes.extend_from_slice(statement.body());
    bytes.extend_from_slice(statement.signature());
    bytes
}

/// Bytes of a script, one after the other; zeros at its end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn some(&mut self) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(usize::from(self.byte()).min(self.0.len()));
        self.0 = rest;
        taken.to_vec()
    }
}

/// Plays a ceremony to party 1: what was recorded, in any order; what the liar makes of its own statements; what it invents; raw
/// bytes; time; and death.
pub fn play(recording: &Recording, script: &[u8]) {
    let party_1 = recording.join(party(1));
    let mut stage = Stage { recording, party: party_1, journal: Vec::new(), said: BTreeMap::new() };
    let mut script = Script(script);
    stage.give(Input::Start);
    for _ in 0..100 {
        if script.0.is_empty() {
            break;
        }
        match script.byte() % 6 {
            0 => {
                if let Some((from, slot, payload)) = recording.heard.get(usize::from(script.byte())) {
                    stage.give(message(*from, *slot, payload.clone()));
                }
            }
            1 => {
                let heard = recording.heard.get(usize::from(script.byte())).filter(|(from, ..)| from.get() == N);
                let (at, with) = (u16::from_be_bytes([script.byte(), script.byte()]), script.byte());
                let mut statements = Vec::new();
                if let Some((_, _, payload)) = heard {
                    rewrite(payload, |statement| {
                        statements.push(statement);
                        Vec::new()
                    });
                }
                let own = statements.into_iter().filter(|statement| statement.author() == party(N));
                own.collect::<Vec<_>>().into_iter().for_each(|statement| stage.lie(statement, at, with));
            }
            2 => {
                let kind = KINDS[usize::from(script.byte()) % KINDS.len()];
                let number = u32::from(script.byte());
                let body = script.some();
                stage.say(Place::new(kind, number), body);
            }
            3 => {
                let slot = if script.byte().is_multiple_of(2) { ITEMS } else { SUMMARY };
                let payload = Bytes::from(script.some());
                stage.give(message(party(N), slot, payload));
            }
            4 => stage.give(Input::Tick),
            _ => stage.die(),
        }
    }
    for evidence in stage.party.evidence() {
        assert_eq!(evidence.culprit(), party(N));
        assert!(recording.is_proven(evidence), "evidence that does not hold: {evidence}");
        assert_eq!(CeremonyEvidence::decode(&evidence.encode()).as_ref(), Ok(evidence));
    }
}
