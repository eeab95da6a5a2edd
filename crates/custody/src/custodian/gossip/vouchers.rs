//! Which nodes, and how many of them, bring a node into a ceremony for which it was not asked.
//!
//! The holders of a key decide about it: up to k - 1 of them may be malicious, whatever the group's k is, and the
//! security of the key must not depend on the group's other nodes. So of the holders of the key with which a ceremony
//! begins, the key's k must have the ceremony: then one of them is honest. At least the group's k is needed in any
//! case, since every claim of nodes needs that many. The honest holder has decided on the ceremony by its own rules, or
//! believed others that had.

use std::collections::BTreeSet;

use theta_names::NodeId;
use theta_statements::KeyChange;

use crate::ceremony::Subject;
use crate::codec::{numbers, parties};
use crate::{Custodian, KeyEntry};

/// The nodes that count, and the threshold of the key that they hold.
type Demand = (Vec<NodeId>, u16);

impl Custodian {
    /// Whether enough of the nodes that count for its key have a ceremony.
    pub(super) fn is_vouched_for(&self, subject: &Subject, told: &BTreeSet<NodeId>) -> bool {
        let is_met = |(of, k): Demand| {
            let needed = usize::from(self.group.k.max(k));
            of.iter().filter(|node| told.contains(node)).count() >= needed
        };
        self.demands(subject).is_some_and(|demands| demands.into_iter().all(is_met))
    }

    /// The nodes that must have the ceremony; `None` if its source contradicts what this node knows of the key.
    ///
    /// The first demand is on the holders by the ceremony's own account, since they deal. If this node knows the key,
    /// the second is on the holders that it knows: liars can give any account, such as one in which they hold a key
    /// with k = 2, and replace a node's good share by a false one of a later epoch. A node that does not know the key
    /// has no share to deal or to lose; a false account makes it hold a worthless share, which harms nobody else.
    fn demands(&self, subject: &Subject) -> Option<Vec<Demand>> {
        let known = self.known_of(subject);
        let mut demands = Vec::new();
        match &subject.source {
            Some(source) => {
                demands.push((parties(&source.holders), source.public.threshold().k()));
                let same_version = known.as_ref().filter(|entry| entry.version == subject.version);
                let before = if subject.is_recovery() { subject.epoch } else { subject.epoch.previous()? };
                let fits = same_version.is_none_or(|entry| {
                    let same = entry.public == source.public && numbers(entry.holders.nodes()) == source.holders;
                    entry.key_id == *source.public.key_id() && (same || entry.epoch != before)
                });
                if !fits {
                    return None;
                }
            }
            None => {
                // Only the name of a new key is at stake. A new version of a key that this node knows must be as safe
                // as the version before, since everybody encrypts to it from then on.
                let rotated = known.as_ref().filter(|_| matches!(subject.request.change, KeyChange::Rotate { .. }));
                let fits = rotated.is_none_or(|entry| {
                    let (k, holders) = (entry.public.threshold().k(), numbers(entry.holders.nodes()));
                    entry.suite == subject.suite && k == subject.k && holders == subject.holders
                });
                if !fits {
                    return None;
                }
                demands.push((parties(&subject.holders), subject.k));
            }
        }
        demands.extend(known.map(|entry| (entry.holders.nodes().to_vec(), entry.public.threshold().k())));
        Some(demands)
    }

    /// What this node knows of the key: the version in question, or else the primary version, or else the newest.
    fn known_of(&self, subject: &Subject) -> Option<std::sync::Arc<KeyEntry>> {
        let name = subject.request.change.key().as_str();
        let versions = self.table.versions(name);
        let same = versions.iter().find(|entry| entry.version == subject.version).cloned();
        same.or_else(|| self.table.get(name)).or_else(|| versions.into_iter().max_by_key(|entry| entry.version))
    }
}
