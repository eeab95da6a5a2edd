//! The journal of ceremonies, which survive a crash: a seed and the inputs in their order replay a run exactly.
//!
//! Ceremonies draw randomness from the seed alone and have no clock, so a node that was killed replays what it had done
//! and goes on. An input is recorded before it is acted on. A ceremony that has ended keeps its outcome and loses its
//! seed.

use theta_groups::Secret;

use crate::codec::{Decoder, encoder};
use crate::database::{Rows, Table};
use crate::{Store, StoreError, Transaction};

const TABLE: &str = Table::Ceremonies.name();
/// Limit of one input, in bytes.
pub const MOST_INPUT: usize = 4 << 20;
/// The most inputs of one ceremony.
pub const MOST_INPUTS: u32 = 1 << 18;
/// Limit of all inputs of one ceremony, in bytes.
pub const MOST_BYTES: u64 = 256 << 20;
/// Limit of an outcome or a subject, in bytes.
pub const MOST_TEXT: usize = 64 << 20;

/// The id of a ceremony: a digest of its subject.
pub type CeremonyId = [u8; 32];

/// A ceremony as it is recorded.
#[derive(Debug)]
pub struct Ceremony {
    /// Its id.
    pub id: CeremonyId,
    /// Its subject, as the caller that began it encoded it.
    pub subject: Vec<u8>,
    /// The seed of its randomness; `None` when it has ended.
    pub seed: Option<Secret<[u8; 32]>>,
    /// Its result; `None` while it runs.
    pub outcome: Option<Vec<u8>>,
    /// When it began, in seconds since 1970.
    pub started: u64,
    inputs: u32,
    bytes: u64,
}

/// Why the journal refuses a change.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    /// There is no such ceremony.
    #[error("there is no such ceremony")]
    Unknown,
    /// It was begun before: resume it, unless it has ended.
    #[error("this ceremony was begun before")]
    Exists,
    /// The ceremony has ended.
    #[error("this ceremony has ended")]
    Ended,
    /// The ceremony has not ended.
    #[error("this ceremony has not ended")]
    Running,
    /// The index of an input does not follow the last one.
    #[error("input {found} does not follow: the next is {next}")]
    Gap {
        /// The index given.
        found: u32,
        /// The index that follows.
        next: u32,
    },
    /// A limit would be exceeded.
    #[error("{what} is more than {most}")]
    TooMuch {
        /// What.
        what: &'static str,
        /// The limit.
        most: u64,
    },
    /// An error of the disk, the file or the sealing key.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Ceremony {
    /// How many inputs are recorded: the index of the next one.
    #[must_use]
    pub const fn inputs(&self) -> u32 {
        self.inputs
    }

    pub(crate) fn encode(&self) -> Secret<Vec<u8>> {
        let room = 64 + self.subject.len() + self.outcome.as_ref().map_or(0, Vec::len);
        encoder(room)
            .u64(self.started)
            .u32(self.inputs)
            .u64(self.bytes)
            .bytes(&self.subject)
            .option(self.seed.as_ref(), |encoder, seed| encoder.raw(seed.expose()))
            .option(self.outcome.as_ref(), |encoder, outcome| encoder.bytes(outcome))
            .finish()
    }

    pub(crate) fn decode(id: &[u8], record: &[u8]) -> Result<Self, StoreError> {
        let mut decoder = Decoder::new(TABLE, record)?;
        let id = id.try_into().map_err(|_| decoder.error("a key is not the name of a ceremony"))?;
        let (started, inputs, bytes) = (decoder.u64()?, decoder.u32()?, decoder.u64()?);
        let subject = decoder.bytes(MOST_TEXT)?.to_vec();
        let seed = decoder.option(|decoder| {
            let mut seed = Secret::new([0; 32]);
            seed.expose_mut().copy_from_slice(decoder.take(32)?);
            Ok(seed)
        })?;
        let outcome = decoder.option(|decoder| decoder.bytes(MOST_TEXT).map(<[u8]>::to_vec))?;
        if seed.is_some() == outcome.is_some() {
            return Err(decoder.error("a ceremony is neither running nor ended"));
        }
        decoder.finish(Self { id, subject, seed, outcome, started, inputs, bytes })
    }
}

fn read(rows: &impl Rows, id: &CeremonyId) -> Result<Option<Ceremony>, StoreError> {
    let record = rows.row(Table::Ceremonies, id)?;
    record.map(|record| Ceremony::decode(id, record.expose())).transpose()
}

