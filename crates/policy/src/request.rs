//! Requests: asks of recognised clients.
//!
//! Anybody can make an [`Ask`]. A [`Request`] is an ask whose client is known: only a [`Caller`], or a signature over exactly
//! that ask, makes it from an ask, and only a policy makes callers. So no unauthenticated ask can reach a decision.

use theta_statements::{Ask, Digest, Name, SignedRequestError, TokenKey, TokenProofError, UnixTime, VerifyingKey};

use crate::Heard;

/// A credential by which a client is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Credential {
    Certificate(Digest),
    Token(TokenKey),
    Key(VerifyingKey),
}

impl Credential {
    const fn name(&self) -> &'static str {
        match self {
            Self::Certificate(_) => "certificate",
            Self::Token(_) => "token",
            Self::Key(_) => "signature",
        }
    }
}

/// A client that was recognised by its certificate, token or key. Every decision checks that the policy in force still has the
/// credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    client: Name,
    credential: Credential,
}

impl Caller {
    pub(crate) const fn new(client: Name, credential: Credential) -> Self {
        Self { client, credential }
    }

    /// The client's name.
    #[must_use]
    pub const fn client(&self) -> &Name {
        &self.client
    }

    /// A request of this client.
    #[must_use]
    pub fn asks<'a>(&self, ask: Ask<'a>) -> Request<'a> {
        Request::new(self.clone(), ask)
    }
}

/// An ask whose client is known.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    caller: Caller,
    ask: Ask<'a>,
    statement: Digest,
    heard: Option<Heard>,
    signed: Option<(Digest, UnixTime)>,
    is_counted: bool,
}

impl<'a> Request<'a> {
    pub(crate) fn new(caller: Caller, ask: Ask<'a>) -> Self {
        Self { caller, ask, statement: Digest::of(ask.statement), heard: None, signed: None, is_counted: false }
    }

    /// The same with what an agent said about it. Whoever asked the agent vouches that it was asked about this request.
    #[must_use]
    pub fn heard(self, heard: Option<Heard>) -> Self {
        Self { heard, ..self }
    }

    /// The same as its client has signed it: the id of the signed request, and when its validity ends.
    pub(crate) fn signed(self, id: Digest, until: UnixTime) -> Self {
        Self { signed: Some((id, until)), ..self }
    }

    /// The id of the signed request that it came in, if it did.
    #[must_use]
    pub fn signed_id(&self) -> Option<Digest> {
        self.signed.map(|(id, _)| id)
    }

    /// The id of the signed request that it came in, if it did, and when its validity ends.
    pub(crate) const fn signed_as(&self) -> Option<(Digest, UnixTime)> {
        self.signed
    }

    /// The same, if `is_counted` says that it was [counted](crate::Policy::count) for its rule's rate before it is decided about.
    #[must_use]
    pub fn counted(self, is_counted: bool) -> Self {
        Self { is_counted, ..self }
    }

    /// Whether it was [counted](crate::Policy::count) before.
    #[must_use]
    pub const fn is_counted(&self) -> bool {
        self.is_counted
    }

    pub(crate) const fn agent_said(&self) -> Option<&Heard> {
        self.heard.as_ref()
    }

    /// The client's name.
    #[must_use]
    pub const fn client(&self) -> &Name {
        &self.caller.client
    }

    /// How the client was recognised: `certificate`, `token` or `signature`.
    #[must_use]
    pub const fn recognised_by(&self) -> &'static str {
        self.caller.credential.name()
    }

    /// The ask.
    #[must_use]
    pub const fn ask(&self) -> &Ask<'a> {
        &self.ask
    }

    /// The digest of the statement.
    #[must_use]
    pub const fn statement(&self) -> Digest {
        self.statement
    }

    pub(crate) const fn credential(&self) -> &Credential {
        &self.caller.credential
    }
}

/// Why no client was recognised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unidentified {
    /// The request has no credential.
    #[error("nothing says who asks: connect with a certificate, prove a token or sign the request")]
    Nothing,
    /// No client has this certificate.
    #[error("no client of the policy has the certificate {0}; add it to a [[client]] of the policy file")]
    Certificate(Digest),
    /// No client has a token with this key.
    #[error(
        "no client of the policy has the token of the key {0}; add it to a [[client]] of the policy file: tokens = [\"{0}\"]"
    )]
    Token(TokenKey),
    /// The token is not proven.
    #[error(transparent)]
    Proof(#[from] TokenProofError),
    /// No client has this key.
    #[error("no client of the policy has the signing key {0}; add it to a [[client]] of the policy file")]
    Key(VerifyingKey),
    /// The signature does not cover what is asked.
    #[error("the signed request is refused: {0}")]
    Signed(#[from] SignedRequestError),
}
