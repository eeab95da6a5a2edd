//! What a sender that uses different factors for different bits does to a product. It goes unseen here, as documented: these tests
//! state what whoever builds on products has to check.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use theta_groups::{P256Scalar, Ristretto255, Scalar};
use theta_names::ShareIndex;

use super::{Corrections, receive, send};
use crate::{Choices, Session, extension, words};

#[test]
fn an_error_in_one_bit_shows_that_bit_of_the_other_factor() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let session = Session::new([4; 32], ShareIndex::try_from(1).unwrap(), ShareIndex::try_from(2).unwrap()).unwrap();
    let (sender, ask) = extension::Setup::<Ristretto255>::new(session, 2, &mut rng).unwrap();
    let (receiver, grown) = extension::Receiver::new::<Ristretto255>(session, 2, &ask, &mut rng).unwrap();
    let sender = sender.finish(&grown).unwrap();
    let random = |rng: &mut _| (0..40).map(|_| P256Scalar::random(rng)).collect::<Vec<_>>();
    let (a, b) = (random(&mut rng), random(&mut rng));
    let (_, message, received) = receiver.extend(Choices::of_scalars(&b), &mut rng).unwrap();
    let (_, sent) = sender.extend(256 * 40, &message).unwrap();
    let (Corrections(mut bytes), ours) = send(sent, &a).unwrap();
    let error = P256Scalar::from_u64(5);
    for product in 0..40 {
        let place = &mut bytes[32 * (256 * product + 3)..][..32];
        place.copy_from_slice(&(P256Scalar::decode(place).unwrap() + error).encode());
    }
    let theirs = receive::<P256Scalar>(received, &Corrections(bytes)).unwrap();
    let mut ones = 0;
    for (index, (x, y)) in ours.expose().iter().zip(theirs.expose()).enumerate() {
        let bit = words::of_scalar(&b[index])[0] >> 3 & 1;
        assert_eq!(*x + *y, a[index] * b[index] + error * P256Scalar::from_u64(8 * bit));
        ones += bit;
    }
    assert!((1..40).contains(&ones));
}
