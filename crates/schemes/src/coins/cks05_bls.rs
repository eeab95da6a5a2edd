//! The coin of Cachin, Kursawe and Shoup from a unique threshold signature ("Random oracles in Constantinople", J.
//! Cryptology 2005, section 4.3), here BLS: the coin of a name is the SHA-256 of the signature on that name.
//!
//! The signature is the proof, which anyone verifies with the public key alone. It is made with the draft's basic scheme
//! (`NUL`), which is what drand beacons publish: with a round's digest for a name, the coin and its proof are that round's
//! `randomness` and `signature`, see [`drand_round`]. See `spec/cks05.md`.

use core::marker::PhantomData;

use rand_core::CryptoRng;
use sha2::{Digest, Sha256};
use theta_groups::bls12_381::{Bls12_381, G1, G2};
use theta_groups::{DecodeError, Group, Pairing as _, Secret};
use theta_sharing::ShareIndex;

use crate::keys::{CurveScheme, KeyScheme, KeyShare, PublicKeySet};
use crate::signatures::bls04::{Bls04, Form, SignRequest, Signature, SignatureShare};
use crate::statement::MAX_COIN_NAME_LEN;
use crate::{
    CombineError, Purpose, RequestError, SignatureScheme, Statement, Suite, ThresholdCoin, ThresholdScheme, VerifyError,
};

/// Keys in G1, signatures in G2: the first drand network (`pedersen-bls-chained`).
#[derive(Clone, Copy, Debug)]
pub struct BeaconMinPk;

/// Keys in G2, signatures in G1: drand's quicknet (`bls-unchained-g1-rfc9380`).
#[derive(Clone, Copy, Debug)]
pub struct BeaconMinSig;

impl Form for BeaconMinPk {
    type Curve = Bls12_381;
    type Keys = G1;
    type Signatures = G2;
    const SUITE: Suite = Suite::Cks05Bls04MinPk;
    const SIGN_DST: &'static [u8] = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_NUL_";
    const POP_DST: &'static [u8] = b"BLS_POP_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";

    fn vartime_product_is_one(pairs: &[(<G1 as Group>::Element, <G2 as Group>::Element)]) -> bool {
        Bls12_381::vartime_product_is_one(pairs)
    }
}

impl Form for BeaconMinSig {
    type Curve = Bls12_381;
    type Keys = G2;
    type Signatures = G1;
    const SUITE: Suite = Suite::Cks05Bls04MinSig;
    const SIGN_DST: &'static [u8] = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_";
    const POP_DST: &'static [u8] = b"BLS_POP_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";

    fn vartime_product_is_one(pairs: &[(<G2 as Group>::Element, <G1 as Group>::Element)]) -> bool {
        let pairs: Vec<_> = pairs.iter().map(|(key, signature)| (*signature, *key)).collect();
        Bls12_381::vartime_product_is_one(&pairs)
    }
}

/// The coin from BLS signatures of one form.
#[derive(Clone, Copy, Debug)]
pub struct Cks05Bls<F>(PhantomData<F>);

/// What drand signs in a round: the SHA-256 of the previous round's signature, if the rounds are chained, and of the
/// round's number in eight bytes big-endian. As a coin's name it makes the coin that round's randomness.
#[must_use]
pub fn drand_round(round: u64, previous_signature: Option<&[u8]>) -> [u8; 32] {
    Sha256::new()
        .chain_update(previous_signature.unwrap_or_default())
        .chain_update(round.to_be_bytes())
        .finalize()
        .into()
}

fn value(signature: &[u8]) -> [u8; 32] {
    Sha256::digest(signature).into()
}

impl<F: Form> KeyScheme for Cks05Bls<F> {
    type PublicKey = PublicKeySet<F::Keys>;
    type KeyShare = KeyShare<F::Keys>;
    const SUITE: Suite = F::SUITE;
}

impl<F: Form> CurveScheme for Cks05Bls<F> {
    type KeyGroup = F::Keys;

    fn prove_possession(
        secret: &Secret<<F::Keys as Group>::Scalar>,
        public_key: &<F::Keys as Group>::Element,
    ) -> Option<Vec<u8>> {
        Bls04::<F>::prove_possession(secret, public_key)
    }

    fn check_possession(public_key: &<F::Keys as Group>::Element, proof: Option<&[u8]>) -> bool {
        Bls04::<F>::check_possession(public_key, proof)
    }
}

impl<F: Form> ThresholdScheme for Cks05Bls<F> {
    type Request = SignRequest<F>;
    type Share = SignatureShare<F>;
    type Output = Signature<F>;

    const CHECKABLE: bool = true;

    fn parse_request(_public: &Self::PublicKey, statement: &Statement<'_>) -> Result<Self::Request, RequestError> {
        Ok(SignRequest::new(statement.for_purpose(Purpose::Coin, "coin name", MAX_COIN_NAME_LEN)?))
    }

    fn create_share(
        public: &Self::PublicKey,
        key: &Self::KeyShare,
        request: &Self::Request,
        rng: &mut dyn CryptoRng,
    ) -> Self::Share {
        Bls04::<F>::create_share(public, key, request, rng)
    }

    fn share_index(share: &Self::Share) -> ShareIndex {
        Bls04::<F>::share_index(share)
    }

    fn encode_share(share: &Self::Share) -> Vec<u8> {
        Bls04::<F>::encode_share(share)
    }

    fn decode_share(index: ShareIndex, bytes: &[u8]) -> Result<Self::Share, DecodeError> {
        Bls04::<F>::decode_share(index, bytes)
    }

    fn verify_shares(
        public: &Self::PublicKey,
        request: &Self::Request,
        shares: &[Self::Share],
        rng: &mut dyn CryptoRng,
    ) -> Vec<ShareIndex> {
        Bls04::<F>::verify_shares(public, request, shares, rng)
    }

    fn combine(
        public: &Self::PublicKey,
        request: &Self::Request,
        shares: &[Self::Share],
    ) -> Result<Self::Output, CombineError> {
        Bls04::<F>::combine(public, request, shares)
    }

    fn encode_output(output: &Self::Output) -> (Secret<Vec<u8>>, Vec<u8>) {
        let signature = output.encode();
        (Secret::new(value(&signature).to_vec()), signature)
    }
}

impl<F: Form> ThresholdCoin for Cks05Bls<F> {
    fn verify(public: &Self::PublicKey, name: &[u8], coin: &[u8], proof: &[u8]) -> Result<(), VerifyError> {
        if coin.len() != 32 {
            return Err(DecodeError::Length { expected: 32, got: coin.len() }.into());
        }
        if name.len() > MAX_COIN_NAME_LEN || value(proof) != coin {
            return Err(VerifyError::Invalid);
        }
        Bls04::<F>::verify(public, name, proof)
    }
}
