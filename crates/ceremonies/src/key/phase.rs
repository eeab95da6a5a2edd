//! The phases of a key's ceremony at one party, and the steps between them.

use std::collections::{BTreeMap, BTreeSet};

use theta_groups::Group;
use theta_rounds::{Bug, PartyId};
use theta_sharing::{Encoded, EncodedKey, ShareIndex};

use super::derive::{Keys, Material};
use super::judge::Selection;
use super::steps::KeyLogic;
use crate::bulletin_board::BulletinBoard;
use crate::dealing::Values;
use crate::machine::Outbox;
use crate::plan::Aim;
use crate::statement::{Digest, Kind, StatementSlot};

/// What a party awaits. For a new key all phases come in this order (the proof only for suites that have one); for new
/// shares, keys and proof are known.
pub(super) enum Phase<G: Group> {
    /// Which dealings count.
    AwaitsDecision,
    /// Those of them that are not here.
    AwaitsDealings(Vec<(PartyId, Digest)>),
    /// k true verification keys, from which all others follow.
    AwaitsKeys(Decided<G>),
    /// k true shares of the proof of possession of this key.
    AwaitsProof(Decided<G>, EncodedKey),
    /// The certificate of this key, and this party's share of it.
    AwaitsCertificate(Decided<G>, EncodedKey),
    /// A quorum decided to abort: nothing.
    Aborted,
    /// A bug: nothing.
    Failed(Bug),
}

/// If no more members than so many have not stated their verification keys, the missing keys are computed. Otherwise a party waits for them until the
/// next tick: to compute a key takes as long as to check a stated one.
const FEW_KEYS: usize = 8;

/// What follows from the decision.
pub(super) struct Decided<G: Group> {
    /// The dealings that count, by rising dealer.
    pub(super) list: Vec<(PartyId, Digest)>,
    pub(super) material: Material<G>,
    /// This party's share; dealings that are false for it have to be reconstructed first. It is boxed, since phases are
    /// moved, and moving it would leave an unwiped copy behind.
    pub(super) share: Option<Box<Values<G::Scalar>>>,
    /// Verification keys that were proven, and true shares of the proof of possession.
    pub(super) keys: BTreeMap<ShareIndex, Encoded<G>>,
    /// The tick at which k of them were here.
    keys_since: Option<u32>,
    pub(super) proofs: BTreeMap<ShareIndex, Vec<u8>>,
    /// The authors whose statements about either were examined.
    pub(super) seen: BTreeSet<(StatementSlot, PartyId)>,
}

impl<G: Group> Decided<G> {
    const fn new(list: Vec<(PartyId, Digest)>, material: Material<G>) -> Self {
        Self {
            list,
            material,
            share: None,
            keys: BTreeMap::new(),
            keys_since: None,
            proofs: BTreeMap::new(),
            seen: BTreeSet::new(),
        }
    }
}

impl<G: Group> Phase<G> {
    /// What follows from the decision, as soon as it is here.
    pub(super) const fn decided(&self) -> Option<&Decided<G>> {
        match self {
            Self::AwaitsKeys(decided) | Self::AwaitsProof(decided, _) | Self::AwaitsCertificate(decided, _) => {
                Some(decided)
            }
            Self::AwaitsDecision | Self::AwaitsDealings(_) | Self::Aborted | Self::Failed(_) => None,
        }
    }

    const fn decided_mut(&mut self) -> Option<&mut Decided<G>> {
        match self {
            Self::AwaitsKeys(decided) | Self::AwaitsProof(decided, _) | Self::AwaitsCertificate(decided, _) => {
                Some(decided)
            }
            Self::AwaitsDecision | Self::AwaitsDealings(_) | Self::Aborted | Self::Failed(_) => None,
        }
    }
}

impl<G: Group> KeyLogic<G> {
    /// Goes as far as possible. Of a new key, every statement is examined, also those that come when the key is known,
    /// so that all liars are named.
    pub(super) fn proceed(&mut self, board: &BulletinBoard, outbox: &mut Outbox) {
        let mut phase = core::mem::replace(&mut self.phase, Phase::AwaitsDecision);
        if matches!(phase, Phase::AwaitsDecision) {
            phase = self.look_for_decision();
        }
        if let Phase::AwaitsDealings(list) = phase {
            phase = self.look_for_dealings(list);
        }
        if let Some(decided) = phase.decided_mut() {
            self.collect(decided, board, outbox);
            if self.is_new_key() {
                self.judge_keys(decided, board, outbox);
            }
        }
        if let Phase::AwaitsKeys(decided) = phase {
            phase = self.look_for_keys(decided);
        }
        if let Phase::AwaitsProof(decided, key) | Phase::AwaitsCertificate(decided, key) = &mut phase
            && self.is_new_key()
        {
            self.judge_proofs(decided, key, board, outbox);
        }
        if let Phase::AwaitsProof(decided, key) = phase {
            phase = self.look_for_proof(decided, key);
        }
        if let Phase::AwaitsCertificate(decided, key) = &phase
            && let Err(bug) = self.activate(decided, key, board, outbox)
        {
            phase = Phase::Failed(bug);
        }
        self.phase = phase;
    }

