//! The schemes on encoded bytes, whatever the suite: what a service or a client calls.

use rand_core::CryptoRng;
use theta_groups::{DecodeError, Secret};
use theta_sharing::ShareIndex;

use super::{AnyKeyShare, AnyPublicKey, KeyScheme, PublicMaterial};
use crate::{
    CombineError, Purpose, RequestError, SignatureScheme, Statement, Suite, ThresholdCoin, ThresholdScheme,
    VerifyError, selection, with_key,
};

/// A combined result.
#[derive(Debug)]
pub struct Combined {
    /// The payload key, signature or coin value.
    pub result: Secret<Vec<u8>>,
    /// The coin's proof; empty where the result proves itself.
    pub proof: Vec<u8>,
}

/// Why a call on bytes did not do what was asked. The variants keep apart whose doing it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemeError {
    /// The statement is not one that the key answers: the caller's doing.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A key that takes two rounds, on an operation of one: the caller's doing.
    #[error("{0} signs in two rounds: ask the group to sign, a share cannot be made alone")]
    TwoRounds(Suite),
    /// The share is not of this key: the caller's doing.
    #[error("the share is not of this key: pair the files of one key")]
    OtherKey,
    /// The bytes are not a share: the sender's doing.
    #[error("the share of party {index} is malformed: {error}")]
    MalformedShare {
        /// Whose.
        index: ShareIndex,
        /// Why.
        error: DecodeError,
    },
    /// The shares are false: their senders' doing.
    #[error("false shares, of party {}", list(.0))]
    FalseShares(Vec<ShareIndex>),
    /// The shares do not make a result.
    #[error(transparent)]
    Combine(#[from] CombineError),
    /// A result that does not verify.
    #[error(transparent)]
    Verify(#[from] VerifyError),
}

fn list(indices: &[ShareIndex]) -> String {
    indices.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl AnyPublicKey {
    /// Whether the key answers the statement: for a ciphertext header, whether it is valid.
    ///
    /// # Errors
    /// [`RequestError`] with the reason why not.
    pub fn check_request<'a>(&self, statement: impl Into<Statement<'a>>) -> Result<(), RequestError> {
        let statement = statement.into();
        with_key!(self, |public: S| if one_round {
            S::parse_request(public, &statement).map(drop)
        } else {
            statement.for_purpose(S::SUITE.purpose(), "message", crate::MAX_MESSAGE_LEN).map(drop)
        })
    }

    /// Makes the share of the statement that `share`'s party owes.
    ///
    /// # Errors
    /// [`SchemeError::Request`], [`SchemeError::OtherKey`].
    pub fn create_share<'a>(
        &self,
        share: &AnyKeyShare,
        statement: impl Into<Statement<'a>>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Vec<u8>, SchemeError> {
        if share.key_id() != self.key_id() {
            return Err(SchemeError::OtherKey);
        }
        let statement = statement.into();
        with_key!(
            (self, share),
            |public: S, share| if one_round {
                let request = S::parse_request(public, &statement)?;
                Ok(S::encode_share(&S::create_share(public, share, &request, rng)))
            } else {
                Err(SchemeError::TwoRounds(S::SUITE))
            },
            else Err(SchemeError::OtherKey)
        )
    }

    /// Checks party `index`'s share of the statement.
    ///
    /// # Errors
    /// [`SchemeError::Request`], [`SchemeError::MalformedShare`], [`SchemeError::FalseShares`].
    pub fn verify_share<'a>(
        &self,
        statement: impl Into<Statement<'a>>,
        index: ShareIndex,
        share: &[u8],
        rng: &mut dyn CryptoRng,
    ) -> Result<(), SchemeError> {
        let statement = statement.into();
        with_key!(self, |public: S| if one_round {
            let request = S::parse_request(public, &statement)?;
            let share = S::decode_share(index, share).map_err(|error| SchemeError::MalformedShare { index, error })?;
            match S::verify_shares(public, &request, &[share], rng) {
                culprits if culprits.is_empty() => Ok(()),
                culprits => Err(SchemeError::FalseShares(culprits)),
            }
        } else {
            Err(SchemeError::TwoRounds(S::SUITE))
        })
    }

    /// Combines the first k of the shares; a false result never comes back. If shares are false, all of their senders
    /// are named, as far as their shares carry proofs: with bare shares alone it stays [`CombineError::ResultInvalid`].
    ///
    /// # Errors
    /// Any [`SchemeError`] but [`SchemeError::OtherKey`] and [`SchemeError::Verify`].
    pub fn combine<'a>(
        &self,
        statement: impl Into<Statement<'a>>,
        shares: &[(ShareIndex, &[u8])],
        rng: &mut dyn CryptoRng,
    ) -> Result<Combined, SchemeError> {
        let statement = statement.into();
        with_key!(self, |public: S| if one_round {
            let request = S::parse_request(public, &statement)?;
            let shares = shares
                .iter()
                .map(|(index, share)| {
                    S::decode_share(*index, share).map_err(|error| SchemeError::MalformedShare { index: *index, error })
                })
                .collect::<Result<Vec<_>, _>>()?;
            combine_checked::<S>(public, &request, &shares, rng)
        } else {
            Err(SchemeError::TwoRounds(S::SUITE))
        })
    }

    /// Verifies a signature of a message, or the value of a coin's name with its proof.
    ///
    /// # Errors
    /// [`SchemeError::Verify`], or [`SchemeError::Request`] if keys of this purpose have no results to verify.
    pub fn verify(&self, message: &[u8], result: &[u8], proof: &[u8]) -> Result<(), SchemeError> {
        with_key!(self, |public: S| if signature {
            Ok(S::verify(public, message, result)?)
        } else {
            with_key!(self, |public: S| if coin {
                Ok(S::verify(public, message, result, proof)?)
            } else {
                Err(RequestError::Purpose { key: Purpose::Decrypt, asked: Purpose::Sign }.into())
            })
        })
    }
}

/// Optimistic where the scheme allows it; shares are looked at one by one only when needed.
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

/// Why shares with a false result did not make a true one. A bare share may be right: only proven ones can be blamed.
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
