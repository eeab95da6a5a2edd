//! The stored format as in `vectors/store/v7`: this code reads it and writes the same bytes. Versions 1 to 6 are
//! refused by their numbers, never misread.

use std::{fs, path::Path};

use redb::{Builder, Database, ReadableDatabase, ReadableTable, TableDefinition, TableHandle};
use serde_json::{Value, json};
use theta_groups::Secret;
use theta_names::{Delivery, Epoch, KeyState, Purpose, ShareIndex, SlotOrder};
use theta_store::{
    Argon2Cost, BurnError, Incarnation, KeyError, Opening, Quarantined, SealingKey, SlotDecision, SlotRule, Store,
    StoreError, StoreId, Witness, check_backup, disk::SimulatedDisk,
};

use crate::{burn_id, epoch, name, secret, seeded, version};

const SEED: u64 = 2026;
const TODAY: u8 = 7;

fn passphrase() -> SealingKey {
    let cost = Argon2Cost { memory: 64, passes: 2, lanes: 2 };
    SealingKey::passphrase_with_cost(Secret::new("vector passphrase".to_owned()), cost).unwrap()
}

fn rule() -> SlotRule {
    SlotRule { key: name("zone"), rule: "serial".parse().unwrap() }
}

fn incarnation(session: u8) -> Incarnation {
    let opening = Opening { generation: 5, session: [session; 16], opened_at: 600, link: [session + 1; 32] };
    Incarnation { store_id: StoreId([0xb2; 16]), opening, sequence: 700 }
}

fn seen_of_peer() -> Witness {
    Witness::new(Some(incarnation(0xb1)), Some(incarnation(0xc1)))
}

fn found_false() -> Quarantined {
    let holders = [2_u16, 5].map(|number| ShareIndex::try_from(number).unwrap());
    Quarantined { holders: holders.to_vec(), phase: "a check".to_owned(), culprit: Some(holders[1]) }
}

/// Writes a record of nearly every kind.
fn fill(store: &Store) {
    let changes = |tx: &mut theta_store::Transaction<'_>| -> Result<(), KeyError> {
        tx.create_key(&name("zone"), Purpose::Sign)?;
        tx.import_version(&name("zone"), ("frost-ed25519", Delivery::All), epoch(3), secret(&[0xa1; 32]))?;
        tx.begin_version(&name("zone"), ("frost-ed25519", Delivery::All), epoch(1), secret(&[0xa2; 32]))?;
        tx.stage_epoch(&name("zone"), version(1), epoch(4), secret(&[0xa3; 32]))?;
        tx.create_key(&name("files"), Purpose::Decrypt)?;
        tx.import_version(&name("files"), ("sg02-bls12381", Delivery::Quorum), epoch(1), secret(&[0xa4; 32]))?;
        tx.set_key_state(&name("files"), KeyState::Destroyed)
    };
    store.write(changes).unwrap();
    let recorded = store.write(|tx| tx.quarantine(&name("zone"), version(1), epoch(3).number, &found_false())).unwrap();
    assert!(recorded);
    store.write(|tx| tx.begin_ceremony([1; 32], b"refresh of zone", Secret::new([0xa5; 32]), 1_795_000_000)).unwrap();
    store.record_input([1; 32], 0, Secret::new(b"first input".to_vec())).unwrap();
    store.write(|tx| tx.begin_ceremony([2; 32], b"another", Secret::new([0xa6; 32]), 1_795_000_001)).unwrap();
    let epilogue = Secret::new(b"what newcomers need".to_vec());
    store.write(|tx| tx.end_ceremony(&[2; 32], b"certified", &[epilogue])).unwrap();
    store.set_identity(&Secret::new([0xa7; 32])).unwrap();
    store.write(|tx| tx.remember_peer(3, &seen_of_peer())).unwrap();
    store.write(|tx| tx.remember_contradiction(4, Some(&incarnation(0xb5)))).unwrap();
    store.write(|tx| tx.trust_opening(7)).unwrap();
    store.write(|tx| tx.remember_contradiction(4, Some(&incarnation(0xb7)))).unwrap();
    store.burn(burn_id(20_778, 1)).unwrap();
    store.write(|tx| tx.raise_burn_watermark(20_000, 1)).unwrap();
    let decided = store.decide(rule(), 42, [0xd1; 32], SlotOrder::Increasing).unwrap();
    assert_eq!(decided, SlotDecision::Allowed);
    store.append_audit(b"a decision".to_vec()).unwrap();
    store.append_audit(b"another decision".to_vec()).unwrap();
}

