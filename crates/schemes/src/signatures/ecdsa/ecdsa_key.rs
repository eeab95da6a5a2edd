//! What keys of ECDSA can do that others cannot.

use crate::keys::AnyPublicKey;

/// The operations of ECDSA's keys alone.
pub trait EcdsaKey {
    /// The public key as SEC1 writes it without compression: 4, x, y.
    fn uncompressed(&self) -> Option<[u8; 65]>;
}

/// The public key of ECDSA as SEC1 writes it without compression (section 2.3.3): 4, x, y. Many verifiers read no other form. `None`
/// for keys of other schemes.
#[must_use]
pub fn uncompressed_key(public: &AnyPublicKey) -> Option<[u8; 65]> {
    public.object().ecdsa()?.uncompressed()
}
