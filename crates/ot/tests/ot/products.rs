//! Products between parties that follow the protocol.

use rand_chacha::ChaCha20Rng;
use theta_groups::bls12_381::G1;
use theta_groups::{Group, P256, Ristretto255, Scalar, Secp256k1, Secret};
use theta_ot::{Choices, Misbehaviour, Misuse, copee, correlated, gilboa};

use crate::fixture::{rng, scalars, session, set_up};

/// Random factors, and the extremes.
fn factors<S: Scalar>(n: usize, rng: &mut ChaCha20Rng) -> (Vec<S>, Vec<S>) {
    let (mut a, mut b) = (scalars::<S>(n, rng), scalars::<S>(n, rng));
    for (index, (x, y)) in [(S::ZERO, S::ONE), (-S::ONE, -S::ONE), (-S::ONE, S::ZERO)].into_iter().enumerate() {
        (a[index], b[index]) = (x, y);
    }
    (a, b)
}

fn gilboa_products<G: Group>() {
    let mut rng = rng(1);
    let (a, b) = factors::<G::Scalar>(5, &mut rng);
    let (sender, receiver) = set_up(2, &mut rng);
    let (_, message, received) = receiver.extend(Choices::of_scalars(&b), &mut rng).unwrap();
    let (_, sent) = sender.extend(256 * 5, &message).unwrap();
    let (corrections, theirs) = gilboa::send(sent, &a).unwrap();
    assert_eq!(corrections.0.len(), gilboa::Corrections::length(5));
    let ours = gilboa::receive::<G::Scalar>(received, &corrections).unwrap();
    for (index, (x, y)) in theirs.expose().iter().zip(ours.expose()).enumerate() {
        assert_eq!(*x + *y, a[index] * b[index], "{} {index}", G::NAME);
        assert_ne!(*x, G::Scalar::ZERO);
    }
}

fn correlated_values<G: Group>() {
    let mut rng = rng(6);
    let d = factors::<G::Scalar>(300, &mut rng).0;
    let (sender, receiver) = set_up(3, &mut rng);
    let (_, message, received) = receiver.extend(Choices::random(300, &mut rng), &mut rng).unwrap();
    let (_, sent) = sender.extend(300, &message).unwrap();
    let choices: Vec<bool> = received.choices().iter().map(bool::from).collect();
    let (corrections, t) = correlated::send(sent, &d).unwrap();
    assert_eq!(corrections.0.len(), correlated::Corrections::length(300));
    let theirs = correlated::receive::<G::Scalar>(received, &corrections).unwrap();
    for (((t, theirs), d), x) in t.expose().iter().zip(theirs.expose()).zip(&d).zip(choices) {
        assert_eq!(*theirs, if x { *t + *d } else { *t }, "{}", G::NAME);
    }
}

#[test]
fn correlated_transfers_differ_by_the_difference() {
    correlated_values::<P256>();
    correlated_values::<Secp256k1>();
    correlated_values::<Ristretto255>();
}

#[test]
fn false_correlated_transfers_are_refused() {
    let mut rng = rng(7);
    let d = scalars::<<P256 as Group>::Scalar>(128, &mut rng);
    for (place, length) in [(Some(5), 32 * 128), (None, 32 * 127)] {
        let (sender, receiver) = set_up(1, &mut rng);
        let (_, message, received) = receiver.extend(Choices::random(128, &mut rng), &mut rng).unwrap();
        let (_, sent) = sender.extend(128, &message).unwrap();
        let (mut corrections, _) = correlated::send(sent, &d).unwrap();
        corrections.0.truncate(length);
        corrections.0[32 * 5..32 * 6].fill(0xff);
        let error = correlated::receive::<<P256 as Group>::Scalar>(received, &corrections).err();
        let expected = place
            .map_or(Misbehaviour::Length { got: length, expected: 32 * 128 }, |index| Misbehaviour::Scalar { index });
        assert_eq!(error, Some(expected.into()));
    }
    let (sender, receiver) = set_up(1, &mut rng);
    let (_, message, _) = receiver.extend(Choices::random(100, &mut rng), &mut rng).unwrap();
    let (_, sent) = sender.extend(100, &message).unwrap();
    assert_eq!(correlated::send(sent, &d).err(), Some(Misuse::Transfers { got: 100, needed: 128 }));
}

#[test]
fn gilboas_summands_add_up_to_the_product() {
    gilboa_products::<P256>();
    gilboa_products::<Secp256k1>();
    gilboa_products::<Ristretto255>();
    gilboa_products::<G1>();
}

/// Both parties of COPEe after their set-up.
fn copee_of<S: Scalar>(k: u8, delta: &Secret<S>, rng: &mut ChaCha20Rng) -> (copee::Sender, copee::Receiver) {
    let (sender, receiver) = set_up(2, rng);
    let choices = Choices::of_scalars(core::slice::from_ref(delta.expose()));
    let (_, message, received) = receiver.extend(choices, rng).unwrap();
    let (_, sent) = sender.extend(256, &message).unwrap();
    let (sender, opening) = copee::Sender::new(&session(1), k, &sent.into_seeds()).unwrap();
    let receiver = copee::Receiver::new(&session(1), k, delta, received.into_seeds(), &opening).unwrap();
    (sender, receiver)
}

