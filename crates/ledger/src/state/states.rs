//! The states of keys and their versions.

use theta_names::{KeyName, KeyState, Version};
use theta_statements::StateChange;

use super::{Begun, Ended, KeyHistory, LedgerState, Refusal};

/// How long, in seconds, a destruction has to wait at the least if it waits at all. For so long before its time it cannot be taken back any more,
/// since the nodes' clocks differ.
pub const SHORTEST_WAIT: u64 = 3_600;

impl LedgerState {
    /// Whether this is the last change of state of its key.
    #[must_use]
    pub fn is_last_change(&self, change: &StateChange) -> bool {
        self.keys.get(&change.key).is_some_and(|line| line.last.as_ref() == Some(change))
    }

    pub(super) fn check_state(&self, change: &StateChange) -> Result<(), Refusal> {
        let unknown = || Refusal::Unknown(change.key.to_string());
        let line = self.keys.get(&change.key).ok_or_else(unknown)?;
        let at = line.generation;
        if change.generation != at.saturating_add(1) {
            return Err(Refusal::Generation { at, named: change.generation });
        }
        if change.not_before != 0 && change.state != KeyState::Destroyed {
            return Err(Refusal::Outcome("only what is destroyed waits for its time"));
        }
        let state = match change.version {
            None => line.state,
            Some(version) => line.versions.get(&version).ok_or_else(unknown)?.state,
        };
        // Only whoever may enable it gives back what was disabled, and what is doomed is disabled.
        let gives_back = change.state == KeyState::Retired && state == KeyState::Disabled;
        // To enable what is enabled ends what some nodes were asked for before, and the group has not decided.
        let again = change.state == KeyState::Active && matches!(state, KeyState::Active | KeyState::Retired);
        let follows = again || (state.may_become(change.state) && !gives_back);
        if follows { Ok(()) } else { Err(Refusal::State { key: change.key.to_string(), state }) }
    }

    /// Whether a change comes in time, in seconds since 1970: what is doomed is taken back before nodes begin to destroy it, and a wait
    /// that begins is longer than that.
    ///
    /// # Errors
    /// [`Refusal::State`], [`Refusal::Outcome`].
    pub fn check_state_time(&self, change: &StateChange, time: u64) -> Result<(), Refusal> {
        let doom = self.keys.get(&change.key).and_then(|line| match change.version {
            None => line.doomed,
            Some(version) => line.doom_of(version),
        });
        let late = doom.is_some_and(|doom| time.saturating_add(SHORTEST_WAIT) >= doom);
        if late && change.state != KeyState::Destroyed {
            return Err(Refusal::State { key: change.key.to_string(), state: KeyState::Destroyed });
        }
        if change.not_before != 0 && change.not_before <= time.saturating_add(SHORTEST_WAIT) {
            return Err(Refusal::Outcome(
                "what is destroyed after a wait waits for more than an hour, since clocks differ: name a later time",
            ));
        }
        Ok(())
    }

    /// Whether an entry of this time, in seconds since 1970, would cut short a wait by a clock that shows `now`: it would destroy what is
    /// doomed more than an hour before its time, or forbid to take it back more than two hours before.
    pub(crate) fn cuts_short(&self, time: u64, now: u64) -> bool {
        let own = self.keys.values().flat_map(|line| line.versions.values().map(|history| history.doomed));
        let mut dooms = self.keys.values().map(|line| line.doomed).chain(own).flatten();
        let (early, earlier) = (now.saturating_add(SHORTEST_WAIT), now.saturating_add(2 * SHORTEST_WAIT));
        dooms.any(|doom| {
            (doom <= time && doom > early) || (doom <= time.saturating_add(SHORTEST_WAIT) && doom > earlier)
        })
    }

    pub(super) fn set_state(&mut self, change: &StateChange) {
        let StateChange { key, version, state, generation, not_before } = change;
        let Some(line) = self.keys.get_mut(key) else { return };
        (line.generation, line.last) = (*generation, Some(change.clone()));
        let settles = if *state == KeyState::Retired { 0 } else { *generation };
        let doomed = (*state == KeyState::Destroyed && *not_before > 0).then_some(*not_before);
        let state = if doomed.is_some() { KeyState::Disabled } else { *state };
        match version {
            None => (line.state, line.doomed, line.settled) = (state, doomed, line.settled.max(settles)),
            Some(version) => {
                // An older version that is enabled becomes what it was before: it decrypts and verifies, and makes nothing new.
                let older = line.versions.last_key_value().is_some_and(|(newest, _)| newest > version);
                let enabled = state == KeyState::Active;
                if let Some(history) = line.versions.get_mut(version) {
                    history.state = if enabled && older { KeyState::Retired } else { state };
                    (history.doomed, history.settled) = (doomed, history.settled.max(settles));
                }
            }
        }
        if state == KeyState::Destroyed {
            self.end_ceremonies_of(key, *version);
        }
    }

    /// Destroys what is doomed and whose time has come by an entry's time.
    pub(super) fn destroy_due(&mut self, time: u64) {
        let due = |doomed: Option<u64>| doomed.is_some_and(|doom| doom <= time);
        let mut over: Vec<(KeyName, Option<Version>)> = Vec::new();
        for (name, line) in &mut self.keys {
            let KeyHistory { state, doomed, versions, .. } = line;
            if due(*doomed) {
                (*state, *doomed) = (KeyState::Destroyed, None);
                over.push((name.clone(), None));
            }
            for (version, history) in versions.iter_mut().filter(|(_, history)| due(history.doomed)) {
                (history.state, history.doomed) = (KeyState::Destroyed, None);
                over.push((name.clone(), Some(*version)));
            }
        }
        over.iter().for_each(|(key, version)| self.end_ceremonies_of(key, *version));
    }

    /// What is destroyed has no ceremonies any more.
    fn end_ceremonies_of(&mut self, key: &KeyName, version: Option<Version>) {
        let gone =
            |begun: &Begun| begun.request.change.key() == key && version.is_none_or(|version| version == begun.version);
        let over: Vec<Begun> = self.running.extract_if(.., |_, begun| gone(begun)).map(|(_, begun)| begun).collect();
        over.iter().for_each(|begun| self.note_end(&begun.request.digest(), Ended::Aborted));
    }
}
