//! Changes of the states of keys: asked for here, decided by the group, followed by every node.
//!
//! Who is asked to disable a key, and whose policy grants it, stops using it at once, durably. That counts for this node alone until the
//! group's ledger says so: see `spec/custody.md`, States.

use theta_ledger::{Action, Input, KeyHistory, Refusal};
use theta_names::{KeyName, KeyState, NodeId, Version};
use theta_statements::StateChange;
use theta_store::{Frozen, KeyError, KeyStates};

use super::Custodian;
use super::work::{Record, Work};
use crate::request::{ChangeReport, CustodyEffect};
use crate::{ChangeError, CustodyError, NotInLedger};

/// How many changes of a key's state this node may lack, and still freeze the key for one that is said to come after them. Each takes one
/// enable of the group to end such a freeze.
const MOST_LACKING: u64 = 4;
/// Ticks between asking the group again to decide what is frozen here.
const AGAIN: u64 = 16;

impl Custodian {
    /// Asks the group to change the state of a key or of a version of it, as this node's policy has granted to a client. To disable
    /// takes effect here at once. The `reason` is what the client signed, and others approved. A change that was asked for before may be
    /// asked for again; the answer says how it stands.
    ///
    /// A node without a ledger changes the state by itself.
    ///
    /// # Errors
    /// [`ChangeError`]: there is no such key or version, that state may not follow, or another change was decided.
    pub fn change(
        &mut self,
        change: &StateChange,
        reason: Vec<u8>,
        effects: &mut Vec<CustodyEffect>,
    ) -> Result<ChangeReport, ChangeError> {
        if let Some(why) = &self.failed {
            return Err(ChangeError::Custody(CustodyError::Unusable(why.clone())));
        }
        if self.ledger.is_none() {
            return self.change_alone(change, effects);
        }
        if self.is_decided(change) {
            return Ok(ChangeReport { decided: true, frozen: false, awaits: Vec::new() });
        }
        if change.state == KeyState::Active && self.thaws_alone(change) {
            return self.thaw_alone(change, effects);
        }
        let may_follow = self.may_follow(change);
        let freezes = change.state == KeyState::Disabled && may_follow.as_ref().err().is_none_or(is_early);
        let mut work = Work::default();
        if freezes {
            self.freeze(change, reason.clone(), &mut work);
        }
        let frozen = !work.records.is_empty() || self.is_frozen(change);
        if may_follow.is_ok() {
            self.drive_ledger(Input::Propose(Action::SetState(change.clone()), reason), &mut work);
        }
        effects.append(&mut self.settle(work));
        match (&self.failed, may_follow) {
            (Some(why), _) => Err(ChangeError::Custody(CustodyError::Unusable(why.clone()))),
            (None, Err(error)) if !(freezes && frozen) => Err(error),
            (None, _) => {
                let awaits = self.awaited_for(change);
                Ok(ChangeReport { decided: self.is_decided(change), frozen, awaits })
            }
        }
    }

    /// At this node alone, durably: it has no group that decides.
    fn change_alone(
        &mut self,
        change: &StateChange,
        effects: &mut Vec<CustodyEffect>,
    ) -> Result<ChangeReport, ChangeError> {
        let StateChange { key, version, state, generation, .. } = change;
        self.store.write(|transaction| transaction.change_state(key, *version, *state, *generation))?;
        let before = self.table.versions(key.as_str());
        self.reload(key)?;
        let same =
            |entry: &crate::KeyEntry| before.iter().any(|old| (old.version, old.state) == (entry.version, entry.state));
        let versions = self.table.versions(key.as_str());
        let changed = versions.iter().filter(|entry| !same(entry));
        effects.extend(changed.map(|entry| CustodyEffect::KeyChanged { name: key.clone(), version: entry.version }));
        if *state == KeyState::Destroyed {
            let mut work = Work::default();
            self.forget_ceremonies_of(key, *version, &mut work);
            effects.append(&mut self.settle(work));
        }
        Ok(ChangeReport { decided: true, frozen: false, awaits: Vec::new() })
    }

    /// Whether a key that the group's ledger does not have is frozen here, so that no entry will ever end that.
    fn thaws_alone(&self, change: &StateChange) -> bool {
        self.line(&change.key).is_none() && self.frozen.iter().any(|frozen| is_of(frozen, change))
    }

