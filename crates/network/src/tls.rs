//! TLS 1.3 with pinned keys, for the mesh, the node's API and its clients.
//!
//! There is no certificate authority and no name check: a connection is accepted if and only if the other side proves,
//! by the handshake's signature (RFC 8446, section 4.4.3), that it holds the private key whose
//! [`Fingerprint`] is pinned. Certificates have an end, for libraries that insist; here it is the key that counts, whatever the dates
//! say: whoever has the key can make a certificate with any, so that dates would keep out nobody but a node whose clock is wrong. Certificates are made for this purpose, and whoever can change the group file decides who
//! is in it; a third party that vouches for names would only add someone to trust.
//!
//! Session resumption is off on both sides. A resumed session shows no certificate, so a peer could stay connected
//! after its pin was removed, and early data could be replayed. Connections here are long-lived, so full handshakes
//! hardly cost anything.

use core::fmt;
use std::{collections::HashMap, io, net::Ipv4Addr, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, CommonState, DigitallySignedStruct, DistinguishedName, Error, OtherError,
    ServerConfig, SignatureScheme,
    client::{
        Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::{
        NoServerSessionStorage,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    version::TLS13,
};
use theta_names::NodeId;

use crate::{Fingerprint, Identity};

/// The owner of a pinned certificate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pinned {
    /// A node of the group.
    Node(NodeId),
    /// A client, by its name in the group file.
    Client(Arc<str>),
}

impl fmt::Display for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(id) => write!(f, "node {id}"),
            Self::Client(name) => write!(f, "client {name}"),
        }
    }
}

/// The certificates that may connect, with their owners. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Pins(Arc<HashMap<Fingerprint, Pinned>>);

impl FromIterator<(Fingerprint, Pinned)> for Pins {
    /// If a fingerprint occurs twice, the last entry counts; a checked group file has none twice.
    fn from_iter<I: IntoIterator<Item = (Fingerprint, Pinned)>>(pins: I) -> Self {
        Self(Arc::new(pins.into_iter().collect()))
    }
}

impl Pins {
    /// The owner of a certificate; `None` if it is not pinned.
    #[must_use]
    pub fn owner(&self, certificate: &Fingerprint) -> Option<&Pinned> {
        self.0.get(certificate)
    }

    /// The owner of the certificate at the other end of an established server-side connection.
    #[must_use]
    pub fn peer(&self, connection: &CommonState) -> Option<&Pinned> {
        self.owner(&peer_fingerprint(connection)?)
    }
}

/// The fingerprint of the certificate that the other end of an established connection proved to own.
#[must_use]
pub fn peer_fingerprint(connection: &CommonState) -> Option<Fingerprint> {
    Fingerprint::of(connection.peer_certificates()?.first()?).ok()
}

/// The certificate in a handshake is not the pinned one, or none of the pinned ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the certificate {shown} is not pinned{}", Expected(*expected))]
pub struct UnpinnedCertificate {
    /// The certificate that the other side showed.
    pub shown: Fingerprint,
    /// The certificate that this side expected; `None` for a server, which accepts several.
    pub expected: Option<Fingerprint>,
}

struct Expected(Option<Fingerprint>);

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |expected| write!(f, "; expected {expected}"))
    }
}

impl UnpinnedCertificate {
    /// Finds this cause in the error of a failed handshake, however it is wrapped.
    #[must_use]
    pub fn cause(error: &(dyn core::error::Error + 'static)) -> Option<Self> {
        if let Some(Error::InvalidCertificate(CertificateError::Other(OtherError(cause)))) = error.downcast_ref() {
            return cause.downcast_ref().copied();
        }
        // An I/O error's `source` is that of its inner error, so following it would skip the inner error.
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        Self::cause(inner.map_or_else(|| error.source(), |inner| Some(inner))?)
    }

    fn into_tls(self) -> Error {
        Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(self))))
    }
}

