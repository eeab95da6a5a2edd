//! What entries may be, and what this node thinks of those that are proposed.

use theta_agreement::{Judge, Verdict};

use super::{Host, pending::Pending};
use crate::{Action, Demand, Entry, LedgerState, MOST_ENTRY, MemberChange, StandIn, Warrant, sitting::Sitting};

/// How far from this node's clock an entry's time may be, in seconds. Time is needed for what ends, such as consents, and must not stop a group
/// some of whose clocks are wrong. Consents last longer.
pub(super) const APART: u64 = 2 * 86_400;

/// Room for the consents of 1,024 nodes, and the rest of an entry.
const MOST_CONSENTS: usize = 1024 * 74 + 64;

/// Whether an entry has room for an action and its reason, beside the consents that it may have.
pub(super) fn fits(action: &Action, reason: &[u8], demand: &Demand) -> bool {
    let consents = if demand.needed == 0 { 0 } else { MOST_CONSENTS };
    action.encode().len().saturating_add(reason.len()).saturating_add(consents).saturating_add(64) <= MOST_ENTRY
}

/// What entries may be, whoever wants them, as far as is seen without a signature.
pub(super) struct Bounds<'a> {
    pub(super) state: &'a LedgerState,
    pub(super) sitting: &'a Sitting,
    pub(super) warrants: &'a [Warrant],
    /// The latest time that the warrants allow.
    pub(super) latest: u64,
}

impl Bounds<'_> {
    pub(super) fn time(&self, now: u64) -> u64 {
        now.min(self.latest).max(self.state.time())
    }

    /// Whether an action may be decided at this time. What may not is not proposed, however long it waits: nobody would vote for it.
    pub(super) fn allow(&self, action: &Action, reason: &[u8], time: u64) -> bool {
        match action {
            Action::Members(change) => {
                self.keep_warrants(change)
                    && self.is_newest(change, reason)
                    && self.state.check_member_time(change, reason, time).is_ok()
            }
            Action::SetState(change) => self.state.check_state_time(change, time).is_ok(),
            Action::Adopt(_) | Action::Begin(_) | Action::End { .. } => true,
        }
    }

    /// Whether no warrant is for a machine in the same place whose card is newer: the older one may be gone, too.
    fn is_newest(&self, change: &MemberChange, reason: &[u8]) -> bool {
        let MemberChange::Replace { node, card } = change else { return true };
        let newer = |other: &StandIn| other.node.get() == *node && other.card.content().made > card.content().made;
        !Warrant::is_like(reason) || !self.warrants.iter().flat_map(Warrant::stand_ins).any(newer)
    }

    /// While machines vote in the place of others, nobody joins, and nobody leaves but the members that are stood in for. With another number of members
    /// the warrant could be for more machines than it may be, and nothing could be decided any more.
    fn keep_warrants(&self, change: &MemberChange) -> bool {
        let mut stood_in_for = self.sitting.stood_in_for().peekable();
        match change {
            MemberChange::Add(_) => stood_in_for.peek().is_none(),
            MemberChange::Remove { node } => {
                stood_in_for.peek().is_none() || stood_in_for.any(|other| other.get() == *node)
            }
            MemberChange::Replace { .. } | MemberChange::Renew { .. } => true,
        }
    }
}

/// What a replica thinks of values, for the agreement.
pub(super) struct Chamber<'a> {
    pub(super) bounds: Bounds<'a>,
    pub(super) pending: &'a Pending,
    pub(super) host: &'a dyn Host,
    pub(super) now: u64,
}

impl Judge for Chamber<'_> {
    fn propose(&mut self) -> Option<Vec<u8>> {
        // Before the first tick there is no time to propose at.
        if self.now == 0 {
            return None;
        }
        let time = self.bounds.time(self.now);
        let allowed = |action: &Action, reason: &[u8], time| self.bounds.allow(action, reason, time);
        let wanted = self.pending.oldest(time, allowed)?;
        let entry = self.bounds.state.next_entry(wanted.action.clone(), wanted.reason.to_vec(), time);
        Some(Entry { consents: wanted.consents, ..entry }.encode())
    }

    fn judge(&mut self, value: &[u8]) -> Verdict {
        let state = self.bounds.state;
        match Entry::decode(value) {
            _ if self.now == 0 => Verdict::Unknown,
            // The time of the entry before is everybody's, whatever their clocks say.
            Ok(entry) if entry.time > self.now.saturating_add(APART).max(state.time()) => Verdict::Invalid,
            // Whoever dates an entry ahead destroys nothing before its time.
            Ok(entry) if state.cuts_short(entry.time, self.now) => Verdict::Invalid,
            // Consents that have ended are not used in an entry that says that it is older.
            Ok(entry) if entry.time.saturating_add(APART) < self.now => Verdict::Invalid,
            // A machine that votes by a warrant may have voted for it, and that would not count.
            Ok(entry) if entry.time > self.bounds.latest => Verdict::Invalid,
            Ok(entry) if !self.bounds.allow(&entry.action, &entry.reason, entry.time) => Verdict::Invalid,
            Ok(entry) if state.check_entry(&entry).is_err() => Verdict::Invalid,
            // It was proven above.
            Ok(Entry { action: Action::Members(change), reason, .. }) if change.claims_proof(&reason) => Verdict::Valid,
            Ok(entry) => self.host.judge(state, &entry),
            Err(_) => Verdict::Invalid,
        }
    }
}
