//! Conversions between our types and those of the `frost-*` crates, through the encodings of RFC 9591.

use std::collections::BTreeMap;

use frost_core::keys::{
    IdentifierList, KeyPackage, PublicKeyPackage, SigningShare, VerifyingShare, generate_with_dealer,
};
use frost_core::round1::{self, NonceCommitment};
use frost_core::{Identifier, VerifyingKey, round2};
use frost_ed25519::rand_core::{CryptoRng, Error, RngCore};
use frost_rerandomized::RandomizedCiphersuite;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;
use theta_groups::{Scalar as _, Secret};
use theta_schemes::keys::{Dealt, KeyShare, PublicKeySet};
use theta_schemes::signatures::frost::{
    Ed448Shake256, Ed25519Sha512, Frost, FrostSuite, P256Sha256, Ristretto255Sha512, Secp256k1Sha256, Secp256k1Taproot,
    SignatureShare, SigningCommitments,
};
use theta_sharing::{Encoded, ShareIndex, Threshold};

use crate::frost::fixture::{Scalar, index, rng};

/// A suite that the `frost-*` crates implement, too.
pub(crate) trait Peer: FrostSuite {
    type Theirs: RandomizedCiphersuite;
}

impl Peer for Ristretto255Sha512 {
    type Theirs = frost_ristretto255::Ristretto255Sha512;
}
impl Peer for Ed25519Sha512 {
    type Theirs = frost_ed25519::Ed25519Sha512;
}
impl Peer for Ed448Shake256 {
    type Theirs = frost_ed448::Ed448Shake256;
}
impl Peer for P256Sha256 {
    type Theirs = frost_p256::P256Sha256;
}
impl Peer for Secp256k1Sha256 {
    type Theirs = frost_secp256k1::Secp256K1Sha256;
}
impl Peer for Secp256k1Taproot {
    type Theirs = frost_secp256k1_tr::Secp256K1Sha256TR;
}

/// Our random numbers behind the older trait of `rand_core`.
pub(crate) struct OldRng(ChaCha20Rng);

impl RngCore for OldRng {
    fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn fill_bytes(&mut self, destination: &mut [u8]) {
        self.0.fill_bytes(destination);
    }

    fn try_fill_bytes(&mut self, destination: &mut [u8]) -> Result<(), Error> {
        self.0.fill_bytes(destination);
        Ok(())
    }
}

impl CryptoRng for OldRng {}

pub(crate) fn old_rng(seed: u64) -> OldRng {
    OldRng(rng(seed))
}

/// A key of theirs.
pub(crate) struct TheirKey<C: Peer> {
    pub(crate) shares: BTreeMap<Identifier<C::Theirs>, KeyPackage<C::Theirs>>,
    pub(crate) public: PublicKeyPackage<C::Theirs>,
}

/// A key of their dealer.
pub(crate) fn dealt_by_them<C: Peer>(k: u16, n: u16, seed: u64) -> TheirKey<C> {
    let (shares, public) =
        generate_with_dealer::<C::Theirs, _>(n, k, IdentifierList::Default, &mut old_rng(seed)).unwrap();
    let shares = shares.into_iter().map(|(id, share)| (id, KeyPackage::try_from(share).unwrap())).collect();
    TheirKey { shares, public }
}

/// Their key as our type.
pub(crate) fn to_ours<C: Peer>(key: &TheirKey<C>, k: u16, n: u16) -> Dealt<C::Group> {
    let element = |bytes: Vec<u8>| Encoded::decode(&bytes).unwrap();
    let verifying_shares = key.public.verifying_shares();
    let verification_keys =
        (1..=n).map(|i| element(verifying_shares[&identifier::<C>(index(i))].serialize().unwrap())).collect();
    let public_key = element(key.public.verifying_key().serialize().unwrap());
    let threshold = Threshold::new(k, n).unwrap();
    let public = PublicKeySet::new::<Frost<C>>(threshold, public_key, verification_keys, None).unwrap();
    let share = |i: u16| {
        let secret = key.shares[&identifier::<C>(index(i))].signing_share().serialize();
        KeyShare::new(*public.key_id(), index(i), Secret::new(Scalar::<C>::decode(&secret).unwrap()))
    };
    let shares: Vec<_> = (1..=n).map(share).collect();
    assert!(shares.iter().all(|share| public.matches(share)));
    Dealt { shares, public: public.into() }
}

/// Our key as their type.
pub(crate) fn to_theirs<C: Peer>(dealt: &Dealt<C::Group>) -> TheirKey<C> {
    let k = dealt.public.threshold().k();
    let verifying_key = VerifyingKey::deserialize(dealt.public.public_key_bytes()).unwrap();
    let verifying_share =
        |i: ShareIndex| VerifyingShare::deserialize(dealt.public.verification_key(i).unwrap().bytes()).unwrap();
    let share = |share: &KeyShare<C::Group>| {
        let id = identifier::<C>(share.index());
        let secret = SigningShare::deserialize(share.secret().expose().encode().as_ref()).unwrap();
        (id, KeyPackage::new(id, secret, verifying_share(share.index()), verifying_key, k))
    };
    let verifying_shares = dealt.public.threshold().indices().map(|i| (identifier::<C>(i), verifying_share(i)));
    TheirKey {
        shares: dealt.shares.iter().map(share).collect(),
        public: PublicKeyPackage::new(verifying_shares.collect(), verifying_key, Some(k)),
    }
}

pub(crate) fn identifier<C: Peer>(index: ShareIndex) -> Identifier<C::Theirs> {
    index.get().try_into().unwrap()
}

/// Our commitments as their type.
pub(crate) fn their_commitments<C: Peer>(ours: &SigningCommitments<C>) -> round1::SigningCommitments<C::Theirs> {
    let bytes = ours.encode();
    let (hiding, binding) = bytes.split_at(bytes.len() / 2);
    let read = |bytes| NonceCommitment::deserialize(bytes).unwrap();
    round1::SigningCommitments::new(read(hiding), read(binding))
}

/// Their commitments as our type.
pub(crate) fn our_commitments<C: Peer>(
    index: ShareIndex,
    theirs: &round1::SigningCommitments<C::Theirs>,
) -> SigningCommitments<C> {
    let bytes = [theirs.hiding().serialize().unwrap(), theirs.binding().serialize().unwrap()].concat();
    assert!(SigningCommitments::<C>::decode_unchecked_subgroup(index, &bytes).is_ok());
    SigningCommitments::decode(index, &bytes).unwrap()
}

/// Our share as their type.
pub(crate) fn their_share<C: Peer>(ours: &SignatureShare<C>) -> round2::SignatureShare<C::Theirs> {
    round2::SignatureShare::deserialize(&ours.encode()).unwrap()
}

/// Their share as our type.
pub(crate) fn our_share<C: Peer>(index: ShareIndex, theirs: &round2::SignatureShare<C::Theirs>) -> SignatureShare<C> {
    SignatureShare::decode(index, &theirs.serialize()).unwrap()
}
