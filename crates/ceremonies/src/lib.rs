//! Ceremonies: they make keys that no single party ever holds, and renew, move and recover shares.
//!
//! - A [`Ceremony`] makes a key ([`Aim::Generate`]) or new shares of one ([`Aim::Reshare`], which is a refresh if the holders
//!   stay the same). All honest parties end alike: with a key that a [`QuorumCertificate`] makes active, or without one. Or it
//!   finds one holder's lost share again ([`Aim::Recover`]).
//! - Keys and shares come and go as bytes ([`EncodedKey`], [`EncodedShare`]): what is generic over the group ends in this crate.
//! - Liars are named with [`CeremonyEvidence`] that a third party can check; who is silent is listed apart.
//!
//! The machines are pure: no clock, no socket, no disk. All randomness is derived from 32 bytes that a party draws for
//! the ceremony and destroys at its end. See `spec/ceremonies.md`, `docs/adr/0011-ceremonies.md` and
//! `docs/adr/0017-forward-secret-ceremonies.md`.

mod dealing;
mod electorate;
mod evidence;
mod group;
mod identity;
mod key;
mod machine;
mod outcome;
mod plan;
mod record;
mod recovery;
mod sizes;
mod typed;
mod verdict;
mod wellformed;

use dealing::dealings;
use identity::{encryption, participant, sealed};
use record::{bulletin_board, certificate, codec, statement, summary};
use theta_agreement::schnorr;

pub use bulletin_board::{rewrite, statements_of};
pub use certificate::QuorumCertificate;
pub use evidence::CeremonyEvidence;
pub use machine::{Ceremony, Effects, ITEMS, Input, Memory, Remains, SUMMARY};
pub use outcome::{Activated, Conclusion, JoinError, Outcome};
pub use plan::{Aim, CeremonyId, CeremonyPlan, PlanError, PlanParts, Source, public_digest};
pub use statement::{Digest, Kind, Statement, StatementSlot};
pub use theta_agreement::{Member as CeremonyMember, MemberKeys as CeremonyKeys};
pub use theta_sharing::{EncodedKey, EncodedShare, ProofOfPossession};

use wellformed::{LONGEST_CERTIFIED, check, longest_body, longest_items, longest_summary};
