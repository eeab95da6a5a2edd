//! Base OTs.

use theta_groups::{DecodeError, Ed25519, Group, P256, Ristretto255, Secp256k1};
use theta_names::ShareIndex;
use theta_ot::base::{Answer, Ask, Receiver, send};
use theta_ot::{Choices, Error, Misbehaviour, Misuse, Session};

use crate::fixture::{rng, session};

fn seeds_agree<G: Group>() {
    let mut rng = rng(1);
    for n in [1, 5, 128, 256] {
        let (receiver, ask) = Receiver::<G>::new(session(1), Choices::random(n, &mut rng), &mut rng).unwrap();
        assert_eq!(ask.0.len(), Ask::length::<G>(n));
        let (sent, answer) = send::<G>(session(1), n, &ask, &mut rng).unwrap();
        let received = receiver.finish(&answer).unwrap();
        let mut ones = 0;
        for ((both, one), choice) in sent.expose().iter().zip(received.expose()).zip(received.choices().iter()) {
            let choice = usize::from(choice.unwrap_u8());
            assert_eq!(both[choice], *one);
            assert_ne!(both[1 - choice], *one, "the receiver has one seed");
            ones += choice;
        }
        assert!(n < 100 || (n / 4..n - n / 4).contains(&ones), "both choices occur");
    }
}

#[test]
fn the_receiver_has_the_chosen_seed_and_no_other() {
    seeds_agree::<Ristretto255>();
    seeds_agree::<P256>();
    seeds_agree::<Secp256k1>();
}

/// An answer with one element replaced, to an honest receiver.
fn answer_with<G: Group>(index: usize, element: &[u8]) -> Option<Error> {
    let mut rng = rng(2);
    let (receiver, ask) = Receiver::<G>::new(session(1), Choices::random(8, &mut rng), &mut rng).unwrap();
    let (_, Answer(mut answer)) = send::<G>(session(1), 8, &ask, &mut rng).unwrap();
    answer[index * G::ENCODED_LEN..][..G::ENCODED_LEN].copy_from_slice(element);
    receiver.finish(&Answer(answer)).err()
}

/// A question with one element replaced, to an honest sender.
fn ask_with<G: Group>(place: usize, element: &[u8]) -> Option<Error> {
    let mut rng = rng(3);
    let (_, Ask(mut ask)) = Receiver::<G>::new(session(1), Choices::random(8, &mut rng), &mut rng).unwrap();
    ask[place * G::ENCODED_LEN..][..G::ENCODED_LEN].copy_from_slice(element);
    send::<G>(session(1), 8, &Ask(ask), &mut rng).err()
}

fn element_error(index: usize, why: DecodeError) -> Option<Error> {
    Some(Misbehaviour::Element { index, why }.into())
}

#[test]
fn the_identity_is_refused() {
    let identity = Ristretto255::encode(&Ristretto255::identity());
    assert_eq!(answer_with::<Ristretto255>(3, &identity), element_error(3, DecodeError::Identity));
    assert_eq!(ask_with::<Ristretto255>(9, &identity), element_error(4, DecodeError::Identity));
    assert_eq!(answer_with::<P256>(0, &[0; 33]), element_error(0, DecodeError::Identity));
    assert_eq!(ask_with::<P256>(0, &[0; 33]), element_error(0, DecodeError::Identity));
}

#[test]
fn what_is_no_element_is_refused() {
    assert_eq!(answer_with::<Ristretto255>(7, &[0xff; 32]), element_error(7, DecodeError::NotCanonical));
    // x = 1 with even y is on no point of P-256's equation with this prefix byte.
    assert_eq!(ask_with::<P256>(2, &[4; 33]), element_error(1, DecodeError::NotCanonical));
}

