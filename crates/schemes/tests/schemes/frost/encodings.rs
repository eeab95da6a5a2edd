//! Invalid bytes from outside.

use theta_groups::{DecodeError, Group, Scalar as _};
use theta_schemes::signatures::frost::{
    AggregateError, Ed448Shake256, Ed25519Sha512, Frost, FrostSuite, SignatureShare, SigningCommitments,
    SigningPackage, VerifyingKey, verify_share,
};
use theta_schemes::{SignatureScheme, VerifyError};

use crate::frost::fixture::{Element, Scalar, aggregated, commit_all, index, key, session, sign_all};

for_every_frost_suite!(
    encodings_are_inverse_to_decodings,
    malformed_commitments_are_refused,
    malformed_shares_are_refused,
    malformed_signatures_are_refused,
);

fn encodings_are_inverse_to_decodings<C: FrostSuite>() {
    let dealt = key::<C>(2, 3, 1);
    let (_, commitments) = commit_all::<C>(&dealt, &[0], 2);
    let bytes = commitments[0].encode();
    assert_eq!(bytes.len(), 2 * C::Group::ENCODED_LEN);
    assert_eq!(SigningCommitments::decode(index(1), &bytes), Ok(commitments[0]));
    assert_eq!(SigningCommitments::decode_unchecked_subgroup(index(1), &bytes), Ok(commitments[0]));
    let (_, shares) = session::<C>(&dealt, &[0, 1], b"message", 3);
    assert_eq!(SignatureShare::decode(index(1), &shares[0].encode()), Ok(shares[0]));
}

fn malformed_commitments_are_refused<C: FrostSuite>() {
    let dealt = key::<C>(2, 3, 4);
    let (_, commitments) = commit_all::<C>(&dealt, &[0], 5);
    let good = commitments[0].encode();
    let (hiding, binding) = good.split_at(good.len() / 2);
    let identity = C::Group::encode(&C::Group::identity());
    let unreduced = vec![0xff; hiding.len()];
    for bad in [
        vec![],
        good[..good.len() - 1].to_vec(),
        [&good[..], &[0]].concat(),
        hiding.to_vec(),
        [identity.as_ref(), binding].concat(),
        [hiding, identity.as_ref()].concat(),
        [&unreduced[..], binding].concat(),
        [hiding, &unreduced].concat(),
    ] {
        SigningCommitments::<C>::decode(index(1), &bad).unwrap_err();
        SigningCommitments::<C>::decode_unchecked_subgroup(index(1), &bad).unwrap_err();
    }
}

fn malformed_shares_are_refused<C: FrostSuite>() {
    let len = Scalar::<C>::ENCODED_LEN;
    for bad in [vec![], vec![0; len - 1], vec![0; len + 1]] {
        let error = DecodeError::Length { expected: len, got: bad.len() };
        assert_eq!(SignatureShare::<C>::decode(index(1), &bad), Err(error));
    }
    assert_eq!(SignatureShare::<C>::decode(index(1), &vec![0xff; len]), Err(DecodeError::NotCanonical));
    assert_eq!(SignatureShare::<C>::decode(index(1), &order::<C>()), Err(DecodeError::NotCanonical));
}

/// The group's order, in the encoding that a scalar of that size would have.
fn order<C: FrostSuite>() -> Vec<u8> {
    let mut bytes = (-Scalar::<C>::ONE).encode().as_ref().to_vec();
    let lowest = if Scalar::<C>::ONE.encode().as_ref()[0] == 1 { 0 } else { bytes.len() - 1 };
    bytes[lowest] += 1;
    bytes
}

fn malformed_signatures_are_refused<C: FrostSuite>() {
    let dealt = key::<C>(2, 3, 6);
    let (package, shares) = session::<C>(&dealt, &[0, 1], b"message", 7);
    let good = aggregated(&dealt, &package, &shares).unwrap().encode();
    let (commitment, response) = good.split_at(C::STANDARD_LEN);
    let expected = good.len();
    for bad in [vec![], good[1..].to_vec(), [&good[..], &[0]].concat()] {
        let error = VerifyError::Malformed(DecodeError::Length { expected, got: bad.len() });
        assert_eq!(Frost::<C>::verify(&dealt.public, b"message", &bad), Err(error));
    }
    let unreduced = Frost::<C>::verify(&dealt.public, b"message", &[commitment, &order::<C>()].concat());
    assert_eq!(unreduced, Err(VerifyError::Malformed(DecodeError::NotCanonical)));
    for bit in [0, 7, 8 * commitment.len() - 1] {
        let mut changed = good.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Frost::<C>::verify(&dealt.public, b"message", &changed), Err(VerifyError::Invalid));
    }
    // R = 0 and z = c x would verify for those who know x, or for x = 0; R must not be the identity.
    let identity = C::Group::encode(&C::Group::identity());
    let zero = [C::standard_encoding(identity.as_ref()), Scalar::<C>::ZERO.encode().as_ref()].concat();
    assert_eq!(Frost::<C>::verify(&dealt.public, b"message", &zero), Err(VerifyError::Invalid));
    let mut negated = response.to_vec();
    negated.copy_from_slice((-Scalar::<C>::decode(response).unwrap()).encode().as_ref());
    let negated = [commitment, &negated].concat();
    assert_eq!(Frost::<C>::verify(&dealt.public, b"message", &negated), Err(VerifyError::Invalid));
    VerifyingKey::<C>::decode(C::standard_encoding(identity.as_ref())).unwrap_err();
}

