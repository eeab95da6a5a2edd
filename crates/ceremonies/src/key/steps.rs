//! What a party knows in a key's ceremony, and the steps from there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use theta_groups::Group;
use theta_rounds::{Abort, Bug, PartyId};
use theta_sharing::{Encoded, EncodedKey, EncodedShare, ShareIndex};

use super::derive::{Keys, Material, check_key, key_body};
use super::judge::{KEY_TICKS, Opinion, Selection, dealing_slot};
use crate::Memory;
use crate::agreement::Agreement;
use crate::bulletin_board::BulletinBoard;
use crate::certificate::QuorumCertificate;
use crate::dealing::{Dealing, SecretShare, Values, encoded, image};
use crate::dealings::{Dealings, Entry};
use crate::encryption::ENCRYPTION_KEY;
use crate::evidence::CeremonyEvidence;
use crate::machine::Outbox;
use crate::outcome::{Activated, Conclusion};
use crate::participant::Participant;
use crate::plan::{Aim, public_digest};
use crate::statement::{Digest, Kind, Statement, StatementSlot};
use crate::typed::TypedPlan;

pub(super) const KEY: StatementSlot = StatementSlot::new(Kind::Key, 0);
pub(super) const PROOF_OF_POSSESSION: StatementSlot = StatementSlot::new(Kind::ProofOfPossession, 0);
pub(super) const ACTIVATION: StatementSlot = StatementSlot::new(Kind::Activation, 0);

/// Ticks after the certificate for which a member waits for help with a false dealing.
const HELP_TICKS: u32 = 24;

/// One party's state.
pub(crate) struct KeyLogic<G: Group> {
    pub(super) plan: Arc<TypedPlan<G>>,
    pub(super) own: Arc<Participant>,
    pub(super) memory: Memory,
    pub(super) old_share: Option<SecretShare<G>>,
    pub(super) ticks: u32,
    /// The latest dealing of this party's, and for how many keys it has places.
    dealt: Option<(StatementSlot, usize)>,
    pub(super) dealings: Dealings<G>,
    pub(super) agreement: Agreement,
    pub(super) selection: Option<Selection>,
    pub(super) material: Option<Material<G>>,
    pub(super) share: Option<Values<G::Scalar>>,
    /// Verification keys that were proven, and whose key statements were looked at.
    pub(super) known_keys: BTreeMap<ShareIndex, Encoded<G>>,
    pub(super) seen: BTreeSet<(StatementSlot, PartyId)>,
    pub(super) new_keys: Option<Keys<G>>,
    pub(super) possessions: BTreeMap<ShareIndex, Vec<u8>>,
    pub(super) public: Option<EncodedKey>,
    pub(super) activation: Option<QuorumCertificate>,
    /// When it was certified, for all that this party knows.
    certified_at: Option<u32>,
    pub(super) bug: Option<Bug>,
}

impl<G: Group> KeyLogic<G> {
    pub(crate) fn new(
        plan: Arc<TypedPlan<G>>,
        own: Arc<Participant>,
        old_share: Option<SecretShare<G>>,
        memory: Memory,
    ) -> Self {
        let voter = (memory == Memory::Kept).then(|| own.party());
        Self {
            agreement: Agreement::new(&plan, voter),
            dealings: Dealings::new(Arc::clone(&plan), Arc::clone(&own)),
            plan,
            own,
            memory,
            old_share,
            ticks: 0,
            dealt: None,
            certified_at: None,
            selection: None,
            material: None,
            share: None,
            known_keys: BTreeMap::new(),
            seen: BTreeSet::new(),
            new_keys: None,
            possessions: BTreeMap::new(),
            public: None,
            activation: None,
            bug: None,
        }
    }

    pub(super) fn index(&self) -> Option<ShareIndex> {
        self.plan.index_of(self.own.party())
    }

    /// Says what to encrypt to, in this ceremony.
    pub(super) fn announce(&self, outbox: &mut Outbox) {
        if self.memory == Memory::Kept && self.index().is_some() {
            outbox.say(ENCRYPTION_KEY, || Some(self.own.encryption_key().bytes().to_vec()));
        }
    }

    /// This party's dealing, when the keys of all members are here, or of as many as it takes and the others say nothing; and
    /// another one when more keys have come. One that has not been decided on hides its secret like any other.
    pub(super) fn deal(&mut self, outbox: &mut Outbox) {
        let dealer = self.plan.dealer_index(self.own.party()).is_some();
        if !dealer || self.memory == Memory::Lost || self.agreement.decision().is_some() {
            return;
        }
        let (slot, known) = (dealing_slot(self.ticks), self.dealings.arrivals().len());
        let due = match self.dealt {
            Some((last, places)) => known > places && slot > last,
            None => {
                let enough = self.ticks >= KEY_TICKS && known >= self.plan.quorum();
                enough || known == self.plan.members().len()
            }
        };
        if due {
            let secret = self.old_share.as_deref();
            outbox.say(slot, || Dealing::deal(&self.plan, &self.own, slot, secret, self.dealings.announced()));
            self.dealt = Some((slot, known));
        }
    }

