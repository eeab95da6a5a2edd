//! A bound on how much of a resource is in use at once.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// A resource with a limit.
#[derive(Debug)]
pub(crate) struct Quota {
    used: AtomicUsize,
    limit: usize,
}

/// A part of a quota, given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    quota: Arc<Quota>,
    amount: usize,
}

impl Quota {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { used: AtomicUsize::new(0), limit })
    }

    /// Takes `amount`, unless that would go over the limit.
    pub(crate) fn take(self: &Arc<Self>, amount: usize) -> Option<Permit> {
        // The counter protects no other memory, so relaxed ordering is enough.
        let fits = |used: usize| used.checked_add(amount).filter(|&sum| sum <= self.limit);
        self.used.fetch_update(Relaxed, Relaxed, fits).ok()?;
        Some(Permit { quota: Arc::clone(self), amount })
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.quota.used.fetch_sub(self.amount, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_never_exceeded_and_comes_back() {
        let quota = Quota::new(3);
        let two = quota.take(2).unwrap();
        assert!(quota.take(2).is_none());
        assert!(quota.take(usize::MAX).is_none());
        let one = quota.take(1).unwrap();
        assert_eq!(quota.used(), 3);
        drop(two);
        assert_eq!(quota.used(), 1);
        drop(one);
        assert_eq!(quota.used(), 0);
    }
}
