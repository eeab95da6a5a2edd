//! How much of a node one client may take.

use std::collections::HashMap;

use theta_statements::Name;

use crate::Rate;

/// What one client may hold of a node at once, and how often it may ask for more. Rules say what a client may ask for; limits leave
/// resources for other clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Running instances that the client started.
    pub instances: usize,
    /// Bytes of the statements of these instances (messages to sign, headers to open).
    pub statement_bytes: usize,
    /// Requests that start or join an instance, or have the node compute with a key's public part.
    pub submissions: Rate,
    /// Streams that watch instances or ceremonies or read the audit log.
    pub streams: usize,
    /// Bytes of results of the client's instances that are kept when there is not room for all clients' results.
    pub result_bytes: usize,
}

impl Limits {
    /// The limits of a client for which the policy sets none: less than half of a node's own default limits.
    pub const DEFAULT: Self = Self {
        instances: 4_096,
        statement_bytes: 64 << 20,
        submissions: Rate::a_second(10_000),
        streams: 256,
        result_bytes: 8 << 20,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The limits of all clients.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllLimits {
    pub(crate) default: Limits,
    /// The limits of clients that have their own.
    pub(crate) clients: HashMap<Name, Limits>,
}

impl AllLimits {
    pub(crate) fn of(&self, client: &Name) -> Limits {
        self.clients.get(client).copied().unwrap_or(self.default)
    }
}
