//! What the ledger's replica asks of its node: which keys it has, and the entries in its store.

use std::sync::Arc;

use theta_keyfiles::PublicKeyText;
use theta_ledger::{Action, AdoptedKey, CertifiedEntry, Entry, Host, LedgerState, Verdict};
use theta_names::KeyState;
use theta_store::Store;

use crate::codec::numbers;
use crate::{KeyEntry, KeyTable};

/// What the replica asks of this node.
pub(super) struct Bookkeeper {
    pub(super) store: Arc<Store>,
    pub(super) table: Arc<KeyTable>,
}

impl Host for Bookkeeper {
    fn judge(&self, _state: &LedgerState, entry: &Entry) -> Verdict {
        let Action::Adopt(adopted) = &entry.action else { return Verdict::Invalid };
        let versions = self.table.versions(adopted.key.as_str());
        let known = versions.iter().find(|known| known.version == adopted.version);
        match known.filter(|known| known.epoch >= adopted.epoch) {
            // It may come: this node is about to end the same ceremony.
            None => Verdict::Unknown,
            Some(known) if adopted_key(known).as_ref() == Some(adopted) => Verdict::Valid,
            Some(_) => Verdict::Invalid,
        }
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
