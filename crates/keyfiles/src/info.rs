//! Public keys as other software reads them.

use theta_schemes::{
    Suite,
    keys::{AnyPublicKey, KeyKind},
    signatures::ecdsa::uncompressed_key,
};

/// DER of the key's `SubjectPublicKeyInfo` (RFC 5280, section 4.1), for Ed25519, Ed448, P-256, secp256k1 and RSA; `None` for keys of
/// suites that have no such form. Points of ECDSA are not compressed, since some verifiers cannot undo that.
#[must_use]
pub fn public_key_info(public: &AnyPublicKey) -> Option<Vec<u8>> {
    let uncompressed = uncompressed_key(public);
    let key = uncompressed.as_ref().map_or_else(|| public.public_key_bytes(), |key| &key[..]);
    Some([info_prefix(public.suite())?, key].concat())
}

/// The fixed beginning of a `SubjectPublicKeyInfo`; the key follows it.
fn info_prefix(suite: Suite) -> Option<&'static [u8]> {
    // RFC 8410, section 4.
    const ED25519: &[u8] = &[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0];
    const ED448: &[u8] = &[0x30, 0x43, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x71, 0x03, 0x3a, 0];
    // RFC 5480, section 2, with points of 33 bytes.
    const P256: &[u8] = &[
        0x30, 0x39, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
        0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x22, 0,
    ];
    const SECP256K1: &[u8] = &[
        0x30, 0x36, 0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b, 0x81, 0x04, 0,
        0x0a, 0x03, 0x22, 0,
    ];
    // The same with points of 65 bytes.
    const P256_UNCOMPRESSED: &[u8] = &[
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
        0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0,
    ];
    const SECP256K1_UNCOMPRESSED: &[u8] = &[
        0x30, 0x56, 0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b, 0x81, 0x04, 0,
        0x0a, 0x03, 0x42, 0,
    ];
    match suite {
        Suite::EcdsaP256 => Some(P256_UNCOMPRESSED),
        Suite::EcdsaSecp256k1 => Some(SECP256K1_UNCOMPRESSED),
        Suite::FrostEd25519 => Some(ED25519),
        Suite::FrostEd448 => Some(ED448),
        Suite::FrostP256 => Some(P256),
        Suite::FrostSecp256k1 => Some(SECP256K1),
        // Keys of RSA are kept in this form.
        _ if suite.key_kind() == KeyKind::Rsa => Some(&[]),
        _ => None,
    }
}
