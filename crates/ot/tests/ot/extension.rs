//! The extension between parties that follow the protocol, and what bytes of a wrong kind do.

use theta_groups::Ristretto255;
use theta_ot::extension::{Extension, Grown, MOST, MOST_OF_A_RUN, Receiver, Setup};
use theta_ot::{Choices, Error, Misbehaviour, Misuse};

use crate::fixture::{rng, session, set_up};

#[test]
fn the_receiver_has_the_chosen_pad_and_no_other() {
    let mut rng = rng(1);
    for k in 1..=8 {
        let (mut sender, mut receiver) = set_up(k, &mut rng);
        let mut seen = std::collections::HashSet::new();
        for n in [1, 127, 128, 300, 2000] {
            let (next, message, received) = receiver.extend(Choices::random(n, &mut rng), &mut rng).unwrap();
            receiver = next;
            assert_eq!(message.0.len(), Extension::length(k, n).unwrap());
            let (next, sent) = sender.extend(n, &message).unwrap();
            sender = next;
            assert_eq!((sent.len(), received.len(), received.choices().len()), (n, n, n));
            let (sent, received) = (sent.into_seeds(), received.into_seeds());
            assert_eq!((sent.len(), received.expose().len()), (n, n));
            for ((both, one), choice) in sent.expose().iter().zip(received.expose()).zip(received.choices().iter()) {
                let choice = usize::from(choice.unwrap_u8());
                assert_eq!(both[choice], *one);
                assert!(both.iter().all(|pad| seen.insert(*pad)), "no pad occurs twice");
            }
        }
    }
}

#[test]
fn parts_of_a_batch_are_as_the_whole() {
    let mut rng = rng(2);
    let (sender, receiver) = set_up(2, &mut rng);
    let (_, message, mut received) = receiver.extend(Choices::random(640, &mut rng), &mut rng).unwrap();
    let (_, mut sent) = sender.extend(640, &message).unwrap();
    let mut pads: Vec<u128> = Vec::new();
    for n in [256, 128] {
        let (sent, received) = (sent.take(n).unwrap().into_seeds(), received.take(n).unwrap().into_seeds());
        for ((both, one), choice) in sent.expose().iter().zip(received.expose()).zip(received.choices().iter()) {
            assert_eq!(both[usize::from(choice.unwrap_u8())], *one);
            pads.extend(both);
        }
    }
    assert_eq!(sent.take(130).err(), Some(Misuse::Transfers { got: 256, needed: 130 }));
    assert_eq!(received.take(384).err(), Some(Misuse::Transfers { got: 256, needed: 384 }));
    let (sent, received) = (sent.into_seeds(), received.into_seeds());
    for ((both, one), choice) in sent.expose().iter().zip(received.expose()).zip(received.choices().iter()) {
        assert_eq!(both[usize::from(choice.unwrap_u8())], *one);
        pads.extend(both);
    }
    let count = pads.len();
    pads.sort_unstable();
    pads.dedup();
    assert_eq!((count, pads.len()), (1280, 1280), "transfers of all parts have tweaks of their own");
}

/// Each byte of a batch is bound: whichever is changed, the sender refuses, unless it is in a row whose bits of Delta are all zero and
/// the check's values are changed to match, for which a cheating receiver would have to know them (`src/extension/tests.rs`).
#[test]
fn a_changed_byte_is_seen() {
    let mut rng = rng(3);
    for k in [1, 4] {
        let length = Extension::length(k, 128).unwrap();
        for place in (0..length).step_by(length / 60) {
            let (sender, receiver) = set_up(k, &mut rng);
            let (_, Extension(mut bytes), _) = receiver.extend(Choices::random(128, &mut rng), &mut rng).unwrap();
            bytes[place] ^= 0x10;
            let error = sender.extend(128, &Extension(bytes)).err();
            assert_eq!(error, Some(Misbehaviour::Correlation.into()), "byte {place}");
        }
    }
}

#[test]
fn a_batch_cannot_be_used_again() {
    let mut rng = rng(4);
    let (sender, receiver) = set_up(3, &mut rng);
    let (_, message, _) = receiver.extend(Choices::random(128, &mut rng), &mut rng).unwrap();
    let (sender, _) = sender.extend(128, &message).unwrap();
    assert_eq!(sender.extend(128, &message).err(), Some(Misbehaviour::Correlation.into()));
}

