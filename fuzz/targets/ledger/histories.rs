//! A client's kept history of its group, and entries as nodes show them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use theta_fuzz::{group, plant};

fuzz_target!(init: plant("histories", seeds()), |bytes: &[u8]| {
    group::kept_ledger(bytes);
    group::entries(bytes);
});

fn seeds() -> Vec<Vec<u8>> {
    let kept = group::GROUPS.iter().map(group::Group::kept);
    kept.chain(group::entry_seeds()).collect()
}
