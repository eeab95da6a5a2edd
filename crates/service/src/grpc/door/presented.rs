//! The credentials of a request that identify its caller, for the gate.

use std::{sync::Arc, time::Instant};

use hyper::HeaderMap;
use theta_authority::{Authority, Presented};
use theta_network::Fingerprint;
use theta_policy::Unidentified;
use theta_statements::{ProvenToken, TokenProof, TokenProofError, UnixTime};

use super::{
    Caller,
    proofs::{Proofs, Verifier},
};

/// The scheme of a token's proof in the `authorization` header (RFC 9110, section 11.4).
const SCHEME: &str = "Theta";

/// Recognises those who prove a token that the policy knows.
#[derive(Debug)]
pub(crate) struct TokenCheck {
    authority: Arc<Authority>,
    verifier: Verifier,
}

/// What a request's header says of a token. The gate puts it beside the request.
#[derive(Clone, Debug)]
struct Token(Option<Result<ProvenToken, Unidentified>>);

impl TokenCheck {
    /// For the node whose TLS key has this fingerprint.
    pub(crate) fn new(authority: Arc<Authority>, node: Fingerprint) -> Self {
        Self { authority, verifier: Verifier::new(node) }
    }

    /// What a request presents, before anything of its body is read. It is kept in the request's extensions for [`presented`].
    pub(crate) fn presented<T>(&self, caller: &Caller, request: &mut hyper::Request<T>) -> Presented {
        let token = Token(self.token(&caller.proofs, request.headers(), UnixTime::now()));
        request.extensions_mut().insert(token.clone());
        of(caller.certificate, token)
    }

    fn token(&self, proofs: &Proofs, headers: &HeaderMap, now: UnixTime) -> Option<Result<ProvenToken, Unidentified>> {
        let header = headers.get("authorization")?;
        let proof = header.to_str().ok().and_then(after_scheme).ok_or(TokenProofError::Malformed);
        let proof = proof.and_then(str::parse::<TokenProof>).map_err(Unidentified::from);
        let is_known = |key| self.authority.has_token(key);
        Some(proof.and_then(|proof| self.verifier.verified(proofs, proof, is_known, (now, Instant::now()))))
    }
}

fn after_scheme(text: &str) -> Option<&str> {
    text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case(SCHEME)).map(|(_, proof)| proof)
}

/// The certificate of the request's connection, and the token that the gate found in its header.
pub(crate) fn presented<T>(request: &tonic::Request<T>) -> Presented {
    let certificate = request.extensions().get::<Caller>().and_then(|caller| caller.certificate);
    of(certificate, request.extensions().get::<Token>().cloned().unwrap_or(Token(None)))
}

fn of(certificate: Option<Fingerprint>, token: Token) -> Presented {
    Presented::new(certificate.map(|fingerprint| *fingerprint.as_bytes()), token.0)
}
