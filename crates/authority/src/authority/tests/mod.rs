//! The authority on a real store, and on a disk that fails.

mod agents;
mod lines;

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use prometheus_client::registry::Registry;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_custody::{KeyTable, StoreSlots};
use theta_groups::Secret;
use theta_names::{NodeId, SlotOrder};
use theta_policy::{Agent, Heard, SlotDecision, SlotScope, SlotStanding, SlotState};
use theta_statements::Digest;
use theta_statements::audit::{AuditRecord, Checkpoint, LogEntry, verify};
use theta_store::{Options, SealingKey, Store, disk::SimulatedDisk};

use self::lines::Lines;
use super::{Authority, audit::AuditLog};
use crate::{Agents, Asks, AuditUnavailable, Hearing, KeyRequest, Look, Presented, Question, Refusal, Request};

/// The fingerprint of the client's certificate.
const CERTIFICATE: [u8; 32] = [0xc0; 32];

fn sealing() -> SealingKey {
    SealingKey::key(Secret::new([5; 32]))
}

fn simulated(disk: &SimulatedDisk) -> Arc<Store> {
    Arc::new(Store::create_on(disk.backend(), &sealing(), Options::default()).unwrap())
}

/// The rule, whose table is the last, and the signing rule of its key.
fn policy() -> (String, String) {
    let certificate = CERTIFICATE.map(|byte| format!("{byte:02x}")).concat();
    let rules = format!(
        "format = 1\n[[client]]\nname = \"c\"\ncertificates = [\"{certificate}\"]\n[[rule]]\nname = \"r\"\neffect = \"allow\"\n\
         clients = [\"c\"]\nkeys = [\"chain\"]\noperations = [\"sign\"]\n"
    );
    (rules, "[[signing]]\nname = \"s\"\nkeys = [\"chain\"]\nslot = \"claimed\"\n".to_owned())
}

fn with_slots() -> String {
    let (rules, signing) = policy();
    rules + &signing
}

fn open(folder: &Path, text: &str, store: Arc<Store>) -> Arc<Authority> {
    let file = folder.join("policy.toml");
    fs::write(&file, text).unwrap();
    Authority::open("g", NodeId::try_from(3).unwrap(), &file, store, &mut Registry::default()).unwrap()
}

/// A caller with this certificate, or with nothing.
fn from(certificate: Option<[u8; 32]>) -> Presented {
    Presented::new(certificate, None)
}

fn client() -> Presented {
    from(Some(CERTIFICATE))
}

/// The gate need not know the key: only callers that it lets in learn that there is none.
fn sign(message: &'static str, slot: u64) -> Request {
    let (keys, message) = (KeyTable::default(), Bytes::from_static(message.as_bytes()));
    Request::new(&keys, "chain".parse().unwrap(), KeyRequest::Sign(message)).unwrap().at(Some(slot))
}

fn log(store: &Store) -> Vec<LogEntry> {
    let records = store.audit(0, usize::MAX).unwrap();
    let entry = |record: theta_store::AuditRecord| LogEntry {
        sequence: record.index,
        previous: Digest(record.previous),
        hash: Digest(record.hash),
        record: AuditRecord::decode(&record.body).unwrap(),
    };
    records.into_iter().map(entry).collect()
}

#[test]
fn the_stores_slots_keep_the_promise_over_a_restart() {
    let disk = SimulatedDisk::default();
    let scope = SlotScope { key: "chain", rule: "s" };
    let slots = StoreSlots::new(simulated(&disk));
    let decide = |slots: &StoreSlots, slot, digest, order| slots.decide(scope, slot, Digest([digest; 32]), order);
    assert_eq!(decide(&slots, 7, 1, SlotOrder::Any), Ok(SlotDecision::Allowed));
    drop(slots);
    let store = Store::open_on(disk.backend(), &sealing(), Options::default()).unwrap();
    let slots = StoreSlots::new(Arc::new(store));
    assert_eq!(decide(&slots, 7, 1, SlotOrder::Any), Ok(SlotDecision::Same));
    assert_eq!(decide(&slots, 7, 2, SlotOrder::Any), Ok(SlotDecision::Conflict { previous: [1; 32] }));
    assert_eq!(decide(&slots, 9, 2, SlotOrder::Increasing), Ok(SlotDecision::Allowed));
    assert_eq!(decide(&slots, 7, 1, SlotOrder::Any), Ok(SlotDecision::Below { mark: 8 }));
    assert!(slots.decide(SlotScope { key: "", rule: "s" }, 1, Digest([1; 32]), SlotOrder::Any).is_err());
}

