//! Threshold signatures on BN254, verified where they are meant to be: by contracts in an Ethereum virtual machine, with
//! its precompiled curve operations. The contract itself also hashes to the curve. And signatures of ECDSA, as `ecrecover` takes them.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod assembler;
mod contract;
mod ecrecover;
mod machine;

use assembler::Precompile;
use contract::{relay, verifier};
use machine::transact;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use theta_groups::bn254::G1;
use theta_groups::{Group, Scalar};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, TypedPublicKey, deal_any};
use theta_schemes::signatures::bls04::evm;
use theta_schemes::{Statement, Suite};
use theta_sharing::{ShareIndex, Threshold, coefficients_at_zero};

type Scalar254 = <G1 as Group>::Scalar;

fn key(seed: u64) -> (AnyPublicKey, Vec<AnyKeyShare>) {
    deal_any(Suite::Bls04Bn254, Threshold::new(3, 5).unwrap(), &mut ChaCha20Rng::seed_from_u64(seed))
}

fn uncompressed(public: &AnyPublicKey) -> [u8; 128] {
    let TypedPublicKey::Bn254G2(set) = public.typed() else { panic!("{public:?}") };
    evm::public_key(set)
}

/// The shares of parties 2, 3 and 5.
fn shares(public: &AnyPublicKey, keys: &[AnyKeyShare], message: &[u8]) -> Vec<(ShareIndex, Vec<u8>)> {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let share =
        |key: &AnyKeyShare| (key.index(), public.create_share(key, Statement::Sign(message), &mut rng).unwrap());
    [&keys[1], &keys[2], &keys[4]].map(share).to_vec()
}

fn sign(public: &AnyPublicKey, keys: &[AnyKeyShare], message: &[u8]) -> Vec<u8> {
    let shares = shares(public, keys, message);
    let shares: Vec<_> = shares.iter().map(|(index, share)| (*index, share.as_slice())).collect();
    let combined = public.combine(Statement::Sign(message), &shares, &mut ChaCha20Rng::seed_from_u64(3)).unwrap();
    combined.result.expose().clone()
}

fn call_data(signature: &[u8], message: &[u8]) -> Vec<u8> {
    [&evm::signature(signature).unwrap()[..], message].concat()
}

const TRUE: [u8; 32] = {
    let mut word = [0; 32];
    word[31] = 1;
    word
};

#[test]
fn a_contract_accepts_a_signature_by_k_shares() {
    let (public, keys) = key(1);
    let contract = verifier(&uncompressed(&public));
    for len in [0, 1, 31, 32, 33, 64, 100, 1000] {
        let message: Vec<u8> = (0..=u8::MAX).cycle().take(len).collect();
        let signature = sign(&public, &keys, &message);
        public.verify(&message, &signature, b"").unwrap();
        let answer = transact(&contract, &call_data(&signature, &message)).unwrap();
        assert_eq!(answer.output, TRUE, "a message of {len} bytes");
        // Any transaction takes 21,000, the pairings 113,000; hashing takes the rest.
        assert!((150_000..250_000).contains(&answer.gas), "{} gas", answer.gas);
    }
}

#[test]
fn a_contract_accepts_nothing_else() {
    let (public, keys) = key(1);
    let contract = verifier(&uncompressed(&public));
    let signature = sign(&public, &keys, b"message");
    let ask = |contract: &[u8], call_data: &[u8]| transact(contract, call_data).map(|answer| answer.output);
    let no = Some(vec![0; 32]);
    let good = call_data(&signature, b"message");
    assert_eq!(ask(&contract, &good), Some(TRUE.to_vec()));

    assert_eq!(ask(&contract, &call_data(&signature, b"messagf")), no);
    assert_eq!(ask(&contract, &call_data(&signature, b"message\0")), no);
    assert_eq!(ask(&contract, &call_data(&signature, b"")), no);
    assert_eq!(ask(&contract, &call_data(&sign(&public, &keys, b"another"), b"message")), no);
    let negated = G1::encode(&-G1::decode(&signature).unwrap());
    assert_eq!(ask(&contract, &call_data(&negated, b"message")), no);
    let one_share = &shares(&public, &keys, b"message")[0].1;
    assert_eq!(ask(&contract, &call_data(one_share, b"message")), no);
    let (other, _) = key(4);
    assert_eq!(ask(&verifier(&uncompressed(&other)), &good), no);

    // Bytes that are no point, the identity, and bytes of a wrong length.
    let mut off_curve = good.clone();
    off_curve[63] ^= 1;
    assert_eq!(ask(&contract, &off_curve), None);
    assert_eq!(ask(&contract, &[&[0; 64][..], b"message"].concat()), None);
    assert_eq!(ask(&contract, &good[..63]), None);
    assert_eq!(ask(&contract, b""), None);
    let TypedPublicKey::Bn254G2(set) = public.typed() else { panic!("{public:?}") };
    evm::pairing_input(set, b"message", &[0; 32]).unwrap_err();
    evm::pairing_input(set, b"message", &[]).unwrap_err();
}

/// For contracts that receive the point of the message: they take our input as it is.
#[test]
fn the_precompile_takes_our_input() {
    let (public, keys) = key(1);
    let TypedPublicKey::Bn254G2(set) = public.typed() else { panic!("{public:?}") };
    let contract = relay(Precompile::EcPairing, 32);
    let input = evm::pairing_input(set, b"message", &sign(&public, &keys, b"message")).unwrap();
    let ask = |input: &[u8]| transact(&contract, input).map(|answer| answer.output);
    assert_eq!(input.len(), 384);
    assert_eq!(ask(&input), Some(TRUE.to_vec()));
    assert_eq!(ask(&input[..192]), Some(vec![0; 32]));
    assert_eq!(ask(&input[..383]), None);
    let other = evm::pairing_input(set, b"another", &sign(&public, &keys, b"message")).unwrap();
    assert_eq!(ask(&other), Some(vec![0; 32]));
}

#[test]
fn contracts_can_combine_shares() {
    let (public, keys) = key(1);
    let shares = shares(&public, &keys, b"message");
    let indices: Vec<_> = shares.iter().map(|(index, _)| *index).collect();
    let coefficients = coefficients_at_zero::<Scalar254>(&indices).unwrap();
    let ask = |precompile, input: &[u8]| transact(&relay(precompile, 64), input).unwrap().output;
    let mut sum = vec![0; 64];
    for ((_, share), coefficient) in shares.iter().zip(coefficients) {
        // The precompile takes big-endian scalars, which is this group's encoding.
        let factor = coefficient.encode();
        let product = ask(Precompile::EcMul, &[&evm::signature(share).unwrap()[..], factor.as_ref()].concat());
        sum = ask(Precompile::EcAdd, &[sum, product].concat());
    }
    assert_eq!(sum, evm::signature(&sign(&public, &keys, b"message")).unwrap());
}
