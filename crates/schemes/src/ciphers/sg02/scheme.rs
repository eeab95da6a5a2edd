//! The cipher as a one-round scheme.

use rand_core::CryptoRng;
use theta_groups::{DecodeError, Secret, Transcript};
use theta_sharing::{ShareIndex, dleq::Bases};
use zeroize::Zeroize;

use super::capsule::{self, Sealed};
use super::{CipherGroup, Sg02};
use crate::ciphers::PayloadKey;
use crate::dleq_share::DleqShare;
use crate::keys::scheme::{Ciphers, Curve};
use crate::keys::{CurveScheme, KeyScheme, KeyShare, PublicKeySet};
use crate::{CombineError, PendingProof, RequestError, Statement, Suite, ThresholdCipher, ThresholdScheme};

/// A header whose validity proof holds, so that it is safe to answer.
pub struct DecapsulationRequest<G: CipherGroup> {
    /// g and u.
    bases: Bases<G>,
    sealed: Sealed<G>,
    context: Transcript,
}

impl<G: CipherGroup> DecapsulationRequest<G> {
    fn of(public: &PublicKeySet<G>, capsule: capsule::ValidCapsule<G>) -> Self {
        let capsule::ValidCapsule { u, context, sealed } = capsule;
        Self { bases: public.generator().with(u), sealed, context }
    }
}

impl<G: CipherGroup> KeyScheme for Sg02<G> {
    type PublicKey = PublicKeySet<G>;
    type KeyShare = KeyShare<G>;
    type Kind = Curve;
    type Family = Ciphers;
    const SUITE: Suite = G::SUITE;
}

impl<G: CipherGroup> CurveScheme for Sg02<G> {
    type KeyGroup = G;
}

impl<G: CipherGroup> ThresholdScheme for Sg02<G> {
    type Request = DecapsulationRequest<G>;
    type Share = DleqShare<G>;
    type Output = PayloadKey;

    const CHECKABLE: bool = true;
    const HAS_BARE_SHARES: bool = true;

    fn parse_request(public: &Self::PublicKey, statement: &Statement<'_>) -> Result<Self::Request, RequestError> {
        let (header, bytes) = statement.header(G::SUITE, public.key_id())?;
        let valid = capsule::check::<G>(public.key_id(), bytes, header.capsule())?;
        Ok(DecapsulationRequest::of(public, valid))
    }

    fn parse_unproven(
        public: &Self::PublicKey,
        statement: &Statement<'_>,
    ) -> Result<(Self::Request, PendingProof), RequestError> {
        let (header, bytes) = statement.header(G::SUITE, public.key_id())?;
        let (capsule, proof) = capsule::read::<G>(public.key_id(), bytes, header.capsule())?;
        Ok((DecapsulationRequest::of(public, capsule), proof))
    }

    fn create_share(
        public: &Self::PublicKey,
        key: &Self::KeyShare,
        request: &Self::Request,
        rng: &mut dyn CryptoRng,
    ) -> Self::Share {
        DleqShare::create_proven(public, key, &request.bases, &request.context, rng)
    }

    fn create_bare_share(
        _public: &Self::PublicKey,
        key: &Self::KeyShare,
        request: &Self::Request,
        _rng: &mut dyn CryptoRng,
    ) -> Self::Share {
        DleqShare::create_bare(key, &request.bases)
    }

    fn is_proven(share: &Self::Share) -> bool {
        share.is_proven()
    }

    fn share_index(share: &Self::Share) -> ShareIndex {
        share.index()
    }

    fn encode_share(share: &Self::Share) -> Vec<u8> {
        share.encode()
    }

    fn decode_share(index: ShareIndex, bytes: &[u8]) -> Result<Self::Share, DecodeError> {
        DleqShare::decode(index, bytes)
    }

    fn verify_shares(
        public: &Self::PublicKey,
        request: &Self::Request,
        shares: &[Self::Share],
        rng: &mut dyn CryptoRng,
    ) -> Vec<ShareIndex> {
        DleqShare::false_among(public, &request.bases, &request.context, shares, rng)
    }

    fn vartime_off_polynomial(
        public: &Self::PublicKey,
        verified: &[Self::Share],
        others: &[Self::Share],
        rng: &mut dyn CryptoRng,
    ) -> Vec<ShareIndex> {
        DleqShare::vartime_off_polynomial(public.threshold(), verified, others, rng)
    }

