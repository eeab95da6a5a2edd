//! What the keys of every scheme have in common.

use core::fmt::Debug;

use theta_groups::{Group, Secret};
use theta_sharing::{ShareIndex, Threshold};

use super::{KeyGroup, KeyId, KeyShare, PublicKeySet, PublicParts, Typed, TypedKeyShare, TypedPublicKey};
use crate::Suite;
use crate::registry::{Curve, Family, Kind};

/// The public material of a key, whatever it is made of.
pub trait PublicMaterial: Debug + Send + Sync + 'static {
    /// What the key is for.
    fn suite(&self) -> Suite;
    /// How many of how many.
    fn threshold(&self) -> Threshold;
    /// The key's id.
    fn key_id(&self) -> &KeyId;
    /// The canonical encoding of the public key, of which the key's id is made.
    fn public_key_bytes(&self) -> &[u8];
    /// All of it that does not follow from the rest.
    fn parts(&self) -> PublicParts;
    /// Length in bytes of the secret in each share of the key.
    fn share_secret_len(&self) -> usize;
}

/// One party's share of a key, whatever it is made of.
pub trait SecretMaterial: Debug + Send + Sync + 'static {
    /// Whose share this is.
    fn index(&self) -> ShareIndex;
    /// The key that this is a share of.
    fn key_id(&self) -> &KeyId;
    /// The secret's canonical bytes, from which a party derives what must be the same whenever it is asked the same.
    fn secret_bytes(&self) -> Secret<Vec<u8>>;
}

/// A scheme's keys. Every suite has one type that implements it.
pub trait KeyScheme: Sized + Send + Sync + 'static {
    /// A key's public material with the verification keys of all parties.
    type PublicKey: PublicMaterial + Typed<Any = TypedPublicKey>;
    /// One party's secret share.
    type KeyShare: SecretMaterial + Typed<Any = TypedKeyShare>;
    /// What keys are made of: [`Curve`] or [`Rsa`](crate::Rsa).
    type Kind: Kind<Self>;
    /// What keys are good for: [`Ciphers`](crate::Ciphers), [`Signatures`](crate::Signatures), [`Coins`](crate::Coins) or
    /// [`TwoRounds`](crate::TwoRounds).
    type Family: Family<Self>;
    /// The suite's name.
    const SUITE: Suite;

    /// The public key as verifiers of single results take it; all but Taproot take the key's own encoding.
    fn verifying_key_bytes(public: &Self::PublicKey) -> &[u8] {
        public.public_key_bytes()
    }
}

/// Keys that are Shamir sharings in the exponent of a prime-order group: all but RSA.
pub trait CurveScheme:
    KeyScheme<PublicKey = PublicKeySet<Self::KeyGroup>, KeyShare = KeyShare<Self::KeyGroup>, Kind = Curve>
{
    /// The group of the public key.
    type KeyGroup: KeyGroup;
    /// Whether keys carry a proof that somebody knows their secret.
    const PROVES_POSSESSION: bool = false;

    /// Proves that the dealer knows the secret key, for schemes whose users need that.
    fn prove_possession(
        _secret: &Secret<<Self::KeyGroup as Group>::Scalar>,
        _public_key: &<Self::KeyGroup as Group>::Element,
    ) -> Option<Vec<u8>> {
        None
    }

    /// Whether the proof is what the scheme needs: valid, or absent where there is none.
    fn check_possession(_public_key: &<Self::KeyGroup as Group>::Element, proof: Option<&[u8]>) -> bool {
        proof.is_none()
    }

    /// Whether `share` is what [`prove_possession`](Self::prove_possession) gives for the group's public key and the key
    /// share behind `verification_key`: one party's part of the proof of a key that nobody knows.
    fn check_possession_share(
        _public_key: &<Self::KeyGroup as Group>::Element,
        _verification_key: &<Self::KeyGroup as Group>::Element,
        _share: &[u8],
    ) -> bool {
        false
    }

    /// The proof of possession from k parties' parts; it is as good as they are. `None` if the scheme has no proofs, or
    /// for parts that are no group elements.
    fn combine_possession(_shares: &[(ShareIndex, Vec<u8>)]) -> Option<Vec<u8>> {
        None
    }
}
