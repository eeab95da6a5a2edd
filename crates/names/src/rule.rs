//! Signing rules, which remember the slots that are taken.

use core::{fmt, str::FromStr};

use crate::key::is_plain;

/// The name of a signing rule or of a key's policy in the store, with the syntax of a [`KeyName`](crate::KeyName).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleName(String);

/// The text is not a rule's name; at most 80 characters of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the name of a signing rule: use 1 to 64 of a-z, 0-9, '.', '_', '-', the first a letter or digit")]
pub struct RuleNameError(pub String);

/// In what order the slots of a signing rule may be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotOrder {
    /// In any order.
    Any,
    /// In increasing order: a decision closes all lower slots.
    Increasing,
}

/// What a signing rule decides about a message for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SlotDecision {
    /// It is the first message of the slot, and from now on the only one.
    Allowed,
    /// It is the message that was allowed before.
    Same,
    /// Another message was allowed before.
    Conflict {
        /// The digest of the message that was allowed.
        previous: [u8; 32],
    },
    /// The slot is not above the rule's mark.
    Below {
        /// The mark: the highest slot that is refused.
        mark: u64,
    },
}

impl RuleName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RuleName {
    type Err = RuleNameError;

    fn from_str(name: &str) -> Result<Self, RuleNameError> {
        if is_plain(name) { Ok(Self(name.to_owned())) } else { Err(RuleNameError(name.chars().take(80).collect())) }
    }
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_named_as_keys_are() {
        assert_eq!("heights".parse::<RuleName>().unwrap().to_string(), "heights");
        assert!("Heights".parse::<RuleName>().is_err());
    }
}
