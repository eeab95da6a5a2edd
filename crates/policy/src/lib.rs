//! Who may ask for what: policy files, signed requests, approvals, signing rules and the audit log, as pure functions.
//!
//! Nothing here reads a clock, a file or a socket. Every share holder decides for itself, with its own copy of the policy
//! and its own memory: one that was taken over, or a node that relays requests, can refuse service and nothing else.
//!
//! ```
//! use theta_policy::{Ask, MemorySlots, Operation, Policy, Reason, State, UnixTime};
//!
//! let policy = Policy::parse(
//!     r#"
//!     format = 1
//!
//!     [[client]]
//!     name = "gateway"
//!     certificates = ["00000000000000000000000000000000000000000000000000000000000000aa"]
//!
//!     [[rule]]
//!     name = "gateway-opens-mail"
//!     effect = "allow"
//!     clients = ["gateway"]
//!     keys = ["mail-*"]
//!     operations = ["decapsulate"]
//!     "#,
//!     "policy.toml",
//! )?;
//! let mut fingerprint = [0; 32];
//! fingerprint[31] = 0xaa;
//! let caller = policy.caller_by_certificate(fingerprint)?;
//! let (state, now) = (State::new(MemorySlots::default()), UnixTime(0));
//!
//! let ask = Ask { key: Some("mail-2026"), ..Ask::new("demo", Operation::Decapsulate) };
//! assert!(policy.decide(&caller.asks(ask), now, &state).allowed);
//! let ask = Ask { key: Some("root"), ..ask };
//! assert_eq!(policy.decide(&caller.asks(ask), now, &state).reason, Reason::NoRule);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod approval;
pub mod audit;
mod digest;
mod encoding;
mod file;
mod handle;
mod name;
mod operation;
mod policy;
mod rate;
mod request;
mod signing;
mod slots;
mod time;
mod token;

pub use approval::{
    Approval, ApprovalFault, ApprovalTerms, ApprovalTextError, Consents, MOST_APPROVAL_LIFETIME, MOST_APPROVALS,
};
pub use digest::{Digest, DigestError};
pub use encoding::{ArmorError, DecodeError};
pub use file::{MOST_ENTRIES, MOST_FILE, MOST_LIST, PolicyFileError, PolicyProblem};
pub use handle::{PolicyHandle, Reload};
pub use name::{KeyPattern, KeyPatternError, MOST_NAME, Name, NameError};
pub use operation::{Operation, OperationError, OperationSet};
pub use policy::{
    Answer, ConditionReport, Decision, Effect, Explanation, Limits, Policy, Reason, Recording, RuleReport, State,
};
pub use rate::{MOST_BUCKETS, MOST_RATE, Rate, RateAnswer, RateError, RateLimiter};
pub use request::{
    Ask, Caller, MOST_LABEL, MOST_REQUEST_LIFETIME, Request, RequestTerms, SignedRequest, SignedRequestError,
    SignedRequestTextError, Unidentified,
};
pub use signing::{FalseSignature, Signature, SigningKey, SigningKeyError, VerifyingKey, VerifyingKeyError};
pub use slots::{
    MemorySlots, SlotClaim, SlotDecision, SlotOrder, SlotQuorum, SlotScope, SlotStanding, SlotState, SlotStateError,
};
pub use time::{Invalid, TimeError, UnixTime, Validity};
pub use token::{Token, TokenError, TokenHash, TokenHashError};
