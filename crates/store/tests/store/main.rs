//! The store as its users see it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking, in their helpers too"
)]

mod backup;
mod crash;
mod files;
mod keys;
mod log;
mod once;
mod quarantined;
mod recovery;
mod rollback;
mod vectors;

use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_groups::Secret;
use theta_names::{Epoch, KeyName, Version};
use theta_store::{BurnId, EpochRecord, Options, SealingKey, Store, disk::SimulatedDisk};

fn key() -> SealingKey {
    SealingKey::key(Secret::new([7; 32]))
}

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

fn seeded(seed: u64) -> Options {
    Options::default().with_rng(rng(seed))
}

fn create(disk: &SimulatedDisk) -> Store {
    Store::create_on(disk.backend(), &key(), Options::default()).unwrap()
}

fn open(disk: &SimulatedDisk) -> Store {
    Store::open_on(disk.backend(), &key(), Options::default()).unwrap()
}

fn name(text: &str) -> KeyName {
    text.parse().unwrap()
}

fn secret(bytes: &[u8]) -> Option<Secret<Vec<u8>>> {
    Some(Secret::new(bytes.to_vec()))
}

fn version(number: u32) -> Version {
    Version::new(number).unwrap()
}

fn epoch(number: u32) -> EpochRecord {
    let public = format!("public part of epoch {number}").into_bytes();
    let number = Epoch::new(number);
    EpochRecord { number, k: 2, n: 3, holders: vec![4, 1, 9], public, certificate: Vec::new(), created: 1_795_000_000 }
}

fn burn_id(day: u32, id: u64) -> BurnId {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&id.to_be_bytes());
    BurnId { day, id: bytes }
}
