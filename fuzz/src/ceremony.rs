//! Recordings of ceremonies, to be played again with one liar among honest parties.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use theta_ceremonies::{
    Aim, Ceremony, CeremonyEvidence, CeremonyKeys, CeremonyPlan, ITEMS, Input, Kind, Memory, PlanParts,
    QuorumCertificate, SUMMARY, Source, Statement, StatementSlot, rewrite, statements_of,
};
use theta_groups::{Group, Ristretto255, Secret};
use theta_names::{Epoch, NodeId};
use theta_rounds::{Channel, Effect, PartyId, Recipient, Slot};
use theta_schemes::coins::cks05::Cks05;
use theta_schemes::keys::{KeyScheme, KeyShare, deal};
use theta_sharing::{ShareIndex, Threshold};

use crate::rng;

type Coin = Cks05<Ristretto255>;
type Share = Arc<KeyShare<Ristretto255>>;

const K: u16 = 2;
const N: u16 = 4;
/// The byte of the liar's statements that is changed, counted from the end: for each kind of statement this proves the lie.
const SPOILT: usize = 5;
/// How many messages a late party misses.
const DEAF: usize = 3;

/// The party of this number, which must not be zero.
pub fn party(number: u16) -> PartyId {
    PartyId::of_node(NodeId::try_from(number).expect("not zero"))
}

/// The secret that a party draws for a ceremony.
fn secret(party: PartyId) -> Secret<[u8; 32]> {
    let mut secret = [2; 32];
    secret[..2].copy_from_slice(&party.get().to_le_bytes());
    Secret::new(secret)
}

fn keys(party: PartyId) -> Arc<CeremonyKeys> {
    let mut master = [7; 32];
    master[..2].copy_from_slice(&party.get().to_le_bytes());
    Arc::new(CeremonyKeys::new(party.node(), Secret::new(master)))
}

/// What a party sends, and whom it blames. Panics if the party aborts the ceremony; its other results are dropped.
fn handle(party: &mut Ceremony, input: Input) -> (Vec<(Recipient, Slot, Bytes)>, Vec<PartyId>) {
    let (mut sent, mut blamed) = (Vec::new(), Vec::new());
    for effect in party.take(input) {
        match effect {
            Effect::Send { to, slot, payload, .. } => sent.push((to, slot, payload)),
            Effect::Blame(blame) => blamed.push(blame.party),
            Effect::Finished(result) => assert!(result.is_ok(), "it gave up"),
        }
    }
    (sent, blamed)
}

/// How a recorded ceremony went.
#[derive(Clone, Copy, PartialEq)]
enum Course {
    /// All parties were honest and received everything at once.
    Smooth,
    /// Party 1 received nothing at first, and the others later told it what it missed.
    Late,
    /// Party 4 lied in its statements of this kind.
    Lie(Kind),
}

const COURSES: [Course; 7] = [
    Course::Smooth,
    Course::Late,
    Course::Lie(Kind::Dealing),
    Course::Lie(Kind::Key),
    Course::Lie(Kind::ProofOfPossession),
    Course::Lie(Kind::Answer),
    Course::Lie(Kind::Activation),
];

/// The signatures over each encoded statement, by signer.
type Signed = BTreeMap<Vec<u8>, BTreeMap<PartyId, Vec<u8>>>;

/// A recorded ceremony.
pub struct Recording {
    plan: Arc<CeremonyPlan>,
    shares: BTreeMap<PartyId, Share>,
    /// The messages that party 1 received.
    heard: Vec<(PartyId, Slot, Bytes)>,
    evidence: Vec<CeremonyEvidence>,
    /// The statements that a quorum signed, with the signatures.
    certificates: BTreeMap<Vec<u8>, QuorumCertificate>,
}

impl Recording {
    /// A key generation, a reshare, a recovery of party 1's share, and one of party 2's with the help of party 1, each in
    /// every course that makes a difference.
    pub fn all() -> Vec<Self> {
        let dealt = deal::<Coin>(Threshold::new(K, N).expect("2 of 4"), &mut rng());
        let holders: Vec<_> = (1..=N).map(party).collect();
        let source = Source { public: Arc::new(dealt.public.encoded()), holders: holders.clone() };
        let shares: BTreeMap<_, _> = holders.into_iter().zip(dealt.shares.into_iter().map(Arc::new)).collect();
        let lost = |number| ShareIndex::try_from(number).expect("not zero");
        let aims = [
            (Aim::Generate, BTreeMap::new()),
            (Aim::Reshare(source.clone()), shares.clone()),
            (Aim::Recover(source.clone(), lost(1)), shares.clone()),
            (Aim::Recover(source, lost(2)), shares),
        ];
        let courses = aims.iter().flat_map(|(aim, shares)| COURSES.map(|course| (aim.clone(), shares.clone(), course)));
        // An honest party never contradicts itself within a ceremony, so no two of these may have the same id.
        let numbered = (0_u8..).zip(courses);
        numbered.filter_map(|(number, (aim, shares, course))| Self::of([number; 32], aim, shares, course)).collect()
    }

