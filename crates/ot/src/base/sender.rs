//! The sender of base OTs.

use rand_core::CryptoRng;
use theta_groups::{DecodeError, Group, Scalar, Secret};

use super::{Answer, Ask, MOST, SentSeeds, mask_of_slot, seed};
use crate::error::expect_len;
use crate::{Error, Misbehaviour, Misuse, Session};

/// The answer to a receiver that asks for `transfers` transfers, and both seeds of each.
///
/// # Errors
/// [`Misuse::Count`]; [`Misbehaviour::Length`] and [`Misbehaviour::Element`].
pub fn send<G: Group>(
    session: Session,
    transfers: usize,
    ask: &Ask,
    rng: &mut (impl CryptoRng + ?Sized),
) -> Result<(SentSeeds, Answer), Error> {
    if transfers == 0 || transfers > MOST {
        return Err(Misuse::Count { got: transfers, most: MOST }.into());
    }
    expect_len(&ask.0, Ask::length::<G>(transfers))?;
    let exponents = Secret::new((0..transfers).map(|_| G::Scalar::random(rng)).collect::<Vec<_>>());
    let answers = G::encode_batch(&G::mul_base_batch(exponents.expose()));
    let mut shared = Secret::new(Vec::with_capacity(2 * transfers));
    for (index, (asked, a)) in pairs::<G>(ask).zip(exponents.expose()).enumerate() {
        let [first, second] = slots::<G>(&session, index, asked)?;
        shared.expose_mut().extend([first * *a, second * *a]);
    }
    let encoded = G::encode_batch(shared.expose());
    let mut seeds = Secret::new(Vec::with_capacity(transfers));
    let transferred = pairs::<G>(ask).zip(&answers).zip(encoded.as_chunks().0);
    for (index, (((first, second), answer), [zero, one])) in transferred.enumerate() {
        let sent = [first, second, answer.as_ref()];
        let seed = |slot, shared: &G::Encoding| seed::<G>(&session, index, slot, sent, shared.as_ref());
        seeds.expose_mut().push([seed(0, zero), seed(1, one)]);
    }
    let answer = answers.iter().flat_map(|answer| answer.as_ref().iter().copied()).collect();
    Ok((SentSeeds(seeds), Answer(answer)))
}

/// The encodings of r_0 and r_1 of each transfer.
fn pairs<G: Group>(ask: &Ask) -> impl Iterator<Item = (&[u8], &[u8])> {
    ask.0.chunks_exact(2 * G::ENCODED_LEN).map(|pair| pair.split_at(G::ENCODED_LEN))
}

/// r_0 + H_0(r_1) and r_1 + H_1(r_0). An honest receiver knows the logarithm of one and cannot hit the identity; a receiver that
/// does has chosen the logarithm 0.
fn slots<G: Group>(session: &Session, index: usize, asked: (&[u8], &[u8])) -> Result<[G::Element; 2], Misbehaviour> {
    let blame = |why| Misbehaviour::Element { index, why };
    let (first, second) = asked;
    let zero = G::decode(first).map_err(blame)? + mask_of_slot::<G>(session, index, 0, second);
    let one = G::decode(second).map_err(blame)? + mask_of_slot::<G>(session, index, 1, first);
    if G::is_identity(&zero) || G::is_identity(&one) { Err(blame(DecodeError::Identity)) } else { Ok([zero, one]) }
}
