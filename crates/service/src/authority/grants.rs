//! Which clients were allowed which instances: results are for those who may ask for them.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use theta_orchestration::InstanceId;
use theta_policy::{Name, Operation};

/// How many instances are remembered: more than results and running instances together.
const MOST_INSTANCES: usize = 65_536;
/// How many clients of one.
const MOST_CLIENTS: usize = 64;
/// Bytes of all labels that are remembered.
const MOST_LABEL_BYTES: usize = 16 << 20;

/// An operation that a client was allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) client: Name,
    pub(crate) key: Option<String>,
    pub(crate) operation: Operation,
    pub(crate) label: Bytes,
}

/// The latest of them.
#[derive(Debug, Default)]
pub(crate) struct Grants(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    instances: HashMap<InstanceId, Vec<Granted>>,
    order: VecDeque<InstanceId>,
    label_bytes: usize,
}

impl Grants {
    pub(crate) fn add(&self, instance: InstanceId, granted: Granted) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Inner { instances, order, label_bytes } = &mut *inner;
        let clients = instances.entry(instance).or_insert_with(|| {
            order.push_back(instance);
            Vec::new()
        });
        if clients.contains(&granted) || clients.len() >= MOST_CLIENTS {
            return;
        }
        *label_bytes = label_bytes.saturating_add(granted.label.len());
        // A copy: the label's buffer may be that of a whole ciphertext.
        clients.push(Granted { label: Bytes::copy_from_slice(&granted.label), ..granted });
        while order.len() > MOST_INSTANCES || *label_bytes > MOST_LABEL_BYTES {
            let Some(oldest) = order.pop_front() else { return };
            for granted in instances.remove(&oldest).into_iter().flatten() {
                *label_bytes = label_bytes.saturating_sub(granted.label.len());
            }
        }
    }

    /// What was allowed of this instance.
    pub(crate) fn of(&self, instance: &InstanceId) -> Vec<Granted> {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.instances.get(instance).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(client: &str, label: usize) -> Granted {
        let label = vec![0; label].into();
        Granted { client: client.parse().unwrap(), key: None, operation: Operation::Sign, label }
    }

    #[test]
    fn the_latest_are_remembered_within_bounds() {
        let grants = Grants::default();
        let id = |number: u8| InstanceId([number; 32]);
        grants.add(id(1), granted("a", 1 << 20));
        grants.add(id(1), granted("a", 1 << 20));
        grants.add(id(1), granted("b", 0));
        assert_eq!(grants.of(&id(1)), [granted("a", 1 << 20), granted("b", 0)]);
        for number in 2..=17 {
            grants.add(id(number), granted("a", 1 << 20));
        }
        assert!(grants.of(&id(1)).is_empty(), "17 MiB of labels are too many");
        assert_eq!(grants.of(&id(17)).len(), 1);
    }
}
