//! The requests that wait for the certificates of their slots.

use std::collections::BTreeSet;

use theta_policy::{SlotClaim, SlotStanding};

use super::Certifier;
use crate::certify::entry::Want;
use crate::certify::interface::{CertifierEffect, Effects, Ticket};
use crate::certify::promise::Subject;
use crate::certify::refusal::SlotRefusal;

impl Certifier {
    /// Asks for the certificates of a request with a key of threshold k, until `deadline`. The answer is a
    /// [`CertifierEffect::Decided`], which may come at once.
    pub fn claim(&mut self, now: u64, k: u16, claims: &[SlotClaim], deadline: u64, effects: &mut Effects) -> Ticket {
        let ticket = self.next;
        self.next = self.next.wrapping_add(1);
        let refused = if self.identity().is_none() {
            Some(SlotRefusal::NoIdentity)
        } else if self.waiting.len() >= self.limits.waiting {
            Some(SlotRefusal::Overloaded)
        } else {
            None
        };
        if let Some(refusal) = refused {
            effects.push(CertifierEffect::Decided { ticket: Ticket(ticket), verdict: Err(refusal) });
            return Ticket(ticket);
        }
        let is_over = claims.iter().any(|claim| matches!(claim.standing, SlotStanding::Over { .. }));
        // For a slot that is over here, a certificate shows soon or never: nodes that know one answer at once.
        let grace = now.saturating_add(self.limits.ask_after.saturating_mul(4));
        let deadline = if is_over { deadline.min(grace) } else { deadline };
        let open: BTreeSet<Subject> = claims.iter().map(Subject::of).collect();
        self.waiting.insert(ticket, (open, deadline));
        self.deadlines.insert((deadline, ticket));
        for claim in claims {
            let quorum = self.quorum(k, &claim.key);
            let want = Want { ticket, digest: claim.digest, quorum, standing: claim.standing };
            self.open(now, claim, Some(want), effects);
        }
        if claims.is_empty() {
            self.close(ticket, Ok(()), effects);
        }
        Ticket(ticket)
    }

    /// Tells the others what this node has promised, for a request that it cannot carry on itself.
    pub fn announce(&mut self, now: u64, claims: &[SlotClaim], effects: &mut Effects) {
        if self.identity().is_some() {
            claims.iter().for_each(|claim| self.open(now, claim, None, effects));
        }
    }

    /// Drops a request for which nobody waits any more. Its promises remain.
    pub fn withdraw(&mut self, ticket: Ticket) {
        self.forget(ticket.0);
    }

    /// Why the slots of a request are not certified for it, in words; `None` if they are.
    #[must_use]
    pub fn standing(&self, k: u16, claims: &[SlotClaim]) -> Option<SlotRefusal> {
        claims.iter().find_map(|claim| {
            let quorum = self.quorum(k, &claim.key);
            let subject = Subject::of(claim);
            let want = Want { ticket: 0, digest: claim.digest, quorum, standing: claim.standing };
            let entry = self.entries.get(&subject)?;
            let certified = entry.tally.supporters(&want.digest).len() >= usize::from(quorum.need());
            let others = || self.early.under_other_rules(&subject);
            (!certified).then(|| entry.refusal(&subject, &want, &self.seating.present().roster.nodes, &others()))
        })
    }

    /// Reports the requests that are decided.
    pub(super) fn settle(&mut self, subject: &Subject, effects: &mut Effects) {
        let others = self.seating.present().roster.nodes.len().saturating_sub(1);
        let Some(entry) = self.entries.get_mut(subject) else { return };
        for (ticket, verdict) in entry.decide(subject, others) {
            match verdict {
                Err(_) => self.close(ticket, verdict, effects),
                Ok(()) => {
                    let open = self.waiting.get_mut(&ticket).map(|(open, _)| open);
                    let is_last = open.is_none_or(|open| {
                        open.remove(subject);
                        open.is_empty()
                    });
                    if is_last {
                        self.close(ticket, Ok(()), effects);
                    }
                }
            }
        }
        self.rest(subject);
    }

    pub(super) fn expired(&self, ticket: u64) -> SlotRefusal {
        let open = self.waiting.get(&ticket).map(|(open, _)| open).into_iter().flatten();
        let refusal = |subject: &Subject| {
            let entry = self.entries.get(subject)?;
            let want = entry.wants.iter().find(|want| want.ticket == ticket)?;
            let other_rules = self.early.under_other_rules(subject);
            Some(entry.refusal(subject, want, &self.seating.present().roster.nodes, &other_rules))
        };
        let mut open = open.filter_map(refusal);
        open.next().unwrap_or_else(|| SlotRefusal::Undecided("the slot was not decided in time".to_owned()))
    }

    pub(super) fn close(&mut self, ticket: u64, verdict: Result<(), SlotRefusal>, effects: &mut Effects) {
        if self.forget(ticket) {
            effects.push(CertifierEffect::Decided { ticket: Ticket(ticket), verdict });
        }
    }

    /// Removes a request; returns whether it was there.
    fn forget(&mut self, ticket: u64) -> bool {
        let Some((open, deadline)) = self.waiting.remove(&ticket) else { return false };
        self.deadlines.remove(&(deadline, ticket));
        for subject in open {
            if let Some(entry) = self.entries.get_mut(&subject) {
                entry.wants.retain(|want| want.ticket != ticket);
            }
            self.rest(&subject);
        }
        true
    }
}