/// Whether the other side ended a connection because it did not accept the certificate, or because none was shown.
#[must_use]
pub fn certificate_refused(error: &(dyn core::error::Error + 'static)) -> bool {
    use rustls::AlertDescription as Alert;
    if let Some(Error::AlertReceived(alert)) = error.downcast_ref() {
        return matches!(
            alert,
            Alert::CertificateUnknown
                | Alert::CertificateRequired
                | Alert::BadCertificate
                | Alert::UnknownCA
                | Alert::AccessDenied
        );
    }
    // As above: following `source` would skip the inner error.
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    match inner {
        Some(inner) => certificate_refused(inner),
        None => error.source().is_some_and(certificate_refused),
    }
}

/// Decides which clients a server admits. It is asked in every handshake, since its answers may change while the server
/// runs.
pub trait Admits: fmt::Debug + Send + Sync {
    /// Whether the owner of this certificate may connect.
    fn admits(&self, certificate: &Fingerprint) -> bool;

    /// Whether a client without a certificate may connect, to be identified by other means or not at all.
    fn admits_anonymous(&self) -> bool {
        false
    }
}

impl Admits for Pins {
    fn admits(&self, certificate: &Fingerprint) -> bool {
        self.owner(certificate).is_some()
    }
}

/// A server that shows `identity` and admits only the owners of `pins`.
///
/// `alpn`: the application protocols offered, best first; a client that offers none of them is refused.
///
/// # Errors
/// Only if the TLS library refuses its own provider.
pub fn server_config(identity: &Identity, pins: Pins, alpn: &[&[u8]]) -> Result<Arc<ServerConfig>, Error> {
    server_config_admitting(identity, Arc::new(pins), alpn)
}

/// As [`server_config`], for the clients that `admits` accepts at the moment of the handshake.
///
/// # Errors
/// As [`server_config`].
pub fn server_config_admitting(
    identity: &Identity,
    admits: Arc<dyn Admits>,
    alpn: &[&[u8]],
) -> Result<Arc<ServerConfig>, Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Arc::new(Verifier { accepted: Accepted::By(admits), provider: Arc::clone(&provider) });
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(identity.resolver());
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// A client that shows `identity` and connects only to the owner of the certificate `expected`.
///
/// # Errors
/// Only if the TLS library refuses its own provider.
pub fn client_config(identity: &Identity, expected: Fingerprint, alpn: &[&[u8]]) -> Result<Arc<ClientConfig>, Error> {
    client(Some(identity), expected, alpn)
}

/// A client that shows `identity` and connects to whoever answers. It knows nothing of the other side: what it reads there has to prove itself.
///
/// # Errors
/// As [`client_config`].
pub fn trusting_client_config(identity: &Identity, alpn: &[&[u8]]) -> Result<Arc<ClientConfig>, Error> {
    client_accepting(Some(identity), Accepted::Anybody, alpn)
}

/// A client that shows no certificate and connects only to the owner of the certificate `expected`. Its messages are as
/// private as with one; it has to be identified by other means.
///
/// # Errors
/// As [`client_config`].
pub fn anonymous_client_config(expected: Fingerprint, alpn: &[&[u8]]) -> Result<Arc<ClientConfig>, Error> {
    client(None, expected, alpn)
}

fn client(identity: Option<&Identity>, expected: Fingerprint, alpn: &[&[u8]]) -> Result<Arc<ClientConfig>, Error> {
    client_accepting(identity, Accepted::Only(expected), alpn)
}

fn client_accepting(
    identity: Option<&Identity>,
    accepted: Accepted,
    alpn: &[&[u8]],
) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Arc::new(Verifier { accepted, provider: Arc::clone(&provider) });
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match identity {
        Some(identity) => builder.with_client_cert_resolver(identity.resolver()),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    Ok(Arc::new(config))
}

/// The name for a TLS connector. It is neither sent nor checked.
#[must_use]
pub fn server_name() -> ServerName<'static> {
    ServerName::from(Ipv4Addr::UNSPECIFIED)
}

#[derive(Debug)]
enum Accepted {
    Only(Fingerprint),
    Anybody,
    By(Arc<dyn Admits>),
}

#[derive(Debug)]
struct Verifier {
    accepted: Accepted,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn check_pin(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        let shown = Fingerprint::of(certificate)?;
        let expected = match &self.accepted {
            Accepted::Only(expected) if *expected == shown => return Ok(()),
            Accepted::By(admits) if admits.admits(&shown) => return Ok(()),
            Accepted::Anybody => return Ok(()),
            Accepted::Only(expected) => Some(*expected),
            Accepted::By(_) => None,
        };
        Err(UnpinnedCertificate { shown, expected }.into_tls())
    }
}

/// How the verifiers of both directions treat signatures.
macro_rules! handshake_signatures {
    () => {
        /// Cannot be reached with TLS 1.3 only; refuses nevertheless.
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _certificate: &CertificateDer<'_>,
            _signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::PeerIncompatible(rustls::PeerIncompatible::Tls12NotOffered))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.provider.signature_verification_algorithms.supported_schemes()
        }
    };
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check_pin(end_entity).map(|()| ServerCertVerified::assertion())
    }

    handshake_signatures!();
}

impl ClientCertVerifier for Verifier {
    fn client_auth_mandatory(&self) -> bool {
        !matches!(&self.accepted, Accepted::By(admits) if admits.admits_anonymous())
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check_pin(end_entity).map(|()| ClientCertVerified::assertion())
    }

    handshake_signatures!();
}
