//! What is asked of ECDSA's keys among those of any suite.

use crate::keys::AnyPublicKey;

/// The public key of ECDSA as SEC1 writes it without compression (section 2.3.3): 4, x, y. Many verifiers read no other form. `None`
/// for keys of other schemes.
#[must_use]
pub fn uncompressed_key(public: &AnyPublicKey) -> Option<[u8; 65]> {
    public.object().ecdsa()?.uncompressed()
}

/// Which of the up to four keys that fit a digest and a signature (r || s) this key is, from 0 to 3: with it, the key follows from the other two
/// (SEC1, section 4.1.6), as Ethereum's `ecrecover` and Bitcoin's signed messages do it. Bit 0 says that the y of R is odd, bit 1 that its x is the
/// group's order or more, which no signature is likely to have. `None` if the signature is none of the digest, and for keys of other schemes. All of it
/// is public.
#[must_use]
pub fn vartime_recovery_id(public: &AnyPublicKey, digest: &[u8], signature: &[u8]) -> Option<u8> {
    public.object().ecdsa()?.vartime_recovery_id(digest, signature)
}
