//! What clients sign and what nodes record of it. An SDK can ask and an auditor can check with this crate, without a node's code.
//!
//! - [`KeyChange`], [`CeremonyRequest`], [`CancelRequest`], [`StateChange`]: changes of keys, and the statements that are signed for them;
//! - [`MemberRequest`]: a change of a group's members;
//! - [`Ask`], [`SignedRequest`], [`Approval`]: what a client asks, and who approves it;
//! - [`SigningKey`], [`Token`], [`TokenProof`]: how clients and approvers prove who they are;
//! - [`audit`]: the log of decisions.
//!
//! `theta-policy` decides who may do what. Encodings: `spec/policy.md` and `spec/custody.md`; known answers:
//! `vectors/client`.

mod approval;
mod armor;
mod ask;
pub mod audit;
mod change;
mod digest;
mod members;
mod name;
mod request;
mod signing;
mod time;
mod token;

pub use approval::{Approval, ApprovalTerms, ApprovalTextError, MOST_APPROVAL_LIFETIME, MOST_APPROVALS};
pub use armor::ArmorError;
pub use ask::Ask;
pub use change::{CancelRequest, CeremonyRequest, KeyChange, StateChange};
pub use digest::{Digest, DigestError};
pub use members::{MOST_MEMBER_CHANGE, MOST_MEMBER_PROOF, MemberRequest, TakeBackRequest};
pub use name::{MOST_NAME, Name, NameError};
pub use request::{
    MOST_DECISION_LIFETIME, MOST_REQUEST_LIFETIME, RequestTerms, SignedRequest, SignedRequestError,
    SignedRequestTextError,
};
pub use signing::{FalseSignature, Signature, SigningKey, SigningKeyError, VerifyingKey, VerifyingKeyError};
pub use theta_names::codec::DecodeError;
pub use time::{Invalid, TimeError, UnixTime, Validity};
pub use token::{
    MOST_PROOF_LIFETIME, ProvenToken, Token, TokenError, TokenKey, TokenKeyError, TokenProof, TokenProofError,
    find_token,
};
