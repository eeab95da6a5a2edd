//! Why no share is made for a slot.

/// Why no share is made for a slot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlotRefusal {
    /// Another message is certified.
    #[error("slot {slot} of key {key} is certified for another message, and signing rule {rule} allows one")]
    Taken {
        /// The key.
        key: String,
        /// The signing rule.
        rule: String,
        /// The slot.
        slot: u64,
    },
    /// No message can be certified any more.
    #[error(
        "slot {slot} of key {key} is void: different messages raced for it, the promises of {n} nodes are split {split}, and none \
         can have the {need} that signing rule {rule} takes; nothing will be signed for it: go on with another slot"
    )]
    Void {
        /// The key.
        key: String,
        /// The signing rule.
        rule: String,
        /// The slot.
        slot: u64,
        /// The number of nodes that promised each message, as `2 : 2`.
        split: String,
        /// The number of nodes that can promise.
        n: u16,
        /// The number of promises that certify.
        need: u16,
    },
    /// The slot is over at this node, and no other node knows a certificate for the message.
    #[error(
        "slot {slot} of key {key} is over: signing rule {rule} has ended all up to {mark} at this node, and no node that answers \
         knows a certificate for this message"
    )]
    Over {
        /// The key.
        key: String,
        /// The signing rule.
        rule: String,
        /// The slot.
        slot: u64,
        /// The highest slot that is over.
        mark: u64,
    },
    /// Time ran out before the slot was decided; the text says which nodes promised what.
    #[error("{0}")]
    Undecided(String),
    /// The node cannot promise.
    #[error(
        "a signing rule covers this key, and this node has no identity to promise slots with: give it one, and the group file its \
         ceremony_key"
    )]
    NoIdentity,
    /// The node's store may be an old copy, which does not know what the node has promised.
    #[error(
        "a signing rule covers this key, and too few nodes have confirmed yet that this node's store is its latest: try again in a \
         moment or ask another node"
    )]
    Unconfirmed,
    /// Too many requests wait for certificates.
    #[error(
        "this node is at its limit of requests that wait for slot certificates: try again later or ask another node"
    )]
    Overloaded,
    /// The node is stopping.
    #[error("this node is shutting down")]
    ShuttingDown,
}

impl SlotRefusal {
    /// A short name that never changes, for clients and metrics.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Taken { .. } => "slot-taken",
            Self::Void { .. } => "slot-void",
            Self::Over { .. } => "slot-over",
            Self::Undecided(_) => "slot-undecided",
            Self::NoIdentity => "slot-no-identity",
            Self::Unconfirmed => "slot-unconfirmed",
            Self::Overloaded => "slot-overloaded",
            Self::ShuttingDown => "shutting-down",
        }
    }

    /// Whether the refusal is final: no node will ever sign this message for the slot.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Taken { .. } | Self::Void { .. })
    }
}
