//! The policy in force, which can be replaced while it is asked.

use std::sync::{Arc, PoisonError, RwLock};

use theta_statements::{Name, UnixTime};

use crate::policy::State;
use crate::slots::SlotState;
use crate::{Decision, Policy, PolicyFileError, Request};

/// A policy that can be replaced, and what the node remembers across replacements: rates of the rules that keep their
/// names, and all slots.
#[derive(Debug)]
pub struct PolicyHandle<S> {
    policy: RwLock<Arc<Policy>>,
    state: State<S>,
}

/// What a new file changed that its author may not have meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reload {
    /// Whether the file is another one than before.
    pub changed: bool,
    /// Rules that are gone, and with them their counts.
    pub rules_gone: Vec<Name>,
    /// Signing rules that are gone: nothing limits their slots any more. Should one of the same name come back, it finds
    /// its slots as they were.
    pub signing_rules_gone: Vec<Name>,
}

impl<S: SlotState> PolicyHandle<S> {
    /// Puts a policy in force.
    #[must_use]
    pub fn new(policy: Policy, slots: S) -> Self {
        Self { policy: RwLock::new(Arc::new(policy)), state: State::new(slots) }
    }

    /// The policy in force. It stays as it is; ask for each request anew.
    #[must_use]
    pub fn current(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// As [`Policy::decide`], by the policy in force.
    pub fn decide(&self, request: &Request<'_>, now: UnixTime) -> Decision {
        self.current().decide(request, now, &self.state)
    }

    /// What the node remembers, to decide by a policy that is held already.
    pub const fn state(&self) -> &State<S> {
        &self.state
    }

    /// The memory of slots.
    pub const fn slots(&self) -> &S {
        self.state.slots()
    }

    /// Puts the policy of a new file in force, if there is nothing wrong with it. Decisions under way end by the old one.
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
