//! What the store records of itself as a whole.

use theta_groups::Secret;

use super::{Rows, Table, Writes};
use crate::StoreError;
use crate::codec::{Decoder, encoder};
use crate::incarnation::{Opening, StoreId};

const TABLE: &str = Table::Settings.name();
/// The most openings that are kept. What peers remember from before is checked against the oldest that is left.
const MOST_OPENINGS: u64 = 4096;

/// The settings. Each is a record of its own, so that those that change often are small.
pub(crate) struct Settings;

impl Settings {
    const SEQUENCE: &'static [u8] = b"sequence";
    const RESTORED_FROM: &'static [u8] = b"restored-from";
    const SLOT_FLOOR: &'static [u8] = b"slot-floor";
    const WATERMARK: &'static [u8] = b"watermark";
    const AUDIT_START: &'static [u8] = b"audit-start";
    const TRUSTED_OPENING: &'static [u8] = b"trusted-opening";
    const LEDGER: &'static [u8] = b"ledger";
    const LEDGER_LACKS: &'static [u8] = b"ledger-lacks-votes";
    const LEDGER_WARRANTS: &'static [u8] = b"ledger-warrants";

    /// How many commits were made; 0 while a store is being created.
    pub(crate) fn sequence(rows: &impl Rows) -> Result<u64, StoreError> {
        Ok(Self::number(rows, Self::SEQUENCE)?.unwrap_or(0))
    }

    pub(crate) fn set_sequence(rows: &mut Writes<'_>, sequence: u64) -> Result<(), StoreError> {
        rows.put(Table::Settings, Self::SEQUENCE, number_record(sequence))
    }

    /// Slots up to this one are refused under every rule that has no mark of its own.
    pub(crate) fn slot_floor(rows: &impl Rows) -> Result<Option<u64>, StoreError> {
        Self::number(rows, Self::SLOT_FLOOR)
    }

    pub(crate) fn set_slot_floor(rows: &mut Writes<'_>, floor: u64) -> Result<(), StoreError> {
        rows.put(Table::Settings, Self::SLOT_FLOOR, number_record(floor))
    }

    /// Ids of days before this one are refused.
    pub(crate) fn watermark(rows: &impl Rows) -> Result<u32, StoreError> {
        let day = Self::number(rows, Self::WATERMARK)?.unwrap_or(0);
        u32::try_from(day).map_err(|_| StoreError::Record { table: TABLE, problem: "the watermark is not a day" })
    }

    pub(crate) fn set_watermark(rows: &mut Writes<'_>, day: u32) -> Result<(), StoreError> {
        rows.put(Table::Settings, Self::WATERMARK, number_record(u64::from(day)))
    }

    /// The store that this one is a restored backup of.
    pub(crate) fn restored_from(rows: &impl Rows) -> Result<Option<StoreId>, StoreError> {
        let Some(record) = rows.row(Table::Settings, Self::RESTORED_FROM)? else { return Ok(None) };
        let mut decoder = Decoder::new(TABLE, record.expose())?;
        let id = StoreId(decoder.array()?);
        decoder.finish(Some(id))
    }

    pub(crate) fn set_restored_from(rows: &mut Writes<'_>, id: StoreId) -> Result<(), StoreError> {
        rows.put(Table::Settings, Self::RESTORED_FROM, encoder(16).raw(&id.0).finish())
    }

    /// How many records of the audit log have been removed, and the hash of the last of them; `None` if none were.
    pub(crate) fn audit_start(rows: &impl Rows) -> Result<Option<(u64, [u8; 32])>, StoreError> {
        let Some(record) = rows.row(Table::Settings, Self::AUDIT_START)? else { return Ok(None) };
        let mut decoder = Decoder::new(TABLE, record.expose())?;
        let start = (decoder.u64()?, decoder.array()?);
        decoder.finish(Some(start))
    }

    pub(crate) fn set_audit_start(rows: &mut Writes<'_>, removed: u64, last: &[u8; 32]) -> Result<(), StoreError> {
        let record = encoder(40).u64(removed).raw(last).finish();
        rows.put(Table::Settings, Self::AUDIT_START, record)
    }

    /// The generation of the opening that a person trusts, whatever peers say.
    pub(crate) fn trusted_opening(rows: &impl Rows) -> Result<Option<u64>, StoreError> {
        Self::number(rows, Self::TRUSTED_OPENING)
    }

    pub(crate) fn set_trusted_opening(rows: &mut Writes<'_>, generation: u64) -> Result<(), StoreError> {
        rows.put(Table::Settings, Self::TRUSTED_OPENING, number_record(generation))
    }

