//! Files, modes, sealing keys, formats.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use theta_groups::Secret;
use theta_names::{Delivery, Epoch, Purpose, Version};
use theta_store::{Argon2Cost, BurnError, Options, SealingKey, Store, StoreError, disk::SimulatedDisk};

use crate::{burn_id, create, epoch, key, name, secret, version};

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node.store");
    (folder, path)
}

fn passphrase(text: &str) -> SealingKey {
    let cost = Argon2Cost { memory: 32, passes: 1, lanes: 1 };
    SealingKey::passphrase_with_cost(Secret::new(text.to_owned()), cost).unwrap()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_was_written_is_there_after_reopening() {
    let (_folder, path) = folder();
    let store = Store::create(&path, &key()).unwrap();
    let id = store.id();
    store.burn(burn_id(5, 1)).unwrap();
    drop(store);
    let store = Store::open(&path, &key()).unwrap();
    assert_eq!(store.id(), id);
    assert_eq!(store.incarnation().opening.generation, 2);
    assert!(matches!(store.burn(burn_id(5, 1)), Err(BurnError::AlreadyBurnt)));
}

#[test]
fn the_file_is_for_its_owner_alone() {
    let (folder, path) = folder();
    drop(Store::create(&path, &key()).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    set_mode(&path, 0o640);
    let error = Store::open(&path, &key()).unwrap_err();
    assert!(matches!(error, StoreError::FileMode { mode: 0o640, .. }), "{error}");
    set_mode(&path, 0o600);
    set_mode(folder.path(), 0o770);
    let error = Store::open(&path, &key()).unwrap_err();
    assert!(matches!(error, StoreError::FolderMode { mode: 0o770, .. }), "{error}");
    let error = Store::create(&folder.path().join("other"), &key()).unwrap_err();
    assert!(matches!(error, StoreError::FolderMode { .. }), "{error}");
    set_mode(folder.path(), 0o700);
    Store::open(&path, &key()).unwrap();
}

#[test]
fn one_process_at_a_time_and_the_error_names_the_file() {
    let (_folder, path) = folder();
    let _store = Store::create(&path, &key()).unwrap();
    let error = Store::open(&path, &key()).unwrap_err();
    assert!(matches!(error, StoreError::Locked(_)), "{error}");
    assert!(error.to_string().contains("node.store"), "{error}");
}

#[test]
fn what_is_not_a_store_is_refused() {
    let (_folder, path) = folder();
    assert!(matches!(Store::open(&path, &key()), Err(StoreError::Missing(_))));
    for (content, unfinished) in [(Vec::new(), true), (vec![0x5a; 10_000], false)] {
        fs::write(&path, &content).unwrap();
        set_mode(&path, 0o600);
        let error = Store::open(&path, &key()).unwrap_err();
        let right = if unfinished {
            matches!(error, StoreError::Unfinished(_))
        } else {
            matches!(error, StoreError::NotAStore(_))
        };
        assert!(right, "{error:?}");
        assert!(matches!(Store::create(&path, &key()), Err(StoreError::Exists(_))));
        assert_eq!(fs::read(&path).unwrap(), content);
    }
}

#[test]
fn a_wrong_sealing_key_says_no_more_than_that() {
    let (_folder, path) = folder();
    drop(Store::create(&path, &passphrase("correct horse")).unwrap());
    let error = Store::open(&path, &passphrase("correct horsf")).unwrap_err();
    assert!(error.to_string().ends_with("the passphrase or key does not open it"), "{error}");
    assert!(matches!(Store::open(&path, &key()), Err(StoreError::OtherKind { kind: "a passphrase", .. })));
    Store::open(&path, &passphrase("correct horse")).unwrap();
}

#[test]
fn a_passphrase_is_changed_without_sealing_anything_again() {
    let (_folder, path) = folder();
    let (old, new) = (passphrase("old"), passphrase("new"));
    let store = Store::create(&path, &old).unwrap();
    store
        .write(|transaction| {
            transaction.create_key(&name("zsk"), Purpose::Sign)?;
            transaction.import_version(&name("zsk"), ("frost-ed25519", Delivery::All), epoch(1), secret(b"a share"))
        })
        .unwrap();
    assert!(matches!(store.rewrap(&new, &new), Err(StoreError::WrongKey(_))));
    store.rewrap(&old, &new).unwrap();
    drop(store);
    assert!(matches!(Store::open(&path, &old), Err(StoreError::WrongKey(_))));
    let store = Store::open(&path, &new).unwrap();
    assert_eq!(store.share(&name("zsk"), version(1), Epoch::new(1)).unwrap().unwrap().expose(), b"a share");
    store.rewrap(&new, &key()).unwrap();
    drop(store);
    Store::open(&path, &key()).unwrap();
}

/// 200 bytes that do not occur by chance.
fn marked(mark: u8) -> Vec<u8> {
    (0..200_u8).map(|i| i.wrapping_mul(37) ^ mark).collect()
}

#[test]
fn no_secret_touches_the_disk_in_clear() {
    let (folder, path) = folder();
    let text = "a passphrase that is long enough to be found";
    let store = Store::create(&path, &passphrase(text)).unwrap();
    let seed: [u8; 32] = marked(3)[..32].try_into().unwrap();
    store
        .write(|transaction| {
            transaction.create_key(&name("hidden-name"), Purpose::Sign)?;
            transaction.import_version(
                &name("hidden-name"),
                ("frost-ed25519", Delivery::All),
                epoch(1),
                secret(&marked(1)),
            )?;
            transaction.stage_epoch(&name("hidden-name"), version(1), epoch(2), secret(&marked(2)))
        })
        .unwrap();
    store.write(|transaction| transaction.begin_ceremony([1; 32], b"dkg", Secret::new(seed), 0)).unwrap();
    store.record_input([1; 32], 0, Secret::new(marked(4))).unwrap();
    let mut backup = Vec::new();
    store.backup(&mut backup, &passphrase(text)).unwrap();
    fs::write(folder.path().join("backup"), backup).unwrap();
    drop(store);
    for entry in fs::read_dir(folder.path()).unwrap() {
        let content = fs::read(entry.unwrap().path()).unwrap();
        assert!(content.len() > 300);
        let secrets = [marked(1), marked(2), seed.to_vec(), marked(4), text.as_bytes().to_vec()];
        for (index, secret) in secrets.iter().enumerate() {
            // Not even a part of it.
            assert!(!content.windows(12).any(|window| window == &secret[8..20]), "secret {index}");
        }
        assert!(!content.windows(12).any(|window| window == b"public part "));
    }
}

#[test]
fn records_that_were_exchanged_in_the_file_are_refused() {
    let disk = SimulatedDisk::default();
    let store = crate::create(&disk);
    store
        .write(|transaction| {
            transaction.create_key(&name("a"), Purpose::Sign)?;
            transaction.import_version(&name("a"), ("frost-ed25519", Delivery::All), epoch(1), secret(&[0xaa; 64]))?;
            transaction.stage_epoch(&name("a"), version(1), epoch(2), secret(&[0xbb; 64]))
        })
        .unwrap();
    drop(store);
    // An attacker who can write the file but has no key swaps the two shares, through the database itself.
    let table = redb::TableDefinition::<&[u8], &[u8]>::new("shares");
    let database = redb::Builder::new().create_with_backend(disk.backend()).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut table = transaction.open_table(table).unwrap();
        let rows: Vec<_> = redb::ReadableTable::iter(&table)
            .unwrap()
            .map(|row| row.map(|(key, value)| (key.value().to_vec(), value.value().to_vec())).unwrap())
            .collect();
        assert_eq!(rows.len(), 2);
        table.insert(rows[0].0.as_slice(), rows[1].1.as_slice()).unwrap();
        table.insert(rows[1].0.as_slice(), rows[0].1.as_slice()).unwrap();
    }
    transaction.commit().unwrap();
    drop(database);
    let store = crate::open(&disk);
    for epoch in [1, 2] {
        let error = store.share(&name("a"), Version::FIRST, Epoch::new(epoch)).unwrap_err();
        assert!(matches!(error, StoreError::NotAuthentic { table: "shares" }), "{error}");
    }
}

#[test]
fn a_store_of_a_later_release_is_refused_not_misread() {
    let disk = SimulatedDisk::default();
    drop(crate::create(&disk));
    let table = redb::TableDefinition::<&[u8], &[u8]>::new("head");
    let database = redb::Builder::new().create_with_backend(disk.backend()).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(table).unwrap().insert(b"store".as_slice(), [9, 1, 2, 3].as_slice()).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = Store::open_on(disk.backend(), &key(), Options::default().named("x.store")).unwrap_err();
    assert!(matches!(error, StoreError::Format { found: 9, known: 7, .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "x.store: format 9 is not known to this build, which reads format 7: use the release that wrote it"
    );
}

#[test]
fn a_file_that_rotted_is_refused_or_whole() {
    let disk = SimulatedDisk::default();
    let store = create(&disk);
    store.write(|tx| tx.create_key(&name("k"), Purpose::Sign)).unwrap();
    let burnt = store.burn_all((0..50).map(|id| burn_id(5, id)).collect()).unwrap();
    assert!(burnt.iter().all(Result::is_ok));
    drop(store);
    let content = disk.content();
    let written: Vec<_> = (0..content.len()).filter(|place| content[*place] != 0).collect();
    let mut refused = 0;
    for place in written.iter().step_by(written.len() / 200) {
        let mut rotted = content.clone();
        rotted[*place] ^= 0x10;
        let disk = SimulatedDisk::with_content(rotted);
        let Ok(store) = Store::open_on(disk.backend(), &key(), Options::default()) else {
            refused += 1;
            continue;
        };
        assert_eq!(store.keys().unwrap().len(), 1, "byte {place}");
        assert!((0..50).all(|id| store.burn(burn_id(5, id)).is_err()), "byte {place}");
    }
    assert!(refused > 10, "{refused}");
}
