//! The operations that clients can ask for.

use core::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

/// An operation that a client may ask a node for. Policy files have the names, signed and stored bytes the codes; neither ever
/// changes its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// Decrypt a ciphertext at the node.
    Decrypt,
    /// Unwrap the payload key of a ciphertext header.
    Decapsulate,
    /// Sign a message.
    Sign,
    /// Draw a coin.
    FlipCoin,
    /// See the names and public parts of keys.
    KeysList,
    /// Make a key.
    KeysCreate,
    /// Give the holders of a key new shares.
    KeysRefresh,
    /// Change a key's holders or threshold.
    KeysReshare,
    /// Restore a holder's lost share.
    KeysRecover,
    /// Make a key's next version.
    KeysRotate,
    /// Let a disabled key serve again.
    KeysEnable,
    /// Stop a key from serving requests.
    KeysDisable,
    /// Destroy a key.
    KeysDestroy,
    /// Take a share out of a node.
    KeysExport,
    /// Put a share into a node.
    KeysImport,
    /// Write a backup.
    KeysBackup,
    /// See a node's state.
    Status,
    /// Read the audit log.
    AuditRead,
    /// Read the policy and ask how it would decide.
    PolicyRead,
    /// Remove from the audit log what was exported.
    AuditPrune,
    /// Sign a message of which the node sees the digest alone.
    SignDigest,
    /// Change who belongs to the group.
    GroupChange,
    /// Bring the group a change of its members that proves itself: a member's new card, its operator's or a quorum of operators' word.
    GroupRenew,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 23] = [
        Self::Decrypt,
        Self::Decapsulate,
        Self::Sign,
        Self::FlipCoin,
        Self::KeysList,
        Self::KeysCreate,
        Self::KeysRefresh,
        Self::KeysReshare,
        Self::KeysRecover,
        Self::KeysRotate,
        Self::KeysEnable,
        Self::KeysDisable,
        Self::KeysDestroy,
        Self::KeysExport,
        Self::KeysImport,
        Self::KeysBackup,
        Self::Status,
        Self::AuditRead,
        Self::PolicyRead,
        Self::AuditPrune,
        Self::SignDigest,
        Self::GroupChange,
        Self::GroupRenew,
    ];

    const fn code_and_name(self) -> (u8, &'static str) {
        match self {
            Self::Decrypt => (1, "decrypt"),
            Self::Decapsulate => (2, "decapsulate"),
            Self::Sign => (3, "sign"),
            Self::FlipCoin => (4, "flip-coin"),
            Self::KeysList => (5, "keys.list"),
            Self::KeysCreate => (6, "keys.create"),
            Self::KeysRefresh => (7, "keys.refresh"),
            Self::KeysReshare => (8, "keys.reshare"),
            Self::KeysRecover => (9, "keys.recover"),
            Self::KeysRotate => (10, "keys.rotate"),
            Self::KeysEnable => (11, "keys.enable"),
            Self::KeysDisable => (12, "keys.disable"),
            Self::KeysDestroy => (13, "keys.destroy"),
            Self::KeysExport => (14, "keys.export"),
            Self::KeysImport => (15, "keys.import"),
            Self::KeysBackup => (16, "keys.backup"),
            Self::Status => (17, "status"),
            Self::AuditRead => (18, "audit.read"),
            Self::PolicyRead => (19, "policy.read"),
            Self::AuditPrune => (20, "audit.prune"),
            Self::SignDigest => (21, "sign-digest"),
            Self::GroupChange => (22, "group.change"),
            Self::GroupRenew => (23, "group.renew"),
        }
    }

    /// The name in policy files and texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.code_and_name().1
    }

    /// The code in signed and stored bytes.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.code_and_name().0
    }

    /// The inverse of [`Operation::code`].
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.code() == code)
    }

    /// One by one: joining an array of names whose lengths the compiler knows keeps it busy for half a minute (LLVM 22's elimination
    /// of constraints, at opt-level 3 and with one codegen unit).
    fn list() -> String {
        let mut list = String::new();
        for operation in Self::ALL {
            list.push_str(if list.is_empty() { "" } else { ", " });
            list.push_str(operation.name());
        }
        list
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Operation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The text is not an operation's name; at most 80 characters of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an operation; there are {list}", list = Operation::list())]
pub struct OperationError(pub String);

impl FromStr for Operation {
    type Err = OperationError;

    fn from_str(name: &str) -> Result<Self, OperationError> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.name() == name)
            .ok_or_else(|| OperationError(name.chars().take(80).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_are_unique_and_round_trip() {
        for (index, operation) in Operation::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(operation.code()), index + 1, "codes are never reused or moved");
            assert_eq!(Operation::from_code(operation.code()), Some(operation));
            assert_eq!(operation.name().parse(), Ok(operation));
        }
        assert_eq!((Operation::from_code(0), Operation::from_code(24)), (None, None));
        let refused = "Sign".parse::<Operation>().unwrap_err().to_string();
        assert!(refused.contains("\"Sign\" is not an operation; there are decrypt, decapsulate, sign"), "{refused}");
    }
}
