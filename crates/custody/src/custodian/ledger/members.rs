//! Changes of the members that clients ask for, and warrants that they bring, until the group has decided on them.

use theta_groups::Transcript;
use theta_ledger::{Action, DropReason, Input, LedgerState, MemberChange, Refusal, Warrant, WarrantRefusal};
use theta_names::codec::{Reader, Writer};
use theta_statements::MemberRequest;

use super::bookkeeper::held_beside;
use crate::custodian::message::Id;
use crate::custodian::work::Work;
use crate::request::{CustodyEffect, MembersState};
use crate::{Custodian, MembersError};

/// The bytes of a nonce behind its length.
const NONCE_BYTES: usize = 4 + 32;

impl Custodian {
    /// Asks the group for a change of its members that this node's policy has granted to a client, or says how far it is if it was asked
    /// for before. It is decided when as many members as it takes consent, or at once if it proves itself: see `spec/ledger.md`. The
    /// `reason` is what the client signed, and others approved.
    ///
    /// # Errors
    /// [`MembersError`]: it cannot be read, or the store has failed.
    pub fn change_members(
        &mut self,
        request: &MemberRequest,
        reason: Vec<u8>,
        effects: &mut Vec<CustodyEffect>,
    ) -> Result<MembersState, MembersError> {
        self.check_store()?;
        let change = MemberChange::decode(&request.change).map_err(MembersError::Change)?;
        let (id, action) = (request.digest(), Action::Members(change.clone()));
        let digest = action.digest();
        if let Some(state) = self.members_state(&id, &digest) {
            return Ok(state);
        }
        if let Some(why) = self.refused_as_taken_back(request, &action)? {
            return Ok(MembersState::Refused(why));
        }
        // The change alone is the word of a member in a renewal, the proof in a replacement; both stand in the ledger.
        let reason = if request.claims_proof() { request.proof.clone() } else { reason_of(request, reason) };
        let Some(ledger) = self.ledger() else { return Ok(MembersState::Refused(NO_LEDGER.to_owned())) };
        let checked = ledger.check(&action).and_then(|()| self.check_now(ledger, &change, &reason));
        let refused = match checked {
            Err(refusal) => Some(refusal.to_string()),
            Ok(()) if request.claims_proof() && !ledger.vartime_proves(&change, &reason) => Some(UNPROVEN.to_owned()),
            Ok(()) => self.unadopted_share(&change),
        };
        if let Some(why) = refused {
            return Ok(MembersState::Refused(why));
        }
        self.requests_of_members.wait(id, digest);
        let mut work = Work::default();
        self.drive_ledger(Input::Propose(action, reason), &mut work);
        effects.append(&mut self.settle(work));
        self.check_store()?;
        Ok(self.members_state(&id, &digest).unwrap_or_else(|| MembersState::Waiting { awaits: Vec::new() }))
    }

    /// Takes a warrant that an operator brings, and tells the others; or says how far it is.
    ///
    /// # Errors
    /// [`MembersError`]: it cannot be read, or the store has failed.
    pub fn bring_warrant(
        &mut self,
        warrant: &[u8],
        effects: &mut Vec<CustodyEffect>,
    ) -> Result<MembersState, MembersError> {
        self.check_store()?;
        let warrant = Warrant::decode(warrant).map_err(MembersError::Warrant)?;
        let Some(replica) = self.ledger.as_mut() else { return Ok(MembersState::Refused(NO_LEDGER.to_owned())) };
        if let Some(height) = replaced_at(replica.state(), &warrant) {
            return Ok(MembersState::Decided { height });
        }
        let awaits = warrant.stand_ins().iter().map(|stand_in| stand_in.node).collect();
        // A client that asks again and again does not make this node write to all others each time.
        let id = Transcript::new("theta/custody/warrant/v1").with("warrant", &warrant.encode()).finish32();
        if self.requests_of_members.is_told(&id, self.ticks) {
            return Ok(MembersState::Waiting { awaits });
        }
        let mut work = Work::default();
        let refused = self.drive_warrant(warrant, &mut work);
        if refused.is_none() {
            self.requests_of_members.tell(id, self.ticks);
        }
        effects.append(&mut self.settle(work));
        self.check_store()?;
        Ok(match refused {
            Some(refusal) => MembersState::Refused(format!("the warrant does not serve: {refusal}")),
            None => MembersState::Waiting { awaits },
        })
    }