/// All that this code writes to the disk of a store, and a backup of it.
fn written() -> Value {
    let disk = SimulatedDisk::default();
    let store = Store::create_on(disk.backend(), &passphrase(), seeded(SEED)).unwrap();
    fill(&store);
    let mut backup = Vec::new();
    store.backup(&mut backup, &passphrase()).unwrap();
    drop(store);
    let database = Builder::new().create_with_backend(disk.backend()).unwrap();
    let read = database.begin_read().unwrap();
    let mut tables = serde_json::Map::new();
    for table in read.list_tables().unwrap() {
        let rows = read.open_table(TableDefinition::<&[u8], &[u8]>::new(table.name())).unwrap();
        let rows: serde_json::Map<_, _> = rows
            .iter()
            .unwrap()
            .map(|row| row.map(|(key, value)| (hex::encode(key.value()), json!(hex::encode(value.value())))).unwrap())
            .collect();
        tables.insert(table.name().to_owned(), Value::Object(rows));
    }
    json!({ "tables": tables, "backup": hex::encode(backup) })
}

fn vector(version: u8) -> Value {
    known(version).unwrap()
}

/// What is known of a version: nothing of a new one until its file is put there.
fn known(version: u8) -> Option<Value> {
    let path = format!("../../vectors/store/v{version}/store.json");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

/// A disk with the rows of the present vector, changed by `change`.
fn disk(change: impl FnOnce(&Database)) -> SimulatedDisk {
    disk_of(TODAY, change)
}

fn disk_of(version: u8, change: impl FnOnce(&Database)) -> SimulatedDisk {
    let disk = SimulatedDisk::default();
    let database = Builder::new().create_with_backend(disk.backend()).unwrap();
    let write = database.begin_write().unwrap();
    for (table, rows) in vector(version)["tables"].as_object().unwrap() {
        let mut table = write.open_table(TableDefinition::<&[u8], &[u8]>::new(table)).unwrap();
        for (key, value) in rows.as_object().unwrap() {
            let value = hex::decode(value.as_str().unwrap()).unwrap();
            table.insert(hex::decode(key).unwrap().as_slice(), value.as_slice()).unwrap();
        }
    }
    write.commit().unwrap();
    change(&database);
    drop(database);
    disk
}

fn open(disk: &SimulatedDisk) -> Result<Store, StoreError> {
    Store::open_on(disk.backend(), &passphrase(), seeded(1))
}

#[test]
fn today_s_code_reads_today_s_format() {
    let store = open(&disk(|_| {})).unwrap();
    let keys = store.keys().unwrap();
    assert_eq!(keys.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["files", "zone"]);
    assert_eq!((keys[0].state, keys[0].purpose), (KeyState::Destroyed, Purpose::Decrypt));
    assert_eq!((keys[1].state, keys[1].purpose), (KeyState::Active, Purpose::Sign));
    let deliveries = keys.iter().flat_map(|key| key.versions()).map(|version| version.delivery).collect::<Vec<_>>();
    assert_eq!(deliveries, [Delivery::Quorum, Delivery::All, Delivery::All]);
    assert_eq!(store.quarantined(&name("zone"), version(1), epoch(3).number).unwrap(), [found_false()]);
    let (first, second) = (keys[1].version(version(1)).unwrap(), keys[1].version(version(2)).unwrap());
    assert_eq!((first.serving.clone(), first.pending.clone()), (Some(epoch(3)), Some(epoch(4))));
    assert_eq!(
        (second.state, second.serving.clone(), second.suite.as_str()),
        (KeyState::Pending, None, "frost-ed25519")
    );
    for (number, epoch, byte) in [(1, 3, 0xa1), (1, 4, 0xa3), (2, 1, 0xa2)] {
        let (version, epoch) = (version(number), Epoch::new(epoch));
        assert_eq!(store.share(&name("zone"), version, epoch).unwrap().unwrap().expose(), &[byte; 32]);
    }
    assert!(store.share(&name("files"), version(1), Epoch::new(1)).unwrap().is_none());
    assert_eq!(store.ceremony(&[1; 32]).unwrap().unwrap().seed.unwrap().expose(), &[0xa5; 32]);
    assert_eq!(store.ceremony_inputs(&[1; 32]).unwrap()[0].expose(), b"first input");
    assert_eq!(store.ceremony(&[2; 32]).unwrap().unwrap().outcome.unwrap(), b"certified");
    assert_eq!(store.ceremony_inputs(&[2; 32]).unwrap()[0].expose(), b"what newcomers need");
    assert_eq!(store.identity().unwrap().unwrap().expose(), &[0xa7; 32]);
    assert_eq!(store.seen_of_peers().unwrap(), [(3, seen_of_peer())]);
    let contradictions = store.contradictions().unwrap().into_iter();
    let contradictions: Vec<_> = contradictions.map(|known| (known.peer, known.claim, known.overruled)).collect();
    assert_eq!(contradictions, [(4, incarnation(0xb5), true), (4, incarnation(0xb7), false)]);
    assert!(!store.is_opening_trusted().unwrap());
    assert!(matches!(store.burn(burn_id(20_778, 1)), Err(BurnError::AlreadyBurnt)));
    assert_eq!(store.burn_watermark().unwrap(), 20_000);
    let decided = store.decide(rule(), 42, [0; 32], SlotOrder::Increasing).unwrap();
    assert_eq!(decided, SlotDecision::Conflict { previous: [0xd1; 32] });
    let below = store.decide(rule(), 41, [0; 32], SlotOrder::Increasing).unwrap();
    assert_eq!(below, SlotDecision::Below { mark: 41 });
    let bodies: Vec<_> = store.audit(0, 9).unwrap().into_iter().map(|record| record.body).collect();
    assert_eq!(bodies, [b"a decision".to_vec(), b"another decision".to_vec()]);
    store.check_audit().unwrap().unwrap();
}

#[test]
fn today_s_code_reads_a_backup_of_today() {
    let backup = hex::decode(vector(TODAY)["backup"].as_str().unwrap()).unwrap();
    let mut shares = Vec::new();
    let report = check_backup(backup.as_slice(), &passphrase(), &mut |_, _, _, share| {
        shares.push(share.expose()[0]);
        true
    })
    .unwrap();
    assert_eq!((report.keys.len(), report.shares, report.audit_records), (2, 3, 2));
    assert_eq!(shares, [0xa1, 0xa3, 0xa2]);
}

#[test]
fn today_s_code_writes_the_same_bytes() {
    let written = written();
    if known(TODAY).as_ref() != Some(&written) {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("store.json");
        fs::write(&path, serde_json::to_string_pretty(&written).unwrap() + "\n").unwrap();
        panic!("the stored format changed: it takes a new version; what is written now is in {}", path.display());
    }
}

#[test]
fn a_head_or_record_of_a_later_version_is_refused() {
    let later = |table: &'static str, key: &'static [u8]| {
        disk(move |database| {
            let definition = TableDefinition::<&[u8], &[u8]>::new(table);
            let write = database.begin_write().unwrap();
            {
                let mut rows = write.open_table(definition).unwrap();
                let mut value = rows.get(key).unwrap().unwrap().value().to_vec();
                value[0] = 8;
                rows.insert(key, value.as_slice()).unwrap();
            }
            write.commit().unwrap();
        })
    };
    let error = open(&later("head", b"store")).unwrap_err();
    assert!(matches!(error, StoreError::Format { found: 8, known: 7, .. }), "{error}");
    let store = open(&later("keys", b"zone")).unwrap();
    let error = store.key(&name("zone")).unwrap_err();
    assert!(matches!(error, StoreError::RecordVersion { table: "keys", found: 8 }), "{error}");
}

/// Only development builds wrote versions 1 to 6; they are not carried over.
#[test]
fn the_formats_before_are_refused_by_their_numbers() {
    for version in [1, 2, 3, 4, 5, 6] {
        let error = open(&disk_of(version, |_| {})).unwrap_err();
        assert!(matches!(error, StoreError::Format { found, known: 7, .. } if found == version), "{error}");
        let backup = hex::decode(vector(version)["backup"].as_str().unwrap()).unwrap();
        let error = check_backup(backup.as_slice(), &passphrase(), &mut |_, _, _, _| true).unwrap_err();
        assert!(matches!(error, StoreError::Format { found, known: 7, .. } if found == version), "{error}");
    }
}
