//! Attacks that have worked on other implementations.

use sha2::{Digest, Sha256, Sha512};
use theta_groups::bls12_381::{Bls12_381, G1};
use theta_groups::bn254::{self, Bn254};
use theta_groups::{Ed448, Ed25519, Group, P256, Ristretto255, Scalar, Secp256k1, Secret};
use theta_payload::{Aead, Encrypt, Header, split_ciphertext};
use theta_schemes::ciphers::bz03::CipherPairing;
use theta_schemes::ciphers::sg02::CipherGroup;
use theta_schemes::coins::cks05::{Cks05, CoinGroup};
use theta_schemes::coins::cks05_bls::{BeaconMinPk, BeaconMinSig, Cks05Bls};
use theta_schemes::keys::{AnyPublicKey, CurveScheme, PublicKeyError, PublicKeySet, SchemeError, deal, import_any};
use theta_schemes::signatures::bls04::{Bls04, Bn254MinSig, Form, MinPk, MinSig};
use theta_schemes::{RequestError, Statement, Suite, ThresholdScheme, VerifyError};
use theta_sharing::{Encoded, Threshold};

use crate::suites::fixture::{
    assert_refused, assert_unverified, borrow, curve_suites, index, is_one_round, key, one_round_suites, rng, shares,
    statement,
};

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

/// The second generator of SG02: if its logarithm were known, u' would prove nothing about u.
fn second_generator_is_no_known_multiple<G: CipherGroup>() {
    let name = G::SUITE.name();
    for message in [&b"second generator"[..], b"", name.as_bytes()] {
        for scalar in careless_scalars::<G::Scalar>(name.as_bytes(), message) {
            assert_ne!(*G::second_generator(), G::mul_base(&scalar));
            assert_ne!(*G::second_generator(), G::mul_base(&(-scalar)));
        }
    }
    for small in 0..1000 {
        assert_ne!(*G::second_generator(), G::mul_base(&G::Scalar::from_u64(small)));
    }
}

#[test]
fn hashes_to_the_group_have_no_known_logarithm() {
    fn of_form<F: Form>() {
        hash_is_no_known_multiple::<F::Signatures>(F::SIGN_DST);
        hash_is_no_known_multiple::<F::Signatures>(F::POP_DST);
        assert_ne!(F::SIGN_DST, F::POP_DST);
    }
    fn of_coin<G: CoinGroup>() {
        hash_is_no_known_multiple::<G>(G::NAME_DST);
    }
    of_form::<MinPk>();
    of_form::<MinSig>();
    of_form::<Bn254MinSig>();
    of_form::<BeaconMinPk>();
    of_form::<BeaconMinSig>();
    hash_is_no_known_multiple::<G1>(Bls12_381::VALIDITY_DST);
    hash_is_no_known_multiple::<bn254::G1>(Bn254::VALIDITY_DST);
    of_coin::<Ristretto255>();
    of_coin::<G1>();
    of_coin::<Ed25519>();
    of_coin::<Ed448>();
    of_coin::<bn254::G1>();
    of_coin::<P256>();
    of_coin::<Secp256k1>();
    second_generator_is_no_known_multiple::<Ristretto255>();
    second_generator_is_no_known_multiple::<G1>();
    second_generator_is_no_known_multiple::<Ed25519>();
    second_generator_is_no_known_multiple::<bn254::G1>();
    second_generator_is_no_known_multiple::<P256>();
    second_generator_is_no_known_multiple::<Secp256k1>();
}

/// The classical forgery: if H(m) = g * h(m) with a public h, a signature on one message, or any x * g * known in the
/// signature group, gives all others. Here the forger has the proof of possession and a signature.
fn forgeries_fail<F: Form>(accepts: impl Fn(&[u8], &[u8]) -> bool, [known, known_message, known_dst]: [&[u8]; 3]) {
    let signature = F::Signatures::decode(known).unwrap();
    let target = b"a message that was never signed";
    assert!(!accepts(target, known));
    let from = careless_scalars::<<F::Signatures as Group>::Scalar>(known_dst, known_message);
    let to = careless_scalars::<<F::Signatures as Group>::Scalar>(F::SIGN_DST, target);
    for (from, to) in from.into_iter().zip(to) {
        let forged = F::Signatures::encode(&(signature * from.invert() * to));
        assert!(!accepts(target, forged.as_ref()));
    }
}

