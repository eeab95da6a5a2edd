//! Counts the changes that people make to the state of a key. Each change names the *generation* that it makes, so that
//! a signed or approved change is made at most once, and never after a later one.

use theta_names::{KeyName, KeyState, MOST_GENERATIONS_AHEAD, Version};

use super::{KeyError, version_prefix};
use crate::codec::{Decoder, Encoder, encoder};
use crate::database::{Rows, Table};
use crate::{Store, StoreError, Transaction};

/// What a group has decided about the state of a key and its versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyStates {
    /// The number of the last change.
    pub generation: u64,
    /// That of the whole key.
    pub state: KeyState,
    /// Those of its versions, of those that the store has and others.
    pub versions: Vec<(Version, KeyState)>,
}

/// The last change of a key's state.
struct Last {
    generation: u64,
    version: Option<Version>,
    state: KeyState,
}

impl Last {
    fn read(rows: &impl Rows, name: &KeyName) -> Result<Option<Self>, StoreError> {
        let row = rows.row(Table::Generations, name.as_str().as_bytes())?;
        row.map(|record| Self::decode(record.expose())).transpose()
    }

    fn decode(record: &[u8]) -> Result<Self, StoreError> {
        let mut decoder = Decoder::new(Table::Generations.name(), record)?;
        let (generation, version) = (decoder.u64()?, decoder.option(Decoder::version)?);
        let state = KeyState::from_code(decoder.u8()?).ok_or_else(|| decoder.error("a state is not known"))?;
        decoder.finish(Self { generation, version, state })
    }
}

/// The generation that a row of the table records.
pub(crate) fn decode_generation(record: &[u8]) -> Result<u64, StoreError> {
    Ok(Last::decode(record)?.generation)
}

impl Store {
    /// The generation of the last change of a key's state; 0 if there was none.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn key_generation(&self, name: &KeyName) -> Result<u64, StoreError> {
        Ok(Last::read(&self.snapshot()?, name)?.map_or(0, |last| last.generation))
    }
}

impl Transaction<'_> {
    /// Changes the state of a key, or of one of its versions, if the change is newer than all before: its generation is
    /// higher than the last, by [`MOST_GENERATIONS_AHEAD`] at most. Returns whether the generation advanced. It does
    /// not if the last change is asked for again, which is allowed any number of times, nor if a destroyed key is to be
    /// destroyed, which is allowed with generations out of range. A change to the present state advances the
    /// generation, so that nodes that have made different changes agree again. An older version that is to be active
    /// becomes retired, whether it was disabled or not.
    ///
    /// # Errors
    /// [`KeyError::Generation`] for a change that is not newer, [`KeyError::GenerationAhead`]; otherwise as
    /// [`Transaction::set_key_state`] and [`Transaction::set_version_state`].
    pub fn change_state(
        &mut self,
        name: &KeyName,
        version: Option<Version>,
        next: KeyState,
        generation: u64,
    ) -> Result<bool, KeyError> {
        let key = self.key(name)?;
        let last = Last::read(&self.rows, name)?;
        let current = last.as_ref().map_or(0, |last| last.generation);
        let state = match version {
            None => key.state,
            Some(version) => {
                let unknown = || KeyError::NoVersion { name: name.clone(), version };
                key.version(version).ok_or_else(unknown)?.state
            }
        };
        let late = generation <= current || generation > current.saturating_add(MOST_GENERATIONS_AHEAD);
        if late && state == KeyState::Destroyed && next == KeyState::Destroyed {
            // Destroyed is final, so it does not matter which change this was.
            return Ok(false);
        }
        if generation <= current {
            let same = |last: Last| (last.generation, last.version, last.state) == (generation, version, next);
            if last.is_some_and(same) {
                return Ok(false);
            }
            return Err(KeyError::Generation { name: name.clone(), named: generation, current });
        }
        if generation > current.saturating_add(MOST_GENERATIONS_AHEAD) {
            return Err(KeyError::GenerationAhead { name: name.clone(), named: generation, current });
        }
        // An enabled older version becomes what it was before: it decrypts and verifies, and makes nothing new.
        let older = version.is_some_and(|version| key.is_superseded(version));
        let goal = if next == KeyState::Active && older { KeyState::Retired } else { next };
        if next == KeyState::Retired && state == KeyState::Disabled {
            // Only whoever may enable it gives back what was disabled.
            return Err(KeyError::Transition { name: name.clone(), from: state, next, superseded: false });
        }
        if state != goal {
            match version {
                None => self.set_key_state(name, goal)?,
                Some(version) => self.set_version_state(name, version, goal)?,
            }
        }
        self.put_generation(name, &Last { generation, version, state: next })?;
        Ok(true)
    }

    /// Takes over what the group has decided, whatever was here. Of what is destroyed the shares go; what is destroyed here stays so, and
    /// a version that was not certified yet stays as it is.
    ///
    /// # Errors
    /// [`KeyError::Unknown`], [`KeyError::Store`].
    pub fn follow_states(&mut self, name: &KeyName, states: &KeyStates) -> Result<(), KeyError> {
        let destroyed = self.change_key(name, |key| Ok(key.follow(states)))?;
        for version in destroyed {
            self.rows.remove_all(Table::Shares, &version_prefix(name, version))?;
            self.lift_version(name, version)?;
        }
        let KeyStates { generation, state, .. } = *states;
        Ok(self.put_generation(name, &Last { generation, version: None, state })?)
    }

    fn put_generation(&mut self, name: &KeyName, last: &Last) -> Result<(), StoreError> {
        let Last { generation, version, state } = *last;
        let record = encoder(16).u64(generation).option(version, Encoder::version).u8(state.code()).finish();
        self.rows.put(Table::Generations, name.as_str().as_bytes(), record)
    }
}
