//! What a request asks.

use theta_names::{Label, Operation};

use crate::Approval;

/// What a request asks, as policies see it and clients sign it.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The name of the group; approvals for another group do not count.
    pub group: &'a str,
    /// The key's name, if the operation has one.
    pub key: Option<&'a str>,
    /// The operation.
    pub operation: Operation,
    /// The label of a ciphertext, empty if there is none.
    pub label: Label<&'a [u8]>,
    /// The whole subject of the operation: the message, the ciphertext's header, the coin's name, the encoded change of a key.
    pub statement: &'a [u8],
    /// What else changes the result: see [`theta_names::KeyRef::parameters`]. Usually empty.
    pub parameters: &'a [u8],
    /// The slot, where a signing rule counts slots.
    pub slot: Option<u64>,
    /// The approvals that came with the request.
    pub approvals: &'a [Approval],
}

impl<'a> Ask<'a> {
    /// An operation in a group; all other fields are empty.
    #[must_use]
    pub const fn new(group: &'a str, operation: Operation) -> Self {
        Self {
            group,
            key: None,
            operation,
            label: Label::EMPTY,
            statement: b"",
            parameters: b"",
            slot: None,
            approvals: &[],
        }
    }
}
