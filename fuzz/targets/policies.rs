//! Policy files, and what clients and approvers sign: whatever is read is written the same, and errors have one line.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use theta_fuzz::plant;
use theta_groups::Secret;
use theta_names::{AUDIT_CHAIN, Label, Operation};
use theta_policy::{Answer, MemorySlots, Policy, State};
use theta_statements::audit::{AuditRecord, Checkpoint, LogEntry, from_line, to_line, verify};
use theta_statements::{
    Approval, ApprovalTerms, Ask, Digest, RequestTerms, SignedRequest, SigningKey, UnixTime, Validity,
};

const NOW: UnixTime = UnixTime(1_800_000_000_000);
const CERTIFICATE: [u8; 32] = [0xaa; 32];

fuzz_target!(init: plant("policies", seeds()), |bytes: &[u8]| {
    if let Ok(request) = SignedRequest::decode(bytes) {
        assert_eq!(request.encode(), bytes);
        assert_eq!(SignedRequest::from_text(&request.to_text()).expect("our own text"), request);
        // Only the request that was signed here verifies.
        assert!(request.verify(&ask(), NOW).is_err() || request == signed_request());
    }
    if let Ok(approval) = Approval::decode(bytes) {
        assert_eq!(approval.encode(), bytes);
        assert_eq!(Approval::all_from_text(&approval.to_text()).expect("our own text"), [approval]);
    }
    if let Ok(record) = AuditRecord::decode(bytes) {
        assert_eq!(record.encode(), bytes);
    }
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    match Policy::parse(text, "policy.toml") {
        Ok(policy) => decide(&policy),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
    if let Ok(request) = SignedRequest::from_text(text) {
        assert_eq!(SignedRequest::decode(&request.encode()).expect("our own bytes"), request);
    }
    for approval in Approval::all_from_text(text).into_iter().flatten() {
        assert_eq!(Approval::decode(&approval.encode()).expect("our own bytes"), approval);
    }
    if let Ok(entry) = from_line(text) {
        let line = to_line(&entry).expect("what was read");
        assert_eq!(from_line(&line).expect("our own line"), entry);
    }
    let entries: Vec<_> = text.lines().map_while(|line| from_line(line).ok()).collect();
    if let Ok(checkpoint) = verify(&entries, Checkpoint::START, None) {
        assert_eq!(checkpoint.to_string().parse::<Checkpoint>().expect("our own text"), checkpoint);
    }
});

/// Any policy that parses decides every operation as it explains it, and allows nothing without a rule.
fn decide(policy: &Policy) {
    let state = State::new(MemorySlots::default());
    if let Ok(request) = policy.signed_request(&signed_request(), ask(), NOW) {
        let decision = policy.decide(&request, NOW, &state);
        assert!(!decision.allowed || decision.rule.is_some(), "allowed without a rule");
    }
    let Ok(caller) = policy.caller_by_certificate(CERTIFICATE) else { return };
    for (operation, approval) in Operation::ALL.into_iter().zip(&*APPROVALS) {
        let slot = Some(7);
        let ask = Ask {
            operation,
            label: Label::new(&b"inbox/1"[..]).expect("short"),
            slot,
            approvals: core::slice::from_ref(approval),
            ..ask()
        };
        let explained = policy.explain(caller.client().as_str(), &ask, NOW);
        let decision = policy.decide(&caller.asks(ask), NOW, &state);
        assert!(!decision.allowed || decision.rule.is_some(), "allowed without a rule");
        assert_eq!(decision.rule, explained.rule);
        let expected = match explained.answer {
            Answer::Allow => true,
            Answer::Deny => false,
            Answer::Depends => decision.allowed,
        };
        assert_eq!(decision.allowed, expected, "{operation}: {}", explained.reason);
    }
}

/// One approval of each operation.
static APPROVALS: LazyLock<Vec<Approval>> = LazyLock::new(|| {
    let approve = |operation| {
        let terms = ApprovalTerms::of(&Ask { operation, ..ask() }, validity()).expect("names");
        Approval::sign(terms, &approving_key())
    };
    Operation::ALL.into_iter().map(approve).collect()
});

fn ask() -> Ask<'static> {
    Ask { key: Some("mail"), statement: b"statement", ..Ask::new("demo", Operation::Decapsulate) }
}

fn validity() -> Validity {
    Validity { from: NOW, until: NOW.plus(60_000) }
}

fn signing_key() -> SigningKey {
    SigningKey::from_seed(Secret::new([7; 32])).expect("a key")
}

fn approving_key() -> SigningKey {
    SigningKey::from_seed(Secret::new([8; 32])).expect("a key")
}

fn signed_request() -> SignedRequest {
    SignedRequest::sign(RequestTerms::of(&ask(), validity(), [9; 16]).expect("names"), &signing_key())
}

fn policy() -> String {
    let certificate = hex::encode(CERTIFICATE);
    let (key, approving) = (signing_key().verifying_key(), approving_key().verifying_key());
    format!(
        "format = 1\n[[client]]\nname = \"gateway\"\ncertificates = [\"{certificate}\"]\nsigning_keys = [\"{key}\"]\n\
         [[approver]]\nname = \"x\"\nkey = \"{approving}\"\n\
         [[rule]]\nname = \"no\"\neffect = \"deny\"\nclients = [\"*\"]\nkeys = [\"*\"]\noperations = [\"keys.backup\"]\n\
         until = 2026-12-01T00:00:00Z\n\
         [[rule]]\nname = \"two\"\neffect = \"allow\"\nclients = [\"*\"]\nkeys = [\"*\"]\noperations = [\"keys.destroy\"]\n\
         approvals = {{ of = [\"x\"], need = 1 }}\n\
         [[rule]]\nname = \"r\"\neffect = \"allow\"\nclients = [\"gateway\"]\nkeys = [\"mail*\"]\noperations = [\"*\"]\n\
         labels = [\"inbox/\"]\nrate = \"100/min\"\nburst = 20\n\
         [[signing]]\nname = \"s\"\nkeys = [\"mail\"]\nslot = \"claimed\"\norder = \"increasing\"\nfirst = 1\n"
    )
}

/// The log of one decision.
fn log() -> LogEntry {
    let policy = Policy::parse(&policy(), "policy.toml").expect("a policy");
    let request = policy.caller_by_certificate(CERTIFICATE).expect("a client").asks(ask());
    let decision = policy.decide(&request, NOW, &State::new(MemorySlots::default()));
    let record = theta_policy::record(3, NOW, &request, &decision, policy.digest());
    let Checkpoint { count: sequence, head: previous } = Checkpoint::START;
    let hashed = [&sequence.to_be_bytes()[..], &previous.0, &record.encode()].concat();
    LogEntry { sequence, previous, hash: Digest(blake3::derive_key(AUDIT_CHAIN, &hashed)), record }
}

fn seeds() -> Vec<Vec<u8>> {
    let request = signed_request();
    let approval = &APPROVALS[0];
    let spec = include_str!("../../spec/policy.md");
    let example = spec.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap_or_default();
    let entry = log();
    let mut seeds = vec![request.encode(), request.to_text().into_bytes(), approval.encode(), entry.record.encode()];
    seeds.push([approval.to_text(), approval.to_text()].concat().into_bytes());
    seeds.push(to_line(&entry).expect("a record").into_bytes());
    seeds.extend([example.to_owned().into_bytes(), policy().into_bytes()]);
    seeds
}
