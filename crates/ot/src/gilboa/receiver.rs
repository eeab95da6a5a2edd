//! The receiver, who has the factor b.

use theta_groups::{Scalar, Secret};

use super::{Corrections, MOST_PRODUCTS, Sum, TRANSFERS, expect, pad};
use crate::error::expect_len;
use crate::extension::ReceivedTransfers;
use crate::reduce::Modulus;
use crate::wide::PAD;
use crate::{Error, Misbehaviour, words};

/// The receiver's summands of the products of its factors, with whose bits ([`crate::Choices::of_scalars`]) the transfers were made.
///
/// # Errors
/// [`crate::Misuse::Count`] and [`crate::Misuse::Transfers`]; [`Misbehaviour::Length`] and [`Misbehaviour::Scalar`].
pub fn receive<S: Scalar>(transfers: ReceivedTransfers, corrections: &Corrections) -> Result<Secret<Vec<S>>, Error> {
    let products = transfers.len() / TRANSFERS;
    expect(products.min(MOST_PRODUCTS + 1), transfers.len())?;
    expect_len(&corrections.0, Corrections::length(products))?;
    let modulus = Modulus::of::<S>();
    let mut summands = Secret::new(Vec::with_capacity(products));
    // A pad and what its choice adds to it.
    let mut parts = zeroize::Zeroizing::new([([0; PAD], [0; 4]); TRANSFERS]);
    let mut corrections = corrections.0.as_chunks().0.iter();
    let mut false_one = None;
    let _ = transfers.pads::<3>(|index, choice, chosen| {
        let bit = index % TRANSFERS;
        if let (Some(place), Some(correction)) = (parts.get_mut(bit), corrections.next()) {
            let mask = words::mask64(choice);
            let added = modulus.decode(correction).unwrap_or_else(|| {
                false_one.get_or_insert(index);
                [0; 4]
            });
            *place = (pad(chosen), added.map(|word| word & mask));
        }
        if bit + 1 == TRANSFERS {
            let mut sum = Sum::ZERO;
            for (pad, added) in parts.iter().rev() {
                sum.double(1);
                sum.add(pad);
                sum.add(added);
            }
            summands.expose_mut().push(sum.reduce());
        }
    });
    match false_one {
        None => Ok(summands),
        Some(index) => Err(Misbehaviour::Scalar { index }.into()),
    }
}
