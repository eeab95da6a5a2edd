//! Plans of ceremonies, each computed once: the same ceremony is asked for, voted on, begun and ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use theta_ceremonies::CeremonyPlan;
use theta_ledger::Begun;

use super::Subject;
use crate::CeremonyError;

/// The most plans that are kept: members may propose ceremonies that never begin. What finds no room is computed again.
const MOST_PLANS: usize = 64;

/// A ceremony as the ledger begins it, and what it comes to.
#[derive(Debug)]
pub(crate) struct Planned {
    begun: Begun,
    pub(crate) subject: Subject,
    pub(crate) plan: Arc<CeremonyPlan>,
}

/// The plans of a group's ceremonies, by the digest of the request. A group keeps its name.
#[derive(Debug, Default)]
pub(crate) struct Plans(BTreeMap<[u8; 32], Arc<Planned>>);

impl Plans {
    /// The plan of a ceremony. One request comes to something else when the ledger has gone on before it begins: what is kept serves only
    /// where all is the same.
    ///
    /// # Errors
    /// [`CeremonyError`] if there can be no such ceremony in this group.
    pub(crate) fn of(&mut self, group: &str, begun: &Begun) -> Result<Arc<Planned>, CeremonyError> {
        let id = begun.request.digest();
        if let Some(known) = self.0.get(&id).filter(|known| known.begun == *begun) {
            return Ok(Arc::clone(known));
        }
        let subject = Subject::of_begun(begun)?;
        let plan = subject.plan(group, &begun.members)?;
        let planned = Arc::new(Planned { begun: begun.clone(), subject, plan });
        if self.0.len() >= MOST_PLANS && !self.0.contains_key(&id) {
            self.0.pop_first();
        }
        self.0.insert(id, Arc::clone(&planned));
        Ok(planned)
    }

    /// Forgets the plans of all other requests.
    pub(crate) fn retain(&mut self, is_of_use: impl Fn(&[u8; 32]) -> bool) {
        self.0.retain(|id, _| is_of_use(id));
    }
}

#[cfg(test)]
mod tests {
    use theta_ceremonies::CeremonyKeys;
    use theta_groups::Secret;
    use theta_names::{Delivery, Epoch, NodeId, Version};
    use theta_schemes::Suite;
    use theta_statements::{CeremonyRequest, KeyChange};

    use super::*;

    fn begun(nonce: u8) -> Begun {
        let holders = vec![1, 2, 3];
        let identity = |node: &u16| {
            let secret = Secret::new([u8::try_from(*node).unwrap(); 32]);
            CeremonyKeys::new(NodeId::try_from(*node).unwrap(), secret).member().clone()
        };
        let (key, suite, delivery, k) = ("zone".parse().unwrap(), Suite::FrostEd25519.into(), Delivery::All, 2);
        let members = holders.iter().map(identity).collect();
        let change = KeyChange::Create { key, suite, delivery, k, holders: holders.clone() };
        Begun {
            request: CeremonyRequest { nonce: [nonce; 32], change },
            version: Version::FIRST,
            epoch: Epoch::FIRST,
            suite: Suite::FrostEd25519.into(),
            delivery,
            k,
            holders,
            source: None,
            members,
        }
    }

    #[test]
    fn a_plan_is_computed_once_and_again_when_anything_of_it_changes() {
        let mut plans = Plans::default();
        let first = plans.of("group", &begun(1)).unwrap();
        assert!(Arc::ptr_eq(&first, &plans.of("group", &begun(1)).unwrap()));
        let next = Begun { version: Version::new(2).unwrap(), ..begun(1) };
        let second = plans.of("group", &next).unwrap();
        assert_ne!(first.plan.id(), second.plan.id());
        assert!(Arc::ptr_eq(&second, &plans.of("group", &next).unwrap()));
        plans.retain(|_| false);
        assert!(!Arc::ptr_eq(&second, &plans.of("group", &next).unwrap()));
    }

    #[test]
    fn what_members_propose_takes_bounded_room() {
        let mut plans = Plans::default();
        for nonce in 0..=u8::MAX {
            plans.of("group", &begun(nonce)).unwrap();
        }
        assert_eq!(plans.0.len(), MOST_PLANS);
    }
}
