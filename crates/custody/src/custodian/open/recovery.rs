//! Recovery after the store failed: as after a restart, but in place.

use std::sync::Arc;

use crate::request::{CustodyEffect, CustodyInput};
use crate::{Custodian, CustodyError};

/// The number of ticks between two attempts.
const RETRY: u64 = 4;

impl Custodian {
    /// Updates the time only, and at intervals tries whether the disk works again.
    pub(in crate::custodian) fn recover(
        &mut self,
        inputs: impl IntoIterator<Item = CustodyInput>,
    ) -> Vec<CustodyEffect> {
        let mut due = false;
        for input in inputs {
            if let CustodyInput::Tick(now) = input {
                self.now = now;
                self.ticks += 1;
                due |= self.ticks.is_multiple_of(RETRY);
            }
        }
        if !due {
            return Vec::new();
        }
        // Problems that remain were reported when the store failed.
        self.reopen().unwrap_or_default()
    }

    /// Everything is read again: changes in memory that did not become durable never happened, and nothing of them has
    /// been sent. The store is still in the opening that its peers have confirmed, so the confirmation stays.
    fn reopen(&mut self) -> Result<Vec<CustodyEffect>, CustodyError> {
        self.store.recover()?;
        let mut fresh = Self::open(Arc::clone(&self.store), self.local, self.group.clone())?;
        let names: Vec<_> = fresh.table.iter().map(|entry| entry.name.clone()).collect();
        let mut effects = vec![CustodyEffect::StoreRecovered];
        for name in &names {
            let before = self.table.versions(name.as_str());
            self.reload(name)?;
            let known = |entry: &crate::KeyEntry| {
                let same = |old: &crate::KeyEntry| {
                    (old.version, old.epoch, old.state) == (entry.version, entry.epoch, entry.state)
                };
                before.iter().any(|old| same(old))
            };
            let versions = self.table.versions(name.as_str());
            let changed = versions.iter().filter(|entry| !known(entry));
            effects
                .extend(changed.map(|entry| CustodyEffect::KeyChanged { name: name.clone(), version: entry.version }));
        }
        fresh.table = Arc::clone(&self.table);
        fresh.witnesses = core::mem::take(&mut self.witnesses);
        fresh.witnesses.write_again();
        (fresh.now, fresh.ticks, fresh.seated) = (self.now, self.ticks, self.seated);
        effects.extend(fresh.reports().into_iter().map(CustodyEffect::Report));
        // Those who follow the members hold on to what this node has.
        let present = fresh.seating.present();
        self.seating.replace(present);
        fresh.seating = Arc::clone(&self.seating);
        if fresh.followed != self.followed
            && let Some(members) = fresh.followed.clone()
        {
            effects.push(CustodyEffect::Members(Box::new(members)));
        }
        *self = fresh;
        Ok(effects)
    }
}
