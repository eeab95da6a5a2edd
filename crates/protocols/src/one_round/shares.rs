//! The shares that a party holds.

use rand_core::CryptoRng;
use theta_schemes::{CombineError, ThresholdScheme};
use theta_sharing::ShareIndex;

/// Shares of different parties, the verified ones in front.
pub(super) struct Shares<S: ThresholdScheme> {
    shares: Vec<S::Share>,
    verified: usize,
}

impl<S: ThresholdScheme> Shares<S> {
    /// Just this party's own. It is trusted if no result will tell whether it was right: key shares are checked
    /// against their verification keys when they are loaded.
    pub(super) fn new(own: S::Share) -> Self {
        Self { shares: vec![own], verified: usize::from(!S::CHECKABLE) }
    }

    pub(super) const fn len(&self) -> usize {
        self.shares.len()
    }

    pub(super) fn indices(&self) -> impl Iterator<Item = ShareIndex> {
        self.shares.iter().map(S::share_index)
    }

    /// How many have been verified.
    pub(super) const fn verified(&self) -> usize {
        self.verified
    }

    /// How many can be verified, or have been.
    pub(super) fn proven(&self) -> usize {
        self.shares.iter().filter(|share| S::is_proven(share)).count()
    }

    /// Whether that party's share is here with all that it may need.
    pub(super) fn has_proven(&self, index: ShareIndex) -> bool {
        self.shares.iter().any(|share| S::share_index(share) == index && S::is_proven(share))
    }

    /// Takes a share, bare or proven; a proven one takes the place of its bare self. False if the two are of different
    /// values: then one of them is false, whichever.
    pub(super) fn put(&mut self, share: S::Share) -> bool {
        let index = S::share_index(&share);
        let Some(present) = self.shares.iter_mut().find(|present| S::share_index(present) == index) else {
            self.shares.push(share);
            return true;
        };
        let (first, second) = (S::encode_share(present), S::encode_share(&share));
        // A bare share is how its proven self begins.
        if !first.starts_with(&second) && !second.starts_with(&first) {
            return false;
        }
        if !S::is_proven(present) {
            *present = share;
        }
        true
    }

    pub(super) fn remove(&mut self, index: ShareIndex) {
        if let Some(position) = self.shares.iter().position(|share| S::share_index(share) == index) {
            self.shares.remove(position);
            self.verified -= usize::from(position < self.verified);
        }
    }

    /// Verifies the proven ones that are not yet, in one batch, drops the false ones and says whose they were.
    pub(super) fn verify(
        &mut self,
        public: &S::PublicKey,
        request: &S::Request,
        rng: &mut dyn CryptoRng,
    ) -> Vec<ShareIndex> {
        let Some((_, rest)) = self.shares.split_at_mut_checked(self.verified) else { return Vec::new() };
        rest.sort_by_key(|share| !S::is_proven(share));
        let proven = self.proven();
        let Some(unverified) = self.shares.get(self.verified..proven) else { return Vec::new() };
        let culprits = S::verify_shares(public, request, unverified, rng);
        self.shares.retain(|share| !culprits.contains(&S::share_index(share)));
        self.verified = proven.saturating_sub(culprits.len());
        culprits
    }

    /// Combines the first k: verified ones as far as they go.
    pub(super) fn combine(&self, public: &S::PublicKey, request: &S::Request) -> Result<S::Output, CombineError> {
        S::combine(public, request, &self.shares)
    }
}
