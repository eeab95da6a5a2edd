//! Sequences of calls that a host makes of the PKCS#11 module: no answer is one that it must not give, and nothing is written where it must
//! not be written. The host is that of `modules/pkcs11/tests/misuse`.

#![no_main]

#[path = "../../../modules/pkcs11/tests/misuse/host/mod.rs"]
mod host;

use std::fs;
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};

use libfuzzer_sys::fuzz_target;
use rand_chacha::rand_core::Rng;
use theta_fuzz::{plant, rng};
use theta_pkcs11::ffi::C_GetInterface;

use crate::host::Backing;

/// One call in so many sequences may wait for nodes, since that takes a part of a second.
const SELDOM: u32 = 256;

/// The machine of the host, and how many sequences there were.
static BACKING: LazyLock<Mutex<(Backing, u32)>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target").join("pkcs11_calls");
    fs::create_dir_all(&folder).expect("a folder for what the module reads");
    Mutex::new((Backing::new(&folder, C_GetInterface), 0))
});

fuzz_target!(init: plant("pkcs11_calls", seeds()), |bytes: &[u8]| {
    let mut turn = BACKING.lock().unwrap_or_else(PoisonError::into_inner);
    let (backing, sequences) = &mut *turn;
    *sequences = sequences.wrapping_add(1);
    if sequences.is_multiple_of(SELDOM) {
        backing.waits = 1;
    }
    host::run(backing, bytes);
});

fn seeds() -> Vec<Vec<u8>> {
    let mut rng = rng();
    let seed = |_| {
        let mut bytes = vec![0; 300];
        rng.fill_bytes(&mut bytes);
        bytes
    };
    (0..16).map(seed).collect()
}
