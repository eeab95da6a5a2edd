//! Attacks that have worked on other implementations, and must not work here.

use sha2::{Digest, Sha256, Sha512};
use theta_groups::bls12_381::{Bls12_381, G1, G2};
use theta_groups::bn254::{self, Bn254};
use theta_groups::{Group, Ristretto255, Scalar};
use theta_schemes::ciphers::bz03::CipherPairing;
use theta_schemes::ciphers::payload::{Aead, Header, split_ciphertext};
use theta_schemes::coins::cks05::CoinGroup;
use theta_schemes::keys::AnyPublicKey;
use theta_schemes::signatures::bls04::{Bn254MinSig, Form, MinPk, MinSig};
use theta_schemes::{RequestError, Statement, Suite};

use crate::fixture::{borrow, key, rng, shares, statement};

/// Scalars that a careless hash to the group would multiply the generator by.
fn careless_scalars<S: Scalar>(dst: &[u8], message: &[u8]) -> Vec<S> {
    let together = [dst, message].concat();
    let mut scalars = Vec::new();
    for input in [message, &together] {
        let wide: [u8; 64] = Sha512::digest(input).into();
        scalars.push(S::from_uniform_bytes(&wide));
        let mut low = [0; 64];
        low[..32].copy_from_slice(&Sha256::digest(input));
        scalars.push(S::from_uniform_bytes(&low));
        low.reverse();
        scalars.push(S::from_uniform_bytes(&low));
        let mut blake = [0; 64];
        blake3::Hasher::new().update(input).finalize_xof().fill(&mut blake);
        scalars.push(S::from_uniform_bytes(&blake));
    }
    scalars
}

fn hash_is_no_known_multiple<G: Group>(dst: &[u8]) {
    for message in [&b""[..], b"message", b"coin"] {
        let point = G::hash_to_group(dst, &[message]);
        assert!(!G::is_identity(&point));
        for scalar in careless_scalars::<G::Scalar>(dst, message) {
            assert_ne!(point, G::mul_base(&scalar));
            assert_ne!(point, G::mul_base(&(-scalar)));
        }
    }
}

#[test]
fn hashes_to_the_group_have_no_known_logarithm() {
    hash_is_no_known_multiple::<G2>(MinPk::SIGN_DST);
    hash_is_no_known_multiple::<G2>(MinPk::POP_DST);
    hash_is_no_known_multiple::<G1>(MinSig::SIGN_DST);
    hash_is_no_known_multiple::<bn254::G1>(Bn254MinSig::SIGN_DST);
    hash_is_no_known_multiple::<G1>(Bls12_381::VALIDITY_DST);
    hash_is_no_known_multiple::<bn254::G1>(Bn254::VALIDITY_DST);
    hash_is_no_known_multiple::<Ristretto255>(Ristretto255::NAME_DST);
    hash_is_no_known_multiple::<G1>(G1::NAME_DST);
}

/// The classical forgery: if H(m) = g * h(m) with a public h, a signature on one message, or any x * g * known in the
/// signature group, gives all others. Here the forger has the proof of possession and a signature.
fn forgeries_fail<F: Form>(public: &AnyPublicKey, known: &[u8], known_message: &[u8], known_dst: &[u8]) {
    let signature = F::Signatures::decode(known).unwrap();
    let target = b"a message that was never signed";
    public.verify(target, known, b"").unwrap_err();
    let from = careless_scalars::<<F::Signatures as Group>::Scalar>(known_dst, known_message);
    let to = careless_scalars::<<F::Signatures as Group>::Scalar>(F::SIGN_DST, target);
    for (from, to) in from.into_iter().zip(to) {
        let forged = F::Signatures::encode(&(signature * from.invert() * to));
        public.verify(target, forged.as_ref(), b"").unwrap_err();
    }
}

#[test]
fn signatures_cannot_be_forged_from_public_data() {
    for suite in [Suite::Bls04MinPk, Suite::Bls04MinSig, Suite::Bls04Bn254] {
        let (public, keys) = key(suite, 2, 3, 1);
        let request = statement(&public, 1);
        let shares = shares(&public, &keys, &request);
        let signature = public.combine(&request, &borrow(&shares), &mut rng(1)).unwrap().result.expose().clone();
        let message = request.as_statement().bytes();
        match &public {
            AnyPublicKey::Bls04MinPk(set) => {
                forgeries_fail::<MinPk>(&public, &signature, message, MinPk::SIGN_DST);
                forgeries_fail::<MinPk>(&public, set.possession().unwrap(), set.public_key_bytes(), MinPk::POP_DST);
                // The proof of possession is not a signature of the key's bytes.
                public.verify(set.public_key_bytes(), set.possession().unwrap(), b"").unwrap_err();
            }
            AnyPublicKey::Bls04MinSig(set) => {
                forgeries_fail::<MinSig>(&public, &signature, message, MinSig::SIGN_DST);
                forgeries_fail::<MinSig>(&public, set.possession().unwrap(), set.public_key_bytes(), MinSig::POP_DST);
                public.verify(set.public_key_bytes(), set.possession().unwrap(), b"").unwrap_err();
            }
            AnyPublicKey::Bls04Bn254(set) => {
                forgeries_fail::<Bn254MinSig>(&public, &signature, message, Bn254MinSig::SIGN_DST);
                let possession = set.possession().unwrap();
                forgeries_fail::<Bn254MinSig>(&public, possession, set.public_key_bytes(), Bn254MinSig::POP_DST);
                public.verify(set.public_key_bytes(), possession, b"").unwrap_err();
            }
            other => panic!("{other:?}"),
        }
    }
}

