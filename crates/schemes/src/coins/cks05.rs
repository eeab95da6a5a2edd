//! The Diffie-Hellman coin of Cachin, Kursawe and Shoup ("Random oracles in Constantinople", J. Cryptology 2005,
//! section 4.3): the coin of a name is a hash of `H(name) * x`.
//!
//! The result cannot be checked by itself, so the shares behind it are verified before it counts, those of several coins of one key
//! together, and the k shares that made the result are its proof. In quorum mode the proof is what a combiner tells the others. See
//! `spec/cks05.md`.

use core::fmt::Debug;
use core::marker::PhantomData;

use rand_core::CryptoRng;
use theta_groups::{
    DecodeError, Ed448, Ed25519, Group, P256, Ristretto255, Secp256k1, Secret, Transcript, bls12_381, bn254,
};
use theta_sharing::{Encoded, ShareIndex, dleq::Bases};

use crate::derived_rng::DerivedRng;
use crate::dleq_share::{self, DleqShare, ProvenShares};
use crate::keys::scheme::{Coins, Curve};
use crate::keys::{CurveScheme, KeyGroup, KeyScheme, KeyShare, PublicKeySet};
use crate::limits::MAX_COIN_NAME_LEN;
use crate::{CombineError, Purpose, RequestError, Statement, Suite, ThresholdCoin, ThresholdScheme, VerifyError};

/// A group on which the coin is defined.
pub trait CoinGroup: KeyGroup {
    /// The suite's name.
    const SUITE: Suite;
    /// The domain of the hash that maps names to elements.
    const NAME_DST: &'static [u8];
}

/// The coin's suites, each with the domain of the hash of names.
macro_rules! coin_groups {
    ($($group:ty, $suite:ident, $dst:literal;)*) => {
        $(impl CoinGroup for $group {
            const SUITE: Suite = Suite::$suite;
            const NAME_DST: &'static [u8] = $dst;
        })*
    };
}

coin_groups! {
    Ristretto255, Cks05Ristretto255, b"THETA-V01-CS01-cks05-name-with-ristretto255_XMD:SHA-512_R255MAP_RO_";
    bls12_381::G1, Cks05Bls12381, b"THETA-V01-CS02-cks05-name-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";
    Ed25519, Cks05Ed25519, b"THETA-V01-CS05-cks05-name-with-edwards25519_XMD:SHA-512_ELL2_RO_";
    bn254::G1, Cks05Bn254, b"THETA-V01-CS06-cks05-name-with-BN254G1_XMD:SHA-256_SVDW_RO_";
    P256, Cks05P256, b"THETA-V01-CS07-cks05-name-with-P256_XMD:SHA-256_SSWU_RO_";
    Secp256k1, Cks05Secp256k1, b"THETA-V01-CS08-cks05-name-with-secp256k1_XMD:SHA-256_SSWU_RO_";
    Ed448, Cks05Ed448, b"THETA-V01-CS09-cks05-name-with-edwards448_XOF:SHAKE256_ELL2_RO_";
}

/// The coin on group `G`.
#[derive(Clone, Copy, Debug)]
pub struct Cks05<G>(PhantomData<G>);

/// A coin to draw: its name, hashed to the group.
#[derive(Clone)]
pub struct CoinRequest<G: Group> {
    bases: Bases<G>,
    context: Transcript,
    /// The transcript of the coin's value, to which the power is still to be added.
    value: Transcript,
}

/// A drawn coin: 32 uniform bytes and the shares that prove them.
#[derive(Debug)]
pub struct Coin<G: Group> {
    value: [u8; 32],
    /// The k shares that were combined.
    shares: Vec<DleqShare<G>>,
    /// The party that combined them, whose own share needs no check.
    own: Option<ShareIndex>,
}

impl<G: CoinGroup> Coin<G> {
    /// The coin's value: 256 bits.
    #[must_use]
    pub const fn value(&self) -> &[u8; 32] {
        &self.value
    }

    /// The k shares behind it, as [`ThresholdCoin::verify`] takes them.
    #[must_use]
    pub fn proof(&self) -> Vec<u8> {
        let mut proof = Vec::with_capacity(self.shares.len() * Self::ENTRY);
        for share in &self.shares {
            proof.extend_from_slice(&share.index().get().to_be_bytes());
            share.encode_into(&mut proof);
        }
        proof
    }

    /// Its proof's length in bytes.
    fn proof_len(public: &PublicKeySet<G>) -> usize {
        usize::from(public.threshold().k()) * Self::ENTRY
    }

