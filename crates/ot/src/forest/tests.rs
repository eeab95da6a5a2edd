//! What the receiver learns of a forest, and senders that open it falsely.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use theta_groups::Secret;
use theta_names::ShareIndex;

use super::{Shape, Tree, grow, puncture};
use crate::base::{ReceivedSeeds, SentSeeds};
use crate::{Choices, Misbehaviour, Session, words};

fn session() -> Session {
    Session::new([3; 32], ShareIndex::try_from(1).unwrap(), ShareIndex::try_from(2).unwrap()).unwrap()
}

/// Random OTs, as from a dealer.
fn deal(bits: usize, rng: &mut ChaCha20Rng) -> (SentSeeds, ReceivedSeeds) {
    let choices = Choices::random(bits, rng);
    let pairs: Vec<[u128; 2]> = (0..bits).map(|_| [words::random(rng), words::random(rng)]).collect();
    let chosen = pairs.iter().zip(choices.iter()).map(|(pair, choice)| pair[usize::from(choice.unwrap_u8())]).collect();
    (SentSeeds(Secret::new(pairs)), ReceivedSeeds { choices, seeds: Secret::new(chosen) })
}

fn number(received: &ReceivedSeeds, tree: Tree) -> usize {
    let bits = received.choices.iter().skip(tree.first_bit).take(tree.depth as usize);
    bits.enumerate().map(|(bit, choice)| usize::from(choice.unwrap_u8()) << bit).sum()
}

#[test]
fn the_receiver_has_all_leaves_but_one() {
    for k in 1..=8 {
        let mut rng = ChaCha20Rng::seed_from_u64(k.into());
        let shape = Shape::new(128, k).unwrap();
        let (sent, received) = deal(128, &mut rng);
        let (grown, opening) = grow(&session(), "test", shape, &sent);
        assert_eq!(opening.len(), shape.opening_len());
        let punctured = puncture(&session(), "test", shape, &received, &opening).unwrap();
        let mut bits = 0;
        for ((tree, grown), (_, punctured)) in shape.split(grown.expose()).zip(shape.split(punctured.expose())) {
            let x = number(&received, tree);
            assert_eq!((grown.len(), punctured.len(), tree.first_bit), (tree.leaves(), tree.leaves(), bits));
            assert_eq!(punctured[0], 0, "the leaf {x} of tree {} is missing", tree.index);
            for (y, leaf) in punctured.iter().enumerate().skip(1) {
                assert_eq!(*leaf, grown[x ^ y]);
            }
            bits += tree.depth as usize;
        }
        assert_eq!(bits, 128, "every choice is in one tree");
    }
}

#[test]
fn purposes_are_apart() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let shape = Shape::new(8, 4).unwrap();
    let (sent, _) = deal(8, &mut rng);
    let (one, _) = grow(&session(), "one", shape, &sent);
    let (two, _) = grow(&session(), "two", shape, &sent);
    assert!(one.expose().iter().all(|leaf| !two.expose().contains(leaf)));
}

/// One tree of k levels, whose sender spoils the corrections of the first `levels` opened levels that a receiver with other bits than
/// `guess` reads, and is not seen if it guessed right.
fn passes(k: u8, levels: usize, guess: usize, rng: &mut ChaCha20Rng) -> bool {
    let shape = Shape::new(k.into(), k).unwrap();
    let (sent, received) = deal(k.into(), rng);
    let (_, mut opening) = grow(&session(), "test", shape, &sent);
    for level in 0..levels {
        // The first opened level is that of the second highest bit.
        let bit = guess >> (usize::from(k) - 2 - level) & 1;
        opening[32 * level + 16 * (1 - bit)] ^= 1;
    }
    match puncture(&session(), "test", shape, &received, &opening) {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error, Misbehaviour::Trees);
            false
        }
    }
}

/// A false correction is seen by every receiver that reads it: one that spoils those of i bits passes if it guessed these bits,
/// with probability 2^-i.
#[test]
fn false_openings_pass_as_often_as_bits_are_guessed() {
    const RUNS: u32 = 2000;
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    for levels in 0..=3 {
        let passed = (0..RUNS).filter(|run| passes(4, levels, *run as usize % 16, &mut rng)).count();
        let expected = f64::from(RUNS) / f64::from(1 << levels);
        // Four standard deviations.
        let bound = 4.0 * (expected * (1.0 - 1.0 / f64::from(1 << levels))).sqrt();
        assert!((passed as f64 - expected).abs() <= bound, "{levels} bits: {passed} of {RUNS} passed");
    }
}

/// The values of the check are read by every receiver.
#[test]
fn a_false_check_never_passes() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let shape = Shape::new(4, 4).unwrap();
    for byte in 6 * 16..10 * 16 {
        let (sent, received) = deal(4, &mut rng);
        let (_, mut opening) = grow(&session(), "test", shape, &sent);
        opening[byte] ^= 0x80;
        assert_eq!(puncture(&session(), "test", shape, &received, &opening).err(), Some(Misbehaviour::Trees), "{byte}");
    }
    let (_, received) = deal(4, &mut rng);
    let short = puncture(&session(), "test", shape, &received, &[0; 159]).err();
    assert_eq!(short, Some(Misbehaviour::Length { got: 159, expected: 160 }));
}
