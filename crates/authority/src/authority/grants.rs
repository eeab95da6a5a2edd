//! Remembers which clients were allowed which instances, to decide who may have their results.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use theta_names::Label;
use theta_statements::Name;

use crate::{InstanceId, Terms};

/// The most instances that are remembered: more than results and running instances together.
const MOST_INSTANCES: usize = 65_536;
/// The most clients of one instance.
const MOST_CLIENTS: usize = 64;
/// The most bytes of all labels that are remembered.
const MOST_LABEL_BYTES: usize = 16 << 20;

/// The latest permissions. When there are too many, the client with the most of them loses its oldest.
#[derive(Debug, Default)]
pub(crate) struct Grants(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    instances: HashMap<InstanceId, Instance>,
    /// What each client was allowed, the oldest first, and the bytes of its labels.
    clients: HashMap<Name, Allowed>,
    count: usize,
    label_bytes: usize,
}

#[derive(Debug, Default)]
struct Instance {
    granted: Vec<Terms>,
    /// Clients that have been given the result.
    looked: Vec<Name>,
}

#[derive(Debug, Default)]
struct Allowed {
    order: VecDeque<InstanceId>,
    label_bytes: usize,
}

impl Inner {
    /// Drops the oldest entry of the client that uses most of the room that is exceeded.
    fn make_room(&mut self) -> bool {
        let labels = self.label_bytes > MOST_LABEL_BYTES;
        let size = |allowed: &Allowed| if labels { allowed.label_bytes } else { allowed.order.len() };
        let Some(client) = self.clients.iter().max_by_key(|(_, allowed)| size(allowed)).map(|(name, _)| name.clone())
        else {
            return false;
        };
        let Some(oldest) = self.clients.get_mut(&client).and_then(|allowed| allowed.order.pop_front()) else {
            return false;
        };
        let mut freed = 0;
        if let Some(instance) = self.instances.get_mut(&oldest) {
            instance.granted.retain(|granted| {
                let keep = granted.client != client;
                freed += if keep { 0 } else { granted.label.len() };
                keep
            });
            if instance.granted.is_empty() {
                self.instances.remove(&oldest);
            }
        }
        self.count = self.count.saturating_sub(1);
        self.label_bytes = self.label_bytes.saturating_sub(freed);
        if let Some(allowed) = self.clients.get_mut(&client) {
            allowed.label_bytes = allowed.label_bytes.saturating_sub(freed);
            if allowed.order.is_empty() {
                self.clients.remove(&client);
            }
        }
        true
    }
}

impl Grants {
    /// Whether this client is given the result of the instance, which it was allowed, for the first time; it has been from now on.
    pub(crate) fn is_first_look(&self, instance: &InstanceId, client: &Name) -> bool {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Instance { looked, .. }) = inner.instances.get_mut(instance) else { return true };
        let is_first = looked.iter().all(|other| other != client);
        if is_first && looked.len() < MOST_CLIENTS {
            looked.push(client.clone());
        }
        is_first
    }

    pub(crate) fn add(&self, instance: InstanceId, granted: Terms) {
        // The rule is not remembered: another rule may allow the same tomorrow.
        let granted = Terms { rule: None, ..granted };
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Inner { instances, clients, count, label_bytes } = &mut *inner;
        let all = &mut instances.entry(instance).or_default().granted;
        if all.contains(&granted) || all.len() >= MOST_CLIENTS {
            return;
        }
        let allowed = clients.entry(granted.client.clone()).or_default();
        // One entry for each instance of a client, whatever keys and labels it names.
        if all.iter().all(|other| other.client != granted.client) {
            allowed.order.push_back(instance);
            *count += 1;
        }
        allowed.label_bytes = allowed.label_bytes.saturating_add(granted.label.len());
        *label_bytes = label_bytes.saturating_add(granted.label.len());
        // A copy, since the label's buffer may be that of a whole ciphertext.
        let label = Label::new(Bytes::copy_from_slice(granted.label.get())).unwrap_or_default();
        all.push(Terms { label, ..granted });
        while inner.count > MOST_INSTANCES || inner.label_bytes > MOST_LABEL_BYTES {
            if !inner.make_room() {
                return;
            }
        }
    }

    /// What was allowed for this instance.
    pub(crate) fn of(&self, instance: &InstanceId) -> Vec<Terms> {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.instances.get(instance).map(|instance| instance.granted.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use theta_names::{MOST_LABEL, Operation};

    use super::*;

    fn granted(client: &str, label: usize) -> Terms {
        let label = Label::new(vec![0; label].into()).unwrap();
        Terms { client: client.parse().unwrap(), key: None, operation: Operation::Sign, label, rule: None }
    }

    #[test]
    fn the_latest_are_remembered_within_bounds() {
        let grants = Grants::default();
        let id = |number: u16| {
            let mut id = [0; 32];
            id[..2].copy_from_slice(&number.to_be_bytes());
            InstanceId(id)
        };
        grants.add(id(1), granted("a", MOST_LABEL));
        grants.add(id(1), granted("a", MOST_LABEL));
        grants.add(id(1), granted("b", 0));
        for number in 2..=256 {
            grants.add(id(number), granted("a", MOST_LABEL));
        }
        assert_eq!(grants.of(&id(1)), [granted("a", MOST_LABEL), granted("b", 0)], "16 MiB of labels have room");
        grants.add(id(257), granted("a", MOST_LABEL));
        assert_eq!(grants.of(&id(1)), [granted("b", 0)], "more are too many, and they are all of one client");
        assert_eq!((grants.of(&id(2)).len(), grants.of(&id(257)).len()), (1, 1));
    }

    /// A client that is allowed a hundred thousand instances loses its own entries, and nobody else's.
    #[test]
    fn whoever_has_most_makes_room() {
        let grants = Grants::default();
        let id = |number: u32| {
            let mut id = [0; 32];
            id[..4].copy_from_slice(&number.to_be_bytes());
            InstanceId(id)
        };
        for number in 0..100 {
            grants.add(id(number), granted("few", 10));
        }
        for number in 50..100_000 {
            grants.add(id(number), granted("many", 0));
        }
        assert!((0..100).all(|number| grants.of(&id(number)).contains(&granted("few", 10))));
        assert!(grants.of(&id(200)).is_empty());
        assert_eq!(grants.of(&id(99_999)), [granted("many", 0)]);
        assert_eq!(grants.0.lock().unwrap().count, MOST_INSTANCES);
    }
}
