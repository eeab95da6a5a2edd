//! How much of a node one client may take.

use std::collections::HashMap;

use theta_statements::Name;

use crate::Rate;

/// What one client may hold of a node at once, and how often it may ask for more. What it may ask for is for the rules to say;
/// these bounds are there so that whoever is allowed something leaves room for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instances that it has started and that run.
    pub instances: usize,
    /// Bytes of their statements (messages to sign, headers to open).
    pub statement_bytes: usize,
    /// Requests that start or join an instance.
    pub submissions: Rate,
    /// Streams that tell it how instances or ceremonies go.
    pub streams: usize,
    /// Bytes of the results of its instances that are kept for whoever asks again, when there is not room for all.
    pub result_bytes: usize,
}

impl Limits {
    /// What holds for a client of which a policy says nothing: less than half of what a node has by default of anything.
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
    /// Of those that have their own.
    pub(crate) clients: HashMap<Name, Limits>,
}

impl AllLimits {
    pub(crate) fn of(&self, client: &Name) -> Limits {
        self.clients.get(client).copied().unwrap_or(self.default)
    }
}