    pub(super) fn agree(&mut self, outbox: &mut Outbox) {
        let Self { plan, dealings, ticks, .. } = self;
        let mut opinion = Opinion { plan, dealings, ticks: *ticks };
        if let Some((slot, body)) = self.agreement.next(&mut opinion) {
            outbox.say(slot, || Some(body));
        }
    }

    /// The dealings that were decided, as far as they are here.
    pub(super) fn decided(&self) -> impl Iterator<Item = (PartyId, Digest, Option<&Entry<G>>)> {
        let list = if let Some(Selection::Dealings(list)) = &self.selection { &list[..] } else { &[] };
        list.iter().map(|(dealer, digest)| (*dealer, *digest, self.dealings.get(digest)))
    }

    /// Sees to it that every member gets its share of what was decided.
    pub(super) fn collect(&mut self, board: &BulletinBoard, outbox: &mut Outbox) {
        if self.selection.is_none() {
            let value = self.agreement.decided_value();
            self.selection = value.and_then(|value| Selection::decode(&self.plan, value).ok());
        }
        if self.material.is_none() {
            let all: Option<Vec<_>> =
                self.decided().map(|(dealer, _, entry)| Some((dealer, &entry?.dealing))).collect();
            self.material = all.filter(|all| !all.is_empty()).and_then(|all| Material::new(&self.plan, &all));
        }
        let Some(material) = &self.material else { return };
        let digests: Vec<Digest> = self.decided().map(|(_, digest, _)| digest).collect();
        for digest in &digests {
            if self.dealings.is_wrong(digest) {
                self.dealings.complain_about(digest, Kind::LateComplaint, outbox);
                self.dealings.reconstruct(digest, board, outbox);
            }
            self.dealings.release(digest, outbox);
        }
        if self.share.is_none() && self.index().is_some() {
            let blinded = matches!(self.plan.aim(), Aim::Generate);
            let values: BTreeMap<PartyId, Digest> =
                self.decided().map(|(dealer, digest, _)| (dealer, digest)).collect();
            let of = |dealer| self.dealings.get(values.get(&dealer)?)?.mine();
            self.share = material.share(blinded, of);
        }
    }

    /// Finds the public key and all verification keys. Of a new key, every statement is looked at, those that come when the
    /// key is known included: whoever lies is named.
    pub(super) fn derive(&mut self, board: &BulletinBoard, outbox: &mut Outbox) {
        let Some(material) = &self.material else { return };
        if !matches!(self.plan.aim(), Aim::Generate) {
            if self.public.is_none() {
                match material.open_key(&self.plan) {
                    Ok(public) => self.public = Some(public),
                    Err(bug) => self.bug = Some(bug),
                }
            }
            return;
        }
        if let Some(share) = &self.share {
            outbox.say(KEY, || key_body(&self.plan, &self.own, material, share));
        }
        for statement in board.of_slot(KEY) {
            if !self.seen.insert((KEY, statement.author())) {
                continue;
            }
            match check_key(&self.plan, self.dealings.blinding(), material, statement) {
                Some((index, key)) => drop(self.known_keys.insert(index, key)),
                None => outbox.faults.extend(self.false_key(statement)),
            }
        }
        if self.new_keys.is_none() {
            self.new_keys = Keys::interpolate(&self.plan, &self.known_keys);
        }
        self.prove_possession(board, outbox);
    }

    /// The decision and all dealings that count, for evidence.
    fn proven_material(&self) -> Option<(QuorumCertificate, Vec<Statement>)> {
        let dealings = self.decided().filter_map(|(_, _, entry)| Some(entry?.statement.clone())).collect();
        Some((self.agreement.decision()?.clone(), dealings))
    }

    fn false_key(&self, key: &Statement) -> Option<CeremonyEvidence> {
        let (decision, dealings) = self.proven_material()?;
        Some(CeremonyEvidence::FalseKey { decision, dealings, key: key.clone() })
    }

    fn false_proof_of_possession(&self, board: &BulletinBoard, share: Statement) -> Option<CeremonyEvidence> {
        let (decision, dealings) = self.proven_material()?;
        let true_key = |key: &&Statement| {
            self.plan.index_of(key.author()).is_some_and(|index| self.known_keys.contains_key(&index))
        };
        let k = usize::from(self.plan.threshold().k());
        let keys = board.of_slot(KEY).filter(true_key).take(k).cloned().collect();
        Some(CeremonyEvidence::FalseProofOfPossession { decision, dealings, keys, share })
    }

