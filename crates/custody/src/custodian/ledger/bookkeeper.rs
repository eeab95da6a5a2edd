//! What the ledger's replica asks of its node: which keys it has, what became of ceremonies, and the entries in its store.

use std::cell::RefCell;

use theta_ceremonies::QuorumCertificate;
use theta_ledger::{
    Action, AdoptedKey, Begun, CertifiedEntry, Entry, Host, LedgerState, MemberChange, Outcome, Verdict,
};
use theta_names::{KeyState, SuiteName};
use theta_schemes::Suite;
use theta_schemes::keys::PublicParts;
use theta_sharing::Threshold;
use theta_statements::KeyChange;
use theta_store::Store;

use super::{member_requests::MemberRequests, take_back::is_taken_back};
use crate::ceremony::{Plans, public_of};
use crate::codec::numbers;
use crate::custodian::ceremonies::Prospects;
use crate::{KeyEntry, KeyTable};

/// What the replica asks of this node.
pub(super) struct Bookkeeper<'a> {
    pub(super) store: &'a Store,
    pub(super) table: &'a KeyTable,
    /// The group's name.
    pub(super) group: &'a str,
    pub(super) prospects: Prospects<'a>,
    /// The replica asks without changing its host; what the answers took to compute is kept all the same.
    pub(super) planned: RefCell<&'a mut Plans>,
    /// Which changes of the members clients have asked for.
    pub(super) asked: &'a MemberRequests,
}

impl Bookkeeper<'_> {
    fn judge_adopted(&self, state: &LedgerState, adopted: &AdoptedKey) -> Verdict {
        if !is_whole(state, adopted) {
            return Verdict::Invalid;
        }
        let versions = self.table.versions(adopted.key.as_str());
        let known = versions.iter().find(|known| known.version == adopted.version);
        match known {
            Some(known) if known.epoch >= adopted.epoch && adopted_key(known).as_ref() != Some(adopted) => {
                Verdict::Invalid
            }
            Some(known)
                if !are_of_one_key(&adopted.public, &known.public.to_bytes()) || known.delivery != adopted.delivery =>
            {
                Verdict::Invalid
            }
            // Its holders have said so.
            _ => Verdict::Valid,
        }
    }

    /// Whether nothing that this node has speaks against a change of the members: a dealer may have given a member shares that the ledger
    /// does not know of yet.
    fn fits_members(&self, state: &LedgerState, change: &MemberChange) -> bool {
        match change {
            MemberChange::Remove { node } => held_beside(self.table, state, *node).is_none(),
            _ => true,
        }
    }

    /// Whether a ceremony's own certificate is for this key.
    fn is_certified(&self, begun: &Begun, public: &[u8], certificate: &[u8]) -> bool {
        let Some((suite, threshold)) = named(public) else { return false };
        if SuiteName::from(suite) != begun.suite || !is_of(threshold, begun.k, &begun.holders) {
            return false;
        }
        let planned = self.planned.borrow_mut().of(self.group, begun);
        let (Ok(planned), Ok(key)) = (planned, public_of(public)) else { return false };
        let (Some(encoded), Ok(quorum)) = (key.encoded(), QuorumCertificate::decode(certificate)) else {
            return false;
        };
        // What the members signed are points; the suite beside them follows from the request. A key has one binary form.
        quorum.encode() == certificate && quorum.activates(&planned.plan, &encoded)
    }
}

impl Host for Bookkeeper<'_> {
    /// A request to begin has the consents of those who asked their own policies; what follows from it anybody can check, but for a
    /// ceremony that comes to nothing: that is each node's own judgement.
    fn judge(&self, state: &LedgerState, entry: &Entry) -> Verdict {
        let holds = match &entry.action {
            Action::Adopt(adopted) => return self.judge_adopted(state, adopted),
            Action::Begin(request) => {
                let is_possible = |begun: &Begun| self.planned.borrow_mut().of(self.group, begun).is_ok();
                // A dealer's key may have the name, and not be in the ledger yet.
                let create = matches!(request.change, KeyChange::Create { .. });
                let taken = create && !matches!(self.store.key(request.change.key()), Ok(None));
                // Whoever asked for it has taken it back here.
                let used = !matches!(self.store.is_used(&request.digest()), Ok(false));
                !taken && !used && state.begun(request).is_ok_and(|begun| is_possible(&begun))
            }
            Action::End { ceremony, outcome } => match (state.running().get(ceremony), outcome) {
                (Some(begun), Outcome::Activated { public, certificate }) => {
                    self.is_certified(begun, public, certificate)
                }
                // Those whose word it takes have consented.
                (Some(_), Outcome::Recovered | Outcome::Cancelled) => true,
                (Some(begun), Outcome::Aborted) => {
                    begun.is_orphaned(state.members()) || self.prospects.are_none(*ceremony, &begun.request.digest())
                }
                (None, _) => false,
            },
            // Its holders have consented, by their policies.
            Action::SetState(_) => true,
            // It has the consents of those who asked their own policies. What proves itself is not asked of this node.
            Action::Members(change) => {
                let wanted = change.claims_proof(&entry.reason)
                    || self.asked.wants(&entry.action.digest())
                    || !is_taken_back(self.store, state, &entry.action);
                wanted && self.fits_members(state, change)
            }
        };
        if holds { Verdict::Valid } else { Verdict::Invalid }
    }

    fn entry(&self, height: u64) -> Option<CertifiedEntry> {
        // What cannot be read is not passed on; whoever lacks it asks another node.
        let bytes = self.store.ledger_entry(height).ok()??;
        CertifiedEntry::decode(&bytes).ok()
    }
}

