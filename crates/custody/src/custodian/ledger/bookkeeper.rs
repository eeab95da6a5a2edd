//! What the ledger's replica asks of its node: which keys it has, what became of ceremonies, and the entries in its store.

use std::collections::BTreeSet;
use std::sync::Arc;

use theta_ceremonies::QuorumCertificate;

use theta_keyfiles::PublicKeyText;
use theta_ledger::{Action, AdoptedKey, Begun, CertifiedEntry, Entry, Host, LedgerState, Outcome, Verdict};
use theta_names::KeyState;
use theta_store::Store;

use crate::ceremony::{Subject, public_of};
use crate::codec::numbers;
use crate::{KeyEntry, KeyTable, Roster};

/// What the replica asks of this node.
pub(super) struct Bookkeeper<'a> {
    pub(super) store: Arc<Store>,
    pub(super) table: Arc<KeyTable>,
    pub(super) group: &'a Roster,
    /// Ceremonies of which nothing will come, by their numbers.
    pub(super) hopeless: BTreeSet<u64>,
}

impl Bookkeeper<'_> {
    fn judge_adopted(&self, adopted: &AdoptedKey) -> Verdict {
        let versions = self.table.versions(adopted.key.as_str());
        let known = versions.iter().find(|known| known.version == adopted.version);
        match known.filter(|known| known.epoch >= adopted.epoch) {
            Some(known) if adopted_key(known).as_ref() != Some(adopted) => Verdict::Invalid,
            // Its holders have said so.
            _ => Verdict::Valid,
        }
    }

    /// Whether a ceremony's own certificate is for this key.
    fn is_certified(&self, begun: &Begun, public: &[u8], certificate: &[u8]) -> bool {
        let plan = Subject::of_begun(begun).and_then(|subject| subject.plan(self.group));
        let (Ok(plan), Ok(public)) = (plan, public_of(public)) else { return false };
        let (Some(public), Ok(certificate)) = (public.encoded(), QuorumCertificate::decode(certificate)) else {
            return false;
        };
        certificate.activates(&plan, &public)
    }
}

impl Host for Bookkeeper<'_> {
    /// A request to begin has the consents of those who asked their own policies; what follows from it anybody can check, but for a
    /// ceremony that comes to nothing: that is each node's own judgement.
    fn judge(&self, state: &LedgerState, entry: &Entry) -> Verdict {
        let holds = match &entry.action {
            Action::Adopt(adopted) => return self.judge_adopted(adopted),
            Action::Begin(request) => {
                let subject = state.begun(request).ok().and_then(|begun| Subject::of_begun(&begun).ok());
                subject.is_some_and(|subject| subject.plan(self.group).is_ok())
            }
            Action::End { ceremony, outcome } => match (state.running().get(ceremony), outcome) {
                (Some(begun), Outcome::Activated { public, certificate }) => {
                    self.is_certified(begun, public, certificate)
                }
                (Some(_), Outcome::Recovered) => true,
                (Some(_), Outcome::Aborted) => self.hopeless.contains(ceremony),
                (None, _) => false,
            },
            // What proves itself is not asked of this node.
            Action::SetState(_) | Action::Members(_) => false,
        };
        if holds { Verdict::Valid } else { Verdict::Invalid }
    }

    fn entry(&self, height: u64) -> Option<CertifiedEntry> {
        // What cannot be read is not passed on; whoever lacks it asks another node.
        let bytes = self.store.ledger_entry(height).ok()??;
        CertifiedEntry::decode(&bytes).ok()
    }
}

/// A key of this node's as the ledger has it, if it serves or did.
pub(super) fn adopted_key(entry: &KeyEntry) -> Option<AdoptedKey> {
    let public = entry.public.to_text(&entry.name).into_bytes();
    let adopted = AdoptedKey {
        key: entry.name.clone(),
        version: entry.version,
        epoch: entry.epoch,
        suite: entry.suite.into(),
        k: entry.public.threshold().k(),
        holders: numbers(entry.holders.nodes()),
        public,
    };
    (!matches!(entry.state, KeyState::Pending | KeyState::Destroyed)).then_some(adopted)
}