/// If H(name) = g * h(name), the coin's point is the public key times h(name), and so is each party's share.
fn prediction_fails<G: CoinGroup>(public_key: &[u8], share: &[u8], verification_key: &G::Element, name: &[u8]) {
    let public_key = G::decode(public_key).unwrap();
    let share = G::decode(&share[..G::ENCODED_LEN]).unwrap();
    assert_ne!(public_key, share);
    for scalar in careless_scalars::<G::Scalar>(G::NAME_DST, name) {
        assert_ne!(*verification_key * scalar, share);
    }
}

#[test]
fn coins_cannot_be_predicted_from_public_data() {
    for suite in [Suite::Cks05Ristretto255, Suite::Cks05Bls12381] {
        let (public, keys) = key(suite, 2, 3, 2);
        let request = statement(&public, 1);
        let name = request.as_statement().bytes();
        let share = &shares(&public, &keys, &request)[0].1;
        match &public {
            AnyPublicKey::Cks05Ristretto255(set) => prediction_fails::<Ristretto255>(
                set.public_key_bytes(),
                share,
                set.verification_keys()[0].element(),
                &[set.key_id().as_bytes(), name].concat(),
            ),
            AnyPublicKey::Cks05Bls12381(set) => prediction_fails::<G1>(
                set.public_key_bytes(),
                share,
                set.verification_keys()[0].element(),
                &[set.key_id().as_bytes(), name].concat(),
            ),
            other => panic!("{other:?}"),
        }
    }
}

/// Offsets within the capsule of a header on ristretto255, spec/sg02.md.
const U: usize = 64;
const U_SECOND: usize = 96;
const W: usize = 128;

#[test]
fn ciphertexts_are_not_malleable() {
    let (public, _) = key(Suite::Sg02Ristretto255, 2, 3, 3);
    let encrypt = |label: &[u8], seed| {
        let ciphertext = public.encrypt(b"plaintext", label, Aead::default(), &mut rng(seed)).unwrap();
        split_ciphertext(&ciphertext).unwrap().0.to_vec()
    };
    let refused = |header: &[u8]| {
        assert_eq!(public.check_request(Statement::Decapsulate(header)), Err(RequestError::InvalidCiphertext));
    };
    let good = encrypt(b"label", 4);
    public.check_request(Statement::Decapsulate(&good)).unwrap();
    let capsule = good.len() - 224;

    // u and u' moved together, as ElGamal allows: (u g^d, u' g^d), and (2u, 2u').
    let element = |offset: usize| Ristretto255::decode(&good[capsule + offset..][..32]).unwrap();
    let put = |header: &mut [u8], offset: usize, element| {
        header[capsule + offset..][..32].copy_from_slice(&Ristretto255::encode(&element));
    };
    for change in [|e| e + Ristretto255::generator(), |e| e + e, |e: <Ristretto255 as Group>::Element| -e] {
        let mut mauled = good.clone();
        put(&mut mauled, U, change(element(U)));
        refused(&mauled);
        put(&mut mauled, U_SECOND, change(element(U_SECOND)));
        refused(&mauled);
        let mut mauled = good.clone();
        put(&mut mauled, W, change(element(W)));
        refused(&mauled);
    }
    // The capsule of one ciphertext behind the envelope of another: labels and payloads cannot be exchanged.
    for other in [encrypt(b"LABEL", 4), encrypt(b"label", 5)] {
        assert_eq!(Header::parse(&other).unwrap().key_id(), public.key_id());
        refused(&[&good[..capsule], &other[capsule..]].concat());
        refused(&[&other[..capsule], &good[capsule..]].concat());
    }
    // The wrapped key or commitment alone.
    for offset in [0, 31, 32, 63] {
        let mut mauled = good.clone();
        mauled[capsule + offset] ^= 1;
        refused(&mauled);
    }
    // Points that are the identity.
    for offset in [U, U_SECOND, W, W + 32] {
        let mut mauled = good.clone();
        mauled[capsule + offset..][..32].fill(0);
        refused(&mauled);
    }
}

