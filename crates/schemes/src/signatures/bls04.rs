//! Threshold BLS signatures (Boldyreva, PKC 2003, on Boneh-Lynn-Shacham, J. Cryptology 2004) on BLS12-381, in the two
//! forms of draft-irtf-cfrg-bls-signature with proofs of possession; any verifier of that draft accepts the results. Contracts
//! in the EVM can verify a third form, on BN254.
//!
//! A share is `H(m) * x_i`, itself a BLS signature under the verification key h_i, so shares need no proofs. See
//! `spec/bls04.md`.

pub mod evm;

use core::fmt::Debug;
use core::marker::PhantomData;

use rand_core::CryptoRng;
use theta_groups::bls12_381::{Bls12_381, G1, G2};
use theta_groups::bn254::{self, Bn254};
use theta_groups::{DecodeError, Group, Pairing, Secret};
use theta_sharing::{ShareIndex, vartime_interpolate_at_zero};

use crate::bisection::{find_false, random_weight};
use crate::keys::scheme::{Curve, Signatures};
use crate::keys::{CurveScheme, KeyGroup, KeyScheme, KeyShare, PublicKeySet};
use crate::limits::MAX_MESSAGE_LEN;
use crate::point_share::PointShare;
use crate::{CombineError, Purpose, RequestError, SignatureScheme, Statement, Suite, ThresholdScheme, VerifyError};

/// A group's scalars.
type ScalarOf<P> = <P as Pairing>::Scalar;
/// A public key as an element.
type KeyElement<F> = <<F as Form>::Keys as Group>::Element;
/// A signature as an element.
type SignatureElement<F> = <<F as Form>::Signatures as Group>::Element;
/// An element of G1 and one of G2.
pub(crate) type PairOf<F> =
    (<<<F as Form>::Curve as Pairing>::G1 as Group>::Element, <<<F as Form>::Curve as Pairing>::G2 as Group>::Element);

/// Which group holds keys and which holds signatures.
pub trait Form: Copy + Debug + Send + Sync + 'static {
    /// The pairing.
    type Curve: Pairing;
    /// The group of public keys.
    type Keys: KeyGroup<Scalar = ScalarOf<Self::Curve>>;
    /// The group of signatures.
    type Signatures: Group<Scalar = ScalarOf<Self::Curve>>;
    /// The suite's name.
    const SUITE: Suite;
    /// The ciphersuite identifier of the draft, section 4.2.3, which is the domain of the message hash.
    const SIGN_DST: &'static [u8];
    /// The domain of the proof-of-possession hash, same section.
    const POP_DST: &'static [u8];

    /// Key and signature in the pairing's order: the element of G1 first.
    fn pair(key: KeyElement<Self>, signature: SignatureElement<Self>) -> PairOf<Self>;

    /// Whether the product of e(key, signature) over all pairs is one.
    fn vartime_product_is_one(pairs: &[(KeyElement<Self>, SignatureElement<Self>)]) -> bool {
        let pairs: Vec<_> = pairs.iter().map(|(key, signature)| Self::pair(*key, *signature)).collect();
        Self::Curve::vartime_product_is_one(&pairs)
    }
}

/// Defines forms, each with its suite, the identifier of the draft's ciphersuite and the domain of proofs of possession.
macro_rules! forms {
    ($($(#[$doc:meta])* $form:ident = $suite:ident on $curve:ty: keys in $keys:ty, signatures in $signatures:ty,
        |$key:ident, $signature:ident| $pair:expr, $sign_dst:literal, $pop_dst:literal;)*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $form;

        impl $crate::signatures::bls04::Form for $form {
            type Curve = $curve;
            type Keys = $keys;
            type Signatures = $signatures;
            const SUITE: $crate::Suite = $crate::Suite::$suite;
            const SIGN_DST: &'static [u8] = $sign_dst;
            const POP_DST: &'static [u8] = $pop_dst;

            fn pair(
                $key: <$keys as theta_groups::Group>::Element,
                $signature: <$signatures as theta_groups::Group>::Element,
            ) -> $crate::signatures::bls04::PairOf<Self> {
                $pair
            }
        })*
    };
}
pub(crate) use forms;

forms! {
    /// Minimal public key: keys in G1 (48 bytes), signatures in G2 (96 bytes).
    MinPk = Bls04MinPk on Bls12_381: keys in G1, signatures in G2, |key, signature| (key, signature),
        b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_", b"BLS_POP_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";

    /// Minimal signature: keys in G2 (96 bytes), signatures in G1 (48 bytes).
    MinSig = Bls04MinSig on Bls12_381: keys in G2, signatures in G1, |key, signature| (signature, key),
        b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_", b"BLS_POP_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";

    /// Minimal signature on BN254: keys in G2 (64 bytes), signatures in G1 (32 bytes). The draft has no ciphersuite on
    /// this curve; the domains follow its form, with the hash suite `BN254G1_XMD:SHA-256_SVDW_RO_`.
    Bn254MinSig = Bls04Bn254 on Bn254: keys in bn254::G2, signatures in bn254::G1, |key, signature| (signature, key),
        b"BLS_SIG_BN254G1_XMD:SHA-256_SVDW_RO_POP_", b"BLS_POP_BN254G1_XMD:SHA-256_SVDW_RO_POP_";
}

