//! People, keys and short policies.

use theta_groups::Secret;
use theta_names::{Label, Operation};
use theta_policy::{Caller, Decision, MemorySlots, Policy, State};
use theta_statements::audit::{AuditRecord, Checkpoint, LogEntry};
use theta_statements::{Ask, Digest, SigningKey, UnixTime};

pub(crate) const NOW: UnixTime = UnixTime(1_795_249_800_000);
pub(crate) const MINUTE: u64 = 60_000;

/// Puts a record at the end of a log, hashed as `spec/policy.md` says: nodes keep the chain in their stores, and what is tested here only checks it.
pub(crate) fn append(log: &mut Checkpoint, record: AuditRecord) -> LogEntry {
    let Checkpoint { count: sequence, head: previous } = *log;
    let hashed = [&sequence.to_be_bytes()[..], &previous.0, &record.encode()].concat();
    let hash = Digest(blake3::derive_key("theta store audit chain v1", &hashed));
    *log = Checkpoint { count: sequence + 1, head: hash };
    LogEntry { sequence, previous, hash, record }
}

pub(crate) fn label(bytes: &[u8]) -> Label<&[u8]> {
    Label::new(bytes).unwrap()
}

pub(crate) fn key(number: u8) -> SigningKey {
    SigningKey::from_seed(Secret::new([number; 32])).unwrap()
}

/// alice has certificate 1, bob certificate 2, carol and the signing key 3; approvers x, y, z have keys 11, 12, 13.
pub(crate) fn people() -> String {
    let mut text = "format = 1\n".to_owned();
    for (name, certificate) in [("alice", 1), ("bob", 2)] {
        text += &format!("[[client]]\nname = \"{name}\"\ncertificates = [\"{certificate:064x}\"]\n");
    }
    text += &format!("[[client]]\nname = \"carol\"\nsigning_keys = [\"{}\"]\n", key(3).verifying_key());
    for (name, number) in [("x", 11), ("y", 12), ("z", 13)] {
        text += &format!("[[approver]]\nname = \"{name}\"\nkey = \"{}\"\n", key(number).verifying_key());
    }
    text
}

/// A policy of these people and the given tables.
pub(crate) fn policy(tables: &str) -> Policy {
    Policy::parse(&format!("{}{tables}", people()), "policy.toml").unwrap()
}

/// A rule that allows, with further lines.
pub(crate) fn allow(name: &str, client: &str, key: &str, operation: &str, more: &str) -> String {
    rule("allow", name, client, key, operation, more)
}

pub(crate) fn rule(effect: &str, name: &str, client: &str, key: &str, operation: &str, more: &str) -> String {
    format!(
        "[[rule]]\nname = \"{name}\"\neffect = \"{effect}\"\nclients = [\"{client}\"]\nkeys = [\"{key}\"]\n\
         operations = [\"{operation}\"]\n{more}\n"
    )
}

pub(crate) fn fingerprint(number: u8) -> [u8; 32] {
    let mut fingerprint = [0; 32];
    fingerprint[31] = number;
    fingerprint
}

pub(crate) fn alice(policy: &Policy) -> Caller {
    policy.caller_by_certificate(fingerprint(1)).unwrap()
}

pub(crate) fn sign(message: &[u8]) -> Ask<'_> {
    Ask { key: Some("root"), statement: message, ..Ask::new("demo", Operation::Sign) }
}

pub(crate) fn state() -> State<MemorySlots> {
    State::new(MemorySlots::default())
}

/// The decision on an ask of alice, with a new state.
pub(crate) fn ask_once(policy: &Policy, ask: Ask<'_>) -> Decision {
    policy.decide(&alice(policy).asks(ask), NOW, &state())
}