/// Signatures of messages, and coins from signatures, which are predicted by forging.
fn form_cannot_be_forged<F: Form, S>(accepts: impl Fn(&AnyPublicKey, &[u8], &[u8]) -> bool)
where
    S: CurveScheme<KeyGroup = F::Keys>,
{
    let (public, keys) = key(S::SUITE, 2, 3, 1);
    let set = deal::<S>(Threshold::new(2, 3).unwrap(), &mut rng(1)).public;
    assert_eq!(public.public_key_bytes(), set.public_key_bytes());
    let request = statement(&public, 1);
    let combined = public.combine(&request, &borrow(&shares(&public, &keys, &request)), &mut rng(1)).unwrap();
    let signature = if combined.proof.is_empty() { combined.result.expose() } else { &combined.proof };
    let message = request.as_statement().bytes();
    let accepts = |message: &[u8], signature: &[u8]| accepts(&public, message, signature);
    assert!(accepts(message, signature));
    forgeries_fail::<F>(accepts, [signature, message, F::SIGN_DST]);
    let proof_of_possession = set.proof_of_possession().unwrap();
    forgeries_fail::<F>(accepts, [proof_of_possession, set.public_key_bytes(), F::POP_DST]);
    // The proof of possession is not a signature of the key's bytes.
    assert!(!accepts(set.public_key_bytes(), proof_of_possession));
}

#[test]
fn signatures_cannot_be_forged_from_public_data() {
    let accepts =
        |public: &AnyPublicKey, message: &[u8], signature: &[u8]| public.verify(message, signature, b"").is_ok();
    form_cannot_be_forged::<MinPk, Bls04<MinPk>>(accepts);
    form_cannot_be_forged::<MinSig, Bls04<MinSig>>(accepts);
    form_cannot_be_forged::<Bn254MinSig, Bls04<Bn254MinSig>>(accepts);
}

#[test]
fn coins_from_signatures_cannot_be_predicted_from_public_data() {
    let accepts = |public: &AnyPublicKey, name: &[u8], signature: &[u8]| {
        public.verify(name, &Sha256::digest(signature), signature).is_ok()
    };
    form_cannot_be_forged::<BeaconMinPk, Cks05Bls<BeaconMinPk>>(accepts);
    form_cannot_be_forged::<BeaconMinSig, Cks05Bls<BeaconMinSig>>(accepts);
}

/// A rogue key, made of another key so that the attacker has the secret of their sum.
fn rogue_keys_are_refused<F: Form, S: CurveScheme<KeyGroup = F::Keys>>() {
    let honest = deal::<S>(Threshold::new(2, 3).unwrap(), &mut rng(3)).public;
    let secret = <F::Keys as Group>::Scalar::from_u64(77);
    let rogue = F::Keys::mul_base(&secret) - *honest.public_key();
    // The attack works without proofs: the sum signs.
    let point = F::Signatures::hash_to_group(F::SIGN_DST, &[b"message"]);
    let aggregate = *honest.public_key() + rogue;
    assert!(F::vartime_product_is_one(&[(aggregate, point), (-F::Keys::generator(), point * secret)]));
    // The rogue key needs a proof of possession, and no known proof is one for it.
    let rogue = Encoded::new(rogue);
    let pop_point = F::Signatures::hash_to_group(F::POP_DST, &[rogue.bytes()]);
    let own = F::Signatures::encode(&(pop_point * secret)).as_ref().to_vec();
    let signed = F::Signatures::encode(&(point * secret)).as_ref().to_vec();
    for proof_of_possession in [None, honest.proof_of_possession().map(<[u8]>::to_vec), Some(own), Some(signed)] {
        let threshold = Threshold::new(1, 1).unwrap();
        let refused = PublicKeySet::new::<S>(threshold, rogue, vec![rogue], proof_of_possession).map(drop);
        assert_eq!(refused, Err(PublicKeyError::ProofOfPossession));
    }
}