/// The scheme in one of its forms.
#[derive(Clone, Copy, Debug)]
pub struct Bls04<F>(PhantomData<F>);

/// A message to sign, hashed to the signature group.
#[derive(Clone, Copy, Debug)]
pub struct SignRequest<F: Form> {
    point: SignatureElement<F>,
}

impl<F: Form> SignRequest<F> {
    /// Hashes a message of any length.
    pub(crate) fn new(message: &[u8]) -> Self {
        Self { point: F::Signatures::hash_to_group(F::SIGN_DST, &[message]) }
    }
}

/// A signature that verifies under the group's public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature<F: Form>(SignatureElement<F>);

impl<F: Form> Signature<F> {
    /// The compressed point, as the draft encodes it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        F::Signatures::encode(&self.0).as_ref().to_vec()
    }
}

/// Whether `signature` is `point * x` for the x of `key`. The arguments must be in the prime-order subgroups.
fn is_power<F: Form>(key: &KeyElement<F>, point: &SignatureElement<F>, signature: &SignatureElement<F>) -> bool {
    F::vartime_product_is_one(&[(*key, *point), (-F::Keys::generator(), *signature)])
}

/// The draft's `PopProve`, section 3.3.2.
fn possession_point<F: Form>(public_key: &KeyElement<F>) -> SignatureElement<F> {
    F::Signatures::hash_to_group(F::POP_DST, &[F::Keys::encode(public_key).as_ref()])
}

impl<F: Form> KeyScheme for Bls04<F> {
    type PublicKey = PublicKeySet<F::Keys>;
    type KeyShare = KeyShare<F::Keys>;
    type Kind = Curve;
    type Family = Signatures;
    const SUITE: Suite = F::SUITE;
}

impl<F: Form> CurveScheme for Bls04<F> {
    type KeyGroup = F::Keys;
    const PROVES_POSSESSION: bool = true;

    fn prove_possession(secret: &Secret<ScalarOf<F::Curve>>, public_key: &KeyElement<F>) -> Option<Vec<u8>> {
        let proof = possession_point::<F>(public_key) * *secret.expose();
        Some(F::Signatures::encode(&proof).as_ref().to_vec())
    }

    fn check_proof_of_possession(public_key: &KeyElement<F>, proof: Option<&[u8]>) -> bool {
        proof
            .and_then(|bytes| F::Signatures::decode(bytes).ok())
            .is_some_and(|proof| is_power::<F>(public_key, &possession_point::<F>(public_key), &proof))
    }

    fn check_proof_of_possession_share(
        public_key: &KeyElement<F>,
        verification_key: &KeyElement<F>,
        share: &[u8],
    ) -> bool {
        F::Signatures::decode(share)
            .is_ok_and(|share| is_power::<F>(verification_key, &possession_point::<F>(public_key), &share))
    }

    fn combine_proof_of_possession(shares: &[(ShareIndex, Vec<u8>)]) -> Option<Vec<u8>> {
        let point = |(index, bytes): &(ShareIndex, Vec<u8>)| Some((*index, F::Signatures::decode(bytes).ok()?));
        let points: Vec<_> = shares.iter().map(point).collect::<Option<_>>()?;
        let proof = vartime_interpolate_at_zero::<F::Signatures>(&points).ok()?;
        Some(F::Signatures::encode(&proof).as_ref().to_vec())
    }
}

impl<F: Form> ThresholdScheme for Bls04<F> {
    type Request = SignRequest<F>;
    type Share = PointShare<F::Signatures>;
    type Output = Signature<F>;

    const CHECKABLE: bool = true;

    fn parse_request(_public: &Self::PublicKey, statement: &Statement<'_>) -> Result<Self::Request, RequestError> {
        let message = statement.for_purpose(Purpose::Sign, "message", MAX_MESSAGE_LEN)?;
        Ok(SignRequest::new(message))
    }

    fn create_share(
        _public: &Self::PublicKey,
        key: &Self::KeyShare,
        request: &Self::Request,
        _rng: &mut dyn CryptoRng,
    ) -> Self::Share {
        PointShare::create(key, &request.point)
    }

    fn share_index(share: &Self::Share) -> ShareIndex {
        share.index()
    }

    fn encode_share(share: &Self::Share) -> Vec<u8> {
        share.encode()
    }

    fn decode_share(index: ShareIndex, bytes: &[u8]) -> Result<Self::Share, DecodeError> {
        PointShare::decode(index, bytes)
    }