/// The gate gives no slot to anybody while the store may be an old copy, which does not know what it gave before.
#[tokio::test]
async fn a_store_that_nobody_has_confirmed_takes_no_slot() {
    let folder = tempfile::tempdir().unwrap();
    let store = simulated(&SimulatedDisk::default());
    let authority = open(folder.path(), &with_slots(), Arc::clone(&store));
    store.set_confirmed(false);
    let refused = authority.decide(client(), sign("a", 1)).await.unwrap_err();
    assert_eq!(refused.code(), Some("slots-unavailable"), "{refused}");
    assert!(refused.to_string().contains("too few nodes have confirmed"), "{refused}");
    store.set_confirmed(true);
    // No slot was taken meanwhile, so it goes to the next request.
    let granted = authority.decide(client(), sign("b", 1)).await.unwrap();
    assert_eq!(granted.claims().first().unwrap().standing, SlotStanding::Taken);
}

#[tokio::test]
async fn decisions_are_made_recorded_and_chained() {
    let folder = tempfile::tempdir().unwrap();
    let store = simulated(&SimulatedDisk::default());
    let authority = open(folder.path(), &with_slots(), Arc::clone(&store));
    let _ = authority.decide(client(), sign("a", 1)).await.unwrap();
    let contested = authority.decide(client(), sign("b", 1)).await.unwrap();
    let standing = contested.claims().first().unwrap().standing;
    assert!(matches!(standing, SlotStanding::Contested { .. }), "{contested:?}");
    assert_eq!(contested.terms().rule, Some("r".parse().unwrap()));
    let status = authority.decide(client(), Look::Status).await.unwrap_err();
    assert_eq!((status.code(), status.rule()), (Some("no-rule"), None));
    for stranger in [None, Some([1; 32])] {
        let refused = authority.decide(from(stranger), sign("a", 1)).await.unwrap_err();
        assert!(matches!(refused, Refusal::Unidentified { begin: None, .. }), "{refused}");
    }
    let _ = authority.decide(client(), sign("a", 1)).await.unwrap();
    let entries = log(&store);
    let checkpoint = verify(&entries, Checkpoint::START, None).unwrap();
    assert_eq!(checkpoint.count, 6, "the last was to be recorded first, and with it all before");
    let reasons: Vec<&str> = entries.iter().map(|entry| entry.record.reason.as_str()).collect();
    assert_eq!(reasons, ["allowed", "slot-contested", "no-rule", "unidentified", "unidentified", "allowed"]);
    authority.close();
    let closed = authority.decide(client(), sign("a", 1)).await.unwrap_err();
    assert_eq!(closed, Refusal::Unrecorded(AuditUnavailable::Closed), "what cannot be recorded is not done");
}

/// The power fails when a request has been allowed: returns whether its record is there afterwards.
async fn is_on_record_after_a_crash(word: &str) -> bool {
    let (folder, disk) = (tempfile::tempdir().unwrap(), SimulatedDisk::default());
    let (rules, _) = policy();
    let authority = open(folder.path(), &format!("{rules}{word}"), simulated(&disk));
    let _ = authority.decide(client(), sign("a", 1)).await.unwrap();
    disk.fail_power(&mut ChaCha20Rng::seed_from_u64(1));
    let store = Store::open_on(disk.backend(), &sealing(), Options::default()).unwrap();
    let entries = log(&store);
    verify(&entries, Checkpoint::START, None).unwrap();
    entries.iter().any(|entry| entry.record.allowed)
}

#[tokio::test]
async fn what_was_allowed_is_on_record_when_the_power_fails() {
    for _ in 0..20 {
        assert!(is_on_record_after_a_crash("").await);
        assert!(is_on_record_after_a_crash("record = \"first\"\n").await);
    }
    // The weaker word does lose records; if it did not, the default would prove nothing.
    let mut lost = 0;
    for _ in 0..20 {
        lost += usize::from(!is_on_record_after_a_crash("record = \"soon\"\n").await);
    }
    assert!(lost > 0, "no record was ever lost by the way that may lose them");
}