#[test]
fn rogue_keys_have_no_proof_of_possession() {
    rogue_keys_are_refused::<MinPk, Bls04<MinPk>>();
    rogue_keys_are_refused::<MinSig, Bls04<MinSig>>();
    rogue_keys_are_refused::<Bn254MinSig, Bls04<Bn254MinSig>>();
    rogue_keys_are_refused::<BeaconMinPk, Cks05Bls<BeaconMinPk>>();
    rogue_keys_are_refused::<BeaconMinSig, Cks05Bls<BeaconMinSig>>();
}

/// If H(name) = g * h(name), the coin's point is the public key times h(name), and so is each party's share.
fn prediction_fails<G: CoinGroup>() {
    let dealt = deal::<Cks05<G>>(Threshold::new(2, 3).unwrap(), &mut rng(2));
    let request = Cks05::<G>::parse_request(&dealt.public, &Statement::FlipCoin(b"name")).unwrap();
    let name = [dealt.public.key_id().as_bytes(), &b"name"[..]].concat();
    for key in &dealt.shares {
        let share = Cks05::<G>::encode_share(&Cks05::<G>::create_share(&dealt.public, key, &request, &mut rng(1)));
        let share = G::decode(&share[..G::ENCODED_LEN]).unwrap();
        assert_ne!(*dealt.public.public_key(), share);
        let verification_key = *dealt.public.verification_key(key.index()).unwrap().element();
        for scalar in careless_scalars::<G::Scalar>(G::NAME_DST, &name) {
            assert_ne!(verification_key * scalar, share);
        }
    }
}

#[test]
fn coins_cannot_be_predicted_from_public_data() {
    prediction_fails::<Ristretto255>();
    prediction_fails::<G1>();
    prediction_fails::<Ed25519>();
    prediction_fails::<Ed448>();
    prediction_fails::<bn254::G1>();
    prediction_fails::<P256>();
    prediction_fails::<Secp256k1>();
}

/// One secret in two suites: files, statements, shares and results of one are refused by the other.
#[test]
fn one_secret_in_two_suites_is_two_keys() {
    let secret = |suite: Suite| {
        let mut bytes = vec![0; if suite.group() == "ed448" { 57 } else { 32 }];
        let end = if ["ristretto255", "ed25519", "ed448"].contains(&suite.group()) { 0 } else { 31 };
        bytes[end] = 9;
        Secret::new(bytes)
    };
    let threshold = Threshold::new(2, 3).unwrap();
    let import = |suite: Suite| import_any(suite, threshold, &secret(suite), &mut rng(11)).unwrap();
    let keys: Vec<_> = curve_suites().map(import).collect();
    for (public, of_public) in keys.iter().filter(|(public, _)| is_one_round(public.suite())) {
        let request = statement(public, 1);
        for (other, of_other) in keys.iter().filter(|(other, _)| other.suite() != public.suite()) {
            assert_ne!(public.key_id(), other.key_id());
            assert_eq!(public.create_share(&of_other[0], &request, &mut rng(1)), Err(SchemeError::OtherKey));
            let refused = other.create_share(&of_public[0], &request, &mut rng(1));
            assert_eq!(refused, Err(SchemeError::OtherKey));
            if let Ok(share) = other.create_share(&of_other[0], &request, &mut rng(1)) {
                assert_eq!(public.suite().purpose(), other.suite().purpose());
                assert_refused(public.verify_share(&request, index(1), &share, &mut rng(1)), index(1));
            }
        }
    }
    assert_eq!(keys.iter().filter(|(public, _)| is_one_round(public.suite())).count(), one_round_suites().count());
}

/// A cipher's key that is also a signer's would sign whatever it decrypts, if an attacker could have u = H(message)
/// decrypted. Without its logarithm there is no proof that the header is valid.
#[test]
fn a_cipher_does_not_answer_for_points_of_messages() {
    let (public, _) = key(Suite::Sg02Bls12381, 2, 3, 12);
    let honest = public.encrypt(b"plaintext", b"label", Aead::default(), &mut rng(1)).unwrap();
    let mut header = split_ciphertext(&honest).unwrap().0.to_vec();
    let u = header.len() - 32 - 4 * G1::ENCODED_LEN;
    for dst in [MinSig::SIGN_DST, BeaconMinSig::SIGN_DST, MinSig::POP_DST, G1::NAME_DST] {
        let point = G1::encode(&G1::hash_to_group(dst, &[b"message"]));
        header[u..][..G1::ENCODED_LEN].copy_from_slice(point.as_ref());
        assert_eq!(public.check_request(Statement::Decapsulate(&header)), Err(RequestError::InvalidCiphertext));
    }
}