fn input_key(id: &CeremonyId, index: u32) -> Vec<u8> {
    let mut key = id.to_vec();
    key.extend_from_slice(&index.to_be_bytes());
    key
}

impl Store {
    /// All ceremonies, ended ones included.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    pub fn ceremonies(&self) -> Result<Vec<Ceremony>, StoreError> {
        let rows = self.snapshot()?.all(Table::Ceremonies, b"")?;
        rows.iter().map(|(id, record)| Ceremony::decode(id, record.expose())).collect()
    }

    /// The ceremony of this id.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be read.
    pub fn ceremony(&self, id: &CeremonyId) -> Result<Option<Ceremony>, StoreError> {
        read(&self.snapshot()?, id)
    }

    /// The inputs of a ceremony, in their order.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read, or one is missing.
    pub fn ceremony_inputs(&self, id: &CeremonyId) -> Result<Vec<Secret<Vec<u8>>>, StoreError> {
        let table = Table::Inputs.name();
        let mut inputs: Vec<Secret<Vec<u8>>> = Vec::new();
        self.snapshot()?.visit(Table::Inputs, id, id, &mut |key, record| {
            let next = u32::try_from(inputs.len()).unwrap_or(u32::MAX);
            if key != input_key(id, next) {
                return Err(StoreError::Record { table, problem: "an input of a ceremony is missing" });
            }
            inputs.push(Secret::new(Decoder::new(table, record.expose())?.rest().to_vec()));
            Ok(true)
        })?;
        Ok(inputs)
    }

    /// Records an input, durably before this returns; calls of many threads share one commit.
    ///
    /// # Errors
    /// As [`Transaction::record_input`].
    pub fn record_input(&self, id: CeremonyId, index: u32, input: Secret<Vec<u8>>) -> Result<(), JournalError> {
        self.write_grouped(move |transaction| transaction.record_input(&id, index, &input))?
    }
}

