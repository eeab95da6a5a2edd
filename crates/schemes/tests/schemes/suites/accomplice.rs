//! An encryptor with an accomplice among the parties tries to make a header that opens only with the accomplice's false share, and
//! so only for some. No header does that: a header that opens gives the same key to everyone.

use std::sync::Arc;

use rand_chacha::ChaCha20Rng;
use theta_groups::bls12_381::{Bls12_381, G1};
use theta_groups::bn254::{self, Bn254};
use theta_groups::{Ed25519, Group, P256, Ristretto255, Scalar, Secp256k1, Transcript};
use theta_payload::{Aead, Encrypt, Header, PayloadKey, split_ciphertext};
use theta_schemes::ciphers::bz03::{Bz03, CipherPairing};
use theta_schemes::ciphers::sg02::{CipherGroup, Sg02};
use theta_schemes::keys::{AnyPublicKey, CurveScheme, KeyScheme, KeyShare, PublicKeySet, deal};
use theta_schemes::{CombineError, Registered, Statement, Suite, ThresholdCipher, ThresholdScheme};
use theta_sharing::Threshold;

use crate::suites::fixture::{borrow, index, key, rng, shares, statement};

/// Which of the opening's equations the encryptor makes true. It always commits to the key that the false share uncovers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    /// None: r does not follow from the key.
    AnyRandomness,
    /// u = g r for the r of the key; the false share moves u x away from h r.
    WrappedForTheFalseShare,
    /// The combination with the false share gives h r for the r of the key; u is another multiple of g.
    AnotherExponent,
}

const LIES: [Lie; 3] = [Lie::AnyRandomness, Lie::WrappedForTheFalseShare, Lie::AnotherExponent];

/// The scalar that an honest encryption of the key takes for a purpose, from the specification.
fn honest<S: Scalar>(suite: Suite, key_id: &[u8; 32], envelope: &[u8], key: &PayloadKey, purpose: &str) -> S {
    Transcript::new("theta/cipher/coins/v1")
        .with("suite", suite.name().as_bytes())
        .with("key id", key_id)
        .with("envelope", envelope)
        .with("payload key", key.secret().expose())
        .with("purpose", purpose.as_bytes())
        .challenge()
}

/// The beginning of a false capsule, and the values for the rest of it.
struct Forged<G: Group> {
    header: Vec<u8>,
    /// The logarithm of u.
    r: G::Scalar,
    /// The scalar of an honest prover, which is used here, too.
    s: G::Scalar,
    /// The difference from a true u x with which the header opens.
    offset: G::Element,
}

/// Wraps a key for the combination that the accomplice has moved by `offset`.
fn forge<G: Group>(
    public: &PublicKeySet<G>,
    domain: &'static str,
    envelope: &[u8],
    lie: Lie,
    rng: &mut ChaCha20Rng,
) -> Forged<G> {
    let (suite, key_id, h) = (public.suite(), public.key_id().as_bytes(), *public.public_key());
    let key = PayloadKey::random(rng);
    let [r_of_key, s_of_key] =
        ["encryption", "proof"].map(|purpose| honest::<G::Scalar>(suite, key_id, envelope, &key, purpose));
    let r = if lie == Lie::WrappedForTheFalseShare { r_of_key } else { G::Scalar::random(rng) };
    let offset = match lie {
        Lie::AnotherExponent => h * r_of_key - h * r,
        _ => G::mul_base(&G::Scalar::random(rng)),
    };
    let (u, shared) = (G::mul_base(&r), h * r + offset);
    let mask = Transcript::new(domain)
        .with("suite", suite.name().as_bytes())
        .with("key id", key_id)
        .with("u", G::encode(&u).as_ref())
        .with("shared", G::encode(&shared).as_ref())
        .finish32();
    let wrapped: Vec<u8> = key.secret().expose().iter().zip(mask).map(|(key, mask)| key ^ mask).collect();
    let header = [envelope, &wrapped, &key.commitment(suite, public.key_id()), G::encode(&u).as_ref()].concat();
    Forged { header, r, s: s_of_key, offset }
}

/// The rest of SG02's capsule: u', w, w' and the response.
fn finish_sg02<G: CipherGroup>(mut forged: Forged<G>) -> Forged<G> {
    let (r, s, second) = (forged.r, forged.s, *G::second_generator());
    for element in [second * r, G::mul_base(&s), second * s] {
        forged.header.extend_from_slice(G::encode(&element).as_ref());
    }
    let challenge: G::Scalar = Transcript::new("theta/sg02/validity/v1")
        .with("suite", G::SUITE.name().as_bytes())
        .with("header", &forged.header)
        .challenge();
    forged.header.extend_from_slice((s + r * challenge).encode().as_ref());
    forged
}

/// The rest of BZ03's: u' and w.
fn finish_bz03<P: CipherPairing>(mut forged: Forged<P::G1>) -> Forged<P::G1> {
    forged.header.extend_from_slice(P::G2::encode(&P::G2::mul_base(&forged.r)).as_ref());
    let w = P::G1::hash_to_group(P::VALIDITY_DST, &[&forged.header]) * forged.r;
    forged.header.extend_from_slice(P::G1::encode(&w).as_ref());
    forged
}