/// A key of this node's that the ledger does not have, and of which a member holds a share.
pub(super) fn held_beside(table: &KeyTable, state: &LedgerState, node: u16) -> Option<String> {
    let unknown = |entry: &KeyEntry| {
        let line = state.keys().get(&entry.name);
        entry.state != KeyState::Destroyed && line.is_none_or(|line| !line.versions.contains_key(&entry.version))
    };
    let held = table.iter().find(|entry| unknown(entry) && numbers(entry.holders.nodes()).contains(&node));
    held.map(|entry| entry.qualified_name())
}

/// Whether all that is said of a key goes together, and with what the ledger has of the version. What costs nothing is compared first:
/// any member may propose a key, and the elements of one with many shares take long to check, those of RSA the longest.
fn is_whole(state: &LedgerState, adopted: &AdoptedKey) -> bool {
    let Some((suite, threshold)) = named(&adopted.public) else { return false };
    let known = state.keys().get(&adopted.key).and_then(|line| line.versions.get(&adopted.version));
    let same = known.is_none_or(|known| {
        let same = known.suite == adopted.suite && known.delivery == adopted.delivery;
        same && known.serving().is_none_or(|serving| are_of_one_key(&serving.public, &adopted.public))
    });
    same && SuiteName::from(suite) == adopted.suite
        && suite.supports(adopted.delivery)
        && suite.check_threshold(threshold, adopted.delivery).is_ok()
        && is_of(threshold, adopted.k, &adopted.holders)
        && public_of(&adopted.public).is_ok()
}

/// The suite, and the numbers of shares, that a public part names. Its elements are not looked at.
fn named(part: &[u8]) -> Option<(Suite, Threshold)> {
    let (suite, parts) = PublicParts::decode(part).ok()?;
    Some((suite, parts.threshold()))
}

fn is_of(threshold: Threshold, k: u16, holders: &[u16]) -> bool {
    (threshold.k(), usize::from(threshold.n())) == (k, holders.len())
}

/// Whether two public parts are of one key, in whatever sharings, if each is one of a key.
fn are_of_one_key(one: &[u8], other: &[u8]) -> bool {
    let (Ok((suite, one)), Ok((other_suite, other))) = (PublicParts::decode(one), PublicParts::decode(other)) else {
        return false;
    };
    suite == other_suite && one.public_key() == other.public_key()
}

/// A key of this node's as the ledger has it, if it serves or did.
pub(super) fn adopted_key(entry: &KeyEntry) -> Option<AdoptedKey> {
    let adopted = AdoptedKey {
        key: entry.name.clone(),
        version: entry.version,
        epoch: entry.epoch,
        suite: entry.suite.into(),
        delivery: entry.delivery,
        k: entry.public.threshold().k(),
        holders: numbers(entry.holders.nodes()),
        public: entry.public.to_bytes(),
    };
    (!matches!(entry.state, KeyState::Pending | KeyState::Destroyed)).then_some(adopted)
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;
    use theta_schemes::keys::deal_any;

    use super::*;

    /// Numbers that do not fit are refused before anybody computes with the elements.
    #[test]
    fn numbers_and_keys_are_compared_without_a_look_at_the_elements() {
        let (suite, threshold) = (Suite::Cks05Ristretto255, Threshold::new(2, 4).unwrap());
        let dealt = |seed| deal_any(suite, threshold, &mut ChaCha20Rng::seed_from_u64(seed)).0.to_bytes();
        let (public, other) = (dealt(1), dealt(2));
        let mut garbled = public.clone();
        // The last byte of the last verification key, before that of a proof which there is not: it is never so high.
        let last = garbled.len() - 2;
        garbled[last] = 0xff;
        assert!(public_of(&public).is_ok() && public_of(&garbled).is_err());
        assert_eq!([&public, &garbled].map(|part| named(part)), [Some((suite, threshold)); 2]);
        assert!(
            is_of(threshold, 2, &[1, 2, 3, 4]) && !is_of(threshold, 3, &[1, 2, 3, 4]) && !is_of(threshold, 2, &[1, 2])
        );
        assert!(are_of_one_key(&public, &garbled) && !are_of_one_key(&public, &other));
        assert_eq!(named(&public[1..]), None);
    }
}