    /// A result that is not valid although all shares are true is the encryptor's fault; then no shares, true or false, give a
    /// valid result.
    fn combine(
        public: &Self::PublicKey,
        request: &Self::Request,
        shares: &[Self::Share],
    ) -> Result<Self::Output, CombineError> {
        let mut shared = DleqShare::interpolate(public, shares)?;
        let key = request.sealed.open(public, &shared);
        shared.zeroize();
        key
    }

    fn combined_value(
        public: &Self::PublicKey,
        request: &Self::Request,
        result: &[u8],
        _proof: &[u8],
    ) -> Option<Secret<Vec<u8>>> {
        Some(request.sealed.shared(public, &PayloadKey::from_bytes(result).ok()?))
    }

    fn accept_combined(
        public: &Self::PublicKey,
        request: &Self::Request,
        combined: &[u8],
    ) -> Result<Self::Output, CombineError> {
        let mut shared = G::decode(combined).map_err(|_| CombineError::ResultInvalid)?;
        let key = request.sealed.open(public, &shared);
        shared.zeroize();
        key
    }

    fn encode_output(output: &Self::Output) -> (Secret<Vec<u8>>, Vec<u8>) {
        (Secret::new(output.secret().expose().to_vec()), Vec::new())
    }
}

impl<G: CipherGroup> ThresholdCipher for Sg02<G> {
    const HEADER_CODE: u8 = G::HEADER_CODE;
    const CAPSULE_LEN: usize = capsule::len::<G>();

    fn encapsulate(public: &Self::PublicKey, envelope: Vec<u8>, key: &PayloadKey) -> Vec<u8> {
        capsule::encapsulate(public, envelope, key)
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;
    use theta_groups::{Group, Ristretto255};
    use theta_sharing::Threshold;

    use super::*;
    use crate::ciphers::{Aead, PayloadDigest};
    use crate::keys::{AnyPublicKey, deal};

    type Cipher = Sg02<Ristretto255>;

    /// An encryptor proves the logarithms honestly but commits to nonsense: the header is valid and the shares are true, but
    /// there is no key. No share may be blamed for that.
    #[test]
    fn a_lying_encryptor_is_told_from_lying_parties() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let dealt = deal::<Cipher>(Threshold::new(2, 3).unwrap(), &mut rng);
        let any = AnyPublicKey::of::<Cipher>(dealt.public.clone());
        let honest = any
            .encapsulate(&PayloadKey::random(&mut rng), Aead::default(), &PayloadDigest::new([5; 32], 9), b"label")
            .unwrap();
        let envelope = &honest[..honest.len() - Cipher::CAPSULE_LEN];
        let lie = capsule::forge::<Ristretto255>(envelope, [7; 64], &mut rng);

        let request = Cipher::parse_request(&dealt.public, &Statement::Decapsulate(&lie)).unwrap();
        let shares: Vec<_> =
            dealt.shares.iter().map(|key| Cipher::create_share(&dealt.public, key, &request, &mut rng)).collect();
        assert!(Cipher::verify_shares(&dealt.public, &request, &shares, &mut rng).is_empty());
        let result = Cipher::combine(&dealt.public, &request, &shares);
        assert_eq!(result.unwrap_err(), CombineError::ResultInvalid);
    }

    /// Proofs for (g^r, g'^q) with r != q must fail, whichever exponent the prover uses.
    #[test]
    fn unequal_logarithms_are_refused() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let dealt = deal::<Cipher>(Threshold::new(1, 1).unwrap(), &mut rng);
        let any = AnyPublicKey::of::<Cipher>(dealt.public.clone());
        let honest = any
            .encapsulate(&PayloadKey::random(&mut rng), Aead::default(), &PayloadDigest::new([5; 32], 9), b"label")
            .unwrap();
        let envelope = &honest[..honest.len() - Cipher::CAPSULE_LEN];
        for skew in [[1, 0], [0, 1]] {
            let lie = capsule::forge_skewed::<Ristretto255>(envelope, [7; 64], skew, &mut rng);
            let refusal = Cipher::parse_request(&dealt.public, &Statement::Decapsulate(&lie)).err();
            assert_eq!(refusal, Some(RequestError::InvalidCiphertext));
        }
    }

    #[test]
    fn the_second_generator_is_another() {
        assert_ne!(*Ristretto255::second_generator(), Ristretto255::generator());
        assert!(!Ristretto255::is_identity(Ristretto255::second_generator()));
    }
}
