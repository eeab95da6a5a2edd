//! Keys of one-round schemes.

use std::sync::Arc;

use rand_core::CryptoRng;
use theta_sharing::ShareIndex;

use super::{AnyKeyShare, Keyed, SchemeError};
use crate::answer::{Answer, Answering, Combined, Unproven};
use crate::keys::PublicMaterial as _;
use crate::{CombineError, Statement, ThresholdScheme, selection};

/// The operations on encoded shares.
pub trait OneRoundKey {
    /// The part in the answer to a statement of the party that holds `share`.
    fn answer(&self, share: &AnyKeyShare, statement: &Statement<'_>) -> Result<Arc<dyn Answer>, SchemeError>;
    /// The same, before the statement's proof is checked.
    fn answer_unproven(
        &self,
        share: &AnyKeyShare,
        statement: &Statement<'_>,
    ) -> Result<Unproven<Arc<dyn Answer>>, SchemeError>;
    /// The share of the answer, with its proof, of the party that holds `share`.
    fn create_share(
        &self,
        share: &AnyKeyShare,
        statement: &Statement<'_>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Vec<u8>, SchemeError> {
        self.answer(share, statement)?.proven_share(rng).ok_or(SchemeError::FalseProof)
    }
    /// Verifies one party's share of the answer.
    fn verify_share(
        &self,
        statement: &Statement<'_>,
        share: (ShareIndex, &[u8]),
        rng: &mut dyn CryptoRng,
    ) -> Result<(), SchemeError>;
    /// Combines the first k of the shares; never returns a false result.
    fn combine(
        &self,
        statement: &Statement<'_>,
        shares: &[(ShareIndex, &[u8])],
        rng: &mut dyn CryptoRng,
    ) -> Result<Combined, SchemeError>;
}

impl<S: ThresholdScheme> OneRoundKey for Keyed<S> {
    fn answer(&self, share: &AnyKeyShare, statement: &Statement<'_>) -> Result<Arc<dyn Answer>, SchemeError> {
        // By suite: two suites may be on one group.
        let key = share.get::<S>().ok_or(SchemeError::OtherKey)?;
        let request = S::parse_request(&self.public, statement)?;
        Ok(Arc::new(Answering::<S> { public: Arc::clone(&self.public), key: Arc::clone(key), request }))
    }

    fn answer_unproven(
        &self,
        share: &AnyKeyShare,
        statement: &Statement<'_>,
    ) -> Result<Unproven<Arc<dyn Answer>>, SchemeError> {
        let key = share.get::<S>().ok_or(SchemeError::OtherKey)?;
        let (request, proof) = S::parse_unproven(&self.public, statement)?;
        let pending = S::pending_share(&self.public, key, &request);
        let answering = Answering::<S> { public: Arc::clone(&self.public), key: Arc::clone(key), request };
        Ok(Unproven::new(Arc::new(answering), proof, pending))
    }

    fn verify_share(
        &self,
        statement: &Statement<'_>,
        share: (ShareIndex, &[u8]),
        rng: &mut dyn CryptoRng,
    ) -> Result<(), SchemeError> {
        let request = S::parse_request(&self.public, statement)?;
        let share = decode::<S>(share)?;
        match S::verify_shares(&self.public, &request, &[share], rng) {
            culprits if culprits.is_empty() => Ok(()),
            culprits => Err(SchemeError::FalseShares(culprits)),
        }
    }

    fn combine(
        &self,
        statement: &Statement<'_>,
        shares: &[(ShareIndex, &[u8])],
        rng: &mut dyn CryptoRng,
    ) -> Result<Combined, SchemeError> {
        let request = S::parse_request(&self.public, statement)?;
        let shares = shares.iter().map(|share| decode::<S>(*share)).collect::<Result<Vec<_>, _>>()?;
        combine_checked::<S>(&self.public, &request, &shares, rng)
    }
}

fn decode<S: ThresholdScheme>((index, bytes): (ShareIndex, &[u8])) -> Result<S::Share, SchemeError> {
    S::decode_share(index, bytes).map_err(|error| SchemeError::MalformedShare { index, error })
}

/// Combines optimistically where the scheme allows it; shares are verified only when needed.
fn combine_checked<S: ThresholdScheme>(
    public: &S::PublicKey,
    request: &S::Request,
    shares: &[S::Share],
    rng: &mut dyn CryptoRng,
) -> Result<Combined, SchemeError> {
    selection::first_k(public.threshold(), shares, S::share_index)?;
    if !S::CHECKABLE {
        let culprits = S::verify_shares(public, request, shares, rng);
        if !culprits.is_empty() {
            return Err(SchemeError::FalseShares(culprits));
        }
    }
    match S::combine(public, request, shares) {
        Ok(output) => {
            let (result, proof) = S::encode_output(&output);
            Ok(Combined { result, proof })
        }
        Err(CombineError::ResultInvalid) => Err(find_culprits::<S>(public, request, shares, rng)),
        Err(error) => Err(error.into()),
    }
}

/// The error of shares with a false result. Only proven shares can be blamed, because a bare one may be right.
fn find_culprits<S: ThresholdScheme>(
    public: &S::PublicKey,
    request: &S::Request,
    shares: &[S::Share],
    rng: &mut dyn CryptoRng,
) -> SchemeError {
    let proven: Vec<S::Share> = shares.iter().filter(|share| S::is_proven(share)).cloned().collect();
    match S::verify_shares(public, request, &proven, rng) {
        culprits if culprits.is_empty() => CombineError::ResultInvalid.into(),
        culprits => SchemeError::FalseShares(culprits),
    }
}
