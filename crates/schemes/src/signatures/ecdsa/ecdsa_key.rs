//! What keys of ECDSA can do that others cannot.

/// The operations of ECDSA's keys alone.
pub trait EcdsaKey {
    /// The public key as SEC1 writes it without compression: 4, x, y.
    fn uncompressed(&self) -> Option<[u8; 65]>;

    /// See [`vartime_recovery_id`](super::vartime_recovery_id).
    fn vartime_recovery_id(&self, digest: &[u8], signature: &[u8]) -> Option<u8>;
}
