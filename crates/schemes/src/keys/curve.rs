//! Keys on curves: what their schemes add to those of all keys.

use theta_groups::{Group, Secret};
use theta_sharing::ShareIndex;

use super::scheme::{Curve, KeyScheme};
use super::{KeyGroup, KeyShare, PublicKeySet};

/// Keys that are Shamir sharings in the exponent of a prime-order group: all but RSA.
pub trait CurveScheme:
    KeyScheme<PublicKey = PublicKeySet<Self::KeyGroup>, KeyShare = KeyShare<Self::KeyGroup>, Kind = Curve>
{
    /// The group of the public key.
    type KeyGroup: KeyGroup;
    /// Whether keys have a proof of possession of their secret.
    const PROVES_POSSESSION: bool = false;

    /// The proof of possession of a secret key, for schemes that have one.
    fn prove_possession(
        _secret: &Secret<<Self::KeyGroup as Group>::Scalar>,
        _public_key: &<Self::KeyGroup as Group>::Element,
    ) -> Option<Vec<u8>> {
        None
    }

    /// Whether the proof is valid, or absent in schemes that have none.
    fn check_proof_of_possession(_public_key: &<Self::KeyGroup as Group>::Element, proof: Option<&[u8]>) -> bool {
        proof.is_none()
    }

    /// Whether `share` is what [`prove_possession`](Self::prove_possession) gives for the group's public key and the key
    /// share of `verification_key`: one party's share of the proof for a key that nobody knows.
    fn check_proof_of_possession_share(
        _public_key: &<Self::KeyGroup as Group>::Element,
        _verification_key: &<Self::KeyGroup as Group>::Element,
        _share: &[u8],
    ) -> bool {
        false
    }

    /// The proof of possession from k parties' shares of it, which are not verified here. `None` if the scheme has no proofs, or
    /// for shares that are no group elements.
    fn combine_proof_of_possession(_shares: &[(ShareIndex, Vec<u8>)]) -> Option<Vec<u8>> {
        None
    }
}
