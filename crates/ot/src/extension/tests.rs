//! The correlation of the papers, and receivers that use different choices for different rows.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use theta_groups::Secret;

use super::receiver::Receiver;
use super::sender::Sender;
use super::{BASE, Extension};
use crate::forest::{Shape, Tree};
use crate::{Choices, Error, Misbehaviour, words};

/// A set-up as from a dealer.
fn deal(k: u8, rng: &mut ChaCha20Rng) -> (Sender, Receiver, u128) {
    let shape = Shape::new(BASE, k).unwrap();
    let delta = words::random(rng);
    let leaves: Vec<u128> = (0..shape.trees().map(Tree::leaves).sum()).map(|_| words::random(rng)).collect();
    let mut punctured = Vec::new();
    for (tree, seeds) in shape.split(&leaves) {
        let x = digit(delta, tree);
        punctured.extend((0..seeds.len()).map(|y| if y == 0 { 0 } else { seeds[x ^ y] }));
    }
    let sender = Sender::of_leaves(shape, delta, Secret::new(punctured), [5; 32]);
    (sender, Receiver::of_leaves(shape, Secret::new(leaves), [5; 32]), delta)
}

/// The bits of Delta that a tree has.
fn digit(delta: u128, tree: Tree) -> usize {
    usize::try_from(delta >> tree.first_bit & ((1 << tree.depth) - 1)).unwrap()
}

#[test]
fn q_is_t_plus_x_delta() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    for k in 1..=8 {
        let (sender, receiver, delta) = deal(k, &mut rng);
        let (_, message, received) = receiver.extend(Choices::random(1000, &mut rng), &mut rng).unwrap();
        let (_, sent) = sender.extend(1000, &message).unwrap();
        let (q, of_sender) = sent.expose();
        assert_eq!(of_sender, delta);
        for ((q, t), x) in q.iter().zip(received.expose()).zip(received.choices().iter()) {
            assert_eq!(*q, t ^ (words::mask(x) & delta), "k = {k}");
        }
    }
}

/// A receiver that adds `error` to its choices in some trees, and answers the check as if the bits of Delta of these trees were
/// `guess`, which is the best that it can do (`spec/ot.md`). Whether the sender is deceived.
fn passes(k: u8, cheated: &[usize], guess: usize, rng: &mut ChaCha20Rng) -> bool {
    const N: usize = 256;
    let (sender, receiver, _) = deal(k, rng);
    let x: Vec<u128> = (0..super::blocks(N)).map(|_| words::random(rng)).collect();
    let mut false_x = x.clone();
    false_x[1] ^= 1 << 40;
    let error: Vec<u128> = x.iter().zip(&false_x).map(|(x, y)| x ^ y).collect();
    let rows = receiver.expand(N);
    let (Extension(mut bytes), hash) =
        receiver.correct(&rows, |tree| if cheated.contains(&tree) { &false_x } else { &x }, &x);
    let of_error = hash.of(&error);
    let rows_at = bytes.len() - 16 * BASE;
    for tree in Shape::new(BASE, k).unwrap().trees().filter(|tree| cheated.contains(&tree.index)) {
        for bit in (0..tree.depth as usize).filter(|bit| guess >> bit & 1 == 1) {
            let place = &mut bytes[rows_at + 16 * (tree.first_bit + bit)..][..16];
            place.iter_mut().zip(of_error.to_le_bytes()).for_each(|(byte, error)| *byte ^= error);
        }
    }
    match sender.extend(N, &Extension(bytes)) {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error, Error::Theirs(Misbehaviour::Correlation));
            false
        }
    }
}

fn passes_with_probability(k: u8, cheated: &[usize], log: i32) {
    const RUNS: u32 = 1200;
    let mut rng = ChaCha20Rng::seed_from_u64(u64::from(k) + 100 * cheated.len() as u64);
    let passed = (0..RUNS).filter(|run| passes(k, cheated, *run as usize % (1 << k), &mut rng)).count();
    let probability = 2_f64.powi(log);
    let expected = f64::from(RUNS) * probability;
    // Four standard deviations.
    let bound = 4.0 * (expected * (1.0 - probability)).sqrt();
    assert!((passed as f64 - expected).abs() <= bound, "k = {k}, {cheated:?}: {passed} of {RUNS} passed");
}

/// Selective failure: the receiver learns i bits of Delta if it is not caught, which has probability 2^-i.
#[test]
fn inconsistent_choices_pass_as_often_as_bits_are_guessed() {
    passes_with_probability(1, &[], 0);
    passes_with_probability(1, &[17], -1);
    passes_with_probability(1, &[0, 127], -2);
    passes_with_probability(1, &[5, 6, 7], -3);
    passes_with_probability(2, &[9], -2);
    passes_with_probability(4, &[31], -4);
    passes_with_probability(4, &[1, 2], -8);
}

/// One more reason to have an answer for each row: errors that cancel out in the sum over rows are seen in each.
#[test]
fn all_trees_but_one_with_other_choices_are_the_one_with_other_choices() {
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    let passed = (0..200).filter(|_| passes(1, &(1..128).collect::<Vec<_>>(), 0, &mut rng)).count();
    assert_eq!(passed, 0, "127 bits would have to be guessed");
}