fn copee_products<G: Group>(k: u8, delta: G::Scalar, seed: u64) {
    let mut rng = rng(seed);
    let delta = Secret::new(delta);
    let (mut sender, mut receiver) = copee_of(k, &delta, &mut rng);
    for n in [4, 1, 37] {
        let mut x = scalars::<G::Scalar>(n, &mut rng);
        x[0] = -G::Scalar::ONE;
        let (next, corrections, t) = sender.extend(&x).unwrap();
        sender = next;
        assert_eq!(corrections.0.len(), copee::Corrections::length(k, n));
        let (next, q) = receiver.extend::<G::Scalar>(n, &corrections).unwrap();
        receiver = next;
        for ((t, q), x) in t.expose().iter().zip(q.expose()).zip(x) {
            assert_eq!(*t + *q, x * *delta.expose(), "{} k = {k}", G::NAME);
        }
    }
}

#[test]
fn copees_summands_add_up_to_the_product() {
    for k in 1..=8 {
        let delta = scalars(1, &mut rng(k.into()))[0];
        copee_products::<P256>(k, delta, k.into());
    }
    for delta in [<Secp256k1 as Group>::Scalar::ZERO, Scalar::ONE, -<Secp256k1 as Group>::Scalar::ONE] {
        copee_products::<Secp256k1>(3, delta, 2);
    }
    copee_products::<Ristretto255>(2, scalars(1, &mut rng(3))[0], 3);
}

#[test]
fn a_scalar_of_q_or_more_is_refused() {
    let mut rng = rng(4);
    let order = {
        let mut bytes = (-<P256 as Group>::Scalar::ONE).encode();
        bytes[31] += 1;
        bytes
    };
    let b = scalars::<<P256 as Group>::Scalar>(2, &mut rng);
    for (bytes, fails) in [(order, true), ([0xff; 32], true), ((-<P256 as Group>::Scalar::ONE).encode(), false)] {
        let (sender, receiver) = set_up(1, &mut rng);
        let (_, message, received) = receiver.extend(Choices::of_scalars(&b), &mut rng).unwrap();
        let (_, sent) = sender.extend(512, &message).unwrap();
        let (mut corrections, _) = gilboa::send(sent, &b).unwrap();
        corrections.0[32 * 300..][..32].copy_from_slice(&bytes);
        let error = gilboa::receive::<<P256 as Group>::Scalar>(received, &corrections).err();
        assert_eq!(error, fails.then_some(Misbehaviour::Scalar { index: 300 }.into()));

        let delta = Secret::new(b[0]);
        let (sender, receiver) = copee_of(4, &delta, &mut rng);
        let (_, mut corrections, _) = sender.extend(&b).unwrap();
        corrections.0[32 * 77..][..32].copy_from_slice(&bytes);
        let error = receiver.extend::<<P256 as Group>::Scalar>(2, &corrections).err();
        assert_eq!(error, fails.then_some(Misbehaviour::Scalar { index: 77 }.into()));
    }
}

#[test]
fn counts_and_choices_must_fit() {
    let mut rng = rng(5);
    let b = scalars::<<P256 as Group>::Scalar>(2, &mut rng);
    let (sender, receiver) = set_up(1, &mut rng);
    let (_, message, received) = receiver.extend(Choices::of_scalars(&b), &mut rng).unwrap();
    let (_, sent) = sender.extend(512, &message).unwrap();
    assert_eq!(gilboa::send(sent, &b[..1]).err(), Some(Misuse::Transfers { got: 512, needed: 256 }));
    let short = gilboa::Corrections(vec![0; 32 * 511]);
    let error = gilboa::receive::<<P256 as Group>::Scalar>(received, &short).err();
    assert_eq!(error, Some(Misbehaviour::Length { got: 32 * 511, expected: 32 * 512 }.into()));

    // Transfers that were made with the bits of another key.
    let (sender, receiver) = set_up(1, &mut rng);
    let (_, message, received) = receiver.extend(Choices::of_scalars(&b[..1]), &mut rng).unwrap();
    let (_, sent) = sender.extend(256, &message).unwrap();
    let (sender, opening) = copee::Sender::new(&session(1), 2, &sent.into_seeds()).unwrap();
    let error = copee::Receiver::new(&session(1), 2, &Secret::new(b[1]), received.into_seeds(), &opening).err();
    assert_eq!(error, Some(Misuse::Choices.into()));
    assert_eq!(sender.extend::<<P256 as Group>::Scalar>(&[]).err(), Some(Misuse::Count { got: 0, most: 1 << 16 }));
}