    /// Uses again what was frozen here: nobody else decides about it.
    fn thaw_alone(
        &mut self,
        change: &StateChange,
        effects: &mut Vec<CustodyEffect>,
    ) -> Result<ChangeReport, ChangeError> {
        let mut work = Work::default();
        work.records.push(Record::Thaw(change.key.clone(), change.version));
        let versions = self.table.versions(change.key.as_str());
        let changed = versions.iter().map(|entry| entry.version);
        work.effects.extend(changed.map(|version| CustodyEffect::KeyChanged { name: change.key.clone(), version }));
        effects.append(&mut self.settle(work));
        match &self.failed {
            Some(why) => Err(ChangeError::Custody(CustodyError::Unusable(why.clone()))),
            None => Ok(ChangeReport { decided: true, frozen: false, awaits: Vec::new() }),
        }
    }

    fn line(&self, key: &KeyName) -> Option<&KeyHistory> {
        self.ledger()?.keys().get(key)
    }

    /// Whether the ledger has this very change, or another one that destroys as much.
    fn is_decided(&self, change: &StateChange) -> bool {
        let Some(line) = self.line(&change.key) else { return false };
        let state = match change.version {
            None => Some(line.state),
            Some(version) => line.state_of(version),
        };
        let destroyed = change.state == KeyState::Destroyed && state == Some(KeyState::Destroyed);
        destroyed || self.ledger().is_some_and(|ledger| ledger.is_last_change(change))
    }

    /// Whether the group could decide it next, for all that this node knows.
    fn may_follow(&self, change: &StateChange) -> Result<(), ChangeError> {
        let StateChange { key, version, state, generation, .. } = change;
        let Some(ledger) = self.ledger() else { return Ok(()) };
        let here = self.table.versions(key.as_str());
        let checked = ledger.check(&Action::SetState(change.clone()));
        let refusal = match checked.and_then(|()| ledger.check_state_time(change, self.now)) {
            Ok(()) => return Ok(()),
            Err(refusal) => refusal,
        };
        let name = key.clone();
        Err(match (refusal, version) {
            (Refusal::Unknown(_), _) if !here.is_empty() && !ledger.keys().contains_key(key) => {
                NotInLedger { name: key.to_string(), k: self.group.k }.into()
            }
            (Refusal::Unknown(_), Some(version)) if ledger.keys().contains_key(key) => {
                KeyError::NoVersion { name, version: *version }.into()
            }
            (Refusal::Unknown(_), _) => KeyError::Unknown(name).into(),
            (Refusal::Generation { at, named }, _) if named > at => ChangeError::Early { name, named, at },
            (Refusal::Generation { at, named }, _) => KeyError::Generation { name, named, current: at }.into(),
            (Refusal::State { state: from, .. }, _) => {
                KeyError::Transition { name, from, next: *state, superseded: false }.into()
            }
            (other, _) => ChangeError::Refused(format!("{other} (generation {generation})")),
        })
    }

    /// Stops using a key here, unless it has stopped already.
    fn freeze(&self, change: &StateChange, reason: Vec<u8>, work: &mut Work) {
        let StateChange { key, version, generation, .. } = change.clone();
        let entries = self.table.versions(key.as_str());
        let covered = |entry: &Version| version.is_none_or(|version| version == *entry);
        let versions: Vec<Version> = entries.iter().map(|entry| entry.version).filter(covered).collect();
        let newer = |frozen: &Frozen| frozen.version == version && frozen.generation >= generation;
        if versions.is_empty() || self.frozen.iter().any(|frozen| frozen.key == key && newer(frozen)) {
            return;
        }
        let name = key.clone();
        work.records.push(Record::Freeze(Box::new(Frozen { key, version, generation, reason })));
        let changed = versions.into_iter().map(|version| CustodyEffect::KeyChanged { name: name.clone(), version });
        work.effects.extend(changed);
    }

    fn is_frozen(&self, change: &StateChange) -> bool {
        change.state == KeyState::Disabled && self.frozen.iter().any(|frozen| is_of(frozen, change))
    }

    fn awaited_for(&self, change: &StateChange) -> Vec<NodeId> {
        let action = Action::SetState(change.clone()).digest();
        self.ledger.as_ref().map_or_else(Vec::new, |replica| replica.awaited(&action))
    }

