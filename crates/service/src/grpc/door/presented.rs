//! The credentials of a request that identify its caller, for the gate.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use hyper::HeaderMap;
use theta_authority::{Authority, Presented};
use theta_network::Fingerprint;
use theta_policy::Unidentified;
use theta_statements::{ProvenToken, TokenProof, TokenProofError, UnixTime};

use super::Caller;

/// The scheme of a token's proof in the `authorization` header (RFC 9110, section 11.4).
const SCHEME: &str = "Theta";
/// How many proofs of a connection are remembered: it has those of one client or a few, made anew every few minutes.
const REMEMBERED: usize = 8;

/// The proofs of tokens that came by one connection.
#[derive(Debug, Default)]
pub(crate) struct Proofs(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    good: VecDeque<(TokenProof, ProvenToken)>,
    /// One was false. No more are verified then: whoever knows a token's key, which is no secret, could have this node verify signatures
    /// for ever.
    had_false: bool,
}

/// Verifies the proofs of tokens, each once for its connection.
#[derive(Debug)]
pub(crate) struct TokenCheck {
    authority: Arc<Authority>,
    /// Of this node's TLS key.
    node: Fingerprint,
}

/// What a request's header says of a token. The gate puts it beside the request.
#[derive(Clone, Debug)]
struct Token(Option<Result<ProvenToken, Unidentified>>);

impl TokenCheck {
    pub(crate) const fn new(authority: Arc<Authority>, node: Fingerprint) -> Self {
        Self { authority, node }
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
        Some(proof.and_then(str::parse).map_err(Unidentified::from).and_then(|proof| self.verified(proofs, proof, now)))
    }

    fn verified(&self, proofs: &Proofs, proof: TokenProof, now: UnixTime) -> Result<ProvenToken, Unidentified> {
        let mut seen = proofs.seen();
        if let Some((_, proven)) = seen.good.iter().find(|(good, proven)| *good == proof && now < proven.until()) {
            return Ok(*proven);
        }
        // A stranger's claim costs no more than this.
        let key = proof.key();
        if !self.authority.has_token(key) {
            return Err(Unidentified::Token(key));
        }
        if seen.had_false {
            return Err(TokenProofError::Distrusted.into());
        }
        let verified = proof.verify(self.node.as_bytes(), now);
        seen.had_false = verified == Err(TokenProofError::False);
        let proven = verified?;
        if seen.good.len() >= REMEMBERED {
            seen.good.pop_front();
        }
        seen.good.push_back((proof, proven));
        Ok(proven)
    }
}

impl Proofs {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
