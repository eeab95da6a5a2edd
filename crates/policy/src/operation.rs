//! Sets of operations, as rules name them.

use core::fmt;

use theta_names::{Operation, OperationError};

/// A set of operations.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OperationSet(u32);

impl OperationSet {
    /// All operations but three, which have to be named: `sign-digest`, since a rule for everything was perhaps written to come after one
    /// that puts conditions on `sign`; `audit.prune`, since it takes away what a stolen identity did; and `group.change`, since all that
    /// a group promises rests on who its members are.
    pub const ALL: Self = Self(
        !(Self::bit(Operation::SignDigest) | Self::bit(Operation::AuditPrune) | Self::bit(Operation::GroupChange)),
    );
    /// None.
    pub const NONE: Self = Self(0);

    /// The set with this operation added.
    #[must_use]
    pub const fn with(self, operation: Operation) -> Self {
        Self(self.0 | Self::bit(operation))
    }

    /// Whether the set has this operation.
    #[must_use]
    pub const fn contains(self, operation: Operation) -> bool {
        self.0 & Self::bit(operation) != 0
    }

    /// The set that an entry of a policy file stands for: an operation, `keys.*` (all of key management) or `*`.
    ///
    /// # Errors
    /// [`OperationError`] for anything else.
    pub fn of(entry: &str) -> Result<Self, OperationError> {
        match entry {
            "*" => Ok(Self::ALL),
            "keys.*" => Ok(Operation::ALL
                .into_iter()
                .filter(|operation| operation.name().starts_with("keys."))
                .fold(Self::NONE, Self::with)),
            name => name.parse().map(|operation| Self::NONE.with(operation)),
        }
    }

    /// The union of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the two have an operation in common.
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    const fn bit(operation: Operation) -> u32 {
        1 << operation.code()
    }
}

impl fmt::Display for OperationSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> =
            Operation::ALL.into_iter().filter(|operation| self.contains(*operation)).map(Operation::name).collect();
        f.write_str(&names.join(", "))
    }
}

impl fmt::Debug for OperationSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OperationSet({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_their_members() {
        let keys = OperationSet::of("keys.*").unwrap();
        assert!(keys.contains(Operation::KeysDestroy) && !keys.contains(Operation::Sign));
        let all = OperationSet::of("*").unwrap();
        let named = |operation: &Operation| {
            !matches!(operation, Operation::SignDigest | Operation::AuditPrune | Operation::GroupChange)
        };
        assert!(Operation::ALL.into_iter().all(|operation| all.contains(operation) == named(&operation)));
        assert!(OperationSet::of("sign-digest").unwrap().contains(Operation::SignDigest));
        let two = OperationSet::of("sign").unwrap().union(OperationSet::of("status").unwrap());
        assert_eq!(two.to_string(), "sign, status");
        assert!(!two.meets(keys) && two.meets(OperationSet::ALL));
    }
}
