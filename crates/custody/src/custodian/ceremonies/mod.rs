//! The life of a ceremony at this node: asked for, begun, fed, ended. The group decides on its begin and its end: see `spec/ledger.md`.

mod asking;
mod early;
mod ended;
mod helped;
mod helping;
mod progress;
mod reconcile;
mod requests;
mod running;

use std::sync::Arc;

use theta_ceremonies::{CeremonyKeys, Input, Memory};
use theta_groups::Secret;
use theta_names::{Delivery, Epoch, KeyState, Version};
use theta_rounds::Abort;
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyName};
use theta_store::{Ceremony, JOURNAL_TEXT_BYTES};

pub(super) use early::Early;
pub(super) use ended::Ended;
use ended::MOST_ENDED;
pub(super) use helped::Helped;
pub(super) use reconcile::Prospects;
pub(super) use requests::Requests;
pub(super) use running::Running;

use super::message::Id;
use super::open::encode_subject;
use super::work::{KeyWrite, Record, Work};
use super::{Custodian, CustodyEffect};
use crate::CeremonyError;
use crate::ceremony::{Ending, Planned, Subject, begin, fit};
use crate::codec::parties;
use crate::keys::epoch_of;
use crate::request::CeremonyState;

/// What a sharing consists of at one node: the public key, the node's share if it has one, and the certificate.
type Parts = (AnyPublicKey, Option<AnyKeyShare>, Vec<u8>);

impl Custodian {
    /// This node's identity in ceremonies.
    pub(super) fn identity(&self) -> Result<Arc<CeremonyKeys>, CeremonyError> {
        let keys = self.keys.clone().ok_or(CeremonyError::NoIdentity)?;
        match self.group.member(self.local) {
            Some(_) => Ok(keys),
            None => Err(CeremonyError::NoCeremonyKey(self.local)),
        }
    }

    /// Takes part in a ceremony.
    pub(super) fn launch(&mut self, planned: &Planned, memory: Memory, work: &mut Work) -> Result<(), CeremonyError> {
        let (subject, plan) = (planned.subject.clone(), Arc::clone(&planned.plan));
        let keys = self.identity()?;
        let (share, id, plan_id) = (self.share_for(&subject), subject.request.digest(), *plan.id().as_bytes());
        // All secrets of this node in the ceremony follow from this seed. It is in the journal before any message
        // leaves, and nowhere else; it is removed from the journal when the ceremony ends.
        let seed = self.store.draw_secret().map_err(|error| CeremonyError::StoreFailed(error.to_string()))?;
        let ceremony = begin(plan, (&keys, Secret::new(*seed.expose())), share.as_deref(), memory)?;
        let mut running = Running::new((id, plan_id), ceremony, subject, self.local);
        self.plans.insert(plan_id, id);
        running.started = self.now;
        // The approvals and signatures of the request are used up in the transaction in which the ceremony begins.
        work.records.push(Record::Use { request: id, now: self.now });
        let subject = encode_subject(memory, share.is_some(), &plan_id, &running.subject);
        work.records.push(Record::Begin { id, subject, seed, started: self.now });
        self.running.insert(id, running);
        self.feed(&id, Input::Start, work);
        for (from, early) in self.early.take(&plan_id) {
            let Some(running) = self.running.get_mut(&id) else { break };
            let ending = running.receive(from, early.part, early.payload, work);
            self.end_if(&id, ending, work);
        }
        if let Some(running) = self.running.get_mut(&id) {
            running.tell(work);
        }
        Ok(())
    }

    fn feed(&mut self, id: &Id, input: Input, work: &mut Work) {
        let Some(running) = self.running.get_mut(id) else { return };
        let ending = running.feed(input, work);
        self.end_if(id, ending, work);
    }

    /// What a ceremony comes to here waits until the group has decided on it.
    pub(super) fn end_if(&mut self, id: &Id, ending: Option<Result<Ending, Abort>>, work: &mut Work) {
        let Some(running) = self.running.get_mut(id) else { return };
        if let Some(ending) = ending {
            running.ending = Some(ending);
            self.over = true;
        }
        running.tell(work);
    }

    pub(super) fn tick_ceremonies(&mut self, work: &mut Work) {
        let ids: Vec<Id> = self.running.keys().copied().collect();
        for id in ids {
            let Some(running) = self.running.get_mut(&id) else { continue };
            let ending = running.tick(work);
            self.end_if(&id, ending, work);
        }
    }

