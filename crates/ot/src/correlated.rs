//! Correlated OTs over Z_q: the sender has t, the receiver t + x d, where x is its choice and d a difference that the sender gives.
//!
//! [`crate::gilboa`] adds up 256 of these for a product, without taking each apart. As there, a sender can give any difference, and
//! another one for each transfer, unseen.

use theta_groups::{Scalar, Secret};

use crate::error::expect_len;
use crate::extension::{MOST, ReceivedTransfers, SentTransfers};
use crate::reduce::Modulus;
use crate::wide::Wide;
use crate::{Error, Misbehaviour, Misuse, words};

/// The sender's message: a scalar for each transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corrections(pub Vec<u8>);

impl Corrections {
    /// Its length in bytes.
    #[must_use]
    pub const fn length(transfers: usize) -> usize {
        32 * transfers
    }
}

/// t of each transfer, and the message with which the receiver has t + x d.
///
/// # Errors
/// [`Misuse::Transfers`], unless there is a difference for each transfer.
pub fn send<S: Scalar>(transfers: SentTransfers, differences: &[S]) -> Result<(Corrections, Secret<Vec<S>>), Misuse> {
    let (got, needed) = (transfers.len(), differences.len());
    if got != needed || got > MOST {
        return Err(Misuse::Transfers { got, needed });
    }
    let modulus = Modulus::of::<S>();
    let mut bytes = vec![0; Corrections::length(got)];
    let mut corrections = bytes.as_chunks_mut().0.iter_mut();
    let mut values = Secret::new(Vec::with_capacity(got));
    let mut differences = differences.iter();
    transfers.scalars(&modulus, |_, zero, one| {
        let difference = zeroize::Zeroizing::new(differences.next().map(words::of_scalar).unwrap_or_default());
        if let Some(correction) = corrections.next() {
            modulus.encode(&modulus.difference_and(&zero, &one, &difference), correction);
        }
        values.expose_mut().push(Wide(zero).reduce());
    });
    Ok((Corrections(bytes), values))
}

/// t + x d of each transfer.
///
/// # Errors
/// [`Misbehaviour::Length`] and [`Misbehaviour::Scalar`].
pub fn receive<S: Scalar>(transfers: ReceivedTransfers, corrections: &Corrections) -> Result<Secret<Vec<S>>, Error> {
    expect_len(&corrections.0, Corrections::length(transfers.len()))?;
    let modulus = Modulus::of::<S>();
    let mut values = Secret::new(Vec::with_capacity(transfers.len()));
    let mut corrections = corrections.0.as_chunks().0.iter();
    let mut false_one = None;
    transfers.scalars(&modulus, |index, choice, [a, b, c, d]| {
        let correction = corrections.next().and_then(|bytes| modulus.decode(bytes)).unwrap_or_else(|| {
            false_one.get_or_insert(index);
            [0; 4]
        });
        let mask = words::mask64(choice);
        let mut value = Wide([a, b, c, d, 0]);
        value.add(&correction.map(|word| word & mask));
        values.expose_mut().push(value.reduce());
    });
    match false_one {
        None => Ok(values),
        Some(index) => Err(Misbehaviour::Scalar { index }.into()),
    }
}