    /// Whether an entry of now could have the change, for all that this node knows.
    fn check_now(&self, ledger: &LedgerState, change: &MemberChange, reason: &[u8]) -> Result<(), Refusal> {
        // Before the first tick no time is known.
        if self.now == 0 { Ok(()) } else { ledger.check_member_time(change, reason, self.now.max(ledger.time())) }
    }

    /// Why a member does not leave though the ledger knows of nothing that it holds.
    fn unadopted_share(&self, change: &MemberChange) -> Option<String> {
        let MemberChange::Remove { node } = change else { return None };
        let key = held_beside(&self.table, self.ledger()?, *node)?;
        Some(format!(
            "node {node} holds a share of {key}, which a dealer brought and the ledger does not have yet: when its holders are connected it \
             has it soon, and a reshare moves it"
        ))
    }

    fn drive_warrant(&mut self, warrant: Warrant, work: &mut Work) -> Option<WarrantRefusal> {
        self.unserving = None;
        self.drive_ledger(Input::Warrant(warrant), work);
        self.unserving.take()
    }

    pub(super) fn check_store(&self) -> Result<(), MembersError> {
        match &self.failed {
            Some(why) => Err(MembersError::StoreFailed(why.clone())),
            None => Ok(()),
        }
    }

    /// How far a change is that was asked for, or that others have brought about.
    fn members_state(&self, request: &Id, action: &Id) -> Option<MembersState> {
        let replica = self.ledger.as_ref()?;
        if let Some(height) = replica.state().changed_at(action) {
            return Some(MembersState::Decided { height });
        }
        if let Some(why) = self.requests_of_members.refused.get(request) {
            return Some(MembersState::Refused(why.clone()));
        }
        let waits = self.requests_of_members.waiting.contains_key(request) && replica.wants(action);
        waits.then(|| MembersState::Waiting { awaits: replica.awaited(action) })
    }

    /// Nothing came of a change that this node wanted decided.
    pub(in crate::custodian) fn dropped_members(&mut self, action: &Action, why: &DropReason) {
        let why = match why {
            DropReason::Refused(refusal) => refusal.to_string(),
            DropReason::Full => "too much waits for the group's decision already: ask again later".to_owned(),
            DropReason::TooLong => "the request with its approvals or its proof is too long for the ledger".to_owned(),
            DropReason::TooFew => TOO_FEW.to_owned(),
        };
        self.requests_of_members.drop_action(&action.digest(), &why);
    }
}

/// The reason of a change that takes consents: the nonce, which is part of what the client signed, and what it signed. A request that nobody has
/// signed goes no further than the node that was asked, and has none.
fn reason_of(request: &MemberRequest, reason: Vec<u8>) -> Vec<u8> {
    if reason.is_empty() { reason } else { Writer::default().bytes(&request.nonce).raw(&reason).finish() }
}

/// What a client has asked for, by the reason of a change that takes consents, and what it signed; `None` if the reason is another.
pub(super) fn asked(change: &MemberChange, reason: &[u8]) -> Option<(MemberRequest, Vec<u8>)> {
    if change.claims_proof(reason) {
        return None;
    }
    let mut reader = Reader::new(reason);
    let nonce = <[u8; 32]>::try_from(reader.bytes().ok()?).ok()?;
    // Behind its length.
    let signed = reason.get(NONCE_BYTES..)?.to_vec();
    Some((MemberRequest { nonce, change: change.encode(), proof: Vec::new() }, signed))
}

/// The height at which the last machine of a warrant became a member's, if all have.
fn replaced_at(state: &LedgerState, warrant: &Warrant) -> Option<u64> {
    let since = warrant.stand_ins().iter().map(|stand_in| {
        let change = MemberChange::Replace { node: stand_in.node.get(), card: stand_in.card.clone() };
        state.changed_at(&Action::Members(change).digest())
    });
    since.collect::<Option<Vec<u64>>>()?.into_iter().max()
}

pub(super) const NO_LEDGER: &str = "this group keeps no ledger, since not all of its nodes have a ceremony_key in the group file: change the file at each node";
const UNPROVEN: &str = "the signature with it is not that of the member's present operator, or the warrant does not serve: ask for it without, so \
     that the members decide by their policies";
const TOO_FEW: &str =
    "too few members agreed to it in time: see with `theta status` which can be reached, and ask all of them again";
