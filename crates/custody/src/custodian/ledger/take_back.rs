//! Changes of the members that are taken back before the group has decided them.
//!
//! Consents to a change last for days, and whoever has heard them may put them into an entry. So taking it back is a vote: a node that was
//! asked for that votes against the change, until the members change otherwise, which ends all consents, or a client asks it again.

use theta_groups::Transcript;
use theta_ledger::{Action, Input, LedgerState, MemberChange};
use theta_statements::{MemberRequest, TakeBackRequest};
use theta_store::Store;

use super::members::NO_LEDGER;
use crate::custodian::message::Id;
use crate::custodian::work::{Record, Work};
use crate::request::{CustodyEffect, MembersState};
use crate::{Custodian, MembersError};

/// For how long, in seconds, nobody can ask for a change again that was taken back: as long as what a client has signed before is valid
/// (`spec/policy.md`, Signed requests), and a while for clocks that differ.
const HOLDS_FOR: u64 = 3_600 + 600;

impl Custodian {
    /// Takes back a change of the members that the group has not decided: this node votes against it, whatever it has agreed to before.
    ///
    /// # Errors
    /// [`MembersError`]: it cannot be read, or the store has failed.
    pub fn take_back(
        &mut self,
        request: &TakeBackRequest,
        effects: &mut Vec<CustodyEffect>,
    ) -> Result<MembersState, MembersError> {
        self.check_store()?;
        let change = MemberChange::decode(&request.change).map_err(MembersError::Change)?;
        let action = Action::Members(change.clone());
        let digest = action.digest();
        let Some(replica) = self.ledger.as_ref() else { return Ok(MembersState::Refused(NO_LEDGER.to_owned())) };
        if let Some(height) = replica.state().changed_at(&digest) {
            return Ok(MembersState::Decided { height });
        }
        if matches!(change, MemberChange::Renew { .. }) {
            return Ok(MembersState::Refused(OWN_WORD.to_owned()));
        }
        let failed = |error: theta_store::StoreError| MembersError::StoreFailed(error.to_string());
        let id = mark(replica.state(), &action);
        if self.store.is_used(&request.digest()).map_err(failed)? {
            let holds = self.store.is_used(&id).map_err(failed)? && !replica.wants(&digest);
            return Ok(if holds { MembersState::TakenBack } else { MembersState::Refused(USED.to_owned()) });
        }
        // What it has voted for at this height may be decided all the same: it is asked again.
        if replica.speaks_for(&digest) {
            return Ok(MembersState::Waiting { awaits: Vec::new() });
        }
        let mut work = Work::default();
        self.drive_ledger(Input::Withdraw(digest), &mut work);
        work.records.push(Record::UseAgain { request: id, now: self.now });
        // Who asked for it asks no more with the same approvals.
        let asked = self.requests_of_members.drop_action(&digest, TAKEN_BACK);
        let used = asked.into_iter().chain([request.digest()]);
        work.records.extend(used.map(|request| Record::Use { request, now: self.now }));
        effects.append(&mut self.settle(work));
        self.check_store()?;
        Ok(MembersState::TakenBack)
    }

    /// Why this node does not ask the group for a change of the members: a client has taken it back, or this request.
    pub(super) fn refused_as_taken_back(
        &self,
        request: &MemberRequest,
        action: &Action,
    ) -> Result<Option<String>, MembersError> {
        let failed = |error: theta_store::StoreError| MembersError::StoreFailed(error.to_string());
        if self.store.is_used(&request.digest()).map_err(failed)? {
            return Ok(Some(TAKEN_BACK.to_owned()));
        }
        let Some(ledger) = self.ledger().filter(|_| !request.claims_proof()) else { return Ok(None) };
        let at = self.store.used_at(&mark(ledger, action)).map_err(failed)?;
        Ok(at.filter(|at| self.now < at.saturating_add(HOLDS_FOR)).map(|_| LATELY.to_owned()))
    }
}

/// Whether this node was asked to vote against a change as the members are now. A store that cannot be read votes for none.
pub(super) fn is_taken_back(store: &Store, state: &LedgerState, action: &Action) -> bool {
    !matches!(store.is_used(&mark(state, action)), Ok(false))
}

/// By what a change is remembered that was taken back. Whatever is decided about the members ends it, with the consents.
fn mark(state: &LedgerState, action: &Action) -> Id {
    let since = state.consent_subject(action).since.to_be_bytes();
    let transcript = Transcript::new("theta/custody/taken-back/v1").with("ledger", state.id().as_bytes());
    transcript.with("action", &action.digest()).with("since", &since).finish32()
}

const OWN_WORD: &str = "a renewal is the member's own word, which nobody else takes back";
const USED: &str = "this request was used before: take the change back with another one";
const TAKEN_BACK: &str = "it was taken back: ask for it with another nonce and approvals of that";
const LATELY: &str = "it was taken back less than 70 minutes ago, for which what was signed before may still be shown: ask for it again then, or at \
     once with a new card (theta node card)";
