//! How often people have changed the state of a key: each change names the *generation* that it makes, so that one which was
//! signed or approved once is made once, and none after a later one.

use theta_names::{KeyName, KeyState, MOST_GENERATIONS_AHEAD, Version};

use super::KeyError;
use crate::codec::{Decoder, Encoder, encoder};
use crate::database::{Rows, Table};
use crate::{Store, StoreError, Transaction};

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

/// The generation in a row of the table.
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
    /// Changes the state of a key, or of a version of it, if the change is newer than all before: its generation is higher than
    /// the last, by [`MOST_GENERATIONS_AHEAD`] at most. Says whether anything was done: the very change that was the last may
    /// be asked for again and again. The state that there is may be asked for, too, with a higher generation: so nodes that
    /// have made different changes come together. To destroy what is destroyed may be asked for with any generation. An older
    /// version that is to be active becomes retired, wherever it was disabled and wherever it was not.
    ///
    /// # Errors
    /// [`KeyError::Generation`] for a change that is not newer, [`KeyError::GenerationAhead`]; else as
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
            // Nothing comes after that, so that it does not matter which change it was.
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
        // An older version that is enabled is again what it was before: it decrypts and verifies, and makes nothing new.
        let older = version.is_some_and(|version| key.is_superseded(version));
        let goal = if next == KeyState::Active && older { KeyState::Retired } else { next };
        if state != goal {
            match version {
                None => self.set_key_state(name, goal)?,
                Some(version) => self.set_version_state(name, version, goal)?,
            }
        }
        let record = encoder(16).u64(generation).option(version, Encoder::version).u8(next.code()).finish();
        self.rows.put(Table::Generations, name.as_str().as_bytes(), record)?;
        Ok(true)
    }
}
