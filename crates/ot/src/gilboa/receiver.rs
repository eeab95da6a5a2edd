//! The receiver, who has the factor b.

use theta_groups::{Scalar, Secret};

use super::{Corrections, MOST_PRODUCTS, Parts, TRANSFERS, expect, sum};
use crate::error::expect_len;
use crate::extension::ReceivedTransfers;
use crate::reduce::Modulus;
use crate::wide::Wide;
use crate::{Error, Misbehaviour, words};

/// The receiver's summands of the products of its factors, with whose bits ([`crate::Choices::of_scalars`]) the transfers were made; `corrections` are the bytes of
/// [`Corrections`].
///
/// # Errors
/// [`crate::Misuse::Count`] and [`crate::Misuse::Transfers`]; [`Misbehaviour::Length`] and [`Misbehaviour::Scalar`].
pub fn receive<S: Scalar>(
    transfers: ReceivedTransfers,
    corrections: &(impl AsRef<[u8]> + ?Sized),
) -> Result<Secret<Vec<S>>, Error> {
    let corrections = corrections.as_ref();
    let products = transfers.len() / TRANSFERS;
    expect(products.min(MOST_PRODUCTS + 1), transfers.len())?;
    expect_len(corrections, Corrections::length(products))?;
    let modulus = Modulus::of::<S>();
    let mut summands = Secret::new(Vec::with_capacity(products));
    // A pad, and the correction if it was chosen.
    let mut parts = Parts::new([[0; 5]; TRANSFERS]);
    let mut corrections = corrections.as_chunks().0.iter();
    let mut false_one = None;
    transfers.scalars(&modulus, |index, choice, [a, b, c, d]| {
        let bit = index % TRANSFERS;
        if let (Some(place), Some(correction)) = (parts.get_mut(bit), corrections.next()) {
            let mask = words::mask64(choice);
            let added = modulus.decode(correction).unwrap_or_else(|| {
                false_one.get_or_insert(index);
                [0; 4]
            });
            let mut part = Wide([a, b, c, d, 0]);
            part.add(&added.map(|word| word & mask));
            *place = *part.words();
        }
        if bit + 1 == TRANSFERS {
            summands.expose_mut().push(sum(&parts).reduce());
        }
    });
    match false_one {
        None => Ok(summands),
        Some(index) => Err(Misbehaviour::Scalar { index }.into()),
    }
}