#[test]
fn a_changed_opening_is_seen() {
    let mut rng = rng(5);
    let (mut refused, mut tried) = (0, 0);
    let answer = 128 * 32;
    for place in (answer..Grown::length::<Ristretto255>(4).unwrap()).step_by(64) {
        let (sender, ask) = Setup::<Ristretto255>::new(session(1), 4, &mut rng).unwrap();
        let (_, Grown(mut grown)) = Receiver::new::<Ristretto255>(session(1), 4, &ask, &mut rng).unwrap();
        grown[place] ^= 1;
        match sender.finish(&Grown(grown)) {
            Err(error) => assert_eq!(error, Error::Theirs(Misbehaviour::Trees)),
            // Of the two corrections of a level the sender reads one only.
            Ok(_) => tried += 1,
        }
        refused += 1;
    }
    assert!(tried < refused / 2, "{tried} of {refused}");
}

#[test]
fn parameters_are_bounded() {
    let mut rng = rng(6);
    for k in [0, 9, 255] {
        assert_eq!(Setup::<Ristretto255>::new(session(1), k, &mut rng).err(), Some(Misuse::FieldSize(k)));
        assert_eq!(Extension::length(k, 1).err(), Some(Misuse::FieldSize(k)));
    }
    for n in [0, MOST + 1] {
        let (sender, receiver) = set_up(1, &mut rng);
        let misuse = Misuse::Count { got: n, most: MOST };
        assert_eq!(receiver.extend(Choices::random(n, &mut rng), &mut rng).err(), Some(misuse));
        assert_eq!(sender.extend(n, &Extension(vec![])).err(), Some(misuse.into()));
    }
    let (sender, _) = set_up(1, &mut rng);
    let expected = Extension::length(1, 128).unwrap();
    let error = sender.extend(128, &Extension(vec![0; expected + 1])).err();
    assert_eq!(error, Some(Misbehaviour::Length { got: expected + 1, expected }.into()));
    let (sender, _) = Setup::<Ristretto255>::new(session(1), 1, &mut rng).unwrap();
    assert!(matches!(sender.finish(&Grown(vec![])), Err(Error::Theirs(Misbehaviour::Length { got: 0, .. }))));
}

/// Runs share Delta and nothing else: the same transfers have other pads in each, and the set-up's own are none of them.
#[test]
fn pads_of_runs_are_their_own() {
    let mut rng = rng(7);
    for k in [1, 4, 8] {
        let (sender, receiver) = set_up(k, &mut rng);
        let mut seen = std::collections::HashSet::new();
        let runs = [[0; 32], [1; 32]];
        let parties = runs.map(|run| (sender.for_run(&run), receiver.for_run(&run)));
        for (sender, receiver) in parties.into_iter().chain([(sender, receiver)]) {
            let (_, message, received) = receiver.extend(Choices::from_le_bytes(&[0; 32]), &mut rng).unwrap();
            let (_, sent) = sender.extend(256, &message).unwrap();
            let (sent, received) = (sent.into_seeds(), received.into_seeds());
            for (both, one) in sent.expose().iter().zip(received.expose()) {
                assert_eq!(both[0], *one);
                assert!(both.iter().all(|pad| seen.insert(*pad)), "k = {k}: a pad twice");
            }
        }
    }
}

#[test]
fn a_run_has_a_part_of_the_transfers_that_its_set_up_may_make() {
    let mut rng = rng(8);
    let (sender, receiver) = set_up(4, &mut rng);
    let (mut sender, mut receiver) = (sender.for_run(&[1; 32]), receiver.for_run(&[1; 32]));
    for _ in 0..MOST_OF_A_RUN / MOST as u64 {
        let (next, message, _) = receiver.extend(Choices::random(MOST, &mut rng), &mut rng).unwrap();
        receiver = next;
        sender = sender.extend(MOST, &message).unwrap().0;
    }
    assert_eq!(receiver.extend(Choices::random(1, &mut rng), &mut rng).err(), Some(Misuse::UsedUp));
    let message = Extension(vec![0; Extension::length(4, 1).unwrap()]);
    assert_eq!(sender.extend(1, &message).err(), Some(Error::Ours(Misuse::UsedUp)));
}
