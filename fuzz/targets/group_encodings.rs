//! Elements and scalars of every group: whatever decodes encodes to the same bytes, and all ways of decoding agree.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theta_fuzz::plant;
use theta_groups::{DecodeError, Ed448, Ed25519, Group, P256, Ristretto255, Scalar, Secp256k1, bls12_381, bn254};

macro_rules! for_every_group {
    ($then:ident $(, $argument:expr)*) => {
        $then::<Ristretto255>($($argument),*);
        $then::<Ed25519>($($argument),*);
        $then::<Ed448>($($argument),*);
        $then::<P256>($($argument),*);
        $then::<Secp256k1>($($argument),*);
        $then::<bn254::G1>($($argument),*);
        $then::<bn254::G2>($($argument),*);
        $then::<bls12_381::G1>($($argument),*);
        $then::<bls12_381::G2>($($argument),*);
    };
}

fuzz_target!(init: plant("group_encodings", seeds()), |bytes: &[u8]| {
    for_every_group!(check, bytes);
});

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for_every_group!(seed, &mut seeds);
    seeds
}

fn seed<G: Group>(seeds: &mut Vec<Vec<u8>>) {
    let element = G::generator() * G::Scalar::from_u64(7);
    for element in [G::identity(), G::generator(), element, -element] {
        seeds.push(G::encode(&element).as_ref().to_vec());
    }
    for scalar in [G::Scalar::ZERO, G::Scalar::ONE, -G::Scalar::ONE] {
        seeds.push(scalar.encode().as_ref().to_vec());
    }
}

fn check<G: Group>(bytes: &[u8]) {
    scalar::<G::Scalar>(bytes);
    let whole = G::decode_allowing_identity(bytes);
    let strict = G::decode(bytes);
    match (&whole, &strict) {
        (Ok(element), Ok(again)) => assert!(element == again && !G::is_identity(element)),
        (Ok(element), Err(error)) => assert!(*error == DecodeError::Identity && G::is_identity(element)),
        (whole, strict) => assert_eq!(whole.as_ref().err(), strict.as_ref().err()),
    }
    if let Ok(element) = &whole {
        assert_eq!(G::encode(element).as_ref(), bytes);
        assert_eq!(G::encode_batch(&[*element, *element])[1].as_ref(), bytes);
        assert!(G::is_in_subgroup(element));
    }
    if let Ok(element) = G::decode_unchecked_subgroup(bytes) {
        assert_eq!(G::encode(&element).as_ref(), bytes);
        assert_eq!(G::is_in_subgroup(&element), strict.is_ok());
    } else {
        assert!(strict.is_err());
    }
}

fn scalar<S: Scalar>(bytes: &[u8]) {
    if let Ok(scalar) = S::decode(bytes) {
        assert_eq!(scalar.encode().as_ref(), bytes);
        assert_eq!(scalar - scalar, S::ZERO);
    }
    if (S::UNIFORM_LEN..=128).contains(&bytes.len()) {
        let scalar = S::from_uniform_bytes(bytes);
        assert_eq!(S::decode(scalar.encode().as_ref()), Ok(scalar));
    }
}