    /// Asks the group again, now and then, to decide what is frozen here: it may have been away, or this node.
    pub(super) fn propose_frozen(&mut self, work: &mut Work) {
        if !self.ticks.is_multiple_of(AGAIN) {
            return;
        }
        for Frozen { key, version, generation, reason } in self.frozen.clone() {
            let change = StateChange { key, version, state: KeyState::Disabled, generation, not_before: 0 };
            if self.may_follow(&change).is_ok() {
                self.drive_ledger(Input::Propose(Action::SetState(change), reason), work);
            }
        }
    }

    /// Brings the states of this node's keys to what the ledger says. What is frozen here serves again only after the group has decided
    /// about just that, in that generation or a later one.
    pub(super) fn follow_states(&mut self, work: &mut Work) {
        for (name, states) in self.states_that_differ() {
            if work.changed().any(|changed| *changed == name) {
                self.unsettled = true;
                continue;
            }
            let thawed = self.frozen.iter().filter(|frozen| frozen.key == name && self.is_settled(frozen));
            let thawed = thawed.map(|frozen| Record::Thaw(frozen.key.clone(), frozen.version));
            work.records.extend(thawed.collect::<Vec<_>>());
            let entries = self.table.versions(name.as_str());
            let changed = entries.iter().map(|entry| (entry.version, entry.state));
            for (version, state) in changed {
                work.effects.push(CustodyEffect::KeyChanged { name: name.clone(), version });
                let now = states.versions.iter().find(|(known, _)| *known == version);
                let destroyed =
                    states.state == KeyState::Destroyed || now.is_some_and(|(_, state)| *state == KeyState::Destroyed);
                if destroyed && state != KeyState::Destroyed {
                    self.forget_ceremonies_of(&name, Some(version), work);
                }
            }
            work.records.push(Record::States(name, Box::new(states)));
        }
    }

    fn is_settled(&self, frozen: &Frozen) -> bool {
        self.line(&frozen.key).is_some_and(|line| line.has_settled(frozen.version, frozen.generation))
    }

    /// The keys whose states here are not what the ledger says, as far as it is not behind this node.
    fn states_that_differ(&self) -> Vec<(KeyName, KeyStates)> {
        let Some(ledger) = self.ledger() else { return Vec::new() };
        let mut differing = Vec::new();
        for (name, line) in ledger.keys() {
            let entries = self.table.versions(name.as_str());
            // After a restore the ledger may be behind for a while.
            let Some(known) = entries.first().filter(|entry| entry.generation <= line.generation) else { continue };
            let thaws = || self.frozen.iter().any(|frozen| frozen.key == *name && self.is_settled(frozen));
            let differs = |entry: &&std::sync::Arc<crate::KeyEntry>| {
                let decided = line.state_at(entry.version, self.now);
                let decided = decided.map(|state| if entry.frozen { state.and(KeyState::Disabled) } else { state });
                // What this node has destroyed stays so, whatever is decided too late.
                let ends = matches!(entry.state, KeyState::Pending | KeyState::Destroyed);
                !ends && decided.is_some_and(|decided| decided != entry.state)
            };
            if known.generation < line.generation || entries.iter().any(|entry| differs(&entry)) || thaws() {
                let due = |doomed: Option<u64>, state| {
                    if doomed.is_some_and(|doom| doom <= self.now) { KeyState::Destroyed } else { state }
                };
                let versions = line.versions.iter();
                let versions = versions.map(|(version, history)| (*version, due(history.doomed, history.state)));
                let (state, versions) = (due(line.doomed, line.state), versions.collect());
                let states = KeyStates { generation: line.generation, state, versions };
                differing.push((name.clone(), states));
            }
        }
        differing
    }
}

/// Whether it may be decided when this node or the group has caught up.
const fn is_early(error: &ChangeError) -> bool {
    match error {
        ChangeError::Early { named, at, .. } => named.saturating_sub(*at) <= MOST_LACKING + 1,
        ChangeError::NotInLedger(_) => true,
        _ => false,
    }
}

/// Whether this is what a change is about.
fn is_of(frozen: &Frozen, change: &StateChange) -> bool {
    frozen.key == change.key && frozen.version == change.version
}
