//! The receiver of base OTs.

use rand_core::CryptoRng;
use subtle::{Choice, ConditionallySelectable};
use theta_groups::{Group, Scalar, Secret};

use super::{Answer, Ask, MOST, ReceivedSeeds, mask_of_slot, seed};
use crate::error::expect_len;
use crate::{Choices, Error, Misbehaviour, Misuse, Session};

/// A receiver that waits for the sender's answer.
#[derive(Debug)]
pub struct Receiver<G: Group> {
    session: Session,
    choices: Choices,
    /// t of each transfer.
    exponents: Secret<Vec<G::Scalar>>,
    ask: Ask,
}

impl<G: Group> Receiver<G> {
    /// Begins one transfer for each choice.
    ///
    /// # Errors
    /// [`Misuse::Count`], for no choices or more than 256.
    pub fn new(session: Session, choices: Choices, rng: &mut (impl CryptoRng + ?Sized)) -> Result<(Self, Ask), Misuse> {
        let n = choices.len();
        if n == 0 || n > MOST {
            return Err(Misuse::Count { got: n, most: MOST });
        }
        let random = |rng: &mut _| Secret::new((0..n).map(|_| G::Scalar::random(rng)).collect::<Vec<_>>());
        let (exponents, others) = (random(&mut *rng), random(rng));
        // The element that is not chosen is random; nobody needs its logarithm.
        let others = G::mul_base_batch(others.expose());
        let known = G::mul_base_batch(exponents.expose());
        let encoded = G::encode_batch(&others);
        let masked = known.into_iter().zip(&encoded).zip(choices.iter()).enumerate();
        let chosen: Vec<G::Element> = masked
            .map(|(index, ((known, other), choice))| {
                known - mask_of_slot::<G>(&session, index, choice.unwrap_u8(), other.as_ref())
            })
            .collect();
        let mut bytes = Vec::with_capacity(Ask::length::<G>(n));
        for ((chosen, other), choice) in G::encode_batch(&chosen).iter().zip(&encoded).zip(choices.iter()) {
            // r_choice is `chosen`, the other one `other`.
            put_selected(chosen.as_ref(), other.as_ref(), choice, &mut bytes);
            put_selected(other.as_ref(), chosen.as_ref(), choice, &mut bytes);
        }
        let ask = Ask(bytes);
        Ok((Self { session, choices, exponents, ask: ask.clone() }, ask))
    }

    /// The chosen seeds.
    ///
    /// # Errors
    /// [`Misbehaviour::Length`] and [`Misbehaviour::Element`].
    pub fn finish(self, answer: &Answer) -> Result<ReceivedSeeds, Error> {
        let Self { session, choices, exponents, ask } = self;
        expect_len(&answer.0, Answer::length::<G>(choices.len()))?;
        let mut shared = Secret::new(Vec::with_capacity(choices.len()));
        for (index, (bytes, t)) in answer.0.chunks_exact(G::ENCODED_LEN).zip(exponents.expose()).enumerate() {
            let element = G::decode(bytes).map_err(|why| Misbehaviour::Element { index, why })?;
            shared.expose_mut().push(element * *t);
        }
        let encoded = G::encode_batch(shared.expose());
        let asked = ask.0.chunks_exact(2 * G::ENCODED_LEN);
        let transfers = asked.zip(answer.0.chunks_exact(G::ENCODED_LEN)).zip(encoded).zip(choices.iter());
        let mut seeds = Secret::new(Vec::with_capacity(choices.len()));
        for (index, (((asked, answer), shared), choice)) in transfers.enumerate() {
            let (first, second) = asked.split_at(G::ENCODED_LEN);
            let sent = [first, second, answer];
            seeds.expose_mut().push(seed::<G>(&session, index, choice.unwrap_u8(), sent, shared.as_ref()));
        }
        Ok(ReceivedSeeds { choices, seeds })
    }
}

/// Appends `zero` for choice 0, `one` for choice 1.
fn put_selected(zero: &[u8], one: &[u8], choice: Choice, bytes: &mut Vec<u8>) {
    bytes.extend(zero.iter().zip(one).map(|(zero, one)| u8::conditional_select(zero, one, choice)));
}