    /// Holds a ceremony; `None` if the liar had no statement of the kind to make.
    fn of(nonce: [u8; 32], aim: Aim, mut shares: BTreeMap<PartyId, Share>, course: Course) -> Option<Self> {
        if let Aim::Recover(_, lost) = &aim {
            shares.remove(&party(lost.get()));
        }
        let members: Vec<_> = (1..=N).map(party).collect();
        let plan = CeremonyPlan::new(PlanParts {
            suite: Coin::SUITE.into(),
            group: Ristretto255::NAME,
            proof_of_possession: None,
            nonce,
            epoch: Epoch::new(u32::from(!matches!(aim, Aim::Generate))),
            aim,
            k: K,
            roster: members.iter().map(|member| keys(*member).member().clone()).collect(),
            members,
            patience: 0,
        });
        let plan = Arc::new(plan.expect("a sound plan"));
        let mut recording =
            Self { plan, shares, heard: Vec::new(), evidence: Vec::new(), certificates: BTreeMap::new() };
        let signed = recording.hold(course);
        let certificates = signed.into_iter().filter_map(|(said, signatures)| {
            let signers =
                signatures.iter().flat_map(|(party, signature)| [&party.get().to_be_bytes()[..], signature].concat());
            let bytes = said.iter().copied().chain(signers).collect::<Vec<_>>();
            let certificate = QuorumCertificate::decode(&bytes).expect("what certificates look like");
            recording.is_certified(&certificate).then_some((said, certificate))
        });
        recording.certificates = certificates.collect();
        let is_lie = matches!(course, Course::Lie(_));
        assert!(is_lie || recording.evidence.is_empty(), "evidence against the honest");
        (!is_lie || !recording.evidence.is_empty()).then_some(recording)
    }

    fn join(&self, who: PartyId) -> Ceremony {
        let (plan, share) = (Arc::clone(&self.plan), self.shares.get(&who).map(|share| share.encoded()));
        Ceremony::join(plan, keys(who), secret(who), share.as_ref(), Memory::Kept).expect("a member")
    }

    /// Holds the ceremony, and keeps the messages to party 1 and all evidence.
    fn hold(&mut self, course: Course) -> Signed {
        let everyone: Vec<_> = (1..=N).map(party).collect();
        let mut parties: BTreeMap<_, _> = everyone.iter().map(|id| (*id, self.join(*id))).collect();
        let mut signed = Signed::new();
        let mut queue: VecDeque<_> = everyone.iter().map(|id| (*id, Input::Start)).collect();
        for time in 0..8 {
            while let Some((to, input)) = queue.pop_front() {
                if let (1, Input::Message { from, slot, payload, .. }) = (to.get(), &input) {
                    if course == Course::Late && time < DEAF {
                        continue;
                    }
                    self.heard.push((*from, *slot, payload.clone()));
                }
                let (sent, _) = handle(parties.get_mut(&to).expect("a member"), input);
                for (recipient, slot, payload) in sent {
                    let payload = if slot == ITEMS { self.say(to, &payload, course, &mut signed) } else { payload };
                    for peer in everyone.iter().filter(|peer| **peer != to) {
                        if recipient == Recipient::All || recipient == Recipient::Party(*peer) {
                            queue.push_back((*peer, message(to, slot, payload.clone())));
                        }
                    }
                }
            }
            queue.extend(everyone.iter().map(|id| (*id, Input::Tick)));
        }
        self.evidence = parties.values().flat_map(|party| party.evidence().to_vec()).collect();
        signed
    }

    /// A message as it leaves: the liar's statements are replaced by lies. Keeps all signatures.
    fn say(&self, from: PartyId, payload: &Bytes, course: Course, signed: &mut Signed) -> Bytes {
        let pass = |statement: Statement| {
            let mut statement = statement;
            let is_own = from == party(N) && statement.author() == from;
            if is_own && course == Course::Lie(statement.slot().kind) {
                let mut body = statement.body().to_vec();
                let at = body.len() - SPOILT;
                body[at] ^= 1;
                statement = Statement::sign(self.plan.id(), &keys(from), statement.slot(), body);
            }
            let signatures = signed.entry(said(&statement)).or_default();
            signatures.insert(statement.author(), statement.signature().to_vec());
            vec![statement]
        };
        rewrite(payload, pass).expect("our own message").into()
    }

    /// Whether a quorum of this ceremony has signed the certificate's statement.
    pub fn is_certified(&self, certificate: &QuorumCertificate) -> bool {
        certificate.is_valid(&self.plan)
    }

    /// Whether a quorum signed the certificate's statement when the ceremony was recorded.
    pub fn was_agreed(&self, certificate: &QuorumCertificate) -> bool {
        let bytes = certificate.encode();
        self.certificates.keys().any(|said| bytes.starts_with(said))
    }

    /// Whether the evidence convicts its culprit in this ceremony.
    pub fn is_proven(&self, evidence: &CeremonyEvidence) -> bool {
        evidence.verify(&self.plan)
    }