impl Transaction<'_> {
    /// Begins a ceremony.
    ///
    /// # Errors
    /// [`JournalError::Exists`] if there is one of this id, running or ended; [`JournalError::TooMuch`].
    pub fn begin_ceremony(
        &mut self,
        id: CeremonyId,
        subject: &[u8],
        seed: Secret<[u8; 32]>,
        started: u64,
    ) -> Result<(), JournalError> {
        check("what the ceremony is about, in bytes,", subject.len(), MOST_TEXT)?;
        if read(&self.rows, &id)?.is_some() {
            return Err(JournalError::Exists);
        }
        let subject = subject.to_vec();
        let ceremony = Ceremony { id, subject, seed: Some(seed), outcome: None, started, inputs: 0, bytes: 0 };
        Ok(self.rows.put(Table::Ceremonies, &id, ceremony.encode())?)
    }

    /// Records the next input of a ceremony.
    ///
    /// # Errors
    /// [`JournalError::Gap`] unless it follows the last; [`JournalError::Ended`], [`JournalError::TooMuch`].
    pub fn record_input(&mut self, id: &CeremonyId, index: u32, input: &Secret<Vec<u8>>) -> Result<(), JournalError> {
        let mut ceremony = self.running(id)?;
        if index != ceremony.inputs {
            return Err(JournalError::Gap { found: index, next: ceremony.inputs });
        }
        self.append(&mut ceremony, input)?;
        Ok(self.rows.put(Table::Ceremonies, id, ceremony.encode())?)
    }

    /// Replaces the last input. Repeated inputs that only count, such as ticks, thus need one record however many there
    /// are.
    ///
    /// # Errors
    /// [`JournalError::Gap`] unless `index` is that of the last input; [`JournalError::Ended`], [`JournalError::TooMuch`].
    pub fn amend_input(&mut self, id: &CeremonyId, index: u32, input: &Secret<Vec<u8>>) -> Result<(), JournalError> {
        let mut ceremony = self.running(id)?;
        let last = ceremony.inputs.checked_sub(1).filter(|last| *last == index);
        let Some(last) = last else { return Err(JournalError::Gap { found: index, next: ceremony.inputs }) };
        let table = Table::Inputs.name();
        let missing = StoreError::Record { table, problem: "an input of a ceremony is missing" };
        let before = self.rows.row(Table::Inputs, &input_key(id, last))?.ok_or(missing)?;
        let before = Decoder::new(table, before.expose())?.rest().len();
        (ceremony.inputs, ceremony.bytes) = (last, ceremony.bytes.saturating_sub(before as u64));
        self.append(&mut ceremony, input)?;
        Ok(self.rows.put(Table::Ceremonies, id, ceremony.encode())?)
    }

    /// Writes one more input; the caller writes the ceremony itself.
    fn append(&mut self, ceremony: &mut Ceremony, input: &Secret<Vec<u8>>) -> Result<(), JournalError> {
        let (index, input) = (ceremony.inputs, input.expose());
        check("an input, in bytes,", input.len(), MOST_INPUT)?;
        if index >= MOST_INPUTS {
            return Err(JournalError::TooMuch { what: "the number of inputs", most: u64::from(MOST_INPUTS) });
        }
        let bytes = ceremony.bytes.saturating_add(input.len() as u64);
        if bytes > MOST_BYTES {
            return Err(JournalError::TooMuch { what: "the sum of inputs, in bytes,", most: MOST_BYTES });
        }
        (ceremony.inputs, ceremony.bytes) = (index + 1, bytes);
        Ok(self.rows.put(Table::Inputs, &input_key(&ceremony.id, index), encoder(input.len()).raw(input).finish())?)
    }

    /// Records the outcome of a ceremony and forgets its seed and inputs. In place of the inputs it keeps `epilogue`,
    /// which tells others how the ceremony ended; [`Store::ceremony_inputs`] returns it.
    ///
    /// # Errors
    /// [`JournalError::Ended`] if it had ended before; [`JournalError::TooMuch`].
    pub fn end_ceremony(
        &mut self,
        id: &CeremonyId,
        outcome: &[u8],
        epilogue: &[Secret<Vec<u8>>],
    ) -> Result<(), JournalError> {
        check("an outcome, in bytes,", outcome.len(), MOST_TEXT)?;
        let mut ceremony = self.running(id)?;
        self.rows.remove_all(Table::Inputs, id)?;
        (ceremony.inputs, ceremony.bytes) = (0, 0);
        for part in epilogue {
            self.append(&mut ceremony, part)?;
        }
        (ceremony.seed, ceremony.outcome) = (None, Some(outcome.to_vec()));
        Ok(self.rows.put(Table::Ceremonies, id, ceremony.encode())?)
    }

    /// Forgets a ceremony that runs, with its seed and inputs, so that it can be begun anew.
    ///
    /// # Errors
    /// [`JournalError::Ended`], [`JournalError::Unknown`].
    pub fn discard_ceremony(&mut self, id: &CeremonyId) -> Result<(), JournalError> {
        self.running(id)?;
        self.rows.remove_all(Table::Inputs, id)?;
        Ok(self.rows.remove(Table::Ceremonies, id)?)
    }

    /// Forgets the epilogue of a ceremony that has ended; its outcome stays.
    ///
    /// # Errors
    /// [`JournalError::Running`], [`JournalError::Unknown`].
    pub fn forget_epilogue(&mut self, id: &CeremonyId) -> Result<(), JournalError> {
        let mut ceremony = self.ended(id)?;
        (ceremony.inputs, ceremony.bytes) = (0, 0);
        self.rows.put(Table::Ceremonies, id, ceremony.encode())?;
        self.rows.remove_all(Table::Inputs, id)?;
        Ok(())
    }

    /// Forgets a ceremony that has ended. Its id could then be begun again, so callers must never reuse an id.
    ///
    /// # Errors
    /// [`JournalError::Running`], [`JournalError::Unknown`].
    pub fn forget_ceremony(&mut self, id: &CeremonyId) -> Result<(), JournalError> {
        self.ended(id)?;
        self.rows.remove_all(Table::Inputs, id)?;
        Ok(self.rows.remove(Table::Ceremonies, id)?)
    }

    fn ended(&self, id: &CeremonyId) -> Result<Ceremony, JournalError> {
        let ceremony = read(&self.rows, id)?.ok_or(JournalError::Unknown)?;
        if ceremony.outcome.is_some() { Ok(ceremony) } else { Err(JournalError::Running) }
    }

    fn running(&self, id: &CeremonyId) -> Result<Ceremony, JournalError> {
        let ceremony = read(&self.rows, id)?.ok_or(JournalError::Unknown)?;
        if ceremony.outcome.is_some() { Err(JournalError::Ended) } else { Ok(ceremony) }
    }
}

fn check(what: &'static str, len: usize, most: usize) -> Result<(), JournalError> {
    // A usize always fits u64 on the platforms that Rust supports.
    if len > most { Err(JournalError::TooMuch { what, most: most as u64 }) } else { Ok(()) }
}
