//! FROST's messages: commitments, signature shares, signatures and keys of every suite.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{plant, rng};
use theta_groups::Scalar;
use theta_schemes::keys::deal;
use theta_schemes::signatures::frost::{
    Ed448Shake256, Ed25519Sha512, Frost, FrostSuite, P256Sha256, Ristretto255Sha512, Secp256k1Sha256, Secp256k1Taproot,
    SignatureShare, SigningCommitments, SigningPackage, VerifyingKey, aggregate, commit, sign,
};
use theta_sharing::{ShareIndex, Threshold};

macro_rules! for_every_suite {
    ($then:ident $(, $argument:expr)*) => {
        $then::<Ristretto255Sha512>($($argument),*);
        $then::<Ed25519Sha512>($($argument),*);
        $then::<Ed448Shake256>($($argument),*);
        $then::<P256Sha256>($($argument),*);
        $then::<Secp256k1Sha256>($($argument),*);
        $then::<Secp256k1Taproot>($($argument),*);
    };
}

fuzz_target!(init: plant("frost", seeds()), |bytes: &[u8]| {
    for_every_suite!(check, bytes);
});

fn check<C: FrostSuite>(bytes: &[u8]) {
    let index = ShareIndex::try_from(1).expect("not zero");
    if let Ok(commitments) = SigningCommitments::<C>::decode(index, bytes) {
        assert_eq!(commitments.encode(), bytes);
    }
    if let Ok(share) = SignatureShare::<C>::decode(index, bytes) {
        assert_eq!(share.encode(), bytes);
    }
    if let Ok(key) = VerifyingKey::<C>::decode(bytes) {
        assert_eq!(key.bytes(), bytes);
    }
    let signature_len = C::STANDARD_LEN + <<C::Group as theta_groups::Group>::Scalar as Scalar>::ENCODED_LEN;
    if bytes.len() == signature_len {
        // No input is a signature under a key of unknown logarithm.
        let generator = <C::Group as theta_groups::Group>::generator();
        let key = theta_sharing::Encoded::<C::Group>::new(generator);
        if let Ok(key) = VerifyingKey::<C>::decode(key.bytes()) {
            assert!(key.verify(b"a message that has never been signed", bytes).is_err());
        }
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for_every_suite!(seed, &mut seeds);
    seeds
}

fn seed<C: FrostSuite>(seeds: &mut Vec<Vec<u8>>) {
    let mut rng = rng();
    let dealt = deal::<Frost<C>>(Threshold::new(2, 2).expect("2 of 2"), &mut rng);
    let (nonces, commitments): (Vec<_>, Vec<_>) = dealt.shares.iter().map(|key| commit::<C>(key, &mut rng)).unzip();
    let package = SigningPackage::new(&dealt.public, commitments.clone(), b"message").expect("enough signers");
    let shares: Vec<_> = nonces
        .into_iter()
        .zip(&dealt.shares)
        .map(|(nonces, key)| sign(&package, nonces, key).expect("our own package"))
        .collect();
    let signature = aggregate(&dealt.public, &package, &shares, &mut rng).expect("true shares");
    seeds.extend(commitments.iter().map(|commitments| commitments.encode().to_vec()));
    seeds.extend(shares.iter().map(|share| share.encode().to_vec()));
    seeds.push(signature.encode());
    seeds.push(dealt.public.public_key_bytes().to_vec());
}
