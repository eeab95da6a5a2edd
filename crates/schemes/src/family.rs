//! The three families of one-round schemes: share, verify, combine.

use std::sync::Arc;

use rand_core::CryptoRng;
use theta_groups::DecodeError;
use theta_sharing::ShareIndex;

use crate::ciphers::PayloadKey;
use crate::keys::KeyScheme;
use crate::{CombineError, MessageDigest, PendingProof, PendingShare, RequestError, Statement, VerifyError};

/// A threshold scheme whose parties answer in one round.
///
/// A *request* is a checked statement: a valid ciphertext, a message, a coin's name. [`ThresholdScheme::parse_request`] makes it
/// from bytes, with all the checks that must precede a share, so a value of type `Request` is safe to answer.
pub trait ThresholdScheme: KeyScheme {
    /// A checked statement.
    type Request: Send + Sync;
    /// One party's contribution to the result; its index is inside.
    type Share: Clone + Send + Sync;
    /// The result, such as a signature.
    type Output: Send;

    /// Whether a combined result can be checked by itself. If so, callers combine first and verify shares on failure only.
    const CHECKABLE: bool;

    /// Parses and checks a statement.
    ///
    /// # Errors
    /// [`RequestError`]: the caller's mistake or a ciphertext that was tampered with.
    fn parse_request(public: &Self::PublicKey, statement: &Statement<'_>) -> Result<Self::Request, RequestError>;

    /// As [`parse_request`](ThresholdScheme::parse_request), but where the scheme checks proofs of requests together, the proof comes
    /// back unchecked; the request is safe to answer only if it holds.
    ///
    /// # Errors
    /// As [`parse_request`](ThresholdScheme::parse_request).
    fn parse_unproven(
        public: &Self::PublicKey,
        statement: &Statement<'_>,
    ) -> Result<(Self::Request, PendingProof), RequestError> {
        Ok((Self::parse_request(public, statement)?, None))
    }

    /// This party's share without a proof, still to be made, where the scheme makes several for less than one by one.
    /// [`create_bare_share`](ThresholdScheme::create_bare_share) returns it once it is made.
    fn pending_share(
        _public: &Arc<Self::PublicKey>,
        _key: &Arc<Self::KeyShare>,
        _request: &Self::Request,
    ) -> Option<Box<dyn PendingShare>> {
        None
    }

    /// Makes this party's share. Constant-time in the key share.
    fn create_share(
        public: &Self::PublicKey,
        key: &Self::KeyShare,
        request: &Self::Request,
        rng: &mut dyn CryptoRng,
    ) -> Self::Share;

    /// A bare share, without its proof, for schemes whose combined result tells whether proofs are needed; parties send it first.
    /// In other schemes this is [`ThresholdScheme::create_share`].
    fn create_bare_share(
        public: &Self::PublicKey,
        key: &Self::KeyShare,
        request: &Self::Request,
        rng: &mut dyn CryptoRng,
    ) -> Self::Share {
        Self::create_share(public, key, request, rng)
    }

    /// Whether the share has all that [`ThresholdScheme::verify_shares`] needs, for which bare shares are false.
    fn is_proven(_share: &Self::Share) -> bool {
        true
    }

    /// Whose share this is.
    fn share_index(share: &Self::Share) -> ShareIndex;

    /// The canonical bytes of a share, without its index, which the channel or the API carries.
    fn encode_share(share: &Self::Share) -> Vec<u8>;

    /// Parses the share of party `index`. Proofs stay encoded until they are needed.
    ///
    /// # Errors
    /// Any [`DecodeError`]; the sender is to blame.
    fn decode_share(index: ShareIndex, bytes: &[u8]) -> Result<Self::Share, DecodeError>;

    /// Refuses a parsed share that is of no key like this one, for schemes whose shares do not tell by their bytes alone.
    ///
    /// # Errors
    /// Any [`DecodeError`]; the sender is to blame.
    fn check_share(_public: &Self::PublicKey, _share: &Self::Share) -> Result<(), DecodeError> {
        Ok(())
    }

    /// Checks shares against the verification keys, in one batch where the scheme can. Returns the parties whose shares
    /// are false; empty means that all are good. Shares of indices outside the key's range are false.
    fn verify_shares(
        public: &Self::PublicKey,
        request: &Self::Request,
        shares: &[Self::Share],
        rng: &mut dyn CryptoRng,
    ) -> Vec<ShareIndex>;

    /// Combines the first k shares. Where the scheme is [`CHECKABLE`](ThresholdScheme::CHECKABLE) the result is checked
    /// and a false one is [`CombineError::ResultInvalid`]; otherwise the caller must have verified the shares.
    ///
    /// # Errors
    /// Any [`CombineError`].
    fn combine(
        public: &Self::PublicKey,
        request: &Self::Request,
        shares: &[Self::Share],
    ) -> Result<Self::Output, CombineError>;

    /// Whether [`ThresholdScheme::create_bare_share`] leaves out a proof.
    const HAS_BARE_SHARES: bool = false;

    /// The parties of `others`, whose shares may be bare, that did not send what `verified` shares determine, of which there are k or more: k points
    /// of the sharing polynomial determine all others, so no proof is needed to name who lies about its own. Names nobody where the scheme has no
    /// bare shares. Public data only.
    fn vartime_off_polynomial(
        _public: &Self::PublicKey,
        _verified: &[Self::Share],
        _others: &[Self::Share],
        _rng: &mut dyn CryptoRng,
    ) -> Vec<ShareIndex> {
        Vec::new()
    }

    /// Whether one party can tell the others what it combined, and they check it: see [`combined_value`](ThresholdScheme::combined_value). Of a
    /// scheme that is not [`CHECKABLE`](ThresholdScheme::CHECKABLE) the value is the shares with their proofs.
    const HAS_COMBINED_VALUE: bool = Self::CHECKABLE;

    /// The combined value behind an encoded result: what k shares interpolate to, or these shares, and nothing beyond it, so that whoever reads it
    /// learns what k shares would have told. In schemes that are [`CHECKABLE`](ThresholdScheme::CHECKABLE) it is the same whichever k shares were
    /// combined; in others it says which. `None` without [`HAS_COMBINED_VALUE`](ThresholdScheme::HAS_COMBINED_VALUE), or if this is no result of the
    /// request.
    fn combined_value(
        _public: &Self::PublicKey,
        _request: &Self::Request,
        _result: &[u8],
        _proof: &[u8],
    ) -> Option<theta_groups::Secret<Vec<u8>>> {
        None
    }

    /// The length of a combined value in bytes, where it grows with k; otherwise values are no longer than shares.
    fn combined_len(_public: &Self::PublicKey) -> Option<usize> {
        None
    }

    /// The result that follows from a combined value of unknown origin, which is checked as
    /// [`combine`](ThresholdScheme::combine) checks its own, or by the shares in it.
    ///
    /// # Errors
    /// [`CombineError::ResultInvalid`]: it is not the combined value of this request, or the scheme has none
    /// ([`HAS_COMBINED_VALUE`](ThresholdScheme::HAS_COMBINED_VALUE)).
    fn accept_combined(
        _public: &Self::PublicKey,
        _request: &Self::Request,
        _combined: &[u8],
    ) -> Result<Self::Output, CombineError> {
        Err(CombineError::ResultInvalid)
    }

    /// Whether many results of one key are checked for less than one by one: see
    /// [`vartime_false_among`](ThresholdScheme::vartime_false_among). A scheme that is not
    /// [`CHECKABLE`](ThresholdScheme::CHECKABLE) checks the shares behind a result instead.
    const CHECKS_TOGETHER: bool = false;

    /// As [`combine`](ThresholdScheme::combine), but nothing need have been verified, and what it returns is a result only if
    /// [`vartime_false_among`](ThresholdScheme::vartime_false_among) does not find it. For schemes that
    /// [check together](ThresholdScheme::CHECKS_TOGETHER). The share of `own`, who combines, needs no check.
    ///
    /// # Errors
    /// As [`combine`](ThresholdScheme::combine).
    fn combine_unchecked(
        public: &Self::PublicKey,
        request: &Self::Request,
        shares: &[Self::Share],
        _own: ShareIndex,
    ) -> Result<Self::Output, CombineError> {
        Self::combine(public, request, shares)
    }

    /// As [`accept_combined`](ThresholdScheme::accept_combined), with the same proviso.
    ///
    /// # Errors
    /// As [`accept_combined`](ThresholdScheme::accept_combined).
    fn accept_unchecked(
        public: &Self::PublicKey,
        request: &Self::Request,
        combined: &[u8],
    ) -> Result<Self::Output, CombineError> {
        Self::accept_combined(public, request, combined)
    }

    /// The places of the false ones among results of one key, each with its request. Public data only.
    fn vartime_false_among(
        _public: &Self::PublicKey,
        _results: &[(&Self::Request, &Self::Output)],
        _rng: &mut dyn CryptoRng,
    ) -> Vec<usize> {
        Vec::new()
    }

    /// The parties whose shares are in a result, where it has them; otherwise nobody.
    fn contributors(_output: &Self::Output) -> Vec<ShareIndex> {
        Vec::new()
    }

    /// The result's standard encoding, and a proof for results that do not prove themselves (else empty).
    fn encode_output(output: &Self::Output) -> (theta_groups::Secret<Vec<u8>>, Vec<u8>);
}

/// A public-key cipher whose decryption takes k parties. It wraps a 256-bit payload key.
pub trait ThresholdCipher: ThresholdScheme {
    /// The suite's code in headers: see `spec/payload.md`.
    const HEADER_CODE: u8;
    /// Length in bytes of the capsule, which the cipher adds to a header.
    const CAPSULE_LEN: usize;