#[tokio::test]
async fn many_who_wait_share_the_commits() {
    let folder = tempfile::tempdir().unwrap();
    let store = simulated(&SimulatedDisk::default());
    let authority = open(folder.path(), &policy().0, Arc::clone(&store));
    let before = store.incarnation().sequence;
    let ask = |authority: Arc<Authority>| async move { authority.decide(client(), sign("a", 1)).await };
    let asked: Vec<_> = (0..256).map(|_| tokio::spawn(ask(Arc::clone(&authority)))).collect();
    for granted in asked {
        let _ = granted.await.unwrap().unwrap();
    }
    assert_eq!(log(&store).len(), 256);
    assert!(store.incarnation().sequence - before < 64, "{} commits", store.incarnation().sequence - before);
    assert!(!Look::Status.asked().lets_out() && sign("a", 1).asked().lets_out());
}

#[tokio::test]
async fn those_that_are_decided_together_are_on_record_in_one_commit() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SimulatedDisk::default();
    let store = simulated(&disk);
    let authority = open(folder.path(), &policy().0, Arc::clone(&store));
    let message = |number: u64| Bytes::from(format!("message {number}"));
    let ask = |number: u64| {
        let key = if number == 41 { "other" } else { "chain" };
        let request = Request::new(&KeyTable::default(), key.parse().unwrap(), KeyRequest::Sign(message(number)));
        (if number == 7 { from(None) } else { client() }, request.unwrap())
    };
    let before = store.incarnation().sequence;
    let decided = authority.decide_together((0..100).map(ask).collect()).await;
    assert_eq!(store.incarnation().sequence - before, 1);
    assert_eq!(decided.len(), 100);
    for (number, decided) in (0..).zip(&decided) {
        match (number, decided) {
            (7, Err(Refusal::Unidentified { .. })) => {}
            (41, Err(Refusal::Denied(denial))) => assert_eq!(denial.key.as_deref(), Some("other")),
            (_, Ok(granted)) => assert_eq!(granted.request().statement().as_statement().bytes(), &message(number)[..]),
            other => panic!("{other:?}"),
        }
    }
    let entries = log(&store);
    verify(&entries, Checkpoint::START, None).unwrap();
    let allowed: Vec<bool> = entries.iter().map(|entry| entry.record.allowed).collect();
    let expected: Vec<bool> = (0..100).map(|number| number != 7 && number != 41).collect();
    assert_eq!(allowed, expected, "each has an entry of its own, in order");
    assert!(authority.decide_together(Vec::<(Presented, Request)>::new()).await.is_empty());

    disk.fail_after(0);
    let refused = authority.decide_together((0..5).map(ask).collect()).await;
    let broken = |one: &Result<_, Refusal>| matches!(one, Err(Refusal::Unrecorded(AuditUnavailable::Broken(_))));
    assert!(refused.iter().all(broken), "{refused:?}");
}

#[tokio::test]
async fn a_log_that_cannot_be_written_stops_everything() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SimulatedDisk::default();
    let authority = open(folder.path(), &with_slots(), simulated(&disk));
    let _ = authority.decide(client(), sign("a", 1)).await.unwrap();
    disk.fail_after(0);
    for _ in 0..3 {
        let refused = authority.decide(client(), sign("a", 1)).await.unwrap_err();
        assert!(matches!(refused, Refusal::Unrecorded(AuditUnavailable::Broken(_))), "{refused}");
    }
    let quick = authority.decide(client(), Look::Status).await.unwrap_err();
    assert!(matches!(quick, Refusal::Unrecorded(AuditUnavailable::Broken(_))), "{quick}");
}

fn record(number: u64) -> AuditRecord {
    AuditRecord {
        time: theta_statements::UnixTime(number),
        node: 1,
        client: None,
        recognised_by: None,
        key: None,
        operation: "status".to_owned(),
        statement: Digest([0; 32]),
        slot: None,
        allowed: false,
        rule: None,
        reason: "no-rule".to_owned(),
        detail: String::new(),
        approvers: Vec::new(),
        policy: Digest([0; 32]),
    }
}