    fn verify_shares(
        public: &Self::PublicKey,
        request: &Self::Request,
        shares: &[Self::Share],
        rng: &mut dyn CryptoRng,
    ) -> Vec<ShareIndex> {
        PointShare::false_among(public, shares, |key, share| is_power::<F>(key, &request.point, share), rng)
    }

    fn combine(
        public: &Self::PublicKey,
        request: &Self::Request,
        shares: &[Self::Share],
    ) -> Result<Self::Output, CombineError> {
        checked(public, request, PointShare::interpolate(public, shares)?)
    }

    fn combined_value(
        _public: &Self::PublicKey,
        _request: &Self::Request,
        result: &[u8],
        _proof: &[u8],
    ) -> Option<Secret<Vec<u8>>> {
        Some(Secret::new(result.to_vec()))
    }

    fn accept_combined(
        public: &Self::PublicKey,
        request: &Self::Request,
        combined: &[u8],
    ) -> Result<Self::Output, CombineError> {
        let signature = F::Signatures::decode(combined).map_err(|_| CombineError::ResultInvalid)?;
        checked(public, request, signature)
    }

    const CHECKS_TOGETHER: bool = true;

    fn combine_unchecked(
        public: &Self::PublicKey,
        _request: &Self::Request,
        shares: &[Self::Share],
        _own: ShareIndex,
    ) -> Result<Self::Output, CombineError> {
        in_subgroup(PointShare::interpolate(public, shares)?)
    }

    fn accept_unchecked(
        _public: &Self::PublicKey,
        _request: &Self::Request,
        combined: &[u8],
    ) -> Result<Self::Output, CombineError> {
        in_subgroup(F::Signatures::decode(combined).map_err(|_| CombineError::ResultInvalid)?)
    }

    /// With random weights w_i of 128 bits: e(y, sum w_i H(m_i)) = e(g, sum w_i s_i), two pairings for all. All points are in the
    /// prime-order subgroups, so that one false signature passes with probability 2^-128 (Bellare, Garay and Rabin,
    /// EUROCRYPT 1998; for BLS, Camenisch, Hohenberger and Pedersen, EUROCRYPT 2007).
    fn vartime_false_among(
        public: &Self::PublicKey,
        results: &[(&Self::Request, &Self::Output)],
        rng: &mut dyn CryptoRng,
    ) -> Vec<usize> {
        let places = results.iter().enumerate();
        let batch: Vec<_> =
            places.map(|(place, (request, output))| (place, request.point, output.0, random_weight(rng))).collect();
        let holds = |batch: &[(usize, SignatureElement<F>, SignatureElement<F>, u128)]| {
            if let [(_, point, signature, _)] = batch {
                return is_power::<F>(public.public_key(), point, signature);
            }
            let weights: Vec<_> = batch.iter().map(|(.., weight)| *weight).collect();
            let points: Vec<_> = batch.iter().map(|(_, point, ..)| *point).collect();
            let signatures: Vec<_> = batch.iter().map(|(_, _, signature, _)| *signature).collect();
            let sum = F::Signatures::vartime_msm_short;
            is_power::<F>(public.public_key(), &sum(&weights, &points), &sum(&weights, &signatures))
        };
        let mut found = Vec::new();
        find_false(&batch, &holds, &mut |(place, ..)| found.push(*place));
        found
    }

    fn encode_output(output: &Self::Output) -> (Secret<Vec<u8>>, Vec<u8>) {
        (Secret::new(output.encode()), Vec::new())
    }
}

impl<F: Form> SignatureScheme for Bls04<F> {
    fn verify(public: &Self::PublicKey, message: &[u8], signature: &[u8]) -> Result<(), VerifyError> {
        verify::<F>(public.public_key(), message, signature)
    }
}

/// The element as a signature, if it is the one that the request asks for.
fn checked<F: Form>(
    public: &PublicKeySet<F::Keys>,
    request: &SignRequest<F>,
    signature: <F::Signatures as Group>::Element,
) -> Result<Signature<F>, CombineError> {
    let signature = in_subgroup::<F>(signature)?;
    let sound = is_power::<F>(public.public_key(), &request.point, &signature.0);
    if sound { Ok(signature) } else { Err(CombineError::ResultInvalid) }
}

/// The element as a signature, if it may be one at all.
fn in_subgroup<F: Form>(signature: SignatureElement<F>) -> Result<Signature<F>, CombineError> {
    let may_be = !F::Signatures::is_identity(&signature) && F::Signatures::is_in_subgroup(&signature);
    if may_be { Ok(Signature(signature)) } else { Err(CombineError::ResultInvalid) }
}

/// Verifies a signature with a public key alone.
pub(crate) fn verify<F: Form>(key: &KeyElement<F>, message: &[u8], signature: &[u8]) -> Result<(), VerifyError> {
    let signature = F::Signatures::decode(signature)?;
    let request = SignRequest::<F>::new(message);
    if is_power::<F>(key, &request.point, &signature) { Ok(()) } else { Err(VerifyError::Invalid) }
}
