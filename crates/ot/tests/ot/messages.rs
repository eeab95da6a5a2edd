//! Bytes of any contents, and formats.

use rand_core::CryptoRng;
use theta_groups::{P256, P256Scalar, Ristretto255, Secret, Transcript};
use theta_ot::base::{Answer, Ask, Receiver, send};
use theta_ot::extension::{self, Extension, Grown};
use theta_ot::{Choices, Error, copee, gilboa};

use crate::fixture::{rng, scalars, session, set_up};

fn noise(len: usize, rng: &mut impl CryptoRng) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill_bytes(&mut bytes);
    bytes
}

fn is_theirs<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Theirs(_)))
}

/// Noise of the right length, and of another, is the other party's fault at every step, and never a panic.
#[test]
fn noise_is_refused() {
    let mut rng = rng(1);
    for extra in [0, 0, 0, 1] {
        let (receiver, _) = Receiver::<P256>::new(session(1), Choices::random(4, &mut rng), &mut rng).unwrap();
        assert!(is_theirs(&receiver.finish(&Answer(noise(4 * 33 + extra, &mut rng)))));
        let ask = Ask(noise(8 * 32 + extra, &mut rng));
        assert!(is_theirs(&send::<Ristretto255>(session(1), 4, &ask, &mut rng)));
        for k in [1, 3, 8] {
            let (sender, ask) = extension::Setup::<Ristretto255>::new(session(1), k, &mut rng).unwrap();
            let length = Grown::length::<Ristretto255>(k).unwrap() + extra;
            let (_, Grown(mut grown)) =
                extension::Receiver::new::<Ristretto255>(session(1), k, &ask, &mut rng).unwrap();
            // Good elements, then noise; for k = 1 there is nothing after the elements.
            grown.resize(length, 0);
            let place = if k == 1 { 0 } else { 128 * 32 };
            let garbage = noise(length - place, &mut rng);
            grown[place..].copy_from_slice(&garbage);
            assert!(is_theirs(&sender.finish(&Grown(grown))), "k = {k}");
            let (sender, _) = set_up(k, &mut rng);
            let length = Extension::length(k, 200).unwrap() + extra;
            assert!(is_theirs(&sender.extend(200, &Extension(noise(length, &mut rng)))), "k = {k}");
        }
        let delta = Secret::new(scalars::<P256Scalar>(1, &mut rng)[0]);
        let (_, receiver) = set_up(2, &mut rng);
        let choices = Choices::of_scalars(core::slice::from_ref(delta.expose()));
        let (receiver, _, mut received) = receiver.extend(choices, &mut rng).unwrap();
        let seeds = received.take(256).unwrap().into_seeds();
        let opening = copee::Opening(noise(128 * 16 * 6 + extra, &mut rng));
        assert!(is_theirs(&copee::Receiver::new(&session(1), 2, &delta, seeds, &opening)));
        // Half of all strings of 32 bytes are no scalars of a group of 255 bits; of ristretto255, fifteen of sixteen.
        type S = theta_groups::RistrettoScalar;
        let (_, _, received) = receiver.extend(Choices::random(512, &mut rng), &mut rng).unwrap();
        let corrections = gilboa::Corrections(noise(32 * 512 + extra, &mut rng));
        assert!(is_theirs(&gilboa::receive::<S>(received, &corrections)));
    }
}

/// What is sent is a function of session and randomness that changes only on purpose. The digests are of this code's own messages, so they
/// show that a format changed, not that it is right.
#[test]
fn formats_stay_as_they_are() {
    let mut rng = rng(2);
    let mut all = Transcript::new("theta/ot/test/formats/v1");
    let (sender, ask) = extension::Setup::<Ristretto255>::new(session(1), 3, &mut rng).unwrap();
    let (receiver, grown) = extension::Receiver::new::<Ristretto255>(session(1), 3, &ask, &mut rng).unwrap();
    let sender = sender.finish(&grown).unwrap();
    let delta = Secret::new(scalars::<P256Scalar>(1, &mut rng)[0]);
    let choices = Choices::of_scalars(&[*delta.expose(), scalars(1, &mut rng)[0]]);
    let (_, extension, mut received) = receiver.extend(choices, &mut rng).unwrap();
    let (_, mut sent) = sender.extend(512, &extension).unwrap();
    let (for_key, for_product) = (sent.take(256).unwrap(), received.take(256).unwrap());
    let (input, opening) = copee::Sender::new(&session(1), 3, &for_key.into_seeds()).unwrap();
    let key = copee::Receiver::new(&session(1), 3, &delta, for_product.into_seeds(), &opening).unwrap();
    let (_, inputs, t) = input.extend(&scalars::<P256Scalar>(2, &mut rng)).unwrap();
    let (_, q) = key.extend::<P256Scalar>(2, &inputs).unwrap();
    let (corrections, ours) = gilboa::send(sent, &scalars::<P256Scalar>(1, &mut rng)).unwrap();
    let theirs = gilboa::receive::<P256Scalar>(received, &corrections).unwrap();
    for message in [&ask.0, &grown.0, &extension.0, &opening.0, &inputs.0, &corrections.0] {
        all.append("message", message);
    }
    for scalar in [&t, &q, &ours, &theirs].into_iter().flat_map(Secret::expose) {
        all.append("scalar", &theta_groups::Scalar::encode(scalar));
    }
    assert_eq!(u64::from_be_bytes(*all.finish().first_chunk().unwrap()), 5_155_391_004_369_695_233);
}
