//! Signatures by the keys of nodes' certificates, over what begins with a context of its own, so that none can stand for one of TLS.

use bytes::Bytes;
use rustls::{SignatureScheme, crypto::aws_lc_rs, pki_types::SubjectPublicKeyInfoDer};
use sha2::{Digest, Sha256};
use webpki::RawPublicKeyEntity;

use super::super::frame::Signed;
use crate::{Fingerprint, Identity};

/// The schemes of TLS 1.3, which the mesh takes as well.
pub(super) const SCHEMES: [SignatureScheme; 7] = [
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::ECDSA_NISTP521_SHA512,
    SignatureScheme::ED25519,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PSS_SHA512,
];

/// Signs with the key of this node's certificate.
pub(in crate::carrier) fn sign(identity: &Identity, message: &[u8]) -> Option<Signed> {
    let (key, scheme, signature) = identity.sign(&SCHEMES, message)?;
    Some(Signed { key: key.into(), scheme: u16::from(scheme), signature: Bytes::from(signature) })
}

/// What a signature with the key of this node's certificate costs, in steps of handshakes with keys on P-256: strangers make a node sign. The
/// cost of RSA grows with the third power of the modulus, which a public key in DER shows by its length.
pub(in crate::carrier) fn cost(identity: &Identity) -> u32 {
    let Some((key, scheme, _)) = identity.sign(&SCHEMES, b"theta-carrier/1 cost") else { return 1 };
    match scheme {
        SignatureScheme::ECDSA_NISTP256_SHA256 | SignatureScheme::ED25519 => 1,
        SignatureScheme::ECDSA_NISTP384_SHA384 | SignatureScheme::ECDSA_NISTP521_SHA512 => 5,
        _ => u32::try_from(key.len()).map_or(u32::MAX, |bytes| (bytes / 128).saturating_pow(3) / 3).max(3),
    }
}

/// Whether the owner of the pinned key has signed this message.
pub(in crate::carrier) fn is_right(pin: &Fingerprint, message: &[u8], signed: &Signed) -> bool {
    if Fingerprint::from(<[u8; 32]>::from(Sha256::digest(&signed.key))) != *pin {
        return false;
    }
    let scheme = SignatureScheme::from(signed.scheme);
    if !SCHEMES.contains(&scheme) {
        return false;
    }
    let spki = SubjectPublicKeyInfoDer::from(&*signed.key);
    let Ok(key) = RawPublicKeyEntity::try_from(&spki) else { return false };
    let supported = aws_lc_rs::default_provider().signature_verification_algorithms;
    let algorithms = supported.mapping.iter().filter(|(known, _)| *known == scheme).flat_map(|(_, of_it)| of_it.iter());
    algorithms.into_iter().any(|algorithm| key.verify_signature(*algorithm, message, &signed.signature).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_of_the_pinned_key_and_of_this_message() {
        let identity = || {
            let made = Identity::generate("node").unwrap();
            Identity::from_pem(&made.certificate_pem, &made.key_pem).unwrap()
        };
        let (one, other) = (identity(), identity());
        let signed = sign(&one, b"message").unwrap();
        assert!(is_right(&one.fingerprint(), b"message", &signed));
        assert!(!is_right(&one.fingerprint(), b"massage", &signed));
        assert!(!is_right(&other.fingerprint(), b"message", &signed));
        let mut weak = signed.clone();
        weak.scheme = u16::from(SignatureScheme::RSA_PKCS1_SHA256);
        assert!(!is_right(&one.fingerprint(), b"message", &weak));
        let borrowed = Signed { key: signed.key, ..sign(&other, b"message").unwrap() };
        assert!(!is_right(&one.fingerprint(), b"message", &borrowed));
    }
}