/// Many tasks wait at once, each for its own record, and some go away.
#[tokio::test]
async fn whoever_waits_is_told_of_its_own_record() {
    let disk = SimulatedDisk::default();
    let store = simulated(&disk);
    let audit = Arc::new(AuditLog::start(Arc::clone(&store)).unwrap());
    let wait = |number| {
        let (ticket, audit) = (audit.append(record(number), true), Arc::clone(&audit));
        tokio::spawn(async move { audit.durable(ticket).await })
    };
    let mut waits: Vec<_> = (0..200).map(wait).collect();
    waits.drain(50..100).for_each(|gone| gone.abort());
    for wait in waits {
        assert_eq!(wait.await.unwrap(), Ok(()));
    }
    assert_eq!(log(&store).len(), 200, "the records of those who went away are there, too");
    // A task that comes when its record has long been written does not wait.
    let ticket = audit.append(record(200), false);
    audit.flush().unwrap();
    assert_eq!(audit.durable(ticket).await, Ok(()));
    // All whose records cannot be written are told so, and all who wait when the log ends.
    disk.fill_after(0);
    let (first, second) = (wait(201), wait(202));
    for refused in [first.await.unwrap(), second.await.unwrap()] {
        assert!(matches!(refused, Err(AuditUnavailable::Broken(_))), "{refused:?}");
    }
    let late = audit.append(record(203), true);
    assert!(audit.durable(late).await.is_err());
    audit.close();
    let late = audit.append(record(204), true);
    assert!(audit.durable(late).await.is_err());
}

#[test]
fn records_wait_for_each_other_and_are_all_written_at_the_end() {
    let store = simulated(&SimulatedDisk::default());
    let audit = AuditLog::start(Arc::clone(&store)).unwrap();
    let before = store.incarnation().sequence;
    for number in 0..2_000 {
        audit.check().unwrap();
        audit.append(record(number), false);
    }
    audit.close();
    let entries = log(&store);
    assert_eq!(verify(&entries, Checkpoint::START, None).unwrap().count, 2_000);
    assert!(entries.iter().zip(0..).all(|(entry, number)| entry.record.time.0 == number), "in their order");
    assert!(store.incarnation().sequence - before < 200, "many share a commit");
}

/// A full disk costs refusals that say why, and nothing any more once there is room.
#[tokio::test]
async fn a_full_disk_is_refused_and_recovered_from_without_a_restart() {
    for changes in [0, 1, 3, 7] {
        let (folder, disk) = (tempfile::tempdir().unwrap(), SimulatedDisk::default());
        let store = simulated(&disk);
        let authority = open(folder.path(), &policy().0, Arc::clone(&store));
        let ask = || authority.decide(client(), sign("a", 1));
        let _ = ask().await.unwrap();
        assert_eq!(authority.standing(), Ok(None));
        disk.fill_after(changes);
        let mut allowed = 1;
        let refused = loop {
            match ask().await {
                Ok(_) => allowed += 1,
                Err(refused) => break refused,
            }
        };
        assert!(matches!(refused, Refusal::Unrecorded(AuditUnavailable::Broken(_))), "{refused}");
        assert!(authority.standing().unwrap_err().contains("cannot be written"));
        disk.make_room();
        let deadline = Instant::now() + Duration::from_secs(60);
        while ask().await.is_err() {
            assert!(Instant::now() < deadline, "it never recovers");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(authority.standing(), Ok(None));
        let entries = log(&store);
        verify(&entries, Checkpoint::START, None).unwrap();
        // The records of answered requests, of the one whose commit failed, and of the last; none is there twice.
        assert_eq!(entries.len(), allowed + 2, "after {changes} changes");
    }
}

#[tokio::test]
async fn a_known_client_without_rights_does_not_fill_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let store = simulated(&SimulatedDisk::default());
    let authority = open(folder.path(), &policy().0, Arc::clone(&store));
    for _ in 0..3_000 {
        authority.decide(client(), Look::Status).await.unwrap_err();
    }
    for _ in 0..5 {
        let _ = authority.decide(client(), sign("a", 1)).await.unwrap();
    }
    authority.look_after();
    authority.flush().unwrap();
    let entries = log(&store);
    let refused: Vec<_> = entries.iter().filter(|entry| !entry.record.allowed).collect();
    // Twenty for each second that it took.
    assert!(refused.len() < 1_000, "{} refusals are in the log", refused.len());
    let last = &refused.last().unwrap().record.detail;
    assert!(last.contains("more refusals of the same second were not recorded"), "{last}");
    assert_eq!(entries.len() - refused.len(), 5, "what is allowed is always recorded");
}

