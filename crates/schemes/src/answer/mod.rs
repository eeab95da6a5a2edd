//! One party's part in the answer to one statement, for every one-round scheme: its own share and those of the others.

mod claim;
mod proof;

use std::sync::Arc;

use rand_core::CryptoRng;
use theta_groups::{DecodeError, Secret};
use theta_sharing::ShareIndex;

use crate::keys::SecretMaterial;
use crate::{CombineError, ThresholdScheme};

pub use claim::{Claim, check_together};
pub(crate) use proof::of_type;
pub use proof::{PendingProof, PendingShare, RequestProof, Unproven, prove_together};

/// A combined result.
#[derive(Debug)]
pub struct Combined {
    /// The payload key, signature or coin value.
    pub result: Secret<Vec<u8>>,
    /// The coin's proof; empty where the result proves itself.
    pub proof: Vec<u8>,
}

/// A party's part in the answer to a statement, which has been checked and is safe to answer.
pub trait Answer: Send + Sync {
    /// Whether a combined result can be checked by itself: see [`ThresholdScheme::CHECKABLE`].
    fn is_checkable(&self) -> bool;

    /// The share with its proof, encoded. Where the scheme has bare shares the proof is verified before; `None` if it is false, by a fault of the
    /// machine or since the key share is of another key. The nonce of a proof follows from the request, so that a false proof and the true one, made
    /// later, could have a nonce in common, and who has both would have the key share.
    fn proven_share(&self, rng: &mut dyn CryptoRng) -> Option<Vec<u8>>;

    /// Whether these bytes are a share of party `index` that carries no proof although the scheme has proofs.
    fn is_bare(&self, index: ShareIndex, share: &[u8]) -> bool;

    /// Whether [`Shares::claim`] makes claims: see [`ThresholdScheme::CHECKS_TOGETHER`].
    fn checks_together(&self) -> bool;

    /// Whether shares without proofs are sent first: see [`ThresholdScheme::HAS_BARE_SHARES`].
    fn has_bare_shares(&self) -> bool;

    /// Whether there is a combined value: see [`ThresholdScheme::HAS_COMBINED_VALUE`].
    fn has_combined_value(&self) -> bool;

    /// The length of a combined value in bytes, where it grows with k: see [`ThresholdScheme::combined_len`].
    fn combined_len(&self) -> Option<usize>;

    /// The combined value behind a result of this statement: see [`ThresholdScheme::combined_value`].
    fn combined_value(&self, result: &Combined) -> Option<Secret<Vec<u8>>>;

    /// The result that follows from a combined value that somebody sent, and whose shares are in it, where the value says it: see
    /// [`ThresholdScheme::accept_combined`].
    ///
    /// # Errors
    /// [`CombineError::ResultInvalid`]; the sender is to blame.
    fn accept_combined(&self, combined: &[u8]) -> Result<(Combined, Vec<ShareIndex>), CombineError>;

    /// As [`accept_combined`](Answer::accept_combined), for results that are [checked together](crate::check_together); `None` if
    /// the scheme checks each by itself.
    ///
    /// # Errors
    /// As [`accept_combined`](Answer::accept_combined): it is seen to be false without the check.
    fn accept_claim(self: Arc<Self>, combined: &[u8]) -> Option<Result<(Claim, Vec<ShareIndex>), CombineError>>;

    /// Makes the party's own share, with its proof or, where the scheme has bare shares, without, and begins to gather.
    fn gather(self: Arc<Self>, proven: bool, rng: &mut dyn CryptoRng) -> Gathered;
}

/// The start of gathering shares.
pub struct Gathered {
    /// The shares, so far the party's own alone.
    pub shares: Box<dyn Shares>,
    /// The own share, encoded.
    pub own: Vec<u8>,
    /// Whether it carries no proof although the scheme has proofs.
    pub is_bare: bool,
}

/// The shares that a party holds, of different parties.
pub trait Shares: Send {
    /// How many shares there are.
    fn len(&self) -> usize;

    /// Whether there are no shares.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the share of party `index` is here.
    fn has(&self, index: ShareIndex) -> bool;

    /// Whether the share of party `index` is here and can be verified.
    fn has_proven(&self, index: ShareIndex) -> bool;

    /// How many can be verified, or have been.
    fn proven(&self) -> usize;

    /// How many have been verified.
    fn verified(&self) -> usize;

    /// Takes a party's share, bare or proven; a proven share replaces the bare one of the same value. Returns `false` if the party
    /// has given a share of another value before, so that one of the two is false.
    ///
    /// # Errors
    /// Any [`DecodeError`]; the sender is to blame.
    fn put(&mut self, index: ShareIndex, share: &[u8]) -> Result<bool, DecodeError>;

