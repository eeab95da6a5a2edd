//! Who may ask for what: policy files, signed requests, approvals, signing rules and audit records, as pure functions.
//!
//! Nothing here reads a clock, a file or a socket. Every node decides for itself, with its own copy of the policy and its own
//! memory: a corrupt node, or one that relays requests, cannot make an honest node allow anything.
//!
//! ```
//! use theta_names::Operation;
//! use theta_policy::{MemorySlots, Policy, Reason, State};
//! use theta_statements::{Ask, UnixTime};
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

mod agent;
mod approval;
mod copies;
mod file;
mod handle;
mod operation;
mod pattern;
mod policy;
mod rate;
mod record;
mod request;
mod slots;

pub use agent::{AGENT_OPERATIONS, Agent, Heard, MOST_AGENT_TIME, Objection};
pub use approval::{ApprovalFault, Consents};
pub use file::{MOST_ENTRIES, MOST_FILE, MOST_LIST, PolicyFileError, PolicyProblem};
pub use handle::{PolicyHandle, Reload};
pub use operation::OperationSet;
pub use pattern::{KeyPattern, KeyPatternError};
pub use policy::{
    Answer, ConditionReport, Decision, Effect, Explanation, Limits, Policy, Reason, Recording, RuleReport, State,
};
pub use rate::{MOST_BUCKETS, MOST_RATE, Rate, RateAnswer, RateError, RateLimiter};
pub use record::{record, record_of_stranger};
pub use request::{Caller, Request, Unidentified};
pub use slots::{MemorySlots, SlotClaim, SlotQuorum, SlotRace, SlotScope, SlotStanding, SlotState, SlotStateError};
pub use theta_names::SlotDecision;
