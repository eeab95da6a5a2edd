//! The ledger of a group: one certified history of everything that the group decides, except requests to keys.
//!
//! - [`founding`]: how a group of organisations that do not trust each other begins;
//! - [`Entry`], [`Action`]: what was decided, one thing at each height, chained by digests;
//! - [`Consent`], [`Demand`]: whose word an action takes beside the votes;
//! - [`CertifiedEntry`]: an entry with the votes of a quorum of the members;
//! - [`LedgerState`]: what follows from all entries up to a height: keys, versions, epochs, ceremonies. It takes certified entries and
//!   nothing else, so that whoever has the genesis follows the group as a light client follows a chain;
//! - [`Replica`]: a member's side of deciding the next entry, a pure machine.
//!
//! Requests for decryptions, signatures and coins never wait for it. See `spec/ledger.md` and `docs/adr/0029-ledger.md`.

mod certified;
mod change;
mod consent;
mod entry;
pub mod founding;
mod genesis;
mod operator;
mod replica;
mod sitting;
mod state;
mod warrant;

pub use certified::CertifiedEntry;
pub use change::MemberChange;
pub use consent::{Consent, ConsentSubject, Demand};
pub use entry::{Action, AdoptedKey, Entry, MOST_ENTRY, Outcome};
pub use genesis::{Genesis, GenesisError, LedgerId};
pub use operator::{OperatorId, OperatorKey};
pub use replica::{DropReason, Effect, Host, Input, MOST_MESSAGE, Memory, Recipient, Replica, ReplicaOffence, Said};
pub use state::{
    Begun, Ended, Epochs, KeyHistory, LedgerError, LedgerState, MemberRefusal, Refusal, RequestHistory, SHORTEST_WAIT,
    Seat, SignedWarrant, SigningRefusal, Source, VersionHistory,
};
pub use theta_agreement::{Digest, Member, Verdict, quorum};
pub use warrant::{LONGEST_WARRANT, MOST_STAND_INS, MOST_WARRANTS, StandIn, Warrant, WarrantRefusal};
