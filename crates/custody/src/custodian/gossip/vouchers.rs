//! Whose word brings a node into a ceremony that it was not asked for, and how many of them it takes.
//!
//! What may happen to a key is for its holders to say: up to k - 1 of these may do what they like, whatever the group's k is, and
//! the group's other nodes are no party to that bargain. So of the holders of the key that a ceremony begins with, as many must have
//! the ceremony that one is honest: the key's k. Never fewer than the group's k, which is what any word among nodes takes. One
//! honest holder has decided on it by its own rules, or believed those who had.

use std::collections::BTreeSet;

use theta_names::NodeId;
use theta_statements::KeyChange;

use crate::ceremony::Subject;
use crate::codec::{numbers, parties};
use crate::{Custodian, KeyEntry};

/// Of these nodes, so many.
type Demand = (Vec<NodeId>, u16);

impl Custodian {
    /// Whether enough of those have a ceremony whose word counts about its key.
    pub(super) fn is_vouched_for(&self, subject: &Subject, told: &BTreeSet<NodeId>) -> bool {
        let is_met = |(of, k): Demand| {
            let needed = usize::from(self.group.k.max(k));
            of.iter().filter(|node| told.contains(node)).count() >= needed
        };
        self.demands(subject).is_some_and(|demands| demands.into_iter().all(is_met))
    }

    /// Whose word it takes; `None` if the ceremony begins with something else than this node knows of the key.
    ///
    /// Those who hold the key by the ceremony's own account, since it is they who deal. And, if this node knows the key, the
    /// holders that it knows: liars can give any account, in which they hold a key of 2, say, and take a node's good share away with
    /// a false one of a later epoch. A node that knows nothing of the key has no share to deal or to lose; a false account makes it
    /// hold what is worth nothing, which harms nobody else.
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
                // Nothing is at stake of a new key but its name. A new version of a key that this node knows is as safe as the one
                // before: what everybody encrypts to from then on.
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

    /// What this node knows of the key: the version in question, or else the one that is served under the key's name, or else the
    /// newest.
    fn known_of(&self, subject: &Subject) -> Option<std::sync::Arc<KeyEntry>> {
        let name = subject.request.change.key().as_str();
        let versions = self.table.versions(name);
        let same = versions.iter().find(|entry| entry.version == subject.version).cloned();
        same.or_else(|| self.table.get(name)).or_else(|| versions.into_iter().max_by_key(|entry| entry.version))
    }
}
