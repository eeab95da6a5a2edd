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
    expect(factors.len(), transfers.len())?;
    let modulus = Modulus::of::<S>();
    let mut bytes = vec![0; Corrections::length(factors.len())];
    let mut corrections = bytes.as_chunks_mut().0.iter_mut();
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
        if let (Some(place), Some(correction)) = (zeros.get_mut(bit), corrections.next()) {
            modulus.encode(&modulus.difference_and(&zero, &one, &factor), correction);
            let [a, b, c, d] = zero;
            *place = [a, b, c, d, 0];
        }
        if bit + 1 == TRANSFERS {
            summands.expose_mut().push(-sum(&zeros).reduce::<S>());
        }
    });
    Ok((Corrections(bytes), summands))
}