/// The capsule of BZ03: wrap (64), u in G1, u' in G2, w in G1; spec/bz03.md.
fn pairing_ciphertexts_are_not_malleable<P: CipherPairing>() {
    let (public, _) = key(P::SUITE, 2, 3, 3);
    let encrypt = |label: &[u8], seed| {
        let ciphertext = public.encrypt(b"plaintext", label, Aead::default(), &mut rng(seed)).unwrap();
        split_ciphertext(&ciphertext).unwrap().0.to_vec()
    };
    let refused = |header: &[u8]| {
        assert_eq!(public.check_request(Statement::Decapsulate(header)), Err(RequestError::InvalidCiphertext));
    };
    let (first, second) = (P::G1::ENCODED_LEN, P::G2::ENCODED_LEN);
    let (u, u_second, w) = (64, 64 + first, 64 + first + second);
    let good = encrypt(b"label", 4);
    public.check_request(Statement::Decapsulate(&good)).unwrap();
    let capsule = good.len() - (w + first);

    let put_first = |header: &mut [u8], offset: usize, change: fn(Element<P::G1>) -> Element<P::G1>| {
        let place = &mut header[capsule + offset..][..first];
        let changed = P::G1::encode(&change(P::G1::decode(place).unwrap()));
        place.copy_from_slice(changed.as_ref());
    };
    // Each element alone, and all of them together, as ElGamal allows: the hash of the header moves, too.
    for (offset, change) in
        [(u, double::<P::G1> as fn(_) -> _), (w, double::<P::G1>), (u, negate::<P::G1>), (w, negate::<P::G1>)]
    {
        let mut mauled = good.clone();
        put_first(&mut mauled, offset, change);
        refused(&mauled);
    }
    for change in [double::<P::G2> as fn(_) -> _, negate::<P::G2>] {
        let mut mauled = good.clone();
        let place = &mut mauled[capsule + u_second..][..second];
        let changed = P::G2::encode(&change(P::G2::decode(place).unwrap()));
        place.copy_from_slice(changed.as_ref());
        refused(&mauled);
        put_first(&mut mauled, u, double::<P::G1>);
        put_first(&mut mauled, w, double::<P::G1>);
        refused(&mauled);
    }
    // The capsule of one ciphertext behind the envelope of another: labels and payloads cannot be exchanged.
    for other in [encrypt(b"LABEL", 4), encrypt(b"label", 5)] {
        refused(&[&good[..capsule], &other[capsule..]].concat());
        refused(&[&other[..capsule], &good[capsule..]].concat());
    }
    for offset in [0, 31, 32, 63] {
        let mut mauled = good.clone();
        mauled[capsule + offset] ^= 1;
        refused(&mauled);
    }
    for (offset, identity) in [
        (u, P::G1::encode(&P::G1::identity()).as_ref()),
        (w, P::G1::encode(&P::G1::identity()).as_ref()),
        (u_second, P::G2::encode(&P::G2::identity()).as_ref()),
    ] {
        let mut mauled = good.clone();
        mauled[capsule + offset..][..identity.len()].copy_from_slice(identity);
        refused(&mauled);
    }
}

type Element<G> = <G as Group>::Element;

fn double<G: Group>(element: Element<G>) -> Element<G> {
    element + element
}

fn negate<G: Group>(element: Element<G>) -> Element<G> {
    -element
}

#[test]
fn ciphertexts_from_pairings_are_not_malleable() {
    pairing_ciphertexts_are_not_malleable::<Bls12_381>();
    pairing_ciphertexts_are_not_malleable::<Bn254>();
}

#[test]
fn coin_proofs_prove_one_coin_only() {
    for suite in [Suite::Cks05Ristretto255, Suite::Cks05Bls12381] {
        let (public, keys) = key(suite, 2, 3, 6);
        let (other, other_keys) = key(suite, 2, 3, 7);
        let request = statement(&public, 1);
        let name = request.as_statement().bytes();
        let flip = |public: &AnyPublicKey, keys: &[_]| {
            let shares = shares(public, keys, &request);
            public.combine(&request, &borrow(&shares), &mut rng(1)).unwrap()
        };
        let coin = flip(&public, &keys);
        let foreign = flip(&other, &other_keys);
        let (value, proof) = (coin.result.expose(), &coin.proof);
        public.verify(name, value, proof).unwrap();
        let mut changed = value.clone();
        changed[0] ^= 1;
        public.verify(name, &changed, proof).unwrap_err();
        public.verify(b"another", value, proof).unwrap_err();
        public.verify(name, foreign.result.expose(), &foreign.proof).unwrap_err();
        other.verify(name, value, proof).unwrap_err();
        let half = proof.len() / 2;
        let first_twice = [&proof[..half], &proof[..half]].concat();
        for bad in [&b""[..], &proof[..half], &proof[1..], &first_twice, &[&proof[..], &proof[..half]].concat()] {
            public.verify(name, value, bad).unwrap_err();
        }
        for position in 0..proof.len() {
            let mut bad = proof.clone();
            bad[position] ^= 1;
            public.verify(name, value, &bad).unwrap_err();
        }
        // In another order they are as good.
        public.verify(name, value, &[&proof[half..], &proof[..half]].concat()).unwrap();
    }
}
