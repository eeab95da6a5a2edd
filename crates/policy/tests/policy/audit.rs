//! The log: what is altered, removed, moved, cut or rewritten is found and named.

use theta_names::Operation;
use theta_policy::Unidentified;
use theta_statements::audit::{AuditRecord, BrokenLog, Checkpoint, Fault, LogEntry, from_line, to_line, verify};
use theta_statements::{Digest, UnixTime};

use crate::support::{NOW, alice, allow, append, ask_once, policy, sign};

fn record(number: u64) -> AuditRecord {
    let policy = policy(&allow("r", "alice", "root", "sign", ""));
    let ask = theta_statements::Ask { slot: Some(number), ..sign(b"m") };
    let decision = ask_once(&policy, ask);
    theta_policy::record(3, NOW.plus(number), &alice(&policy).asks(ask), &decision, policy.digest())
}

fn log(records: u64) -> (Vec<LogEntry>, Checkpoint) {
    let mut head = Checkpoint::START;
    let entries = (0..records).map(|number| append(&mut head, record(number))).collect();
    (entries, head)
}

fn broken(entries: &[LogEntry], kept: Checkpoint) -> (u64, Fault) {
    let BrokenLog { sequence, fault } = verify(entries, Checkpoint::START, Some(kept)).unwrap_err();
    (sequence, fault)
}

#[test]
fn a_whole_log_is_whole_in_parts_and_as_lines() {
    let (entries, head) = log(6);
    assert_eq!(verify(&entries, Checkpoint::START, Some(head)), Ok(head));
    assert_eq!(verify(&[], Checkpoint::START, None), Ok(Checkpoint::START));
    let middle = verify(&entries[..2], Checkpoint::START, None).unwrap();
    assert_eq!(verify(&entries[2..], middle, Some(head)), Ok(head));
    assert_eq!(verify(&entries, Checkpoint::START, Some(middle)), Ok(head), "it has grown since");
    let lines: Vec<_> = entries.iter().map(|entry| to_line(entry).unwrap()).collect();
    let read: Vec<_> = lines.iter().map(|line| from_line(line).unwrap()).collect();
    assert_eq!(read, entries);
    assert!(lines[0].contains("\"client\":\"alice\"") && lines[0].contains("\"time\":\"2026-11-21T08:30:00Z\""));
    assert!(!lines.iter().any(|line| line.contains('\n')));
}

#[test]
fn every_damage_is_named_with_its_place() {
    let (good, head) = log(6);
    let damaged = |damage: &dyn Fn(&mut Vec<LogEntry>)| {
        let mut entries = good.clone();
        damage(&mut entries);
        broken(&entries, head)
    };
    assert_eq!(damaged(&|log| log[2].record.allowed = false), (2, Fault::Altered));
    assert_eq!(damaged(&|log| log[2].record.detail.push(' ')), (2, Fault::Altered));
    assert_eq!(damaged(&|log| log[2].hash.0[0] ^= 1), (2, Fault::Altered));
    assert_eq!(damaged(&|log| log[2].previous.0[0] ^= 1), (2, Fault::Altered));
    assert_eq!(damaged(&|log| drop(log.remove(2))), (2, Fault::Missing(3)));
    assert_eq!(damaged(&|log| log.swap(2, 3)), (2, Fault::Missing(3)));
    assert_eq!(damaged(&|log| log.insert(3, log[2].clone())), (3, Fault::OutOfOrder(2)));
    assert_eq!(damaged(&|log| log.truncate(4)), (4, Fault::Truncated(6)));
    assert_eq!(damaged(&Vec::clear), (0, Fault::Truncated(6)));
    // One record is replaced, with all its hashes right: the next one does not follow it.
    let replace = |log: &mut Vec<LogEntry>| {
        let mut before = verify(&log[..2], Checkpoint::START, None).unwrap();
        log[2] = append(&mut before, record(99));
    };
    assert_eq!(damaged(&replace), (3, Fault::Unlinked));
    // The whole log is made anew: only a checkpoint that was kept elsewhere shows it.
    let rewritten = |log: &mut Vec<LogEntry>| {
        let mut head = Checkpoint::START;
        *log = (10..16).map(|number| append(&mut head, record(number))).collect();
        assert!(verify(log.iter(), Checkpoint::START, None).is_ok());
    };
    assert_eq!(damaged(&rewritten), (5, Fault::Rewritten));
    let other = Checkpoint { count: 0, head: Digest([1; 32]) };
    assert_eq!(verify(&good, Checkpoint::START, Some(other)).unwrap_err().fault, Fault::Rewritten);
}

#[test]
fn every_field_is_covered() {
    let (good, head) = log(1);
    let line = to_line(&good[0]).unwrap();
    let mut fields: serde_json::Value = serde_json::from_str(&line).unwrap();
    let names: Vec<_> = fields["record"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(names.len(), 14);
    for name in names {
        let before = fields["record"][&name].clone();
        fields["record"][&name] = match &before {
            serde_json::Value::Bool(value) => (!value).into(),
            serde_json::Value::Number(_) => 77.into(),
            serde_json::Value::Array(_) => serde_json::json!(["mallory"]),
            serde_json::Value::String(text) if text.len() == 64 => "0".repeat(64).into(),
            serde_json::Value::String(text) if text.ends_with('Z') => "2001-01-01T00:00:00Z".into(),
            _ => "other".into(),
        };
        let changed = from_line(&fields.to_string()).unwrap();
        assert_eq!(broken(&[changed], head), (0, Fault::Altered), "{name}");
        fields["record"][&name] = before;
    }
    assert!(from_line(&line.replace("\"node\"", "\"nodes\"")).is_err());
    assert!(from_line("").is_err() && from_line(&" ".repeat(300_000)).is_err());
}

#[test]
fn records_have_one_encoding() {
    let record = record(5);
    let bytes = record.encode();
    assert_eq!(AuditRecord::decode(&bytes).as_ref(), Ok(&record));
    for place in 0..bytes.len() {
        assert!(AuditRecord::decode(&bytes[..place]).is_err());
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        if let Ok(decoded) = AuditRecord::decode(&changed) {
            assert_eq!(decoded.encode(), changed);
        }
    }
}

#[test]
fn strangers_are_recorded_and_long_texts_cut() {
    let long = "é".repeat(2_000);
    let record = theta_policy::record_of_stranger(
        1,
        UnixTime(0),
        Operation::Sign,
        Some(&long),
        &Unidentified::Proof(theta_statements::TokenProofError::False),
        Digest([0; 32]),
    );
    assert_eq!((record.key.as_ref().unwrap().len(), record.allowed), (1_024, false));
    assert_eq!(AuditRecord::decode(&record.encode()), Ok(record));
}

#[test]
fn checkpoints_have_one_text() {
    let (_, head) = log(3);
    let text = head.to_string();
    assert!(text.starts_with("theta-audit:3:"));
    assert_eq!(text.parse(), Ok(head));
    for bad in [
        "",
        "theta-audit:3",
        &text.replace(":3:", ":03:"),
        &text.replace(":3:", ":+3:"),
        &text[..70],
        &format!("{text} "),
    ] {
        assert!(bad.parse::<Checkpoint>().is_err(), "{bad}");
    }
}
