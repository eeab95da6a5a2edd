//! The certificate that is shown in handshakes, which a newer one of the same key may replace while connections stand.

use core::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::{
    SignatureScheme,
    client::ResolvesClientCert,
    server::{ClientHello, ParsedCertificate, ResolvesServerCert},
    sign::CertifiedKey,
};

use super::{Period, certificate};

/// A certificate with its key.
#[derive(Clone)]
pub(super) struct Certificate {
    key: Arc<CertifiedKey>,
    pub(super) period: Option<Period>,
    /// Whether nobody else issued it.
    pub(super) is_own: bool,
}

impl Certificate {
    pub(super) fn new(key: CertifiedKey) -> Self {
        let read = key.cert.first().and_then(|certificate| certificate::read(certificate).ok());
        let (period, is_own) = read.map_or((None, false), |(period, is_own)| (Some(period), is_own));
        Self { key: Arc::new(key), period, is_own }
    }

    /// As [`super::Identity::sign`].
    pub(super) fn sign(
        &self,
        schemes: &[SignatureScheme],
        message: &[u8],
    ) -> Option<(Vec<u8>, SignatureScheme, Vec<u8>)> {
        let signer = self.key.key.choose_scheme(schemes)?;
        let key = ParsedCertificate::try_from(self.key.end_entity_cert().ok()?).ok()?.subject_public_key_info();
        let signature = signer.sign(message).ok()?;
        Some((key.as_ref().to_vec(), signer.scheme(), signature))
    }
}

/// Shows the present certificate.
pub(crate) struct Shown(RwLock<Certificate>);

impl Shown {
    pub(super) const fn new(certificate: Certificate) -> Self {
        Self(RwLock::new(certificate))
    }

    pub(super) fn now(&self) -> Certificate {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From the next handshake on this one.
    pub(super) fn replace(&self, certificate: Certificate) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = certificate;
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shown")
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.now().key)
    }
}

impl ResolvesClientCert for Shown {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.now().key)
    }

    fn has_certs(&self) -> bool {
        true
    }
}
