//! What is asked.

use theta_names::{Label, Operation};

use crate::Approval;

/// What a request says.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The name of the group that is asked: consents for another group mean nothing here.
    pub group: &'a str,
    /// Which key, if any.
    pub key: Option<&'a str>,
    /// What for.
    pub operation: Operation,
    /// The label of a ciphertext, empty if there is none.
    pub label: Label<&'a [u8]>,
    /// What the operation is about, complete: the message, the ciphertext's header, the coin's name, the encoded change of
    /// a key.
    pub statement: &'a [u8],
    /// Whatever else changes the result, as the seed of a re-randomised key; mostly empty.
    pub parameters: &'a [u8],
    /// For which slot, where a signing rule counts slots.
    pub slot: Option<u64>,
    /// Consents that came with the request.
    pub approvals: &'a [Approval],
}

impl<'a> Ask<'a> {
    /// An operation of a group, about nothing yet.
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