/// Looking costs nothing and can be done without end: not each look is on record, though it is allowed.
#[tokio::test]
async fn a_client_that_looks_all_the_time_does_not_fill_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let store = simulated(&SimulatedDisk::default());
    // The rule's rate is one of signatures.
    let authority = open(folder.path(), &(policy().0 + "rate = \"1/day\"\n"), Arc::clone(&store));
    let began = Instant::now();
    for _ in 0..3_000 {
        let _ = authority.decide(client(), Look::Key("chain".parse().unwrap())).await.unwrap();
        let _ = authority.decide(client(), Look::Ledger).await.unwrap();
    }
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap() + 2;
    authority.look_after();
    authority.flush().unwrap();
    let entries = log(&store);
    assert!(entries.len() <= 21 * seconds, "{} records in {seconds} s", entries.len());
    let last = &entries.last().unwrap().record;
    assert!(
        last.allowed && last.detail.contains("more decisions that allow this of the same second"),
        "{}",
        last.detail
    );
}

/// What a client may not send is refused before it is on record as allowed, and refusals are recorded at a rate.
#[tokio::test]
async fn submissions_over_their_rate_do_not_fill_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let store = simulated(&SimulatedDisk::default());
    let text = policy().0.replace("[[rule]]", "limits = { submissions = \"5/h\" }\n[[rule]]");
    let authority = open(folder.path(), &text, Arc::clone(&store));
    let began = Instant::now();
    let mut allowed = 0;
    for _ in 0..2_000 {
        match authority.decide(client(), sign("a", 1)).await {
            Ok(_) => allowed += 1,
            Err(refused) => assert!(matches!(refused, Refusal::Quota(_)), "{refused}"),
        }
    }
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap() + 2;
    authority.flush().unwrap();
    let entries = log(&store);
    assert_eq!((allowed, entries.iter().filter(|entry| entry.record.allowed).count()), (5, 5));
    let refused = entries.iter().find(|entry| !entry.record.allowed).unwrap();
    assert_eq!(refused.record.reason, "client-quota");
    assert!(refused.record.detail.contains("client c may send 5/h"), "{}", refused.record.detail);
    assert!(entries.len() <= 5 + 21 * seconds, "{} records in {seconds} s", entries.len());
}

/// Claims leave the node before it decides: what its rule refuses then must claim nothing, and they count for its rate.
#[tokio::test]
async fn races_count_for_their_rules_rate_and_once() {
    let (folder, (rules, signing)) = (tempfile::tempdir().unwrap(), policy());
    let text = format!("{rules}rate = \"1/day\"\n{signing}race = \"ordered\"\n");
    let authority = open(folder.path(), &text, simulated(&SimulatedDisk::default()));
    let (presented, races) = authority.races(client(), &sign("one", 1)).await.unwrap();
    assert_eq!(races.len(), 1);
    for slot in 2..100 {
        assert!(authority.races(client(), &sign("other", slot)).await.unwrap().1.is_empty(), "it has claimed today");
    }
    let refused = authority.decide(client(), sign("other", 2)).await.unwrap_err();
    assert_eq!(refused.code(), Some("too-often"), "{refused}");
    let granted = authority.decide(presented, sign("one", 1)).await.unwrap();
    assert_eq!(granted.claims()[0].standing, SlotStanding::Taken);
}

/// The agent of a rule that races is heard before anything is claimed.
#[tokio::test]
async fn what_an_agent_does_not_consent_to_claims_nothing() {
    let (folder, (rules, signing)) = (tempfile::tempdir().unwrap(), policy());
    let text = rules.replace("[[rule]]", "[[agent]]\nname = \"a\"\nsocket = \"/nowhere\"\n[[rule]]");
    let text = format!("{text}agent = \"a\"\n{signing}race = \"ordered\"\n");
    let authority = open(folder.path(), &text, simulated(&SimulatedDisk::default()));
    authority.ask_agents_by(Arc::new(Likes("good")));
    let (presented, races) = authority.races(client(), &sign("bad", 1)).await.unwrap();
    assert!(races.is_empty());
    let refused = authority.decide(presented, sign("bad", 1)).await.unwrap_err();
    assert_eq!(refused.code(), Some("agent-refuses"), "{refused}");
    let (presented, races) = authority.races(client(), &sign("good", 1)).await.unwrap();
    assert_eq!(races.len(), 1);
    let _ = authority.decide(presented, sign("good", 1)).await.unwrap();
}

