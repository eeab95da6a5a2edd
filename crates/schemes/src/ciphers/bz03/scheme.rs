//! The cipher as a one-round scheme.

use rand_core::CryptoRng;
use theta_groups::{DecodeError, Group, Secret};
use theta_sharing::ShareIndex;
use zeroize::Zeroize;

use super::capsule::{self, ValidCapsule};
use super::{Bz03, CipherPairing};
use crate::ciphers::PayloadKey;
use crate::keys::scheme::{Ciphers, Curve};
use crate::keys::{CurveScheme, KeyScheme, KeyShare, PublicKeySet};
use crate::point_share::PointShare;
use crate::{CombineError, PendingProof, RequestError, Statement, Suite, ThresholdCipher, ThresholdScheme};

/// A valid header, which is safe to answer.
pub struct DecapsulationRequest<P: CipherPairing>(ValidCapsule<P>);

impl<P: CipherPairing> KeyScheme for Bz03<P> {
    type PublicKey = PublicKeySet<P::G1>;
    type KeyShare = KeyShare<P::G1>;
    type Kind = Curve;
    type Family = Ciphers;
    const SUITE: Suite = P::SUITE;
}

impl<P: CipherPairing> CurveScheme for Bz03<P> {
    type KeyGroup = P::G1;
}

impl<P: CipherPairing> ThresholdScheme for Bz03<P> {
    type Request = DecapsulationRequest<P>;
    type Share = PointShare<P::G1>;
    type Output = PayloadKey;

    const CHECKABLE: bool = true;

    fn parse_request(public: &Self::PublicKey, statement: &Statement<'_>) -> Result<Self::Request, RequestError> {
        let (header, bytes) = statement.header(P::SUITE, public.key_id())?;
        Ok(DecapsulationRequest(capsule::check(public.key_id(), bytes, header.capsule())?))
    }

    fn parse_unproven(
        public: &Self::PublicKey,
        statement: &Statement<'_>,
    ) -> Result<(Self::Request, PendingProof), RequestError> {
        let (header, bytes) = statement.header(P::SUITE, public.key_id())?;
        let (capsule, validity) = capsule::read(public.key_id(), bytes, header.capsule())?;
        Ok((DecapsulationRequest(capsule), Some(Box::new(validity))))
    }

    fn create_share(
        _public: &Self::PublicKey,
        key: &Self::KeyShare,
        request: &Self::Request,
        _rng: &mut dyn CryptoRng,
    ) -> Self::Share {
        PointShare::create(key, &request.0.u)
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

    /// e(v_i, g') = e(h_i, u') for each share; for many at once with random 128-bit weights, two pairings in all.
    fn verify_shares(
        public: &Self::PublicKey,
        request: &Self::Request,
        shares: &[Self::Share],
        rng: &mut dyn CryptoRng,
    ) -> Vec<ShareIndex> {
        let holds = |key: &<P::G1 as Group>::Element, point: &<P::G1 as Group>::Element| {
            P::vartime_product_is_one(&[(*point, P::G2::generator()), (-*key, request.0.u_second)])
        };
        PointShare::false_among(public, shares, holds, rng)
    }

    /// A result that is not valid although all shares are true is the encryptor's fault; then no shares, true or false, give a
    /// valid result.
    fn combine(
        public: &Self::PublicKey,
        request: &Self::Request,
        shares: &[Self::Share],
    ) -> Result<Self::Output, CombineError> {
        let mut shared = PointShare::interpolate(public, shares)?;
        let key = request.0.open(public, &shared);
        shared.zeroize();
        key
    }

    fn combined_value(
        public: &Self::PublicKey,
        request: &Self::Request,
        result: &[u8],
        _proof: &[u8],
    ) -> Option<Secret<Vec<u8>>> {
        Some(request.0.shared(public, &PayloadKey::from_bytes(result).ok()?))
    }

    fn accept_combined(
        public: &Self::PublicKey,
        request: &Self::Request,
        combined: &[u8],
    ) -> Result<Self::Output, CombineError> {
        let mut shared = P::G1::decode(combined).map_err(|_| CombineError::ResultInvalid)?;
        let key = request.0.open(public, &shared);
        shared.zeroize();
        key
    }

    fn encode_output(output: &Self::Output) -> (Secret<Vec<u8>>, Vec<u8>) {
        (Secret::new(output.secret().expose().to_vec()), Vec::new())
    }
}

impl<P: CipherPairing> ThresholdCipher for Bz03<P> {
    const HEADER_CODE: u8 = P::HEADER_CODE;
    const CAPSULE_LEN: usize = capsule::len::<P>();

