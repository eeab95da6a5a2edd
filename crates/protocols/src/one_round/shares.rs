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

    /// Whether there is nothing left to verify.
    pub(super) const fn all_verified(&self) -> bool {
        self.verified == self.shares.len()
    }

    pub(super) fn push(&mut self, share: S::Share) {
        self.shares.push(share);
    }

    pub(super) fn remove(&mut self, index: ShareIndex) {
        if let Some(position) = self.shares.iter().position(|share| S::share_index(share) == index) {
            self.shares.remove(position);
            self.verified -= usize::from(position < self.verified);
        }
    }

    /// Verifies those that are not yet, in one batch, drops the false ones and says whose they were.
    pub(super) fn verify(
        &mut self,
        public: &S::PublicKey,
        request: &S::Request,
        rng: &mut dyn CryptoRng,
    ) -> Vec<ShareIndex> {
        let Some((_, unverified)) = self.shares.split_at_checked(self.verified) else { return Vec::new() };
        let culprits = S::verify_shares(public, request, unverified, rng);
        self.shares.retain(|share| !culprits.contains(&S::share_index(share)));
        self.verified = self.shares.len();
        culprits
    }

    /// Combines the first k: verified ones as far as they go.
    pub(super) fn combine(&self, public: &S::PublicKey, request: &S::Request) -> Result<S::Output, CombineError> {
        S::combine(public, request, &self.shares)
    }
}
