//! The policy in force, which can be replaced at any time.

use std::sync::{Arc, PoisonError, RwLock};

use theta_statements::{Name, UnixTime};

use crate::policy::State;
use crate::slots::SlotState;
use crate::{Decision, Policy, PolicyFileError, Request};

/// A policy that can be replaced, and the memory that survives replacements: the rates of rules that keep their names, and all
/// slots.
#[derive(Debug)]
pub struct PolicyHandle<S> {
    policy: RwLock<Arc<Policy>>,
    state: State<S>,
}

/// Changes by a new file that its author may not have meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reload {
    /// Whether the file differs from the old one.
    pub changed: bool,
    /// Rules that are gone, with their counts.
    pub rules_gone: Vec<Name>,
    /// Signing rules that are gone: nothing limits their slots any more. A later rule of the same name finds its slots as they
    /// were.
    pub signing_rules_gone: Vec<Name>,
}

impl<S: SlotState> PolicyHandle<S> {
    /// Puts a policy in force.
    #[must_use]
    pub fn new(policy: Policy, slots: S) -> Self {
        Self { policy: RwLock::new(Arc::new(policy)), state: State::new(slots) }
    }

    /// The policy in force. What is returned never changes, so call this for each request.
    #[must_use]
    pub fn current(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// As [`Policy::decide`], by the policy in force.
    pub fn decide(&self, request: &Request<'_>, now: UnixTime) -> Decision {
        self.current().decide(request, now, &self.state)
    }

    /// The memory, for a caller that has the policy already.
    pub const fn state(&self) -> &State<S> {
        &self.state
    }

    /// The memory of slots.
    pub const fn slots(&self) -> &S {
        self.state.slots()
    }

    /// Puts the policy of a new file in force, if the file has no mistake. Decisions under way end by the old policy.
    ///
    /// # Errors
    /// [`PolicyFileError`]: the old policy stays in force.
    pub fn reload(&self, text: &str, file: &str) -> Result<Reload, PolicyFileError> {
        let new = Arc::new(Policy::parse(text, file)?);
        let old = {
            let mut current = self.policy.write().unwrap_or_else(PoisonError::into_inner);
            core::mem::replace(&mut *current, Arc::clone(&new))
        };
        self.state.keep_rules(|rule| new.rules().any(|name| name == rule));
        Ok(Reload {
            changed: old.digest() != new.digest(),
            rules_gone: old.rules().filter(|name| !new.rules().any(|other| other == *name)).cloned().collect(),
            signing_rules_gone: old
                .signing_rules()
                .filter(|name| !new.signing_rules().any(|other| other == *name))
                .cloned()
                .collect(),
        })
    }
}