    /// The length of an entry of a proof: the index in two bytes, and the share.
    const ENTRY: usize = 2 + DleqShare::<G>::ENCODED_LEN;

    /// Interpolates; verifies nothing.
    fn interpolate(
        public: &PublicKeySet<G>,
        request: &CoinRequest<G>,
        shares: &[DleqShare<G>],
        own: Option<ShareIndex>,
    ) -> Result<Self, CombineError> {
        let power = DleqShare::interpolate(public, shares)?;
        let used = shares.get(..usize::from(public.threshold().k())).unwrap_or(shares);
        Ok(Self { value: request.value(&power), shares: used.to_vec(), own })
    }
}

impl<G: CoinGroup> CoinRequest<G> {
    fn new(public: &PublicKeySet<G>, name: &[u8]) -> Self {
        // The key id has a fixed length, so the concatenation is unambiguous.
        let base = G::hash_to_group(G::NAME_DST, &[public.key_id().as_bytes(), name]);
        let context = Transcript::new("theta/cks05/share/v1")
            .with("suite", G::SUITE.name().as_bytes())
            .with("key id", public.key_id().as_bytes())
            .with("name", name);
        let base = Encoded::new(base);
        let value = Transcript::new("theta/cks05/value/v1")
            .with("suite", G::SUITE.name().as_bytes())
            .with("key id", public.key_id().as_bytes())
            .with("base", base.bytes());
        Self { bases: public.generator().with(base), context, value }
    }

    /// The hash of `H(name) * x`.
    fn value(&self, power: &G::Element) -> [u8; 32] {
        self.value.clone().with("power", G::encode(power).as_ref()).finish32()
    }
}

impl<G: CoinGroup> KeyScheme for Cks05<G> {
    type PublicKey = PublicKeySet<G>;
    type KeyShare = KeyShare<G>;
    type Kind = Curve;
    type Family = Coins;
    const SUITE: Suite = G::SUITE;
}

impl<G: CoinGroup> CurveScheme for Cks05<G> {
    type KeyGroup = G;
}

impl<G: CoinGroup> ThresholdScheme for Cks05<G> {
    type Request = CoinRequest<G>;
    type Share = DleqShare<G>;
    type Output = Coin<G>;

    const CHECKABLE: bool = false;

    fn parse_request(public: &Self::PublicKey, statement: &Statement<'_>) -> Result<Self::Request, RequestError> {
        let name = statement.for_purpose(Purpose::Coin, "coin name", MAX_COIN_NAME_LEN)?;
        Ok(CoinRequest::new(public, name))
    }

    fn create_share(
        public: &Self::PublicKey,
        key: &Self::KeyShare,
        request: &Self::Request,
        rng: &mut dyn CryptoRng,
    ) -> Self::Share {
        DleqShare::create_proven(public, key, &request.bases, &request.context, rng)
    }

    fn share_index(share: &Self::Share) -> ShareIndex {
        share.index()
    }

    fn encode_share(share: &Self::Share) -> Vec<u8> {
        share.encode()
    }

    fn decode_share(index: ShareIndex, bytes: &[u8]) -> Result<Self::Share, DecodeError> {
        DleqShare::decode_proven(index, bytes)
    }

    fn verify_shares(
        public: &Self::PublicKey,
        request: &Self::Request,
        shares: &[Self::Share],
        rng: &mut dyn CryptoRng,
    ) -> Vec<ShareIndex> {
        DleqShare::false_among(public, &request.bases, &request.context, shares, rng)
    }

    fn combine(
        public: &Self::PublicKey,
        request: &Self::Request,
        shares: &[Self::Share],
    ) -> Result<Self::Output, CombineError> {
        Coin::interpolate(public, request, shares, None)
    }

    const HAS_COMBINED_VALUE: bool = true;

    /// The proof, its shares by rising index: so it depends on whose shares they are, and not on the order in which they came.
    fn combined_value(
        public: &Self::PublicKey,
        _request: &Self::Request,
        _result: &[u8],
        proof: &[u8],
    ) -> Option<Secret<Vec<u8>>> {
        if proof.len() != Coin::proof_len(public) {
            return None;
        }
        // Entries begin with their indices.
        let mut entries: Vec<&[u8]> = proof.chunks_exact(Coin::<G>::ENTRY).collect();
        entries.sort_unstable();
        Some(Secret::new(entries.concat()))
    }

    fn combined_len(public: &Self::PublicKey) -> Option<usize> {
        Some(Coin::proof_len(public))
    }