    /// Completes a header: wraps `key` under the public key and proves that everything in the header, from its first
    /// byte, was made together. Returns the whole header. All randomness follows from `key`, the public key and the
    /// envelope, so that everyone who unwraps the key can check that the header was made honestly.
    fn encapsulate(public: &Self::PublicKey, envelope: Vec<u8>, key: &PayloadKey) -> Vec<u8>;
}

/// A signature scheme whose signatures take k parties, in one round or two, and verify as ordinary ones.
pub trait SignatureScheme: KeyScheme {
    /// Verifies a signature in its standard encoding with the group's public key.
    ///
    /// # Errors
    /// [`VerifyError`] with the reason.
    fn verify(public: &Self::PublicKey, message: &[u8], signature: &[u8]) -> Result<(), VerifyError>;

    /// What messages are hashed with first, if their digest is all that the scheme sees of them.
    const DIGEST: Option<MessageDigest> = None;

    /// Verifies a signature of the message with this digest, where the scheme sees no more of it.
    ///
    /// # Errors
    /// [`VerifyError`] with the reason; [`VerifyError::Invalid`] for schemes without [`SignatureScheme::DIGEST`].
    fn verify_digest(_public: &Self::PublicKey, _digest: &[u8], _signature: &[u8]) -> Result<(), VerifyError> {
        Err(VerifyError::Invalid)
    }
}

/// A common coin: an unpredictable value for every name, the same at all parties.
pub trait ThresholdCoin: ThresholdScheme {
    /// Checks by the proof that `value` is the coin of `name`.
    ///
    /// # Errors
    /// [`VerifyError`] with the reason.
    fn verify(public: &Self::PublicKey, name: &[u8], value: &[u8], proof: &[u8]) -> Result<(), VerifyError>;
}