    /// The ledger that the entries are of.
    pub(crate) fn ledger_id(rows: &impl Rows) -> Result<Option<[u8; 32]>, StoreError> {
        let Some(record) = rows.row(Table::Settings, Self::LEDGER)? else { return Ok(None) };
        let mut decoder = Decoder::new(TABLE, record.expose())?;
        let id = decoder.array()?;
        decoder.finish(Some(id))
    }

    pub(crate) fn set_ledger_id(rows: &mut Writes<'_>, id: &[u8; 32]) -> Result<(), StoreError> {
        rows.put(Table::Settings, Self::LEDGER, encoder(32).raw(id).finish())
    }

    /// Whether this node may have said in the ledger what the store does not know.
    pub(crate) fn lacks_ledger_votes(rows: &impl Rows) -> Result<bool, StoreError> {
        Ok(Self::number(rows, Self::LEDGER_LACKS)?.is_some_and(|lacks| lacks != 0))
    }

    pub(crate) fn set_lacks_ledger_votes(rows: &mut Writes<'_>, lacks: bool) -> Result<(), StoreError> {
        rows.put(Table::Settings, Self::LEDGER_LACKS, number_record(u64::from(lacks)))
    }

    /// What the ledger knows beside its entries: under which warrants machines vote.
    pub(crate) fn ledger_warrants(rows: &impl Rows, most: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        let Some(record) = rows.row(Table::Settings, Self::LEDGER_WARRANTS)? else { return Ok(Vec::new()) };
        let mut decoder = Decoder::new(TABLE, record.expose())?;
        let count = decoder.u64()?;
        let mut warrants = Vec::new();
        for _ in 0..count {
            warrants.push(decoder.bytes(most)?.to_vec());
        }
        decoder.finish(warrants)
    }

    pub(crate) fn set_ledger_warrants(rows: &mut Writes<'_>, warrants: &[Vec<u8>]) -> Result<(), StoreError> {
        let bytes =
            warrants.iter().fold(8_usize, |bytes, warrant| bytes.saturating_add(4).saturating_add(warrant.len()));
        let count = u64::try_from(warrants.len()).unwrap_or(u64::MAX);
        let record = warrants.iter().fold(encoder(bytes).u64(count), |record, warrant| record.bytes(warrant));
        rows.put(Table::Settings, Self::LEDGER_WARRANTS, record.finish())
    }

    fn number(rows: &impl Rows, key: &[u8]) -> Result<Option<u64>, StoreError> {
        let Some(record) = rows.row(Table::Settings, key)? else { return Ok(None) };
        let mut decoder = Decoder::new(TABLE, record.expose())?;
        let number = decoder.u64()?;
        decoder.finish(Some(number))
    }

    /// The last opening.
    pub(crate) fn last_opening(rows: &impl Rows) -> Result<Option<Opening>, StoreError> {
        rows.last(Table::Openings)?.map(|(key, record)| decode_opening(&key, record.expose())).transpose()
    }

    /// The openings from this generation on, at most `most` of them.
    pub(crate) fn openings(rows: &impl Rows, generation: u64, most: usize) -> Result<Vec<Opening>, StoreError> {
        let mut openings = Vec::new();
        rows.visit(Table::Openings, b"", &generation.to_be_bytes(), &mut |key, record| {
            openings.push(decode_opening(key, record.expose())?);
            Ok(openings.len() < most)
        })?;
        Ok(openings)
    }

    pub(crate) fn add_opening(rows: &mut Writes<'_>, opening: &Opening) -> Result<(), StoreError> {
        if let Some(forgotten) = opening.generation.checked_sub(MOST_OPENINGS) {
            rows.remove(Table::Openings, &forgotten.to_be_bytes())?;
        }
        let record = encoder(56).raw(&opening.session).u64(opening.opened_at).raw(&opening.link).finish();
        rows.put(Table::Openings, &opening.generation.to_be_bytes(), record)
    }
}

fn number_record(number: u64) -> Secret<Vec<u8>> {
    encoder(8).u64(number).finish()
}

fn decode_opening(key: &[u8], record: &[u8]) -> Result<Opening, StoreError> {
    let mut decoder = Decoder::new(Table::Openings.name(), record)?;
    let generation = key.try_into().map(u64::from_be_bytes).map_err(|_| decoder.error("a key is not a generation"))?;
    let (session, opened_at, link) = (decoder.array()?, decoder.u64()?, decoder.array()?);
    decoder.finish(Opening { generation, session, opened_at, link })
}
