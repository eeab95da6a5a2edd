//! Watches the store's disk: whether it works, and how much room it has.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use prometheus_client::{metrics::gauge::Gauge, registry::Registry};
use theta_store::Store;

/// The operator is warned below so many free bytes: at 1 KiB a request, room for a quarter of a million of them.
const LOW: u64 = 256 << 20;
/// Stands for an unknown number of free bytes.
const UNKNOWN: u64 = u64::MAX;

/// The state of the disk when it was last examined.
#[derive(Debug)]
pub(crate) struct Disk {
    free: AtomicU64,
    free_bytes: Gauge<i64, AtomicI64>,
    failed: Gauge<i64, AtomicI64>,
}

impl Disk {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let disk = Self { free: AtomicU64::new(UNKNOWN), free_bytes: Gauge::default(), failed: Gauge::default() };
        let store = registry.sub_registry_with_prefix("theta_store");
        store.register("free_bytes", "Bytes that are free for the store on its file system", disk.free_bytes.clone());
        store.register("failed", "1 while the disk does not work and all requests are refused", disk.failed.clone());
        disk
    }

    /// Examines the disk. Blocks if the file system does.
    pub(crate) fn look(&self, store: &Store) {
        self.failed.set(i64::from(store.has_failed()));
        let Some(free) = store.free_space() else { return };
        self.free_bytes.set(i64::try_from(free).unwrap_or(i64::MAX));
        let before = self.free.swap(free, Relaxed);
        if free < LOW && before >= LOW {
            tracing::warn!(free, "little room is left for the store: make room, or this node will refuse all requests");
        }
    }

    /// A warning for the operator, before the disk is full.
    pub(crate) fn warning(&self) -> Option<String> {
        low(self.free.load(Relaxed))
    }
}

fn low(free: u64) -> Option<String> {
    (free < LOW)
        .then(|| format!("{} MiB are left for its store: make room, or it will refuse all requests", free >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_comes_in_time() {
        assert_eq!(low(UNKNOWN), None);
        assert_eq!(low(LOW), None);
        assert!(low(LOW - 1).unwrap().starts_with("255 MiB are left"));
        let folder = tempfile::tempdir().unwrap();
        let key = theta_store::SealingKey::key(theta_groups::Secret::new([1; 32]));
        let store = Store::create(&folder.path().join("theta.redb"), &key).unwrap();
        let mut registry = Registry::default();
        let disk = Disk::register(&mut registry);
        disk.look(&store);
        assert!(disk.free_bytes.get() > 0 && disk.failed.get() == 0);
    }
}