    fn encapsulate(public: &Self::PublicKey, envelope: Vec<u8>, key: &PayloadKey) -> Vec<u8> {
        capsule::encapsulate::<P>(public, envelope, key)
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;
    use theta_groups::bls12_381::Bls12_381;
    use theta_groups::bn254::Bn254;
    use theta_sharing::Threshold;

    use super::*;
    use crate::ciphers::{Aead, PayloadDigest};
    use crate::keys::{AnyPublicKey, deal};

    fn envelope<P: CipherPairing>(any: &AnyPublicKey, rng: &mut ChaCha20Rng) -> Vec<u8> {
        let honest = any
            .encapsulate(&PayloadKey::random(rng), Aead::default(), &PayloadDigest::new([5; 32], 9), b"label")
            .unwrap();
        honest[..honest.len() - Bz03::<P>::CAPSULE_LEN].to_vec()
    }

    /// An encryptor commits to nonsense: the header is valid and the shares are true, but there is no key. No share may be
    /// blamed for that.
    fn a_lying_encryptor<P: CipherPairing>() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let dealt = deal::<Bz03<P>>(Threshold::new(2, 3).unwrap(), &mut rng);
        let envelope = envelope::<P>(&AnyPublicKey::of::<Bz03<P>>(dealt.public.clone()), &mut rng);
        let lie = capsule::forge::<P>(&envelope, [7; 64], [0; 3], &mut rng);

        let request = Bz03::<P>::parse_request(&dealt.public, &Statement::Decapsulate(&lie)).unwrap();
        let shares: Vec<_> =
            dealt.shares.iter().map(|key| Bz03::<P>::create_share(&dealt.public, key, &request, &mut rng)).collect();
        assert!(Bz03::<P>::verify_shares(&dealt.public, &request, &shares, &mut rng).is_empty());
        let result = Bz03::<P>::combine(&dealt.public, &request, &shares);
        assert_eq!(result.unwrap_err(), CombineError::ResultInvalid);

        // Unequal logarithms, in whichever element.
        for skew in [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]] {
            let lie = capsule::forge::<P>(&envelope, [7; 64], skew, &mut rng);
            let refusal = Bz03::<P>::parse_request(&dealt.public, &Statement::Decapsulate(&lie)).err();
            assert_eq!(refusal, Some(RequestError::InvalidCiphertext), "{skew:?}");
        }
    }

    #[test]
    fn a_lying_encryptor_is_told_from_lying_parties() {
        a_lying_encryptor::<Bls12_381>();
        a_lying_encryptor::<Bn254>();
    }

    /// The mask must not follow from public points. With keys in G2 and a mask made of e(u, h), it would.
    #[test]
    fn the_mask_is_no_function_of_public_points() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let dealt = deal::<Bz03<Bn254>>(Threshold::new(1, 1).unwrap(), &mut rng);
        let any = AnyPublicKey::of::<Bz03<Bn254>>(dealt.public.clone());
        let header = any
            .encapsulate(&PayloadKey::random(&mut rng), Aead::default(), &PayloadDigest::new([5; 32], 9), b"label")
            .unwrap();
        let request = Bz03::<Bn254>::parse_request(&dealt.public, &Statement::Decapsulate(&header)).unwrap();
        let h = *dealt.public.public_key();
        let u = request.0.u;
        for guess in [u, h, u + h, u - h, -u, -h] {
            let guess = PointShare::new(dealt.shares[0].index(), guess);
            let result = Bz03::<Bn254>::combine(&dealt.public, &request, &[guess]);
            assert_eq!(result.unwrap_err(), CombineError::ResultInvalid);
        }
    }
}