    fn accept_combined(
        public: &Self::PublicKey,
        request: &Self::Request,
        combined: &[u8],
    ) -> Result<Self::Output, CombineError> {
        let coin = Self::accept_unchecked(public, request, combined)?;
        if holds(public, request, &coin.shares, combined) { Ok(coin) } else { Err(CombineError::ResultInvalid) }
    }

    const CHECKS_TOGETHER: bool = !G::COMPARES_COMMITMENTS;

    fn combine_unchecked(
        public: &Self::PublicKey,
        request: &Self::Request,
        shares: &[Self::Share],
        own: ShareIndex,
    ) -> Result<Self::Output, CombineError> {
        Coin::interpolate(public, request, shares, Some(own))
    }

    /// Nobody knows who combined it: each of its shares is to be checked.
    fn accept_unchecked(
        public: &Self::PublicKey,
        request: &Self::Request,
        combined: &[u8],
    ) -> Result<Self::Output, CombineError> {
        // Entries begin with their indices; to look at these takes less than to read points.
        let indices = combined.chunks(Coin::<G>::ENTRY).map(|entry| entry.first_chunk::<2>());
        if !indices.is_sorted_by(|one, next| one < next) {
            return Err(CombineError::ResultInvalid);
        }
        let shares = decode_proof(public, combined).map_err(|_| CombineError::ResultInvalid)?;
        Coin::interpolate(public, request, &shares, None).map_err(|_| CombineError::ResultInvalid)
    }

    /// A coin is false if a share behind it is. Whose share that is comes out when its machine verifies them.
    fn vartime_false_among(
        public: &Self::PublicKey,
        results: &[(&Self::Request, &Self::Output)],
        rng: &mut dyn CryptoRng,
    ) -> Vec<usize> {
        let sets: Vec<_> = results
            .iter()
            .map(|(request, coin)| {
                let foreign = coin.shares.iter().filter(|share| Some(share.index()) != coin.own);
                ProvenShares { bases: &request.bases, context: &request.context, shares: foreign.collect() }
            })
            .collect();
        dleq_share::false_sets(public, &sets, rng)
    }

    fn contributors(output: &Self::Output) -> Vec<ShareIndex> {
        output.shares.iter().map(DleqShare::index).collect()
    }

    fn encode_output(output: &Self::Output) -> (Secret<Vec<u8>>, Vec<u8>) {
        (Secret::new(output.value.to_vec()), output.proof())
    }
}

impl<G: CoinGroup> ThresholdCoin for Cks05<G> {
    fn verify(public: &Self::PublicKey, name: &[u8], value: &[u8], proof: &[u8]) -> Result<(), VerifyError> {
        if value.len() != 32 {
            return Err(DecodeError::Length { expected: 32, got: value.len() }.into());
        }
        if name.len() > MAX_COIN_NAME_LEN {
            return Err(VerifyError::Invalid);
        }
        let shares = decode_proof(public, proof)?;
        let request = CoinRequest::new(public, name);
        let power = DleqShare::interpolate(public, &shares).map_err(|_| VerifyError::Invalid)?;
        if request.value(&power) != value {
            return Err(VerifyError::Invalid);
        }
        if holds(public, &request, &shares, proof) { Ok(()) } else { Err(VerifyError::Invalid) }
    }
}

/// Whether the shares of this proof hold. Weights follow from the proof, so that everybody finds the same.
fn holds<G: CoinGroup>(
    public: &PublicKeySet<G>,
    request: &CoinRequest<G>,
    shares: &[DleqShare<G>],
    proof: &[u8],
) -> bool {
    let mut weights = DerivedRng::new(request.context.clone().with("purpose", b"weights").with("proof", proof));
    Cks05::verify_shares(public, request, shares, &mut weights).is_empty()
}

/// Reads the k shares of a proof: k times the index in two bytes, big-endian, and the share.
fn decode_proof<G: CoinGroup>(public: &PublicKeySet<G>, proof: &[u8]) -> Result<Vec<DleqShare<G>>, DecodeError> {
    let expected = Coin::proof_len(public);
    if proof.len() != expected {
        return Err(DecodeError::Length { expected, got: proof.len() });
    }
    proof
        .chunks_exact(Coin::<G>::ENTRY)
        .map(|bytes| {
            let (index, share) = bytes.split_first_chunk::<2>().ok_or(DecodeError::NotCanonical)?;
            let index = ShareIndex::try_from(u16::from_be_bytes(*index)).map_err(|_| DecodeError::NotCanonical)?;
            DleqShare::decode_proven(index, share)
        })
        .collect()
}