    pub(super) fn is_new_key(&self) -> bool {
        matches!(self.plan.aim(), Aim::Generate)
    }

    fn look_for_decision(&self) -> Phase<G> {
        let value = self.agreement.decided_value();
        match value.and_then(|value| Selection::decode(&self.plan, value).ok()) {
            None => Phase::AwaitsDecision,
            Some(Selection::Abort) => Phase::Aborted,
            Some(Selection::Dealings(list)) => Phase::AwaitsDealings(list),
        }
    }

    fn look_for_dealings(&self, list: Vec<(PartyId, Digest)>) -> Phase<G> {
        let dealing = |(_, digest): &(PartyId, Digest)| Some(&self.dealings.get(digest)?.dealing);
        let all: Option<Vec<_>> = list.iter().map(dealing).collect();
        let Some(material) = all.and_then(|all| Material::new(&self.plan, &list, &all)) else {
            return Phase::AwaitsDealings(list);
        };
        if self.is_new_key() {
            return Phase::AwaitsKeys(Decided::new(list, material));
        }
        match material.open_key(&self.plan) {
            Ok(key) => Phase::AwaitsCertificate(Decided::new(list, material), key),
            Err(bug) => Phase::Failed(bug),
        }
    }

    fn look_for_keys(&self, mut decided: Decided<G>) -> Phase<G> {
        let known = decided.keys.len();
        if known < usize::from(self.plan.threshold().k()) {
            return Phase::AwaitsKeys(decided);
        }
        let since = *decided.keys_since.get_or_insert(self.ticks);
        if known.saturating_add(FEW_KEYS) < self.plan.members().len() && self.ticks == since {
            return Phase::AwaitsKeys(decided);
        }
        match Keys::interpolate(&self.plan, &decided.keys).map(|keys| keys.encoded(&self.plan)) {
            None => Phase::AwaitsKeys(decided),
            Some(None) => Phase::Failed(Bug("key generation gave no key")),
            Some(Some(key)) if self.plan.proof_of_possession().is_some() => Phase::AwaitsProof(decided, key),
            Some(Some(key)) => Phase::AwaitsCertificate(decided, key),
        }
    }

    fn look_for_proof(&self, decided: Decided<G>, mut key: EncodedKey) -> Phase<G> {
        let Some(scheme) = self.plan.proof_of_possession() else { return Phase::AwaitsCertificate(decided, key) };
        let k = usize::from(self.plan.threshold().k());
        let chosen: Vec<_> = decided.proofs.iter().take(k).map(|(index, share)| (*index, share.clone())).collect();
        if chosen.len() < k {
            return Phase::AwaitsProof(decided, key);
        }
        let proof = scheme.vartime_combine(&chosen);
        match proof.filter(|proof| scheme.vartime_verify(&key.public_key, proof)) {
            None => Phase::Failed(Bug("true shares gave a false proof of possession")),
            proof => {
                key.proof_of_possession = proof;
                Phase::AwaitsCertificate(decided, key)
            }
        }
    }

    /// Sees to it that every member gets its share of what was decided.
    fn collect(&mut self, decided: &mut Decided<G>, board: &BulletinBoard, outbox: &mut Outbox) {
        for (_, digest) in &decided.list {
            if self.dealings.is_wrong(digest) {
                self.dealings.complain_about(digest, Kind::LateComplaint, outbox);
                self.dealings.reconstruct(digest, board, outbox);
            }
            self.dealings.release(digest, outbox);
        }
        if let (None, Some(index)) = (&decided.share, self.index()) {
            let values: BTreeMap<PartyId, Digest> = decided.list.iter().copied().collect();
            let of = |dealer| self.dealings.get(values.get(&dealer)?)?.mine();
            decided.share = decided.material.share(index, self.is_new_key(), of).map(Box::new);
        }
    }
}