#[test]
fn a_point_outside_the_subgroup_is_refused() {
    // y = -1 has order 2; added to an element it is a point of the curve outside the group.
    let mut order_two = [0xff; 32];
    (order_two[0], order_two[31]) = (0xec, 0x7f);
    let low = Ed25519::decode_unchecked_subgroup(&order_two).unwrap();
    let mixed = Ed25519::encode(&(low + Ed25519::generator()));
    for point in [&order_two, mixed.as_ref()] {
        assert_eq!(answer_with::<Ed25519>(5, point), element_error(5, DecodeError::Subgroup));
        assert_eq!(ask_with::<Ed25519>(11, point), element_error(5, DecodeError::Subgroup));
    }
}

#[test]
fn another_element_gives_other_seeds() {
    let mut rng = rng(4);
    let (receiver, ask) = Receiver::<P256>::new(session(1), Choices::random(2, &mut rng), &mut rng).unwrap();
    let (sent, Answer(mut answer)) = send::<P256>(session(1), 2, &ask, &mut rng).unwrap();
    answer[..33].copy_from_slice(P256::encode(&P256::generator()).as_ref());
    let received = receiver.finish(&Answer(answer)).unwrap();
    assert!(!sent.expose()[0].contains(&received.expose()[0]));
    assert!(sent.expose()[1].contains(&received.expose()[1]));
}

/// A receiver that sends one pair of elements twice gets two seeds that have nothing to do with each other: what goes wrong
/// where batches share hashes (McQuoid, Rosulek, Roy, *Batching base oblivious transfers*, 2021).
#[test]
fn a_repeated_question_gives_new_seeds() {
    let mut rng = rng(5);
    let (_, Ask(mut ask)) = Receiver::<P256>::new(session(1), Choices::random(2, &mut rng), &mut rng).unwrap();
    let (first, second) = ask.split_at_mut(66);
    second.copy_from_slice(first);
    let (sent, _) = send::<P256>(session(1), 2, &Ask(ask), &mut rng).unwrap();
    let [[a, b], [c, d]] = sent.expose() else { panic!("two transfers") };
    let mut all = [a, b, c, d];
    all.sort();
    assert!(all.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn sessions_and_roles_are_apart() {
    let index = |i: u16| ShareIndex::try_from(i).unwrap();
    let [one, two, three] = [1, 2, 3].map(index);
    let here = Session::new([1; 32], one, two).unwrap();
    let others = [
        Session::new([2; 32], one, two).unwrap(),
        Session::new([1; 32], one, three).unwrap(),
        Session::new([1; 32], three, two).unwrap(),
        here.reversed(),
    ];
    for other in others {
        let mut rng = rng(6);
        let (receiver, ask) = Receiver::<Ristretto255>::new(here, Choices::random(4, &mut rng), &mut rng).unwrap();
        let (sent, answer) = send::<Ristretto255>(other, 4, &ask, &mut rng).unwrap();
        let received = receiver.finish(&answer).unwrap();
        assert!(sent.expose().iter().zip(received.expose()).all(|(both, one)| !both.contains(one)));
    }
    assert_eq!(Session::new([1; 32], one, one), Err(Misuse::OneParty));
}

#[test]
fn lengths_and_counts_are_bounded() {
    let mut rng = rng(7);
    let make = |n, rng: &mut _| Receiver::<P256>::new(session(1), Choices::random(n, rng), rng);
    for n in [0, 257] {
        assert_eq!(make(n, &mut rng).err(), Some(Misuse::Count { got: n, most: 256 }));
        let sent = send::<P256>(session(1), n, &Ask(vec![]), &mut rng);
        assert_eq!(sent.err(), Some(Misuse::Count { got: n, most: 256 }.into()));
    }
    let (receiver, Ask(ask)) = make(2, &mut rng).unwrap();
    let short = send::<P256>(session(1), 2, &Ask(ask[1..].to_vec()), &mut rng).err();
    assert_eq!(short, Some(Misbehaviour::Length { got: 131, expected: 132 }.into()));
    let long = receiver.finish(&Answer(vec![2; 67])).err();
    assert_eq!(long, Some(Misbehaviour::Length { got: 67, expected: 66 }.into()));
}
