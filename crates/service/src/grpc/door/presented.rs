//! The credentials of a request that identify its caller, for the gate.

use hyper::HeaderMap;
use theta_authority::Presented;
use theta_network::Fingerprint;
use theta_statements::{Token, TokenError};

use super::Caller;

/// The prefix of a token in the `authorization` header (RFC 6750, section 2.1).
const BEARER: &str = "Bearer ";

fn bearer(text: &str) -> Result<Token, TokenError> {
    text.strip_prefix(BEARER).ok_or(TokenError)?.parse()
}

/// The certificate of the request's connection and the token in its metadata.
pub(crate) fn presented<T>(request: &tonic::Request<T>) -> Presented {
    let header = request.metadata().get("authorization");
    let certificate = request.extensions().get::<Caller>().and_then(|caller| caller.certificate);
    of(certificate, header.map(|header| header.to_str().map_or(Err(TokenError), bearer)))
}

/// The same for a request that has not been decoded.
pub(crate) fn presented_in_headers(certificate: Option<Fingerprint>, headers: &HeaderMap) -> Presented {
    let header = headers.get("authorization");
    of(certificate, header.map(|header| header.to_str().map_or(Err(TokenError), bearer)))
}

fn of(certificate: Option<Fingerprint>, token: Option<Result<Token, TokenError>>) -> Presented {
    Presented::new(certificate.map(|fingerprint| *fingerprint.as_bytes()), token)
}
