//! The sender, who has the factor a.

use theta_groups::{Scalar, Secret};

use super::{Corrections, Parts, TRANSFERS, expect, sum};
use crate::extension::SentTransfers;
use crate::reduce::Modulus;
use crate::{Misuse, words};

/// The sender's summands of the products of its factors, and the message with which the receiver has the others. Takes 256 transfers
/// for each product.
///
/// # Errors
/// [`Misuse::Count`] and [`Misuse::Transfers`].
pub fn send<S: Scalar>(transfers: SentTransfers, factors: &[S]) -> Result<(Corrections, Secret<Vec<S>>), Misuse> {
    let (bytes, summands) = send_after(&[], transfers, factors)?;
    Ok((Corrections(bytes), summands))
}

/// As [`send`]; the message follows these bytes.
pub(crate) fn send_after<S: Scalar>(
    head: &[u8],
    transfers: SentTransfers,
    factors: &[S],
) -> Result<(Vec<u8>, Secret<Vec<S>>), Misuse> {
    expect(factors.len(), transfers.len())?;
    let modulus = Modulus::of::<S>();
    let mut bytes = Vec::with_capacity(head.len() + Corrections::length(factors.len()));
    bytes.extend_from_slice(head);
    let mut summands = Secret::new(Vec::with_capacity(factors.len()));
    // The lowest bit comes first, and sums are made from the highest down.
    let mut zeros = Parts::new([[0; 5]; TRANSFERS]);
    let mut factors = factors.iter();
    let mut factor = zeroize::Zeroizing::new([0; 4]);
    transfers.scalars(&modulus, |index, zero, one| {
        let bit = index % TRANSFERS;
        if bit == 0 {
            *factor = factors.next().map(words::of_scalar).unwrap_or_default();
        }
        if let Some(place) = zeros.get_mut(bit) {
            let mut correction = [0; 32];
            modulus.encode(&modulus.difference_and(&zero, &one, &factor), &mut correction);
            bytes.extend_from_slice(&correction);
            let [a, b, c, d] = zero;
            *place = [a, b, c, d, 0];
        }
        if bit + 1 == TRANSFERS {
            summands.expose_mut().push(-sum(&zeros).reduce::<S>());
        }
    });
    Ok((bytes, summands))
}
