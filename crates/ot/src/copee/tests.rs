//! A P_A that uses different x for different digits, and the MAC check that sees it.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use theta_groups::{P256Scalar, Scalar, Secret};
use theta_names::ShareIndex;

use super::{Receiver, Sender};
use crate::base::{ReceivedSeeds, SentSeeds};
use crate::{Choices, Session, words};

/// Both parties, from OTs as from a dealer.
fn deal(k: u8, delta: &Secret<P256Scalar>, rng: &mut ChaCha20Rng) -> (Sender, Receiver) {
    let session = Session::new([6; 32], ShareIndex::try_from(1).unwrap(), ShareIndex::try_from(2).unwrap()).unwrap();
    let choices = Choices::of_scalars(core::slice::from_ref(delta.expose()));
    let pairs: Vec<[u128; 2]> = (0..256).map(|_| [words::random(rng), words::random(rng)]).collect();
    let chosen = pairs.iter().zip(choices.iter()).map(|(pair, choice)| pair[usize::from(choice.unwrap_u8())]).collect();
    let (sender, opening) = Sender::new(&session, k, &SentSeeds(Secret::new(pairs))).unwrap();
    let received = ReceivedSeeds { choices, seeds: Secret::new(chosen) };
    (sender, Receiver::new(&session, k, delta, received, &opening).unwrap())
}

/// P_A claims to have input x, with x + 1 in some digits, and gives t as its MAC summand of the revealed x, corrected for the
/// digits it guesses. Whether the check t + q = x Delta is deceived, as the MAC check of MASCOT would be.
fn passes(k: u8, cheated: &[usize], rng: &mut ChaCha20Rng) -> bool {
    let delta = Secret::new(P256Scalar::random(rng));
    let (sender, receiver) = deal(k, &delta, rng);
    let x = P256Scalar::random(rng);
    let (honest, other) = ([words::of_scalar(&x)], [words::of_scalar(&(x + P256Scalar::ONE))]);
    let factors_of = |tree| if cheated.contains(&tree) { &other[..] } else { &honest[..] };
    let (_, corrections, t) = sender.extend_with::<P256Scalar>(1, factors_of).unwrap();
    let (_, q) = receiver.extend::<P256Scalar>(1, &corrections).unwrap();
    let (t, q) = (t.expose()[0], q.expose()[0]);
    // The error is the sum of the cheated digits of Delta, in their places.
    let mut error = P256Scalar::ZERO;
    let digits = words::of_scalar(delta.expose());
    let mut guessed = P256Scalar::ZERO;
    let mut place = P256Scalar::ONE;
    for bit in 0..256_usize {
        if cheated.contains(&(bit / usize::from(k))) {
            error += place * P256Scalar::from_u64(digits[bit / 64] >> (bit % 64) & 1);
            guessed += place * P256Scalar::from_u128(words::random(rng) & 1);
        }
        place = place + place;
    }
    assert_eq!(t + q, x * *delta.expose() + error, "the error depends on the cheated digits alone");
    t - guessed + q == x * *delta.expose()
}

#[test]
fn inconsistent_inputs_pass_a_mac_check_as_often_as_digits_are_guessed() {
    const RUNS: u32 = 400;
    for (k, cheated, bits) in [(1, &[][..], 0), (1, &[3][..], 1), (2, &[100], 2), (1, &[0, 200], 2), (4, &[60], 4)] {
        let mut rng = ChaCha20Rng::seed_from_u64(bits);
        let passed = (0..RUNS).filter(|_| passes(k, cheated, &mut rng)).count();
        let probability = 1.0 / f64::from(1 << bits);
        let expected = f64::from(RUNS) * probability;
        let bound = 4.0 * (expected * (1.0 - probability)).sqrt();
        assert!((passed as f64 - expected).abs() <= bound, "k = {k}, {cheated:?}: {passed} of {RUNS}");
    }
}
