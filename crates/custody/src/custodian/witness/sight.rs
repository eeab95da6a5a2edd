//! Checks greetings: what peers remember of this node's store, and what it has seen of theirs.

use theta_names::NodeId;
use theta_store::{Incarnation, Rollback};

use super::Judged;
use crate::custodian::greetings::GREET;
use crate::custodian::message::{Hello, Message};
use crate::custodian::work::Work;
use crate::request::{CustodyEffect, To};
use crate::{Custodian, CustodyError};

impl Custodian {
    /// How many peers are needed to trust this node's store, and to distrust it: so many that one of them is honest, or
    /// all.
    pub(in crate::custodian) fn needed(&self) -> usize {
        usize::from(self.group.k).min(self.others().count())
    }

    /// Examines a peer's greeting.
    pub(in crate::custodian) fn witness(
        &mut self,
        from: NodeId,
        hello: &Hello,
        work: &mut Work,
    ) -> Result<(), CustodyError> {
        let seen = self.witnesses.observe(from, &hello.incarnation);
        Self::tell_of(from, seen.err().flatten(), work);
        let judged = match self.judge(from, hello.remembered.as_ref(), work)? {
            Ok(()) => self.judge_fork(from, hello.fork.as_ref(), work)?,
            contradiction => contradiction,
        };
        if let Some(rollback) = self.witnesses.answered(from, judged) {
            work.effects.push(CustodyEffect::RolledBack { node: self.local, rollback, witness: Some(from) });
        }
        Ok(())
    }

    pub(in crate::custodian) fn tell_of(node: NodeId, news: Option<Rollback>, work: &mut Work) {
        if let Some(rollback) = news {
            work.effects.push(CustodyEffect::RolledBack { node, rollback, witness: None });
        }
    }

    /// Compares what a peer remembers of this store with its history. One that does not reach back so far contradicts as well: nobody but a
    /// person can settle that, and a person settles what is on record.
    fn judge(
        &mut self,
        from: NodeId,
        remembered: Option<&Incarnation>,
        work: &mut Work,
    ) -> Result<Judged, CustodyError> {
        let Some(remembered) = remembered else { return Ok(Ok(())) };
        let checked = self.store.check_remembered(remembered)?;
        if checked.is_err() && self.is_meant(from, remembered)? {
            self.say_meant(from, remembered, work);
            return Ok(Ok(()));
        }
        // The peer gets the links from what it remembers to the present opening, also where they show that this store
        // does not continue that.
        if remembered.opening != self.store.incarnation().opening
            && self.witnesses.may_show(from, self.ticks, GREET)
            && let Some(lineage) = self.store.lineage(remembered)?
        {
            work.send(To::One(from), &Message::Lineage(lineage));
        }
        Ok(checked.map_err(|rollback| (*remembered, rollback)))
    }

    /// Compares the fork that a peer has seen of this store with its history.
    fn judge_fork(
        &mut self,
        from: NodeId,
        fork: Option<&Incarnation>,
        work: &mut Work,
    ) -> Result<Judged, CustodyError> {
        let Some(fork) = fork else { return Ok(Ok(())) };
        if self.is_meant(from, fork)? {
            self.say_meant(from, fork, work);
            return Ok(Ok(()));
        }
        let checked = self.store.check_remembered(fork)?;
        Ok(checked.map_err(|rollback| (*fork, rollback)))
    }

    /// Whether a person has decided that this store replaces that one: by a command, or by restoring it, with bounds
    /// above everything that the one before may have done.
    fn is_meant(&self, from: NodeId, claim: &Incarnation) -> Result<bool, CustodyError> {
        Ok(self.witnesses.is_overruled(from, claim) || self.store.restored_from()? == Some(claim.store_id))
    }

    fn say_meant(&self, to: NodeId, claim: &Incarnation, work: &mut Work) {
        let now = self.store.incarnation();
        work.send(To::One(to), &Message::Meant { claim: *claim, now });
    }
}
