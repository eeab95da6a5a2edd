//! Shares that all show, added up.

use theta_groups::{Group, Scalar};

use crate::{Misbehaviour, Party, Stop, blackbox::decode};

/// Elements one after the other.
pub(crate) fn encode_elements<G: Group>(elements: &[G::Element]) -> Vec<u8> {
    G::encode_batch(elements).iter().flat_map(|code| code.as_ref().to_vec()).collect()
}

/// The sums, place by place, of scalars that all parties showed.
pub(crate) struct Scalars<S>(pub(crate) Vec<S>);

impl<S: Scalar> Scalars<S> {
    /// Adds up what each party, in order, showed.
    ///
    /// # Errors
    /// [`Stop::Lost`] after blaming who showed what is none.
    pub(crate) fn sum<'a>(party: &Party, count: usize, shown: impl Iterator<Item = &'a [u8]>) -> Result<Self, Stop> {
        let mut sums = vec![S::ZERO; count];
        for (from, bytes) in shown.enumerate() {
            let shares: Vec<S> = decode(bytes).ok_or_else(|| {
                party.blame(from, Misbehaviour::NotAScalar);
                Stop::Lost
            })?;
            sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
        }
        Ok(Self(sums))
    }
}

/// The sums, place by place, of elements that all parties showed.
pub(crate) struct Elements<G: Group>(pub(crate) Vec<G::Element>);

impl<G: Group> Elements<G> {
    /// Adds up what each party, in order, showed; what this party showed is known already.
    ///
    /// # Errors
    /// [`Stop::Lost`] after blaming who showed what is none.
    pub(crate) fn sum<'a>(
        party: &Party,
        own: Vec<G::Element>,
        shown: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Self, Stop> {
        let mut sums = own;
        for (from, bytes) in shown.enumerate().filter(|(from, _)| *from != party.position()) {
            for (sum, code) in sums.iter_mut().zip(bytes.chunks(G::ENCODED_LEN)) {
                let element = G::decode_allowing_identity(code).map_err(|_| {
                    party.blame(from, Misbehaviour::NotAnElement);
                    Stop::Lost
                })?;
                *sum = *sum + element;
            }
        }
        Ok(Self(sums))
    }
}
