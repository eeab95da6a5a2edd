//! Opens a custodian: at the first start, or after a crash.

mod recovery;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use theta_ceremonies::{CeremonyKeys, CeremonyPlan, Memory};
use theta_groups::Secret;
use theta_names::NodeId;
use theta_rounds::Malformed;
use theta_store::{Ceremony, Store};

use super::ceremonies::{Early, Ended, Requests, Running};
use super::greetings::Greetings;
use super::message::Id;
use super::witness::Witnesses;
use super::work::Work;
use super::{Custodian, CustodyEffect, ledger};
use crate::ceremony::{Plans, Subject, begin};
use crate::keys::read_keys;
use crate::request::{CeremonyReport, CeremonyState};
use crate::seating::Seating;
use crate::{CustodyError, Roster};

impl Custodian {
    /// Opens the custodian of a store: reads the keys, and replays the ceremonies that ran when the node stopped.
    ///
    /// # Errors
    /// [`CustodyError`]: the store cannot be read, its content does not go together, or its identity is not the one in
    /// the group file.
    pub fn open(store: Arc<Store>, local: NodeId, group: Roster) -> Result<Self, CustodyError> {
        let keys = store.identity()?.map(|secret| Arc::new(CeremonyKeys::new(local, secret)));
        // Of a group that was founded with cards the ledger says whose machine is whose.
        if let (Some(keys), Some(member), None) = (&keys, group.member(local), &group.founding)
            && keys.member() != member
        {
            return Err(CustodyError::OtherIdentity(local));
        }
        let seen = store.seen_of_peers()?;
        let seen = seen.into_iter().filter_map(|(peer, seen)| Some((NodeId::try_from(peer).ok()?, seen)));
        let table = Arc::new(read_keys(&store, local)?);
        let ledger = ledger::open(&store, &group, keys.clone())?;
        let frozen = store.frozen()?;
        let mut custodian = Self {
            witnesses: Witnesses::new(seen, store.contradictions()?, store.is_opening_trusted()?),
            ledger,
            greetings: Greetings::default(),
            store,
            local,
            seating: Seating::of(group.clone()),
            followed: None,
            seated: 0,
            group,
            keys,
            table,
            frozen,
            requests: Requests::default(),
            running: BTreeMap::new(),
            ended: BTreeMap::new(),
            plans: BTreeMap::new(),
            planned: Plans::default(),
            begun_at: BTreeMap::new(),
            barred: BTreeSet::new(),
            over: false,
            unsettled: false,
            helped: None,
            early: Early::default(),
            requests_of_members: super::ledger::MemberRequests::default(),
            unserving: None,
            now: 0,
            ticks: 0,
            failed: None,
        };
        if let (Some(roster), Some(state)) = (custodian.roster_of_ledger(), custodian.ledger()) {
            custodian.seating.follow(roster.clone(), state);
            custodian.group = roster;
        }
        custodian.followed = custodian.members();
        let mut work = Work::default();
        for ceremony in custodian.store.ceremonies()? {
            custodian.resume(&ceremony, &mut work)?;
        }
        custodian.store.set_confirmed(custodian.is_trusted());
        custodian.forget_ceremonies_of_destroyed(&mut work);
        custodian.reconcile(&mut work);
        let effects = custodian.settle(work);
        match effects.into_iter().find_map(store_failure) {
            Some(text) => Err(CustodyError::Unusable(text)),
            None => Ok(custodian),
        }
    }

    fn resume(&mut self, ceremony: &Ceremony, work: &mut Work) -> Result<(), CustodyError> {
        let ((memory, had_share), plan_id, subject) =
            decode_subject(&ceremony.subject).map_err(CustodyError::Malformed)?;
        self.now = self.now.max(ceremony.started);
        self.plans.insert(plan_id, ceremony.id);
        if let Some(outcome) = &ceremony.outcome {
            let report = CeremonyReport::decode(outcome).map_err(CustodyError::Malformed)?;
            let epilogue = ceremony.inputs() > 0;
            let ended = Ended::new(report, ceremony.started, epilogue);
            self.ended.insert(ceremony.id, ended);
            return Ok(());
        }
        let plan = self.plan_again(&ceremony.id, &subject).filter(|plan| *plan.id().as_bytes() == plan_id);
        let begun = plan.zip(self.keys.as_ref()).zip(ceremony.seed.as_ref()).and_then(|((plan, keys), seed)| {
            let keys = (keys, Secret::new(*seed.expose()));
            let share = self.share_for(&subject).filter(|_| had_share);
            begin(plan, keys, share.as_deref(), memory).ok()
        });
        let Some(begun) = begun else {
            // The identities in the group file have changed, or this node's has: it can sign nothing more in this
            // ceremony.
            let why = CeremonyState::Failed("the group or its identities changed while it ran".to_owned());
            self.close_unresumed(ceremony, &subject, why, work);
            return Ok(());
        };
        let mut running = Running::new((ceremony.id, plan_id), begun, subject, self.local);
        let mut ending = None;
        for input in self.store.ceremony_inputs(&ceremony.id)? {
            ending = running.replay(input.expose()).map_err(CustodyError::Malformed)?.or(ending);
        }
        running.resume(memory, ceremony.started);
        self.running.insert(ceremony.id, running);
        self.end_if(&ceremony.id, ending, work);
        Ok(())
    }

    /// The plan of a ceremony in the journal; `None` if it could not be one of this group's any more.
    fn plan_again(&mut self, id: &Id, subject: &Subject) -> Option<Arc<CeremonyPlan>> {
        let mut running = self.ledger().into_iter().flat_map(|ledger| ledger.running().values());
        let begun = running.find(|begun| begun.request.digest() == *id).cloned();
        match begun {
            Some(begun) => {
                let planned = self.planned.of(&self.group.name, &begun).ok()?;
                Some(Arc::clone(&planned.plan))
            }
            None => subject.plan(&self.group.name, &self.group.members).ok(),
        }
    }
}

fn store_failure(effect: CustodyEffect) -> Option<String> {
    if let CustodyEffect::StoreFailed(text) = effect { Some(text) } else { None }
}

/// How a node began a ceremony: what it remembered, and whether it had a share.
pub(super) type Began = (Memory, bool);

/// The subject as the journal has it: behind a byte for whether this node remembers its earlier statements (1 if not) and had a share
/// when it began (2), and the id of the plan, with the identities of its time. What it says depends on both.
pub(super) fn encode_subject(memory: Memory, share: bool, plan: &[u8; 32], subject: &Subject) -> Vec<u8> {
    let mut bytes = vec![u8::from(memory == Memory::Lost) + 2 * u8::from(share)];
    bytes.extend_from_slice(plan);
    bytes.extend_from_slice(&subject.encode());
    bytes
}

/// Splits what [`encode_subject`] made.
pub(super) fn decode_subject(bytes: &[u8]) -> Result<(Began, [u8; 32], Subject), Malformed> {
    let (memory, rest) = match bytes.split_first() {
        Some((0, rest)) => ((Memory::Kept, false), rest),
        Some((1, rest)) => ((Memory::Lost, false), rest),
        Some((2, rest)) => ((Memory::Kept, true), rest),
        Some((3, rest)) => ((Memory::Lost, true), rest),
        _ => return Err(Malformed("a ceremony in the journal of another release")),
    };
    let (plan, subject) = rest.split_first_chunk().ok_or(Malformed("a ceremony without a plan"))?;
    Ok((memory, *plan, Subject::decode(subject)?))
}
