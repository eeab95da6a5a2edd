//! A party's state in a key's ceremony: what it deals, votes for and signs.

use std::sync::Arc;

use bytes::Bytes;
use theta_agreement::{Agreement, Judge};
use theta_groups::Group;
use theta_rounds::{Abort, Bug};
use theta_sharing::{EncodedKey, EncodedShare, ShareIndex};

use super::judge::{KEY_TICKS, MOST_KEY_TICKS, Opinion, Selection, dealing_slot};
use super::phase::{Decided, Phase};
use crate::bulletin_board::BulletinBoard;
use crate::certificate::{QuorumCertificate, activation_body};
use crate::dealing::{Dealing, SecretShare, Values, encoded, image};
use crate::dealings::Dealings;
use crate::electorate::slot_of;
use crate::encryption::ENCRYPTION_KEY;
use crate::evidence::CeremonyEvidence;
use crate::machine::{Memory, Outbox};
use crate::outcome::{Activated, Conclusion};
use crate::participant::Participant;
use crate::plan::CeremonyPlan;
use crate::record::map_of;
use crate::statement::{Kind, StatementSlot};
use crate::typed::TypedPlan;

pub(super) const KEY: StatementSlot = StatementSlot::new(Kind::Key, 0);
pub(super) const PROOF_OF_POSSESSION: StatementSlot = StatementSlot::new(Kind::ProofOfPossession, 0);
pub(super) const ACTIVATION: StatementSlot = StatementSlot::new(Kind::Activation, 0);

/// Up to so many dealers, each dealing that comes late is checked at once.
const FEW_DEALERS: usize = 9;

/// Ticks after the certificate for which a member waits for help with a false dealing.
const HELP_TICKS: u32 = 24;

