//! What a request asks and brings along, as it came: owned, so that the decision can wait for the disk on another thread.

use bytes::Bytes;
use hyper::HeaderMap;
use theta_names::{KeyRef, KeyRefError, Operation};
use theta_network::Fingerprint;
use theta_policy::{Policy, Request, Unidentified};
use theta_schemes::ciphers::Header;
use theta_statements::{Approval, Ask, MOST_APPROVALS, Name, SignedRequest, Token, TokenError, UnixTime};
use tonic::Status;

use crate::grpc::{Caller, refusal};

/// Statements up to this length are digested on the threads that move bytes.
const SHORT_STATEMENT: usize = 64 << 10;
/// What stands before a token in the `authorization` header (RFC 6750, section 2.1).
const BEARER: &str = "Bearer ";

fn bearer(text: &str) -> Result<Token, TokenError> {
    text.strip_prefix(BEARER).ok_or(TokenError)?.parse()
}

/// What says who asks, besides a signature over the request.
#[derive(Debug, Default)]
pub(crate) struct Presented {
    certificate: Option<Fingerprint>,
    token: Option<Result<Token, TokenError>>,
}

impl Presented {
    /// The certificate of the request's connection and the token in its metadata.
    pub(crate) fn of<T>(request: &tonic::Request<T>) -> Self {
        let header = request.metadata().get("authorization");
        let certificate = request.extensions().get::<Caller>().and_then(|caller| caller.certificate);
        Self { certificate, token: header.map(|header| header.to_str().map_or(Err(TokenError), bearer)) }
    }

    /// The same, before the request is decoded.
    pub(crate) fn in_headers(certificate: Option<Fingerprint>, headers: &HeaderMap) -> Self {
        let header = headers.get("authorization");
        Self { certificate, token: header.map(|header| header.to_str().map_or(Err(TokenError), bearer)) }
    }

    /// The client whom this shows without any signature, as far as the policy knows one.
    pub(super) fn client(&self, policy: &Policy) -> Option<Name> {
        let ask = Ask::new("", Operation::Status);
        // Time matters to signatures alone.
        self.asks(policy, None, ask, UnixTime(0)).ok().map(|request| request.client().clone())
    }

    /// The asker of `ask`: a signature over it beats a token, which beats the certificate of the connection, for who relays
    /// a request has a certificate of its own. What is presented and wrong is never passed over.
    pub(super) fn asks<'a>(
        &self,
        policy: &Policy,
        signed: Option<&SignedRequest>,
        ask: Ask<'a>,
        now: UnixTime,
    ) -> Result<Request<'a>, Unidentified> {
        match (signed, &self.token, self.certificate) {
            (Some(signed), ..) => policy.signed_request(signed, ask, now),
            (None, Some(Ok(token)), _) => Ok(policy.caller_by_token(token)?.asks(ask)),
            (None, Some(Err(TokenError)), _) => Err(Unidentified::Token),
            (None, None, Some(certificate)) => Ok(policy.caller_by_certificate(*certificate.as_bytes())?.asks(ask)),
            (None, None, None) => Err(Unidentified::Nothing),
        }
    }
}

/// What is asked.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The key's name, without its version.
    pub(crate) key: Option<String>,
    pub(crate) operation: Operation,
    pub(crate) label: Bytes,
    pub(crate) statement: Bytes,
    pub(crate) parameters: Bytes,
    pub(crate) slot: Option<u64>,
    /// Encoded approvals.
    pub(crate) approvals: Vec<Bytes>,
    /// An encoded signed request, or nothing.
    pub(crate) signed_request: Bytes,
    /// Whether the decision must be in the log before it is acted on, whatever its rule says.
    pub(crate) recorded_first: bool,
}

/// What came with a request, decoded.
pub(super) struct Enclosed {
    pub(super) approvals: Vec<Approval>,
    pub(super) signed: Option<SignedRequest>,
}

impl Asked {
    /// An operation about nothing yet.
    pub(crate) const fn new(operation: Operation) -> Self {
        Self {
            key: None,
            operation,
            label: Bytes::new(),
            statement: Bytes::new(),
            parameters: Bytes::new(),
            slot: None,
            approvals: Vec::new(),
            signed_request: Bytes::new(),
            recorded_first: false,
        }
    }

    /// An operation with this key. `seed`: that of a re-randomised key, or nothing.
    pub(crate) fn of(key: &KeyRef, operation: Operation, statement: Bytes, seed: &[u8]) -> Self {
        let parameters = key.parameters(seed).into();
        Self { key: Some(key.name.to_string()), statement, parameters, ..Self::new(operation) }
    }

    /// The opening of a ciphertext with this header.
    ///
    /// # Errors
    /// It is no header.
    pub(crate) fn to_open(key: &KeyRef, operation: Operation, header: &Bytes) -> Result<Self, Status> {
        let label = Header::parse(header).map_err(|error| refusal::request(&error))?.label();
        Ok(Self { label: header.slice_ref(label), ..Self::of(key, operation, header.clone(), &[]) })
    }

    /// With what came along.
    pub(crate) fn with(mut self, signed_request: &Bytes, approvals: &[Bytes]) -> Self {
        self.signed_request = signed_request.clone();
        self.approvals = approvals.to_vec();
        self
    }

    /// For a slot.
    pub(crate) fn at(mut self, slot: Option<u64>) -> Self {
        self.slot = slot;
        self
    }

    /// Whether something leaves the node that no later record could take back: a share, a result, a key's change.
    pub(super) const fn lets_out(&self) -> bool {
        use Operation::{AuditRead, KeysList, PolicyRead, Status};
        !matches!(self.operation, KeysList | Status | PolicyRead | AuditRead)
    }

    /// Whether deciding may take longer than the threads that move bytes can spare: it verifies signatures, waits for the
    /// disk to take a slot, or digests much.
    pub(super) fn takes_long(&self, policy: &Policy) -> bool {
        !self.approvals.is_empty()
            || !self.signed_request.is_empty()
            || self.statement.len() > SHORT_STATEMENT
            || policy.takes_slot(self.key.as_deref(), self.operation)
    }

    pub(super) fn enclosed(&self) -> Result<Enclosed, Status> {
        if self.approvals.len() > MOST_APPROVALS {
            let count = self.approvals.len();
            return Err(refusal::invalid(format!("{count} approvals, a request carries {MOST_APPROVALS} at most")));
        }
        let approval = |(place, bytes): (usize, &Bytes)| {
            let wrong = |error| refusal::invalid(format!("approval {} is none: {error}", place.saturating_add(1)));
            Approval::decode(bytes).map_err(wrong)
        };
        let signed = match self.signed_request.as_ref() {
            [] => None,
            bytes => Some(
                SignedRequest::decode(bytes)
                    .map_err(|error| refusal::invalid(format!("the signed request is none: {error}")))?,
            ),
        };
        Ok(Enclosed { approvals: self.approvals.iter().enumerate().map(approval).collect::<Result<_, _>>()?, signed })
    }

    pub(super) fn ask<'a>(&'a self, group: &'a str, approvals: &'a [Approval]) -> Ask<'a> {
        Ask {
            group,
            key: self.key.as_deref(),
            operation: self.operation,
            label: &self.label,
            statement: &self.statement,
            parameters: &self.parameters,
            slot: self.slot,
            approvals,
        }
    }
}

/// The key that a request names.
///
/// # Errors
/// The caller's mistake.
pub(crate) fn key_ref(text: &str) -> Result<KeyRef, Status> {
    text.parse().map_err(|error: KeyRefError| refusal::invalid(error.to_string()))
}
