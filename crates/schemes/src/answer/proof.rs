//! Requests that may wait for others: their proofs are checked, or their shares made, for less when there are many.

use core::any::{Any, TypeId};
use core::fmt;
use std::collections::BTreeMap;

use rand_core::CryptoRng;

use crate::RequestError;

/// The proof in a request, where many are checked for less than one by one. Public data only.
pub trait RequestProof: Any + Send {
    /// The places of those that do not hold, among proofs of this type, whatever their keys.
    fn vartime_false_among(&self, proofs: &[&dyn RequestProof], rng: &mut dyn CryptoRng) -> Vec<usize>;
}

/// The proof in a request that is still to be checked, if there is one.
pub type PendingProof = Option<Box<dyn RequestProof>>;

/// A share that is still to be made, where several are made for less than one by one.
pub trait PendingShare: Any + Send {
    /// How many it pays to wait for.
    fn enough(&self) -> usize;

    /// Makes shares, all of this type, whatever their keys, and leaves each where its request will look for it. What it does not
    /// make is made by itself when it is asked for.
    fn make(&self, shares: &[&dyn PendingShare]);
}

/// What answers a statement whose proof may not have been checked yet. It comes out when the proof holds ([`prove_together`]); before,
/// nothing is safe to answer.
pub struct Unproven<T> {
    value: T,
    proof: PendingProof,
    share: Option<Box<dyn PendingShare>>,
}

impl<T> fmt::Debug for Unproven<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unproven({})", if self.proof.is_some() { "<unchecked>" } else { "nothing to check" })
    }
}

impl<T> Unproven<T> {
    pub(crate) fn new(value: T, proof: PendingProof, share: Option<Box<dyn PendingShare>>) -> Self {
        Self { value, proof, share }
    }

    /// What is made of the value by `make`, which must not answer anything yet.
    #[must_use]
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Unproven<U> {
        Unproven { value: make(self.value), proof: self.proof, share: self.share }
    }

    /// The same where a party will make a share at once only if this holds, which is asked if there is a share to wait for.
    #[must_use]
    pub fn with_share_if(self, makes: impl FnOnce() -> bool) -> Self {
        Self { share: self.share.filter(|_| makes()), ..self }
    }

    /// The value, if it need not wait for others.
    ///
    /// # Errors
    /// This itself: there is a proof to check, or a share that is made for less with another.
    pub fn proven(self) -> Result<T, Self> {
        if self.proof.is_none() && self.share.is_none() { Ok(self.value) } else { Err(self) }
    }

    /// How many others like it, itself included, it pays to wait for; all that there are, up to the caller's bound, where it is a proof.
    #[must_use]
    pub fn enough(&self) -> Option<usize> {
        self.share.as_ref().filter(|_| self.proof.is_none()).map(|share| share.enough())
    }
}

impl<T> From<T> for Unproven<T> {
    /// A value that depends on no proof.
    fn from(value: T) -> Self {
        Self { value, proof: None, share: None }
    }
}

/// Checks the proofs, those of one suite at once, and returns what depends on those that hold, in order; a batch with false ones is
/// halved until they are found, so that they cost others little. `rng` draws the weights, which nobody who makes requests may foresee.
/// Shares of requests that hold are made as well, where several are made for less.
///
/// # Errors
/// Inside, [`RequestError::InvalidCiphertext`].
pub fn prove_together<T>(requests: Vec<Unproven<T>>, rng: &mut dyn CryptoRng) -> Vec<Result<T, RequestError>> {
    let mut kinds: BTreeMap<TypeId, Vec<(usize, &dyn RequestProof)>> = BTreeMap::new();
    for (place, request) in requests.iter().enumerate() {
        if let Some(proof) = request.proof.as_deref() {
            kinds.entry((proof as &dyn Any).type_id()).or_default().push((place, proof));
        }
    }
    let mut holds = vec![true; requests.len()];
    for kind in kinds.into_values() {
        let proofs: Vec<&dyn RequestProof> = kind.iter().map(|(_, proof)| *proof).collect();
        let Some(first) = proofs.first() else { continue };
        for found in first.vartime_false_among(&proofs, rng) {
            if let Some(verdict) = kind.get(found).and_then(|(place, _)| holds.get_mut(*place)) {
                *verdict = false;
            }
        }
    }
    make_together(requests.iter().zip(&holds).filter(|(_, holds)| **holds).map(|(request, _)| request));
    let proven = |(request, holds): (Unproven<T>, bool)| {
        if holds { Ok(request.value) } else { Err(RequestError::InvalidCiphertext) }
    };
    requests.into_iter().zip(holds).map(proven).collect()
}

/// Makes the shares that wait, those of one suite at once.
fn make_together<'a, T: 'a>(requests: impl Iterator<Item = &'a Unproven<T>>) {
    let mut kinds: BTreeMap<TypeId, Vec<&dyn PendingShare>> = BTreeMap::new();
    for share in requests.filter_map(|request| request.share.as_deref()) {
        kinds.entry((share as &dyn Any).type_id()).or_default().push(share);
    }
    for shares in kinds.into_values() {
        if let Some(first) = shares.first() {
            first.make(&shares);
        }
    }
}

/// The proofs as those of type `T`, all of them.
pub(crate) fn of_type<'a, T: RequestProof>(proofs: &[&'a dyn RequestProof]) -> Option<Vec<&'a T>> {
    proofs.iter().map(|proof| (*proof as &dyn Any).downcast_ref::<T>()).collect()
}
