//! What says who asks, and who consents.

use bytes::Bytes;
use theta_policy::{Caller, Policy, Request, Unidentified};
use theta_statements::{Approval, Ask, MOST_APPROVALS, Name, SignedRequest, Token, TokenError, UnixTime};

use crate::refusal::EnclosureError;

/// What a front end has of whoever asks. Nothing of it is believed before the gate has compared it with the policy.
#[derive(Debug, Default)]
pub struct Presented {
    certificate: Option<[u8; 32]>,
    token: Option<Result<Token, TokenError>>,
    /// An encoded signed request, or nothing.
    signed_request: Bytes,
    /// Encoded approvals.
    approvals: Vec<Bytes>,
}

/// What came with a request, decoded.
pub(crate) struct Enclosed {
    pub(crate) approvals: Vec<Approval>,
    pub(crate) signed: Option<SignedRequest>,
}

impl Presented {
    /// The SHA-256 fingerprint of a certificate whose private key the connection has shown, and a token, or what stands in the
    /// place of one.
    #[must_use]
    pub const fn new(certificate: Option<[u8; 32]>, token: Option<Result<Token, TokenError>>) -> Self {
        Self { certificate, token, signed_request: Bytes::new(), approvals: Vec::new() }
    }

    /// With what came in the request itself, encoded: a signed request or nothing, and approvals.
    #[must_use]
    pub fn with(mut self, signed_request: &Bytes, approvals: &[Bytes]) -> Self {
        self.signed_request = signed_request.clone();
        self.approvals = approvals.to_vec();
        self
    }

    /// Whether there are signatures to verify.
    pub(crate) fn is_signed(&self) -> bool {
        !self.approvals.is_empty() || !self.signed_request.is_empty()
    }

    /// The client whom this shows without any signature, as far as the policy knows one.
    pub(crate) fn client(&self, policy: &Policy) -> Option<Name> {
        self.caller(policy).ok().map(|caller| caller.client().clone())
    }

    /// The caller whom this shows without any signature. What is presented and wrong is never passed over.
    pub(crate) fn caller(&self, policy: &Policy) -> Result<Caller, Unidentified> {
        match (&self.token, self.certificate) {
            (Some(Ok(token)), _) => policy.caller_by_token(token),
            (Some(Err(TokenError)), _) => Err(Unidentified::Token),
            (None, Some(certificate)) => policy.caller_by_certificate(certificate),
            (None, None) => Err(Unidentified::Nothing),
        }
    }

    /// The asker of `ask`: a signature over it beats a token, which beats the certificate of the connection, for who relays
    /// a request has a certificate of its own.
    pub(crate) fn asks<'a>(
        &self,
        policy: &Policy,
        signed: Option<&SignedRequest>,
        ask: Ask<'a>,
        now: UnixTime,
    ) -> Result<Request<'a>, Unidentified> {
        match signed {
            Some(signed) => policy.signed_request(signed, ask, now),
            None => Ok(self.caller(policy)?.asks(ask)),
        }
    }

    /// Decodes what came along.
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
