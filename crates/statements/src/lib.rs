//! What clients sign, and what nodes record of it: what an SDK needs to ask, and an auditor to check, without anything of a node.
//!
//! - [`KeyChange`], [`CeremonyRequest`], [`StateChange`]: what is to be done with a key, as the statement that is signed;
//! - [`Ask`], [`SignedRequest`], [`Approval`]: who asks for what, and who consents;
//! - [`SigningKey`], [`Token`]: what clients and approvers are known by;
//! - [`audit`]: the log of what was decided.
//!
//! Who is allowed what is for `theta-policy` to say. Encodings: `spec/policy.md` and `spec/ceremonies.md`; known answers:
//! `vectors/client`.

mod approval;
mod armor;
mod ask;
pub mod audit;
mod change;
mod digest;
mod name;
mod request;
mod signing;
mod time;
mod token;

pub use approval::{Approval, ApprovalTerms, ApprovalTextError, MOST_APPROVAL_LIFETIME, MOST_APPROVALS};
pub use armor::ArmorError;
pub use ask::Ask;
pub use change::{CeremonyRequest, KeyChange, StateChange};
pub use digest::{Digest, DigestError};
pub use name::{MOST_NAME, Name, NameError};
pub use request::{MOST_REQUEST_LIFETIME, RequestTerms, SignedRequest, SignedRequestError, SignedRequestTextError};
pub use signing::{FalseSignature, Signature, SigningKey, SigningKeyError, VerifyingKey, VerifyingKeyError};
pub use theta_names::codec::DecodeError;
pub use time::{Invalid, TimeError, UnixTime, Validity};
pub use token::{Token, TokenError, TokenHash, TokenHashError, find_token};