/// A group of 2 of 3 whose party 2 is the encryptor's accomplice.
fn nobody_opens<S, G>(domain: &'static str, finish: fn(Forged<G>) -> Forged<G>)
where
    G: Group,
    S: ThresholdCipher
        + CurveScheme<KeyGroup = G>
        + KeyScheme<PublicKey = PublicKeySet<G>, KeyShare = KeyShare<G>>
        + ThresholdScheme<Output = PayloadKey>
        + Registered,
{
    let mut rng = rng(5);
    let dealt = deal::<S>(Threshold::new(2, 3).unwrap(), &mut rng);
    let public = AnyPublicKey::of::<S>(Arc::clone(&dealt.public));
    let ciphertext = public.encrypt(b"plaintext", b"label", Aead::default(), &mut rng).unwrap();
    let (header, _) = split_ciphertext(&ciphertext).unwrap();
    let envelope = &header[..header.len() - S::CAPSULE_LEN];
    for lie in LIES {
        let Forged { header, offset, .. } = finish(forge(&dealt.public, domain, envelope, lie, &mut rng));
        let request = S::parse_request(&dealt.public, &Statement::Decapsulate(&header)).unwrap();
        let mut shares: Vec<S::Share> = Vec::new();
        for key in &dealt.shares {
            shares.push(S::create_share(&dealt.public, key, &request, &mut rng));
        }
        // Among 1 and 2, the coefficient of 2 is 1 / (1 - 2).
        let encoding = S::encode_share(&shares[1]);
        let (point, proof) = encoding.split_at(G::ENCODED_LEN);
        let moved = G::decode(point).unwrap() - offset;
        let moved = S::decode_share(index(2), &[G::encode(&moved).as_ref(), proof].concat()).unwrap();

        let combine = |shares: &[S::Share]| S::combine(&dealt.public, &request, shares).map(drop);
        let [one, two, three] = shares.as_slice() else { panic!("three parties") };
        assert_eq!(combine(&[one.clone(), moved.clone()]), Err(CombineError::ResultInvalid), "{} {lie:?}", S::SUITE);
        for honest in [[one, two], [one, three], [two, three]] {
            assert_eq!(combine(&honest.map(Clone::clone)), Err(CombineError::ResultInvalid), "{} {lie:?}", S::SUITE);
        }
        // Only the accomplice is named.
        let named = S::verify_shares(&dealt.public, &request, &[one.clone(), moved, three.clone()], &mut rng);
        assert_eq!(named, [index(2)]);
        assert!(S::verify_shares(&dealt.public, &request, &shares, &mut rng).is_empty());
    }
}

#[test]
fn a_false_share_opens_no_header_of_sg02() {
    fn check<G: CipherGroup>() {
        nobody_opens::<Sg02<G>, G>("theta/sg02/wrap/v1", finish_sg02);
    }
    check::<Ristretto255>();
    check::<G1>();
    check::<Ed25519>();
    check::<bn254::G1>();
    check::<P256>();
    check::<Secp256k1>();
}

#[test]
fn a_false_share_opens_no_header_of_bz03() {
    fn check<P: CipherPairing>() {
        nobody_opens::<Bz03<P>, P::G1>("theta/bz03/wrap/v1", finish_bz03::<P>);
    }
    check::<Bls12_381>();
    check::<Bn254>();
}

/// A payload key that a node or an encryptor gives can be checked with the public key alone.
#[test]
fn a_payload_key_is_believed_for_an_honest_header_alone() {
    for suite in [Suite::Sg02Ristretto255, Suite::Bz03Bls12381] {
        let (public, keys) = key(suite, 2, 3, 6);
        let other = key(suite, 2, 3, 7).0;
        let statement = statement(&public, 1);
        let shares = shares(&public, &keys, &statement);
        let combined = public.combine(&statement, &borrow(&shares), &mut rng(1)).unwrap();
        let told = PayloadKey::from_bytes(combined.result.expose()).unwrap();
        let header = statement.as_statement().bytes().to_vec();
        assert!(public.encapsulates(&header, &told));
        assert!(!other.encapsulates(&header, &told));
        assert!(!public.encapsulates(&header, &PayloadKey::random(&mut rng(2))));
        for place in [20, 70, header.len() - 100, header.len() - 1] {
            let mut changed = header.clone();
            changed[place] ^= 1;
            assert!(!public.encapsulates(&changed, &told), "byte {place}");
        }
        for short in [0, 1, 64, header.len() - 1] {
            assert!(!public.encapsulates(&header[..short], &told));
        }
    }
    // The commitment fits, but no shares unwrap this key.
    let dealt = deal::<Sg02<Ristretto255>>(Threshold::new(2, 3).unwrap(), &mut rng(8));
    let public = AnyPublicKey::of::<Sg02<Ristretto255>>(Arc::clone(&dealt.public));
    let ciphertext = public.encrypt(b"plaintext", b"label", Aead::default(), &mut rng(9)).unwrap();
    let (header, _) = split_ciphertext(&ciphertext).unwrap();
    let envelope = &header[..header.len() - Sg02::<Ristretto255>::CAPSULE_LEN];
    let forged = forge(&dealt.public, "theta/sg02/wrap/v1", envelope, Lie::AnyRandomness, &mut rng(10));
    let key = PayloadKey::random(&mut rng(10));
    let forged = finish_sg02(forged).header;
    assert!(Header::parse(&forged).unwrap().is_for(&key), "the forger's first draw is the key");
    assert!(!public.encapsulates(&forged, &key));
}