/// Points of small order: y = -1 has order 2 on both Edwards curves.
fn order_two<C: FrostSuite>(prime: &str) -> Element<C> {
    let mut minus_one = hex::decode(prime).unwrap();
    minus_one[0] -= 1;
    let point = C::Group::decode_unchecked_subgroup(&minus_one).unwrap();
    assert!(!C::Group::is_identity(&point) && C::Group::is_identity(&(point + point)));
    point
}

/// Party 2 adds a point of small order to its commitments and answers as if it had not.
fn small_order_components<C: FrostSuite>(prime: &str) {
    let torsion = order_two::<C>(prime);
    let dealt = key::<C>(2, 3, 8);
    let half = C::Group::ENCODED_LEN;
    let moved = |nonce: Scalar<C>, moves: bool| {
        let point = C::Group::mul_base(&nonce);
        if moves { point + torsion } else { point }
    };
    let ways = [(false, false), (true, false), (false, true), (true, true)];
    for (seed, (in_hiding, in_binding)) in (1..=3).flat_map(|seed| ways.map(|way| (seed, way))) {
        let (nonces, mut commitments) = commit_all::<C>(&dealt, &[0], seed);
        let (d, e) = (Scalar::<C>::from_u64(11), Scalar::<C>::from_u64(seed));
        let (hiding, binding) = (moved(d, in_hiding), moved(e, in_binding));
        let bytes =
            [C::Group::encode(&hiding), C::Group::encode(&binding)].map(|point| point.as_ref().to_vec()).concat();
        let checked = SigningCommitments::<C>::decode(index(2), &bytes);
        assert_eq!(checked.is_err(), in_hiding || in_binding);
        let first = commitments[0].encode();
        commitments.push(SigningCommitments::decode_unchecked_subgroup(index(2), &bytes).unwrap());
        let package = SigningPackage::new(&dealt.public, commitments, b"message").unwrap();
        let mut shares = sign_all(&dealt, &package, nonces);

        let [rho_1, rho_2] = [1, 2].map(|i| package.binding_factor(index(i)).unwrap());
        let [d_1, e_1] = [&first[..half], &first[half..]].map(|point| C::Group::decode(point).unwrap());
        let commitment = C::Group::encode(&(d_1 + e_1 * rho_1 + hiding + C::Group::vartime_msm(&[rho_2], &[binding])));
        let challenge = C::challenge(commitment.as_ref(), dealt.public.public_key_bytes(), b"message");
        // With party 1, the Lagrange coefficient of party 2 is -1.
        let response = d + e * rho_2 - challenge * *dealt.shares[1].secret().expose();
        shares.push(SignatureShare::decode(index(2), response.encode().as_ref()).unwrap());

        assert!(verify_share(&dealt.public, &package, &shares[0]));
        assert_eq!(verify_share(&dealt.public, &package, &shares[1]), checked.is_ok());
        // An even factor annihilates a point of order two, and two such points cancel.
        let odd = rho_2.encode().as_ref()[0] & 1 == 1;
        let spoiled = in_hiding != (in_binding && odd);
        match aggregated(&dealt, &package, &shares) {
            Err(error) => assert_eq!((error, spoiled), (AggregateError::FalseShares(vec![index(2)]), true)),
            Ok(signature) => {
                Frost::<C>::verify(&dealt.public, b"message", &signature.encode()).unwrap();
                assert!(!spoiled);
            }
        }
    }
    // A commitment of small order, and a signature with one.
    let small = C::Group::encode(&torsion);
    let (_, commitments) = commit_all::<C>(&dealt, &[0], 9);
    let bytes = [small.as_ref(), &commitments[0].encode()[half..]].concat();
    assert_eq!(SigningCommitments::<C>::decode(index(1), &bytes), Err(DecodeError::Subgroup));
    assert_eq!(VerifyingKey::<C>::decode(small.as_ref()), Err(DecodeError::Subgroup));
    let (package, shares) = session::<C>(&dealt, &[0, 1], b"message", 10);
    let signature = aggregated(&dealt, &package, &shares).unwrap().encode();
    let point = C::Group::decode(&signature[..half]).unwrap() + torsion;
    let shifted = [C::Group::encode(&point).as_ref(), &signature[half..]].concat();
    assert_eq!(Frost::<C>::verify(&dealt.public, b"message", &shifted), Err(VerifyError::Invalid));
    let small = [small.as_ref(), &signature[half..]].concat();
    assert_eq!(Frost::<C>::verify(&dealt.public, b"message", &small), Err(VerifyError::Invalid));
}

#[test]
fn small_order_components_on_ed25519() {
    small_order_components::<Ed25519Sha512>(&format!("ed{}7f", "ff".repeat(30)));
}

#[test]
fn small_order_components_on_ed448() {
    small_order_components::<Ed448Shake256>(&format!("{}fe{}00", "ff".repeat(28), "ff".repeat(27)));
}