    /// The rest of the public key: for BLS, the proof of possession in shares.
    fn prove_possession(&mut self, board: &BulletinBoard, outbox: &mut Outbox) {
        let Some(keys) = &self.new_keys else { return };
        let public_key = keys.public_key.bytes();
        let scheme = self.plan.proof_of_possession();
        if let Some(scheme) = scheme {
            if let Some(share) = &self.share {
                outbox.say(PROOF_OF_POSSESSION, || scheme.prove(&encoded(&share.value), public_key));
            }
            let mut false_shares = Vec::new();
            for statement in board.of_slot(PROOF_OF_POSSESSION) {
                let Some(index) = self.plan.index_of(statement.author()) else { continue };
                let Some(key) = keys.verification_keys.get(index.position()) else { continue };
                if self.seen.insert((PROOF_OF_POSSESSION, statement.author())) {
                    if scheme.vartime_verify_share(public_key, key.bytes(), statement.body()) {
                        self.possessions.insert(index, statement.body().to_vec());
                    } else {
                        false_shares.push(statement.clone());
                    }
                }
            }
            outbox
                .faults
                .extend(false_shares.into_iter().filter_map(|share| self.false_proof_of_possession(board, share)));
        }
        if self.public.is_some() {
            return;
        }
        let k = usize::from(self.plan.threshold().k());
        let proof = if let Some(scheme) = scheme {
            let shares = self.possessions.iter().take(k);
            let chosen: Vec<_> = shares.map(|(index, share)| (*index, share.clone())).collect();
            if chosen.len() < k {
                return;
            }
            scheme.vartime_combine(&chosen)
        } else {
            None
        };
        match keys.encoded(&self.plan, proof) {
            Some(public) => self.public = Some(public),
            None => self.bug = Some(Bug("key generation gave no key")),
        }
    }

    fn activation_body(&self) -> Option<Vec<u8>> {
        let mut body = self.plan.epoch().to_be_bytes().to_vec();
        body.extend_from_slice(&public_digest(self.plan.suite(), self.public.as_ref()?));
        Some(body)
    }

    /// Whether a dealing that was decided on has no place for this member. It has no share then, and can vouch for the key all the
    /// same: that k honest members have theirs is what the decision says.
    fn is_left_out(&self) -> bool {
        self.decided().any(|(_, digest, _)| self.dealings.leaves_out(&digest))
    }

    /// Whether this member will not get a share here any more: it has no place, or forgot; or what was dealt to it was false, and
    /// those who could help have ended, for all that it has heard from them.
    fn has_lost_its_share(&self) -> bool {
        let waited = self.certified_at.is_some_and(|since| self.ticks.saturating_sub(since) >= HELP_TICKS);
        self.memory == Memory::Lost || self.is_left_out() || waited
    }

    /// Signs for the key, and gathers the certificate.
    pub(super) fn activate(&mut self, board: &BulletinBoard, outbox: &mut Outbox) {
        let (Some(body), Some(public)) = (self.activation_body(), &self.public) else { return };
        if let Some(index) = self.index().filter(|_| self.memory == Memory::Kept) {
            let fits = |share: &Values<_>| public.verification_key(index) == Some(image::<G>(&share.value).bytes());
            if self.share.as_ref().map_or_else(|| self.is_left_out(), fits) {
                outbox.say(ACTIVATION, || Some(body.clone()));
            }
        }
        if self.activation.as_ref().is_some_and(|certificate| certificate.body() != &body) {
            // More than t members signed another key: nothing that can be trusted comes of this.
            self.bug = Some(Bug("a quorum certified another key"));
        }
        if self.activation.is_none() {
            let same = board.of_slot(ACTIVATION).filter(|statement| statement.body() == &body);
            let signatures: BTreeMap<_, _> = same.map(|signed| (signed.author(), *signed.signature())).collect();
            if signatures.len() >= self.plan.quorum() {
                self.activation = Some(QuorumCertificate::new(ACTIVATION, Bytes::from(body), signatures));
            }
        }
        if let Some(certificate) = &self.activation {
            self.certified_at.get_or_insert(self.ticks);
            for other in board.of_slot(ACTIVATION).filter(|statement| statement.body() != certificate.body()) {
                let (certificate, activation) = (certificate.clone(), other.clone());
                outbox.faults.push(CeremonyEvidence::FalseActivation { certificate, activation });
            }
        }
    }

    pub(super) fn conclude(&self) -> Option<Result<Conclusion, Abort>> {
        if let Some(bug) = self.bug {
            return Some(Err(Abort::Bug(bug)));
        }
        if self.selection == Some(Selection::Abort) {
            return self.agreement.decision().cloned().map(|certificate| Ok(Conclusion::Aborted(certificate)));
        }
        let (public, certificate) = (self.public.clone()?, self.activation.clone()?);
        let share = match self.index() {
            None => None,
            Some(index) => match &self.share {
                Some(share) => Some(EncodedShare { index, secret: encoded(&share.value) }),
                None if self.has_lost_its_share() => None,
                None => return None,
            },
        };
        Some(Ok(Conclusion::Activated(Activated { public, share, certificate })))
    }
}
