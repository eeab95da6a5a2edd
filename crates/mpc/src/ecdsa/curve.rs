//! What ECDSA needs of a curve.

use theta_groups::{Group, P256, Scalar, Secp256k1};

/// A curve of ECDSA: elements are encoded as SEC1 prescribes, compressed, in 33 bytes, and scalars in 32, big-endian.
pub trait Curve: Group<Encoding = [u8; 33]> {}

impl Curve for P256 {}
impl Curve for Secp256k1 {}

/// The x-coordinate of R modulo q, and what is lost by it.
pub(super) struct Abscissa<S> {
    /// r.
    pub(super) r: S,
    /// Whether the y-coordinate of R is odd.
    pub(super) is_odd: bool,
    /// Whether x was q or more.
    pub(super) overflows: bool,
}

/// r of FIPS 186-5, section 6.4.1, step 5; `None` for the identity.
pub(super) fn abscissa<G: Curve>(element: &G::Element) -> Option<Abscissa<G::Scalar>> {
    if G::is_identity(element) {
        return None;
    }
    let encoded = G::encode(element);
    let (sign, x) = encoded.split_first()?;
    Some(Abscissa {
        r: G::Scalar::from_uniform_bytes(x),
        is_odd: sign & 1 == 1,
        overflows: G::Scalar::decode(x).is_err(),
    })
}

/// e of FIPS 186-5, section 6.4.1, step 2: the digest as an integer modulo q.
pub(super) fn hash_to_scalar<S: Scalar>(digest: &[u8; 32]) -> S {
    S::from_uniform_bytes(digest)
}
