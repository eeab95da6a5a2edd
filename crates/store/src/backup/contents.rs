//! The contents of a backup, in their order.

use std::io::{Read, Write};

use theta_groups::Secret;

use super::BackedUp;
use super::container::{Opened, Sealed};
use crate::audit::AuditRecord;
use crate::codec::{Decoder, Encoder, encoder};
use crate::database::{Rows, Settings, Snapshot, Table};
use crate::incarnation::{Incarnation, Opening, StoreId};
use crate::{StoreError, burnt};

const TABLE: &str = "backup";
/// The tables in a backup, with their codes. Ceremonies are left out: a restored node that resumed one in the middle
/// would contradict itself. What was seen of peers is left out because it is outdated, and burnt ids because the
/// restored watermark refuses them.
const CARRIED: [(u8, Table); 10] = [
    (1, Table::Keys),
    (2, Table::Shares),
    (3, Table::Slots),
    (4, Table::Marks),
    (5, Table::Audit),
    (6, Table::Identity),
    (7, Table::Generations),
    (8, Table::Used),
    (9, Table::Frozen),
    (10, Table::Quarantined),
];
const END: u8 = 0;
/// Limit of a key of a table, in bytes: two names and a slot fit.
const MOST_KEY: usize = 256;
/// Limit of a record, in bytes: a key with many versions fits.
const MOST_RECORD: usize = 1 << 30;

/// What the store recorded of itself when the backup was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) incarnation: Incarnation,
    /// The first day that is above the watermark and above the days of all burnt ids: a restored store refuses ids of
    /// days before it.
    pub(super) next_day: u32,
    pub(super) slot_floor: Option<u64>,
}

impl Origin {
    pub(super) fn read(snapshot: &Snapshot<'_>, incarnation: Incarnation) -> Result<Self, StoreError> {
        let mut next_day = Settings::watermark(snapshot)?;
        snapshot.visit(Table::Burnt, b"", b"", &mut |_, record| {
            next_day = next_day.max(burnt::decode_day(record.expose())?.saturating_add(1));
            Ok(true)
        })?;
        let sequence = Settings::sequence(snapshot)?;
        let slot_floor = Settings::slot_floor(snapshot)?;
        Ok(Self { incarnation: Incarnation { sequence, ..incarnation }, next_day, slot_floor })
    }

    fn encode(&self) -> Secret<Vec<u8>> {
        let Incarnation { store_id, opening, sequence } = self.incarnation;
        encoder(112)
            .raw(&store_id.0)
            .u64(opening.generation)
            .raw(&opening.session)
            .u64(opening.opened_at)
            .raw(&opening.link)
            .u64(sequence)
            .u32(self.next_day)
            .option(self.slot_floor, Encoder::u64)
            .finish()
    }

    fn decode(record: &[u8]) -> Result<Self, StoreError> {
        let mut decoder = Decoder::new(TABLE, record)?;
        let store_id = StoreId(decoder.array()?);
        let (generation, session, opened_at) = (decoder.u64()?, decoder.array()?, decoder.u64()?);
        let opening = Opening { generation, session, opened_at, link: decoder.array()? };
        let incarnation = Incarnation { store_id, opening, sequence: decoder.u64()? };
        let (next_day, slot_floor) = (decoder.u32()?, decoder.option(Decoder::u64)?);
        decoder.finish(Self { incarnation, next_day, slot_floor })
    }
}

/// Writes all tables of a backup from a snapshot.
pub(super) fn write<W: Write>(
    mut sealed: Sealed<W>,
    snapshot: &Snapshot<'_>,
    origin: &Origin,
) -> Result<BackedUp, StoreError> {
    let mut done = BackedUp::default();
    write_field(&mut sealed, origin.encode().expose())?;
    for (code, table) in CARRIED {
        snapshot.visit(table, b"", b"", &mut |key, record| {
            sealed.write(&[code])?;
            write_field(&mut sealed, key)?;
            write_field(&mut sealed, record.expose())?;
            match table {
                Table::Keys => done.keys = done.keys.saturating_add(1),
                Table::Audit => done.audit_records = AuditRecord::decode(key, record.expose())?.index.saturating_add(1),
                _ => {}
            }
            Ok(true)
        })?;
    }
    sealed.write(&[END])?;
    sealed.finish()?;
    Ok(done)
}

fn write_field<W: Write>(sealed: &mut Sealed<W>, bytes: &[u8]) -> Result<(), StoreError> {
    let len = u32::try_from(bytes.len()).map_err(|_| StoreError::Backup("longer than one can be"))?;
    sealed.write(&len.to_be_bytes())?;
    sealed.write(bytes)
}

/// Reads a whole backup: returns its origin, and passes each record to `row`.
pub(super) fn read<R: Read>(
    mut opened: Opened<R>,
    row: &mut dyn FnMut(Table, Vec<u8>, Secret<Vec<u8>>) -> Result<(), StoreError>,
) -> Result<Origin, StoreError> {
    let origin = Origin::decode(read_field(&mut opened, MOST_KEY)?.expose())?;
    let mut before = (END, Vec::new());
    loop {
        let code = opened.read(1)?.expose().first().copied().unwrap_or(END);
        if code == END {
            opened.finish()?;
            return Ok(origin);
        }
        let table = CARRIED.iter().find(|(known, _)| *known == code).map(|(_, table)| *table);
        let table = table.ok_or(StoreError::Record { table: TABLE, problem: "a table is not known" })?;
        let key = read_field(&mut opened, MOST_KEY)?.expose().clone();
        // Records are in ascending order, so none comes twice.
        let now = (code, key.clone());
        if before >= now {
            return Err(StoreError::Record { table: TABLE, problem: "records are not ascending" });
        }
        before = now;
        let record = read_field(&mut opened, MOST_RECORD)?;
        row(table, key, record)?;
    }
}

fn read_field<R: Read>(opened: &mut Opened<R>, most: usize) -> Result<Secret<Vec<u8>>, StoreError> {
    let len = opened.read(4)?;
    let len = <[u8; 4]>::try_from(len.expose().as_slice()).map_or(u32::MAX, u32::from_be_bytes);
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    if len > most {
        return Err(StoreError::Record { table: TABLE, problem: "a field is too long" });
    }
    opened.read(len)
}