/// One party's state.
pub(crate) struct KeyLogic<G: Group> {
    pub(super) plan: Arc<TypedPlan<G>>,
    pub(super) own: Arc<Participant>,
    pub(super) memory: Memory,
    pub(super) old_share: Option<SecretShare<G>>,
    pub(super) ticks: u32,
    /// When the last key came.
    pub(super) last_key: u32,
    /// The latest dealing of this party's, and for how many keys it has places.
    dealt: Option<(StatementSlot, usize)>,
    pub(super) dealings: Dealings<G>,
    /// When the dealings were last checked.
    pub(super) checked_at: Option<u32>,
    pub(super) agreement: Agreement,
    /// What the agreement has decided, as a certificate among others.
    pub(super) decision: Option<QuorumCertificate>,
    pub(super) phase: Phase<G>,
    pub(super) activation: Option<QuorumCertificate>,
    /// The tick at which this party learned of the certificate.
    certified_at: Option<u32>,
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
            agreement: Agreement::new::<CeremonyPlan>(&plan, voter),
            dealings: Dealings::new(Arc::clone(&plan), Arc::clone(&own)),
            plan,
            own,
            memory,
            old_share,
            ticks: 0,
            last_key: 0,
            checked_at: None,
            dealt: None,
            certified_at: None,
            phase: Phase::AwaitsDecision,
            decision: None,
            activation: None,
        }
    }

    pub(super) fn index(&self) -> Option<ShareIndex> {
        self.plan.index_of(self.own.party())
    }

    /// Announces this party's encryption key.
    pub(super) fn announce(&self, outbox: &mut Outbox) {
        if self.memory == Memory::Kept && self.index().is_some() {
            outbox.say(ENCRYPTION_KEY, || Some(self.own.encryption_key().bytes().to_vec()));
        }
    }

    /// Deals when the keys of all members are here, or those of a quorum and the others are silent; and deals again
    /// when more keys have come. A dealing that is not decided on hides its secret like any other.
    pub(super) fn deal(&mut self, outbox: &mut Outbox) {
        let dealer = self.plan.dealer_index(self.own.party()).is_some();
        if !dealer || self.memory == Memory::Lost || self.decision.is_some() {
            return;
        }
        let (slot, known) = (dealing_slot(self.ticks), self.dealings.arrived());
        let due = match self.dealt {
            Some((last, places)) => known > places && slot > last,
            None => {
                let quiet = self.ticks.saturating_sub(self.last_key) >= KEY_TICKS;
                let enough = known >= self.plan.quorum() && (quiet || self.ticks >= MOST_KEY_TICKS);
                enough || known == self.plan.members().len()
            }
        };
        if due {
            let secret = self.old_share.as_deref();
            outbox.say(slot, || Dealing::deal(&self.plan, &self.own, slot, secret, self.dealings.announced()));
            self.dealt = Some((slot, known));
        }
    }

    /// Whether to check the dealings that are here, as many as possible together: when all have come; when those that were
    /// proposed or decided have; and once a tick, or, if there are few dealers, with each dealing that comes later.
    pub(super) fn is_time_to_check(&self) -> bool {
        let dealers = self.plan.dealers().len();
        if self.dealings.count() == dealers || (self.ticks > 0 && self.checked_at != Some(self.ticks)) {
            return true;
        }
        let values = [self.agreement.proposed_value(), self.agreement.decided_value()];
        if dealers <= FEW_DEALERS {
            return self.ticks > 0 || self.decision.is_some() || values.iter().any(Option::is_some);
        }
        values.into_iter().flatten().any(|value| match Selection::decode(&self.plan, value) {
            Ok(Selection::Dealings(list)) => {
                list.iter().all(|(_, digest)| self.dealings.get(digest).is_some())
                    && !list.iter().all(|(_, digest)| self.dealings.is_checked(digest))
            }
            _ => false,
        })
    }

    /// Whether there is something to agree on, for all that this party knows: before, nobody is late with a proposal.
    pub(super) fn has_something_to_agree_on(&self) -> bool {
        let mut opinion = Opinion { plan: &self.plan, dealings: &self.dealings, ticks: self.ticks };
        let begun = self.agreement.view() > 0 || self.agreement.proposed_value().is_some();
        begun || opinion.propose().is_some()
    }

    pub(super) fn agree(&mut self, outbox: &mut Outbox) {
        let Self { plan, dealings, ticks, .. } = self;
        let mut opinion = Opinion { plan, dealings, ticks: *ticks };
        if let Some((ballot, body)) = self.agreement.next(&mut opinion) {
            outbox.say(slot_of(ballot), || Some(body));
        }
        if self.decision.is_none() {
            self.decision = self.agreement.decision().map(QuorumCertificate::of_votes);
        }
    }

    /// Whether a decided dealing has no place for this member. Then it has no share, and may sign for the key all the
    /// same: the decision implies that k honest members have theirs.
    fn is_left_out(&self, decided: &Decided<G>) -> bool {
        decided.list.iter().any(|(_, digest)| self.dealings.leaves_out(digest))
    }

    /// Whether this member cannot get a share in this ceremony any more: a dealing has no place for it, it forgot, or
    /// its values were false and those that could help have ended, as far as it knows.
    fn has_lost_its_share(&self, decided: &Decided<G>) -> bool {
        let waited = self.certified_at.is_some_and(|since| self.ticks.saturating_sub(since) >= HELP_TICKS);
        self.memory == Memory::Lost || self.is_left_out(decided) || waited
    }

    /// Signs for the key, and gathers the certificate.
    ///
    /// # Errors
    /// More than t members signed another key, so no result can be trusted.
    pub(super) fn activate(
        &mut self,
        decided: &Decided<G>,
        key: &EncodedKey,
        board: &BulletinBoard,
        outbox: &mut Outbox,
    ) -> Result<(), Bug> {
        let body = activation_body(&self.plan, key);
        if let Some(index) = self.index().filter(|_| self.memory == Memory::Kept) {
            let fits = |share: &Values<_>| key.verification_key(index) == Some(image::<G>(&share.value).bytes());
            if decided.share.as_deref().map_or_else(|| self.is_left_out(decided), fits) {
                outbox.say(ACTIVATION, || Some(body.clone()));
            }
        }
        let other_key = self.activation.as_ref().is_some_and(|certificate| certificate.body() != &body);
        if self.activation.is_none() {
            let same = board.of_slot(ACTIVATION).filter(|statement| statement.body() == &body);
            let signatures = map_of(same.map(|signed| (signed.author(), *signed.signature())).collect());
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
        if other_key { Err(Bug("a quorum certified another key")) } else { Ok(()) }
    }

    pub(super) fn conclude(&self) -> Option<Result<Conclusion, Abort>> {
        let (decided, key) = match &self.phase {
            Phase::Failed(bug) => return Some(Err(Abort::Bug(*bug))),
            Phase::Aborted => {
                return self.decision.clone().map(|decision| Ok(Conclusion::Aborted(decision)));
            }
            Phase::AwaitsCertificate(decided, key) => (decided, key),
            Phase::AwaitsDecision | Phase::AwaitsDealings(_) | Phase::AwaitsKeys(_) | Phase::AwaitsProof(..) => {
                return None;
            }
        };
        let certificate = self.activation.clone()?;
        let share = match self.index() {
            None => None,
            Some(index) => match &decided.share {
                Some(share) => Some(EncodedShare { index, secret: encoded(&share.value) }),
                None if self.has_lost_its_share(decided) => None,
                None => return None,
            },
        };
        Some(Ok(Conclusion::Activated(Activated { public: key.clone(), share, certificate })))
    }
}