/// The capsule of SG02: wrap (64), u, u', w, w' and a scalar; spec/sg02.md.
fn group_ciphertexts_are_not_malleable<G: CipherGroup>() {
    let (public, _) = key(G::SUITE, 2, 3, 3);
    let encrypt = |label: &[u8], seed| {
        let ciphertext = public.encrypt(b"plaintext", label, Aead::default(), &mut rng(seed)).unwrap();
        split_ciphertext(&ciphertext).unwrap().0.to_vec()
    };
    let refused = |header: &[u8]| {
        assert_eq!(public.check_request(Statement::Decapsulate(header)), Err(RequestError::InvalidCiphertext));
    };
    let [u, u_second, w, w_second] = [0, 1, 2, 3].map(|place| 64 + place * G::ENCODED_LEN);
    let good = encrypt(b"label", 4);
    public.check_request(Statement::Decapsulate(&good)).unwrap();
    let capsule = good.len() - (64 + 4 * G::ENCODED_LEN + G::Scalar::ENCODED_LEN);

    // u and u' moved together, as ElGamal allows: (u g^d, u' g^d), and (2u, 2u').
    let element = |offset: usize| G::decode(&good[capsule + offset..][..G::ENCODED_LEN]).unwrap();
    let put = |header: &mut [u8], offset: usize, element: &Element<G>| {
        header[capsule + offset..][..G::ENCODED_LEN].copy_from_slice(G::encode(element).as_ref());
    };
    for change in [|e| e + G::generator(), double::<G>, negate::<G>] {
        let mut mauled = good.clone();
        put(&mut mauled, u, &change(element(u)));
        refused(&mauled);
        put(&mut mauled, u_second, &change(element(u_second)));
        refused(&mauled);
        let mut mauled = good.clone();
        put(&mut mauled, w, &change(element(w)));
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
    // Points that are the identity, all zeros, or not reduced; a response that is not reduced.
    let identity = G::encode(&G::identity()).as_ref().to_vec();
    for offset in [u, u_second, w, w_second] {
        for bad in [identity.clone(), vec![0; G::ENCODED_LEN], vec![0xff; G::ENCODED_LEN]] {
            let mut mauled = good.clone();
            mauled[capsule + offset..][..G::ENCODED_LEN].copy_from_slice(&bad);
            refused(&mauled);
        }
    }
    let mut mauled = good;
    mauled[capsule + 64 + 4 * G::ENCODED_LEN..].fill(0xff);
    refused(&mauled);
}

#[test]
fn ciphertexts_are_not_malleable() {
    group_ciphertexts_are_not_malleable::<Ristretto255>();
    group_ciphertexts_are_not_malleable::<G1>();
    group_ciphertexts_are_not_malleable::<Ed25519>();
    group_ciphertexts_are_not_malleable::<bn254::G1>();
    group_ciphertexts_are_not_malleable::<P256>();
    group_ciphertexts_are_not_malleable::<Secp256k1>();
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
    for suite in one_round_suites().filter(|suite| suite.name().starts_with("cks05") && !suite.name().contains("bls04"))
    {
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
        let invalid = Err(SchemeError::Verify(VerifyError::Invalid));
        assert_eq!(public.verify(name, &changed, proof), invalid);
        assert_eq!(public.verify(b"another", value, proof), invalid);
        assert_eq!(public.verify(name, foreign.result.expose(), &foreign.proof), invalid);
        assert_eq!(other.verify(name, value, proof), invalid);
        let half = proof.len() / 2;
        let first_twice = [&proof[..half], &proof[..half]].concat();
        for bad in [&b""[..], &proof[..half], &proof[1..], &first_twice, &[&proof[..], &proof[..half]].concat()] {
            assert_unverified(public.verify(name, value, bad));
        }
        for position in 0..proof.len() {
            let mut bad = proof.clone();
            bad[position] ^= 1;
            assert_unverified(public.verify(name, value, &bad));
        }
        // In another order they are as good.
        public.verify(name, value, &[&proof[half..], &proof[..half]].concat()).unwrap();
    }
}