    /// Encoded messages, identities, certificates and evidence.
    pub fn seeds(&self) -> Vec<Vec<u8>> {
        let messages = self.heard.iter().map(|(_, _, payload)| payload.to_vec());
        let certificates = self.certificates.values().map(QuorumCertificate::encode);
        let evidence = self.evidence.iter().map(CeremonyEvidence::encode);
        messages.chain([keys(party(1)).member().encode()]).chain(certificates).chain(evidence).collect()
    }

    /// Scripts for [`play`]: the whole recording, with ticks and a restart in the middle; and the same with one of the
    /// liar's messages changed, before it is signed or afterwards.
    pub fn scripts(&self) -> Vec<Vec<u8>> {
        let heard: Vec<_> = (0_u8..u8::MAX).zip(&self.heard).collect();
        let all: Vec<u8> = heard.iter().flat_map(|(number, _)| [0, *number]).collect();
        let with = |at: usize, inserted: &[u8]| [&all[..2 * at], inserted, &all[2 * at..]].concat();
        let lies = heard.iter().filter(|(_, (from, ..))| from.get() == N).flat_map(|(number, _)| {
            [[1, *number, 0, 60, 1], [1, *number, 0, 4, 1], [6, *number, 0, 4, 1]]
                .map(|lie| with((*number).into(), &lie))
        });
        [all.clone(), with(heard.len() / 2, &[4, 5, 4, 4])].into_iter().chain(lies).collect()
    }
}

/// The bytes with one of them changed; `at` counts from the end.
fn changed(bytes: &[u8], at: u16, with: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(place) = usize::from(at).checked_rem(bytes.len()) {
        let place = bytes.len() - 1 - place;
        bytes[place] ^= with;
    }
    bytes
}

fn message(from: PartyId, slot: Slot, payload: Bytes) -> Input {
    Input::Message { from, slot, channel: Channel::Broadcast, payload }
}

/// Party 1 under a script, and all that it has sent.
struct Stage<'a> {
    recording: &'a Recording,
    party: Ceremony,
    journal: Vec<Input>,
    said: BTreeMap<StatementSlot, Bytes>,
}

impl Stage<'_> {
    fn give(&mut self, input: Input) {
        let before = self.party.revision();
        let (sent, blamed) = handle(&mut self.party, input.clone());
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

    /// Delivers the liar's own statements from one of its messages, each changed and signed again.
    fn lie(&mut self, payload: &[u8], at: u16, with: u8) {
        for statement in statements_of(payload).filter(|statement| statement.author() == party(N)) {
            self.say(statement.slot(), changed(statement.body(), at, with));
        }
    }

    fn say(&mut self, place: StatementSlot, body: Vec<u8>) {
        let statement = Statement::sign(self.recording.plan.id(), &keys(party(N)), place, body);
        self.give(message(party(N), ITEMS, Bytes::from(item(&statement))));
    }
}

/// Slot and body of a statement, the way certificates begin with them.
fn said(statement: &Statement) -> Vec<u8> {
    let mut bytes = vec![statement.slot().kind as u8];
    bytes.extend_from_slice(&statement.slot().number.to_be_bytes());
    bytes.extend_from_slice(&u32::try_from(statement.body().len()).expect("short").to_be_bytes());
    bytes.extend_from_slice(statement.body());
    bytes
}

/// A message with one statement.
fn item(statement: &Statement) -> Vec<u8> {
    [&[1][..], &statement.author().get().to_be_bytes(), &said(statement), statement.signature()].concat()
}

/// The bytes of a script, read one by one; zeros follow its end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn some(&mut self) -> Vec<u8> {
        let len = usize::from(self.byte()).min(self.0.len());
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken.to_vec()
    }
}

/// Plays a ceremony to party 1: recorded messages in any order; the liar's own statements and messages, changed; statements
/// that it invents; raw bytes; ticks; and restarts.
pub fn play(recording: &Recording, script: &[u8]) {
    let party_1 = recording.join(party(1));
    let mut stage = Stage { recording, party: party_1, journal: Vec::new(), said: BTreeMap::new() };
    let mut script = Script(script);
    stage.give(Input::Start);
    for _ in 0..100 {
        if script.0.is_empty() {
            break;
        }
        match script.byte() % 7 {
            0 => {
                if let Some((from, slot, payload)) = recording.heard.get(usize::from(script.byte())) {
                    stage.give(message(*from, *slot, payload.clone()));
                }
            }
            way @ (1 | 6) => {
                let heard = recording.heard.get(usize::from(script.byte())).filter(|(from, ..)| from.get() == N);
                let (at, with) = (u16::from_be_bytes([script.byte(), script.byte()]), script.byte());
                match heard {
                    Some((_, _, payload)) if way == 1 => stage.lie(payload, at, with),
                    Some((from, slot, payload)) => {
                        stage.give(message(*from, *slot, Bytes::from(changed(payload, at, with))));
                    }
                    None => {}
                }
            }
            2 => {
                let kind = Kind::ALL[usize::from(script.byte()) % Kind::ALL.len()];
                let number = u32::from(script.byte());
                let body = script.some();
                stage.say(StatementSlot::new(kind, number), body);
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
