//! A store's file and its backups, damaged anywhere: the store refuses them, or returns only what was written.

#![no_main]

use std::backtrace::Backtrace;
use std::panic::{self, AssertUnwindSafe, Location};
use std::process;
use std::sync::{LazyLock, Mutex, PoisonError};

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{plant, rng};
use theta_groups::Secret;
use theta_names::{Delivery, Epoch, KeyName, Purpose, Version};
use theta_store::{BurnId, EpochRecord, Options, RestoreFloors, SealingKey, Store, check_backup, disk::SimulatedDisk};

/// An id that is burnt before anything is damaged.
const ID: BurnId = BurnId { day: 1, id: [3; 32] };
/// Blocks of this many bytes are treated as used or empty as a whole.
const BLOCK: usize = 64;

/// A file, and its blocks that are not empty.
struct Written {
    bytes: Vec<u8>,
    used: Vec<usize>,
}

/// A store's file and its backup.
static WRITTEN: LazyLock<(Written, Written)> = LazyLock::new(write);

/// The last panic of the database, with its backtrace.
static PANIC: Mutex<Option<(String, Backtrace)>> = Mutex::new(None);

fuzz_target!(init: start(), |bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let (file, backup) = &*WRITTEN;
    let read = || match first % 4 {
        0 => restore(rest),
        1 => restore(&backup.damaged(rest)),
        2 => open(rest.to_vec()),
        _ => open(file.damaged(rest)),
    };
    if panic::catch_unwind(AssertUnwindSafe(read)).is_err() {
        if let Some((panic, place)) = &*PANIC.lock().unwrap_or_else(PoisonError::into_inner) {
            eprintln!("nobody caught this: {panic}\n{place}");
        }
        process::abort();
    }
});

/// Allows panics of the database, which trusts the file's own bookkeeping: the store has to catch them. For all other
/// panics libFuzzer's hook, which aborts, stays in place.
fn start() {
    let abort = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if panic.location().map(Location::file).is_some_and(|file| file.contains("/redb-")) {
            let told = (panic.to_string(), Backtrace::force_capture());
            *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
        } else {
            abort(panic);
        }
    }));
    plant("stores", seeds());
}

/// Called by the leak detector. If the database panics while it is closed, the value that was about to be returned leaks,
/// which is no finding.
#[unsafe(no_mangle)]
extern "C" fn __lsan_is_turned_off() -> core::ffi::c_int {
    1
}

impl Written {
    fn new(bytes: Vec<u8>) -> Self {
        let blocks = bytes.chunks(BLOCK).enumerate().filter(|(_, block)| block.iter().any(|byte| *byte != 0));
        Self { used: blocks.map(|(number, _)| number * BLOCK).collect(), bytes }
    }

    /// The bytes, changed at places that are not empty. Each four bytes of the script are one change: three say where, and
    /// the fourth what is added there (XOR), or zero to cut the bytes off.
    fn damaged(&self, script: &[u8]) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for change in script.as_chunks::<4>().0 {
            let [a, b, c, with] = *change;
            let place = usize::try_from(u32::from_be_bytes([0, a, b, c])).expect("few");
            let at = self.used[place / BLOCK % self.used.len()] + place % BLOCK;
            if with == 0 {
                bytes.truncate(at);
            } else if let Some(byte) = bytes.get_mut(at) {
                *byte ^= with;
            }
        }
        bytes
    }
}

fn key() -> SealingKey {
    SealingKey::key(Secret::new([7; 32]))
}

fn seeded() -> Options {
    Options::default().with_rng(rng())
}

fn name() -> KeyName {
    "mail".parse().expect("a name")
}

fn write() -> (Written, Written) {
    let disk = SimulatedDisk::default();
    let store = Store::create_on(disk.backend(), &key(), seeded()).expect("an empty disk");
    let epoch = EpochRecord {
        number: Epoch::FIRST,
        k: 2,
        n: 3,
        holders: vec![1, 2, 3],
        public: vec![1; 64],
        certificate: Vec::new(),
        created: 1,
    };
    let share = Secret::new(vec![2; 32]);
    let filled: Result<_, theta_store::KeyError> = store.write(|tx| {
        tx.create_key(&name(), Purpose::Sign)?;
        tx.import_version(&name(), ("suite", Delivery::All), epoch, Some(share)).map(drop)
    });
    filled.expect("room");
    store.burn(ID).expect("fresh");
    store.append_audit(vec![4; 100]).expect("room");
    let mut backup = Vec::new();
    store.backup(&mut backup, &key()).expect("room");
    drop(store);
    (Written::new(disk.content()), Written::new(backup))
}

/// Asserts that a store that opens returns nothing that was not written into it.
fn is_what_was_written(store: &Store) {
    for record in store.keys().into_iter().flatten() {
        assert_eq!(record.name, name());
    }
    if let Ok(Some(share)) = store.share(&name(), Version::FIRST, Epoch::FIRST) {
        assert_eq!(share.expose(), &[2; 32]);
    }
    for record in store.audit(0, 10).into_iter().flatten() {
        assert_eq!(record.body, [4; 100]);
    }
    let _ = store.check_audit();
    assert!(store.burn(ID).is_err(), "burnt twice");
}

fn open(content: Vec<u8>) {
    let disk = SimulatedDisk::with_content(content);
    if let Ok(store) = Store::open_on(disk.backend(), &key(), seeded()) {
        is_what_was_written(&store);
    }
}

fn restore(backup: &[u8]) {
    let checked = check_backup(backup, &key(), &mut |_, _, _, share| share.expose() == &[2; 32]);
    let floors = RestoreFloors { burn_day: 2, slots: Default::default(), other_slots: 0 };
    let disk = SimulatedDisk::default();
    let restored = Store::restore_on(backup, &key(), disk.backend(), &key(), &floors, seeded());
    assert_eq!(checked.is_ok(), restored.is_ok());
    if let (Ok(report), Ok(store)) = (checked, restored) {
        assert_eq!(backup, WRITTEN.1.bytes, "a backup of nobody's");
        assert!(report.unfit.is_empty());
        is_what_was_written(&store);
    }
}

/// File and backup, whole and damaged at many places.
fn seeds() -> Vec<Vec<u8>> {
    let (file, backup) = &*WRITTEN;
    let damage = |way: u8, written: &Written| -> Vec<Vec<u8>> {
        let places =
            (0..written.used.len()).step_by(written.used.len().div_ceil(50)).map(|block| block * BLOCK + block % BLOCK);
        let at = |place: usize| u32::try_from(place).expect("short").to_be_bytes();
        places.flat_map(|place| [1, 128, 0].map(|with| [&[way], &at(place)[1..], &[with]].concat())).collect()
    };
    let whole = [[&[0], &*backup.bytes].concat(), vec![1], vec![3]];
    whole.into_iter().chain(damage(1, backup)).chain(damage(3, file)).collect()
}
