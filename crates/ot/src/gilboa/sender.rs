//! The sender, who has the factor a.

use theta_groups::{Scalar, Secret};

use super::{Corrections, Sum, TRANSFERS, expect, pad};
use crate::extension::SentTransfers;
use crate::reduce::Modulus;
use crate::wide::{PAD, Wide, multiple_above_pads};
use crate::{Misuse, words};

/// The sender's summands of the products of its factors, and the message with which the receiver has the others. Takes 256 transfers
/// for each product.
///
/// # Errors
/// [`Misuse::Count`] and [`Misuse::Transfers`].
pub fn send<S: Scalar>(transfers: SentTransfers, factors: &[S]) -> Result<(Corrections, Secret<Vec<S>>), Misuse> {
    expect(factors.len(), transfers.len())?;
    let modulus = Modulus::of::<S>();
    let multiple = multiple_above_pads(*modulus.order());
    let mut bytes = Vec::with_capacity(Corrections::length(factors.len()));
    let mut summands = Secret::new(Vec::with_capacity(factors.len()));
    // The lowest bit comes first, and sums are made from the highest down.
    let mut zeros = zeroize::Zeroizing::new([[0; PAD]; TRANSFERS]);
    let mut factors = factors.iter();
    let mut base = Wide::<7>::ZERO;
    transfers.pads::<3>(|index, zero, one| {
        let bit = index % TRANSFERS;
        if bit == 0 {
            base = Wide::ZERO;
            base.add(&multiple);
            base.add(&factors.next().map(words::of_scalar).unwrap_or_default());
        }
        let (zero, one) = (pad(zero), pad(one));
        let mut correction = base;
        correction.add(&zero);
        correction.subtract(&one);
        bytes.extend_from_slice(&modulus.encode(&correction));
        if let Some(place) = zeros.get_mut(bit) {
            *place = zero;
        }
        if bit + 1 == TRANSFERS {
            let mut sum = Sum::ZERO;
            for zero in zeros.iter().rev() {
                sum.double(1);
                sum.add(zero);
            }
            summands.expose_mut().push(-sum.reduce::<S>());
        }
    });
    zeroize::Zeroize::zeroize(&mut base);
    Ok((Corrections(bytes), summands))
}