/// An agent that consents to one message.
#[derive(Debug)]
struct Likes(&'static str);

impl Agents for Likes {
    fn ask<'a>(&'a self, agent: &'a Agent, question: Question) -> Hearing<'a> {
        let name = agent.name().clone();
        let consents = question.statement == self.0.as_bytes();
        Box::pin(async move { if consents { Heard::consent(name, "") } else { Heard::refusal(name, "no") } })
    }
}

/// What a node claims in the order of its host: a slot that an allowed request would take, and only as long as the node has promised it to
/// nobody. To look promises nothing and is not on record.
#[tokio::test]
async fn races_are_those_of_allowed_requests_for_slots_that_nobody_has() {
    let (folder, (rules, signing)) = (tempfile::tempdir().unwrap(), policy());
    let store = simulated(&SimulatedDisk::default());
    let authority = open(folder.path(), &format!("{rules}{signing}race = \"ordered\"\n"), Arc::clone(&store));
    let (one, other) = (sign("one", 7), sign("other", 7));
    let mut found = Vec::new();
    for request in [&one, &other] {
        let races = authority.races(client(), request).await.unwrap().1;
        let [race] = &races[..] else { panic!("one rule is about this key") };
        assert_eq!((race.key.as_str(), race.rule.as_str(), race.slot), ("chain", "s", 7));
        found.push(race.digest);
    }
    assert_ne!(found[0], found[1], "they are for different messages");
    for stranger in [from(Some([1; 32])), from(None)] {
        assert!(authority.races(stranger, &one).await.unwrap().1.is_empty(), "strangers race for nothing");
    }
    let no_slot = Request::new(&KeyTable::default(), "chain".parse().unwrap(), KeyRequest::Sign(Bytes::new())).unwrap();
    assert!(authority.races(client(), &no_slot).await.unwrap().1.is_empty());
    authority.flush().unwrap();
    assert!(log(&store).is_empty());
    let granted = authority.decide(client(), one).await.unwrap();
    assert_eq!(granted.claims()[0].standing, SlotStanding::Taken);
    assert!(authority.races(client(), &other).await.unwrap().1.is_empty(), "it is promised");
    assert!(!authority.races(client(), &sign("other", 8)).await.unwrap().1.is_empty());
    // Without an order nobody races.
    let plain = open(folder.path(), &with_slots(), simulated(&SimulatedDisk::default()));
    assert!(plain.races(client(), &sign("one", 7)).await.unwrap().1.is_empty());
}

/// An operator who puts a client of before into the policy of a running node would else hear of it at the node's next start.
#[test]
fn outdated_tokens_are_told_of_whenever_a_policy_comes_into_force() {
    let folder = tempfile::tempdir().unwrap();
    let client = |name: &str| {
        format!("[[client]]\nname = \"{name}\"\ntokens = [\"sha256:{}\"]\n", hex::encode([name.as_bytes()[0]; 32]))
    };
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), || {
        let authority = open(folder.path(), &policy().0, simulated(&SimulatedDisk::default()));
        assert_eq!(lines.take(), [""; 0]);
        fs::write(folder.path().join("policy.toml"), policy().0 + &client("old")).unwrap();
        authority.reload().unwrap();
        let said = lines.take();
        assert!(said.len() == 1 && said[0].contains("of old recognises nobody"), "{said:?}");
        // What is in force already is told of once.
        authority.reload().unwrap();
        assert_eq!(lines.take(), [""; 0]);
        authority.close();
    });
    let again = Lines::default();
    tracing::subscriber::with_default(again.clone(), || {
        let text = policy().0 + &client("old") + &client("elder");
        open(folder.path(), &text, simulated(&SimulatedDisk::default())).close();
    });
    let said = again.take();
    assert!(said.len() == 1 && said[0].contains("of elder, old recognises nobody"), "{said:?}");
}