    /// Puts the result of a ceremony into use.
    pub(super) fn finish(&mut self, id: &Id, ending: Result<Ending, Abort>, work: &mut Work) {
        let Some(running) = self.running.get_mut(id) else { return };
        let epilogue = if ending.is_ok() { running.epilogue() } else { Vec::new() };
        let epilogue = if fit(&epilogue) { epilogue } else { Vec::new() };
        let subject = running.subject.clone();
        let (state, written) = match ending {
            Err(abort) => (CeremonyState::Failed(abort.to_string()), None),
            Ok(Ending::Aborted) => (CeremonyState::Aborted, None),
            Ok(Ending::Recovered { share }) => {
                let public = subject.source.as_ref().map(|source| source.public.clone());
                let found = share.zip(public).filter(|_| self.share_for(&subject).is_none());
                (CeremonyState::Recovered, found.map(|(share, public)| (public, Some(share), Vec::new())))
            }
            Ok(Ending::Activated { public, share, certificate }) => {
                let state = CeremonyState::Activated { key_id: *public.key_id(), certificate: certificate.clone() };
                (state, Some((public, share, certificate)))
            }
        };
        match (written, self.admits(&subject)) {
            (None, _) => self.close(id, state, epilogue, work),
            (Some(parts), Ok(true)) if !self.takes(subject.about(), &parts.0, subject.delivery, &subject.holders) => {
                let why = "its key does not go together with what this node has: it is not used here";
                self.close(id, CeremonyState::Failed(why.to_owned()), Vec::new(), work);
            }
            (Some(parts), Ok(true)) => {
                self.write_key(&subject, parts, work);
                self.close(id, state, epilogue, work);
            }
            (Some(_), Ok(false)) => {
                let why = "the key was changed while it ran: what came of it is not used here";
                self.close(id, CeremonyState::Failed(why.to_owned()), Vec::new(), work);
            }
            (Some(_), Err(error)) => {
                self.close(id, CeremonyState::Failed(error.to_string()), Vec::new(), work);
            }
        }
    }

    fn write_key(&mut self, subject: &Subject, parts: Parts, work: &mut Work) {
        let name = subject.request.change.key().clone();
        // The old share follows from the remains of earlier ceremonies.
        if !subject.is_recovery() {
            self.forget_epilogues_of(&name, Some(subject.version), work);
        }
        let kind = (subject.suite, subject.delivery);
        self.write_sharing((&name, subject.version, subject.epoch), kind, &subject.holders, parts, work);
    }

    /// A sharing serves from now on.
    fn write_sharing(
        &self,
        (name, version, epoch): (&KeyName, Version, Epoch),
        (suite, delivery): (Suite, Delivery),
        holders: &[u16],
        (public, share, certificate): Parts,
        work: &mut Work,
    ) {
        let epoch = epoch_of(epoch, &public, &parties(holders), certificate, self.now);
        let write = KeyWrite { name: name.clone(), suite, delivery, version, epoch, share };
        work.records.push(Record::Key(Box::new(write)));
        work.effects.push(CustodyEffect::KeyChanged { name: name.clone(), version });
    }

    /// Ends a ceremony with this state.
    pub(super) fn close(&mut self, id: &Id, state: CeremonyState, epilogue: Vec<bytes::Bytes>, work: &mut Work) {
        let Some(mut running) = self.running.remove(id) else { return };
        running.look_who_is_silent();
        let report = running.report_as(state);
        let ended = Ended::new(report, running.started, !epilogue.is_empty());
        self.bury(*id, ended, epilogue, work);
    }

    /// Ends a ceremony whose journal cannot be replayed.
    pub(super) fn close_unresumed(
        &mut self,
        ceremony: &Ceremony,
        subject: &Subject,
        state: CeremonyState,
        work: &mut Work,
    ) {
        let report = subject.report(ceremony.id, state, "");
        let ended = Ended::new(report, ceremony.started, false);
        self.bury(ceremony.id, ended, Vec::new(), work);
    }

    fn bury(&mut self, id: Id, ended: Ended, epilogue: Vec<bytes::Bytes>, work: &mut Work) {
        let (key, version) = (ended.report.key.clone(), ended.report.version);
        work.records.push(Record::End { id, outcome: ended.report.encode(JOURNAL_TEXT_BYTES), epilogue });
        work.effects.push(CustodyEffect::Report(ended.report.clone()));
        // The oldest reports are dropped.
        let mut older: Vec<(u64, Id)> = self
            .ended
            .iter()
            .filter(|(_, other)| other.is_of(&key, Some(version)))
            .map(|(other_id, other)| (other.started, *other_id))
            .collect();
        older.sort_unstable();
        let surplus = (older.len() + 1).saturating_sub(MOST_ENDED);
        for (_, other) in older.into_iter().take(surplus) {
            self.ended.remove(&other);
            self.plans.retain(|_, id| *id != other);
            work.records.push(Record::Forget(other));
        }
        self.ended.insert(id, ended);
    }

    fn forget_epilogues_of(&mut self, key: &KeyName, version: Option<Version>, work: &mut Work) {
        for (id, ended) in self.ended.iter_mut().filter(|(_, ended)| ended.epilogue && ended.is_of(key, version)) {
            ended.epilogue = false;
            work.records.push(Record::ForgetEpilogue(*id));
        }
    }

    /// Ends the ceremonies of a key, or of one version, and removes the remains of ended ones from which its shares
    /// follow.
    pub(super) fn forget_ceremonies_of(&mut self, key: &KeyName, version: Option<Version>, work: &mut Work) {
        let of_key = self.running.values().filter(|running| running.is_of(key, version));
        let ids: Vec<Id> = of_key.map(|running| running.id).collect();
        for id in ids {
            self.close(&id, CeremonyState::Failed("the key was destroyed".to_owned()), Vec::new(), work);
        }
        self.forget_epilogues_of(key, version, work);
    }

    /// The same for all that is destroyed, in case the node was killed in between.
    pub(super) fn forget_ceremonies_of_destroyed(&mut self, work: &mut Work) {
        for entry in self.table.iter().filter(|entry| entry.state == KeyState::Destroyed) {
            self.forget_ceremonies_of(&entry.name, Some(entry.version), work);
        }
    }
}