    /// Takes the party's own share with its proof, unless that is false.
    fn put_own_proof(&mut self, rng: &mut dyn CryptoRng);

    /// Forgets the share of party `index`.
    fn remove(&mut self, index: ShareIndex);

    /// Verifies in one batch the proven shares that are not verified yet and, once k are, all others by what these determine. Drops the false ones and
    /// returns their parties. So a false share is named although nobody has asked for its proof, or got it.
    fn verify(&mut self, rng: &mut dyn CryptoRng) -> Vec<ShareIndex>;

    /// Combines k shares, verified ones first, and returns the result and their parties.
    ///
    /// # Errors
    /// As [`ThresholdScheme::combine`].
    fn combine(&self) -> Result<(Combined, Vec<ShareIndex>), CombineError>;

    /// As [`combine`](Shares::combine), for results that are [checked together](crate::check_together), whose shares need not have been
    /// verified; `None` if the scheme checks each by itself.
    ///
    /// # Errors
    /// As [`combine`](Shares::combine): it is seen to be false without the check.
    fn claim(&self) -> Option<Result<(Claim, Vec<ShareIndex>), CombineError>>;
}

/// One statement, one key, one share of it.
pub(crate) struct Answering<S: ThresholdScheme> {
    pub(crate) public: Arc<S::PublicKey>,
    pub(crate) key: Arc<S::KeyShare>,
    pub(crate) request: S::Request,
}

impl<S: ThresholdScheme> Answering<S> {
    /// `None` if the proof is false; see [`Answer::proven_share`]. Schemes that have no bare shares send their proofs always, and no time is spent on that.
    fn proven(&self, rng: &mut dyn CryptoRng) -> Option<S::Share> {
        let share = S::create_share(&self.public, &self.key, &self.request, rng);
        let holds = !S::HAS_BARE_SHARES
            || S::verify_shares(&self.public, &self.request, core::slice::from_ref(&share), rng).is_empty();
        holds.then_some(share)
    }

    fn bare(&self, rng: &mut dyn CryptoRng) -> S::Share {
        S::create_bare_share(&self.public, &self.key, &self.request, rng)
    }
}

impl<S: ThresholdScheme> Answer for Answering<S> {
    fn is_checkable(&self) -> bool {
        S::CHECKABLE
    }

    fn proven_share(&self, rng: &mut dyn CryptoRng) -> Option<Vec<u8>> {
        self.proven(rng).as_ref().map(S::encode_share)
    }

    fn is_bare(&self, index: ShareIndex, share: &[u8]) -> bool {
        S::decode_share(index, share).is_ok_and(|share| !S::is_proven(&share))
    }

    fn checks_together(&self) -> bool {
        S::CHECKS_TOGETHER
    }

    fn has_bare_shares(&self) -> bool {
        S::HAS_BARE_SHARES
    }

    fn has_combined_value(&self) -> bool {
        S::HAS_COMBINED_VALUE
    }

    fn combined_len(&self) -> Option<usize> {
        S::combined_len(&self.public)
    }

    fn combined_value(&self, result: &Combined) -> Option<Secret<Vec<u8>>> {
        S::combined_value(&self.public, &self.request, result.result.expose(), &result.proof)
    }

    fn accept_combined(&self, combined: &[u8]) -> Result<(Combined, Vec<ShareIndex>), CombineError> {
        let output = S::accept_combined(&self.public, &self.request, combined)?;
        let (result, proof) = S::encode_output(&output);
        Ok((Combined { result, proof }, S::contributors(&output)))
    }

    fn accept_claim(self: Arc<Self>, combined: &[u8]) -> Option<Result<(Claim, Vec<ShareIndex>), CombineError>> {
        if !S::CHECKS_TOGETHER || !S::HAS_COMBINED_VALUE {
            return None;
        }
        let output = S::accept_unchecked(&self.public, &self.request, combined);
        Some(output.map(|output| {
            let contributors = S::contributors(&output);
            (Claim::new(self, output), contributors)
        }))
    }

    fn gather(self: Arc<Self>, proven: bool, rng: &mut dyn CryptoRng) -> Gathered {
        let share = if proven { self.proven(rng) } else { None };
        let share = share.unwrap_or_else(|| self.bare(rng));
        let (own, is_bare) = (S::encode_share(&share), !S::is_proven(&share));
        // If the result cannot be checked by itself, the own share counts as verified: key shares are checked against their
        // verification keys when they are loaded.
        let shares = SharesOf { answering: self, shares: vec![share], verified: usize::from(!S::CHECKABLE) };
        Gathered { shares: Box::new(shares), own, is_bare }
    }
}

