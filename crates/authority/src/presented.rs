//! The credentials and consents that come with a request.

use bytes::Bytes;
use theta_policy::{Caller, Heard, Policy, Request, Unidentified};
use theta_statements::{Approval, Ask, MOST_APPROVALS, Name, ProvenToken, SignedRequest, UnixTime};

use crate::refusal::EnclosureError;

/// What a front end knows of a caller. None of it is believed before the gate has compared it with the policy.
#[derive(Debug, Default)]
pub struct Presented {
    certificate: Option<[u8; 32]>,
    token: Option<Result<ProvenToken, Unidentified>>,
    /// An encoded signed request; empty if there is none.
    signed_request: Bytes,
    /// Encoded approvals.
    approvals: Vec<Bytes>,
    /// What an agent of this node said about it.
    heard: Option<Heard>,
    /// Whether it counts already for its rule's rate, and as a submission.
    is_counted: bool,
}

/// What came with a request, decoded.
pub(crate) struct Enclosed {
    pub(crate) approvals: Vec<Approval>,
    pub(crate) signed: Option<SignedRequest>,
}

impl Presented {
    /// `certificate` is the SHA-256 fingerprint of a certificate whose private key the connection has proven; `token`
    /// is a token that has proven itself to this node, or why what was presented as a proof is none.
    #[must_use]
    pub const fn new(certificate: Option<[u8; 32]>, token: Option<Result<ProvenToken, Unidentified>>) -> Self {
        Self { certificate, token, signed_request: Bytes::new(), approvals: Vec::new(), heard: None, is_counted: false }
    }

    /// Adds what came in the request itself, encoded: a signed request (empty if none) and approvals.
    #[must_use]
    pub fn with(mut self, signed_request: &Bytes, approvals: &[Bytes]) -> Self {
        self.signed_request = signed_request.clone();
        self.approvals = approvals.to_vec();
        self
    }

    /// Adds what an agent said about the request.
    pub(crate) fn heard(self, heard: Heard) -> Self {
        Self { heard: Some(heard), ..self }
    }

    /// Whether an agent was asked.
    pub(crate) const fn is_heard(&self) -> bool {
        self.heard.is_some()
    }

    /// The same, counted.
    pub(crate) fn counted(self) -> Self {
        Self { is_counted: true, ..self }
    }

    /// Whether there are signatures to verify.
    pub(crate) fn is_signed(&self) -> bool {
        !self.approvals.is_empty() || !self.signed_request.is_empty()
    }

    /// The client that these credentials show without any signature, if the policy knows one.
    pub(crate) fn client(&self, policy: &Policy) -> Option<Name> {
        self.caller(policy).ok().map(|caller| caller.client().clone())
    }

    /// The caller that these credentials show without any signature. A token takes precedence over the certificate, and
    /// a false proof of a token is an error even beside a known certificate.
    pub(crate) fn caller(&self, policy: &Policy) -> Result<Caller, Unidentified> {
        match (&self.token, self.certificate) {
            (Some(Ok(token)), _) => policy.caller_by_token(token),
            (Some(Err(error)), _) => Err(error.clone()),
            (None, Some(certificate)) => policy.caller_by_certificate(certificate),
            (None, None) => Err(Unidentified::Nothing),
        }
    }

    /// The caller of `ask`. A signature over it takes precedence over a token, and that over the certificate of the
    /// connection, since a party that relays a request has a certificate of its own.
    pub(crate) fn asks<'a>(
        &self,
        policy: &Policy,
        signed: Option<&SignedRequest>,
        ask: Ask<'a>,
        now: UnixTime,
    ) -> Result<Request<'a>, Unidentified> {
        let asking = match signed {
            Some(signed) => policy.signed_request(signed, ask, now)?,
            None => self.caller(policy)?.asks(ask),
        };
        Ok(asking.heard(self.heard.clone()).counted(self.is_counted))
    }

    /// Decodes the signed request and the approvals.
    pub(crate) fn enclosed(&self) -> Result<Enclosed, EnclosureError> {
        if self.approvals.len() > MOST_APPROVALS {
            return Err(EnclosureError::TooManyApprovals(self.approvals.len()));
        }
        let approval = |(place, bytes): (usize, &Bytes)| {
            let wrong = |error| EnclosureError::Approval { place: place.saturating_add(1), error };
            Approval::decode(bytes).map_err(wrong)
        };
        let signed = match self.signed_request.as_ref() {
            [] => None,
            bytes => Some(SignedRequest::decode(bytes).map_err(EnclosureError::SignedRequest)?),
        };
        Ok(Enclosed { approvals: self.approvals.iter().enumerate().map(approval).collect::<Result<_, _>>()?, signed })
    }
}
