//! Why a group is asked for something, as its ledger has it: what a client signed, and what others approved.

use bytes::Bytes;
use theta_names::codec::{Reader, Writer};

use crate::Presented;

/// Why the group is asked, for the ledger: the signed request and the approvals, each behind its length; empty if there are none.
#[must_use]
pub fn reason_of(signed_request: &Bytes, approvals: &[Bytes]) -> Vec<u8> {
    if signed_request.is_empty() && approvals.is_empty() {
        return Vec::new();
    }
    let writer = Writer::default().bytes(signed_request);
    approvals.iter().fold(writer, |writer, approval| writer.bytes(approval)).finish()
}

impl Presented {
    /// What a client presents by a reason alone, whoever brings it; `None` if it signed nothing, or this cannot be read.
    #[must_use]
    pub fn by_reason(reason: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(reason);
        let signed = Bytes::copy_from_slice(reader.bytes().ok().filter(|signed| !signed.is_empty())?);
        let mut approvals = Vec::new();
        while !reader.is_empty() {
            approvals.push(Bytes::copy_from_slice(reader.bytes().ok()?));
        }
        Some(Self::new(None, None).with(&signed, &approvals))
    }
}