/// Shares of different parties, the verified ones in front.
struct SharesOf<S: ThresholdScheme> {
    answering: Arc<Answering<S>>,
    shares: Vec<S::Share>,
    verified: usize,
}

impl<S: ThresholdScheme> SharesOf<S> {
    fn find(&self, index: ShareIndex) -> Option<&S::Share> {
        self.shares.iter().find(|share| S::share_index(share) == index)
    }

    /// The party that gathers.
    fn own(&self) -> ShareIndex {
        SecretMaterial::index(self.answering.key.as_ref())
    }

    /// k.
    fn needed(&self) -> usize {
        usize::from(crate::keys::PublicMaterial::threshold(self.answering.public.as_ref()).k())
    }

    /// Whose shares are combined.
    fn first_k(&self) -> Vec<ShareIndex> {
        self.shares.iter().take(self.needed()).map(S::share_index).collect()
    }

    fn put_decoded(&mut self, share: S::Share) -> bool {
        let index = S::share_index(&share);
        let Some(present) = self.shares.iter_mut().find(|present| S::share_index(present) == index) else {
            self.shares.push(share);
            return true;
        };
        let (first, second) = (S::encode_share(present), S::encode_share(&share));
        // A proven share begins with the bytes of the bare one.
        if !first.starts_with(&second) && !second.starts_with(&first) {
            return false;
        }
        if !S::is_proven(present) {
            *present = share;
        }
        true
    }
}

impl<S: ThresholdScheme> Shares for SharesOf<S> {
    fn len(&self) -> usize {
        self.shares.len()
    }

    fn has(&self, index: ShareIndex) -> bool {
        self.find(index).is_some()
    }

    fn has_proven(&self, index: ShareIndex) -> bool {
        self.find(index).is_some_and(S::is_proven)
    }

    fn proven(&self) -> usize {
        self.shares.iter().filter(|share| S::is_proven(share)).count()
    }

    fn verified(&self) -> usize {
        self.verified
    }

    fn put(&mut self, index: ShareIndex, share: &[u8]) -> Result<bool, DecodeError> {
        let share = S::decode_share(index, share)?;
        S::check_share(&self.answering.public, &share)?;
        Ok(self.put_decoded(share))
    }

    fn put_own_proof(&mut self, rng: &mut dyn CryptoRng) {
        if let Some(share) = self.answering.proven(rng) {
            self.put_decoded(share);
        }
    }

    fn remove(&mut self, index: ShareIndex) {
        if let Some(position) = self.shares.iter().position(|share| S::share_index(share) == index) {
            self.shares.remove(position);
            self.verified -= usize::from(position < self.verified);
        }
    }

    fn verify(&mut self, rng: &mut dyn CryptoRng) -> Vec<ShareIndex> {
        if self.verified > self.shares.len() {
            return Vec::new();
        }
        // Two passes, since a sort is compiled for each suite and has 4 KB.
        let (proven, bare): (Vec<_>, Vec<_>) = self.shares.drain(self.verified..).partition(S::is_proven);
        self.shares.extend(proven);
        self.shares.extend(bare);
        let proven = self.proven();
        let Some(unverified) = self.shares.get(self.verified..proven) else { return Vec::new() };
        let Answering { public, request, .. } = self.answering.as_ref();
        let mut culprits = S::verify_shares(public, request, unverified, rng);
        self.verified = proven.saturating_sub(culprits.len());
        self.shares.retain(|share| !culprits.contains(&S::share_index(share)));
        if self.verified >= self.needed()
            && let Some((verified, others)) = self.shares.split_at_checked(self.verified)
        {
            let liars = S::vartime_off_polynomial(public, verified, others, rng);
            self.shares.retain(|share| !liars.contains(&S::share_index(share)));
            culprits.extend(liars);
        }
        culprits
    }

    fn combine(&self) -> Result<(Combined, Vec<ShareIndex>), CombineError> {
        let Answering { public, request, .. } = self.answering.as_ref();
        let output = S::combine(public, request, &self.shares)?;
        let (result, proof) = S::encode_output(&output);
        Ok((Combined { result, proof }, self.first_k()))
    }

    fn claim(&self) -> Option<Result<(Claim, Vec<ShareIndex>), CombineError>> {
        if !S::CHECKS_TOGETHER {
            return None;
        }
        let Answering { public, request, .. } = self.answering.as_ref();
        let output = S::combine_unchecked(public, request, &self.shares, self.own());
        Some(output.map(|output| (Claim::new(Arc::clone(&self.answering), output), self.first_k())))
    }
}
