//! Bounds the rate at which decisions are recorded that can be had without end: refusals, and permissions to look at what was seen before. Callers,
//! known or unknown, must not fill the disk.
//!
//! Decisions that let anything out for the first time are always recorded. Of the others [`MOST_A_SECOND`] in a second are recorded for each
//! client, and as many for all strangers together. The rest is counted, and the last of it is recorded with its number, once a second. So each of
//! these streams costs [`MOST_A_SECOND`] + 1 records a second, however many requests are sent.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use theta_statements::audit::AuditRecord;
use theta_statements::{Name, UnixTime};

/// The most decisions that are recorded one by one in a second.
const MOST_A_SECOND: u32 = 20;
/// The most clients that are counted in one second. A policy file names fewer, but files change.
const MOST_CLIENTS: usize = 16_384;

/// Counts decisions of one kind.
#[derive(Debug)]
pub(crate) struct Repeatable {
    /// What the kind is called where some were left out.
    kind: &'static str,
    windows: Mutex<HashMap<Option<Name>, Window>>,
}

/// The present second of one client; `None` stands for all strangers.
#[derive(Debug, Default)]
struct Window {
    second: u64,
    recorded: u32,
    left_out: u64,
    /// The last decision that was left out.
    last: Option<AuditRecord>,
}

impl Window {
    /// The record that stands for those that were left out.
    fn left_over(&mut self, kind: &str) -> Option<AuditRecord> {
        let more = std::mem::take(&mut self.left_out).saturating_sub(1);
        let mut record = self.last.take()?;
        if more > 0 {
            record.detail.push_str(&format!("; {more} more {kind} of the same second were not recorded"));
        }
        Some(record)
    }
}

impl Repeatable {
    /// Counts decisions that this word says, in the plural.
    pub(crate) fn of(kind: &'static str) -> Self {
        Self { kind, windows: Mutex::default() }
    }

    fn windows(&self) -> MutexGuard<'_, HashMap<Option<Name>, Window>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the record if it is to be made.
    pub(crate) fn take(&self, client: Option<&Name>, record: AuditRecord) -> Option<AuditRecord> {
        let second = record.time.0 / 1_000;
        let mut windows = self.windows();
        if windows.len() >= MOST_CLIENTS && !windows.contains_key(&client.cloned()) {
            return None;
        }
        let window = windows.entry(client.cloned()).or_insert_with(|| Window { second, ..Window::default() });
        if window.second != second {
            (window.second, window.recorded) = (second, 0);
        }
        if window.recorded < MOST_A_SECOND {
            window.recorded = window.recorded.saturating_add(1);
            return Some(record);
        }
        window.left_out = window.left_out.saturating_add(1);
        window.last = Some(record);
        None
    }

    /// To be called once a second: the records that stand for those left out before; then a new second begins for
    /// everybody.
    pub(crate) fn left_over(&self, now: UnixTime) -> Vec<AuditRecord> {
        let second = now.0 / 1_000;
        let mut records = Vec::new();
        self.windows().retain(|_, window| {
            records.extend(window.left_over(self.kind));
            window.second == second
        });
        records
    }
}

#[cfg(test)]
mod tests {
    use theta_statements::Digest;

    use super::*;

    fn refusal(time: u64, client: Option<&Name>) -> AuditRecord {
        AuditRecord {
            time: UnixTime(time),
            node: 1,
            client: client.map(ToString::to_string),
            recognised_by: None,
            key: None,
            operation: "sign".to_owned(),
            statement: Digest([0; 32]),
            slot: None,
            allowed: false,
            rule: None,
            reason: "no-rule".to_owned(),
            detail: "no rule allows it".to_owned(),
            approvers: Vec::new(),
            policy: Digest([0; 32]),
        }
    }

    #[test]
    fn a_flood_is_counted_for_each_client_alone() {
        let refused = Repeatable::of("refusals");
        let (one, two): (Name, Name) = ("one".parse().unwrap(), "two".parse().unwrap());
        for client in [None, Some(&one)] {
            let recorded = (0..1_000).filter_map(|_| refused.take(client, refusal(5_000, client))).count();
            assert_eq!(recorded, 20);
        }
        assert!(refused.take(Some(&two), refusal(5_000, Some(&two))).is_some(), "another's flood is not its own");
        let left: Vec<_> = refused.left_over(UnixTime(6_000)).into_iter().map(|record| record.detail).collect();
        assert_eq!(left.len(), 2);
        assert!(left.iter().all(|detail| detail.ends_with("; 979 more refusals of the same second were not recorded")));
        assert_eq!(refused.left_over(UnixTime(9_000)), []);
        assert!(refused.take(None, refusal(9_000, None)).is_some());
    }

    #[test]
    fn what_is_remembered_of_clients_is_bounded() {
        let refused = Repeatable::of("refusals");
        for number in 0..MOST_CLIENTS + 100 {
            let name: Name = format!("c{number}").parse().unwrap();
            let _ = refused.take(Some(&name), refusal(1_000, Some(&name)));
        }
        assert_eq!(refused.windows().len(), MOST_CLIENTS);
        assert_eq!(refused.left_over(UnixTime(2_000)), []);
        assert_eq!(refused.windows().len(), 0);
    }
}
