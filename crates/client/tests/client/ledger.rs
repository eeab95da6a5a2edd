//! What a client makes of the group's ledger, and of nodes that lie about it.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use bytes::Bytes;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_client::{Client, ClientError, KeyDispute, KnownKeys, Problem};
use theta_keyfiles::PublicKeyText as _;
use theta_ledger::LedgerState;
use theta_names::{Epoch, KeyRef, KeyState, NodeId, Version};
use theta_schemes::{Suite, keys::deal_any};

use crate::fake::{FakeGroup, Rest, adopt, certified, key, outcome, sharings};

const MESSAGE: &[u8] = b"a message";

fn name(text: &str) -> KeyRef {
    text.parse().unwrap()
}

fn folder(group: &FakeGroup) -> PathBuf {
    group.prepared.folder.path().join("client")
}

fn ledger_file(group: &FakeGroup) -> PathBuf {
    folder(group).join("group.ledger")
}

/// Gives the client the public key that it had before.
fn give(group: &FakeGroup, key: &str, public: &theta_schemes::keys::AnyPublicKey) {
    fs::write(folder(group).join(format!("keys/{key}.pub")), public.to_text(&key.parse().unwrap())).unwrap();
}

fn versions(known: &KnownKeys, key: &str) -> Vec<(u32, u32)> {
    let of = |known: theta_client::KnownKey| Some((known.version?.get(), known.epoch.map_or(99, Epoch::get)));
    known.versions(&name(key)).into_iter().filter_map(of).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_called_a_liar_after_a_rotation() {
    let mut group = FakeGroup::new();
    let (old, new) = (key(Suite::Bls04MinPk, 1), key(Suite::Bls04MinPk, 2));
    give(&group, "seal", &old.0);
    let client = Client::open(&folder(&group)).unwrap();
    group.answer(&outcome(&old, MESSAGE));
    assert!(client.sign("seal", MESSAGE.into()).await.unwrap().bad_answers.is_empty());
    assert_eq!(group.asked(), 0, "who knows the key asks for no ledger");

    group.decide(adopt("seal", 1, 0, &old.0));
    group.decide(adopt("seal", 2, 0, &new.0));
    group.answer(&outcome(&new, MESSAGE));
    let signed = client.sign("seal", MESSAGE.into()).await.unwrap();
    assert!(signed.bad_answers.is_empty(), "{:?}", signed.bad_answers);
    new.0.verify(MESSAGE, &signed.result, &[]).unwrap();
    assert_eq!(versions(client.known(), "seal"), [(2, 0), (1, 0)]);
    assert_eq!(client.known().find(&name("seal@1")).unwrap().state, Some(KeyState::Retired));

    // A node that signs with the old version is behind, and not a liar; nor is its answer taken.
    group.answer(&outcome(&old, MESSAGE));
    let error = client.sign("seal", MESSAGE.into()).await.unwrap_err();
    let ClientError::NoAnswer { nodes, .. } = &error else { panic!("{error}") };
    assert!(nodes.iter().all(|node| node.problem == Problem::OtherVersion(Version::FIRST)), "{error}");
    assert!(client.sign("seal@1", MESSAGE.into()).await.unwrap().bad_answers.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coin_of_any_epoch_is_a_coin() {
    let mut group = FakeGroup::new();
    let (before, after) = sharings(Suite::Cks05Ristretto255);
    assert!(before.0.key_id() == after.0.key_id() && before.0.parts() != after.0.parts());
    give(&group, "dice", &before.0);
    group.decide(adopt("dice", 1, 0, &before.0));
    group.decide(adopt("dice", 1, 1, &after.0));
    let client = Client::open(&folder(&group)).unwrap();
    group.answer(&outcome(&after, MESSAGE));
    let new = client.flip_coin("dice", MESSAGE.into()).await.unwrap();
    group.answer(&outcome(&before, MESSAGE));
    let old = client.flip_coin("dice", MESSAGE.into()).await.unwrap();
    assert!(new.bad_answers.is_empty() && old.bad_answers.is_empty());
    assert_eq!(new.result.value, old.result.value);
    assert_ne!(new.result.proof, old.result.proof);
    assert_eq!(versions(client.known(), "dice"), [(1, 1), (1, 0)]);
}

/// Few nodes hold it, or it has not come into the ledger yet: its holders tell of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_key_that_is_not_in_the_ledger_its_holders_tell() {
    let group = FakeGroup::new();
    let (old, new) = (key(Suite::Bls04MinPk, 1), key(Suite::Bls04MinPk, 2));
    give(&group, "seal", &old.0);
    let client = Client::open(&folder(&group)).unwrap();
    group.answer(&outcome(&new, MESSAGE));
    for node in &group.nodes {
        node.lock().unwrap().public = Some(new.0.to_text(&"seal".parse().unwrap()));
    }
    let signed = client.sign("seal", MESSAGE.into()).await.unwrap();
    assert!(signed.bad_answers.is_empty(), "{:?}", signed.bad_answers);
    new.0.verify(MESSAGE, &signed.result, &[]).unwrap();
}

/// A key that takes all four holders cannot be confirmed while one of them says something else; then that one is named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_denies_a_key_that_takes_everybody_is_named() {
    let group = FakeGroup::new();
    let threshold = theta_sharing::Threshold::new(4, 4).unwrap();
    let dealt = |seed| deal_any(Suite::Bls04MinPk, threshold, &mut ChaCha20Rng::seed_from_u64(seed)).0;
    let (truth, lie) = (dealt(1), dealt(2));
    for number in 1..=4 {
        let told = if number == 4 { &lie } else { &truth };
        group.node(number).public = Some(told.to_text(&"seal".parse().unwrap()));
    }
    let client = Client::open(&folder(&group)).unwrap();
    let error = client.public_key("seal").await.unwrap_err();
    let ClientError::KeyDisagreement { needed: 4, dispute: KeyDispute::Contradicted(named), nodes, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(*named, [NodeId::try_from(4).unwrap()]);
    let is_called_a_liar = |node: &theta_client::NodeProblem| matches!(node.problem, Problem::FalseAnswer(_));
    assert!(nodes.len() == 4 && !nodes.iter().any(is_called_a_liar), "three of them are honest: {error}");
    assert!(error.to_string().contains("and node 4 contradicts so many that one of those is honest"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_not_certified_is_not_taken() {
    let mut group = FakeGroup::new();
    let (truth, lie) = (key(Suite::Bls04MinPk, 1), key(Suite::Bls04MinPk, 2));
    group.decide(adopt("seal", 1, 0, &truth.0));
    // Two of three votes; a key of the liar's in the place of the true one; another history.
    let few = certified(&group.state, adopt("seal", 2, 0, &lie.0), &[1, 2]);
    group.node(1).entries.push(few);
    let start = LedgerState::new(&theta_client::genesis_of(&group.prepared.group).unwrap());
    let mut exchanged = group.node(2).entries[0].clone();
    exchanged.entry = certified(&start, adopt("seal", 1, 0, &lie.0), &[]).entry;
    group.node(2).entries = vec![exchanged];
    let client = Client::open(&folder(&group)).unwrap();
    assert!(client.renew().await.unwrap());
    assert_eq!(versions(client.known(), "seal"), [(1, 0)]);
    assert_eq!(client.known().find(&name("seal")).unwrap().public.key_id(), truth.0.key_id());

    let mut state = start.clone();
    let followed = client.follow_ledger(&mut state).await.unwrap();
    assert_eq!((state.height(), followed.entries.len()), (1, 1));
    let blamed: Vec<u16> = followed.problems.iter().map(|problem| problem.node.get()).collect();
    assert_eq!(blamed, [1, 2], "{:?}", followed.problems);
    assert!(followed.problems.iter().all(|problem| matches!(problem.problem, Problem::FalseAnswer(_))));

    // A quorum that lies signs another history: who has followed the true one says so, and keeps it.
    let fork = certified(&start, adopt("seal", 1, 0, &lie.0), &[2, 3, 4]);
    group.node(3).entries = vec![fork.clone()];
    let followed = client.follow_ledger(&mut state).await.unwrap();
    let problem = followed.problems.iter().find(|problem| problem.node.get() == 3).unwrap();
    assert!(problem.to_string().contains("another history of the group: its entry 1"), "{problem}");
    let mut forked = start;
    forked.advance(&fork).unwrap();
    let next = certified(&forked, adopt("seal", 2, 0, &truth.0), &[2, 3, 4]);
    group.node(3).entries.push(next);
    let followed = client.follow_ledger(&mut state).await.unwrap();
    assert!(followed.problems.iter().any(|problem| problem.to_string().contains("another history")));
    assert_eq!(state.height(), 1);
}

/// One that tells an entry again and again would seem to have much more to say.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_is_told_once_and_in_its_place() {
    let mut group = FakeGroup::new();
    let (old, new) = (key(Suite::Bls04MinPk, 1), key(Suite::Bls04MinPk, 2));
    group.decide(adopt("seal", 1, 0, &old.0));
    group.decide(adopt("seal", 2, 0, &new.0));
    let first = group.node(1).entries[0].clone();
    group.node(1).entries = vec![first; 1000];
    group.node(2).entries.reverse();
    let mut state = LedgerState::new(&theta_client::genesis_of(&group.prepared.group).unwrap());
    let client = Client::open(&folder(&group)).unwrap();
    let followed = client.follow_ledger(&mut state).await.unwrap();
    assert_eq!((state.height(), followed.entries.len()), (2, 2));
    let blamed: Vec<u16> = followed.problems.iter().map(|problem| problem.node.get()).collect();
    assert_eq!(blamed, [1, 2], "{:?}", followed.problems);
    assert!(followed.problems.iter().all(|problem| problem.to_string().contains("in the place of")));
}

/// More than a node may say at once: one of them is asked for the rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_history_is_read_to_its_end() {
    let mut group = FakeGroup::new();
    let public = key(Suite::Bls04MinPk, 1).0;
    for version in 1..=300 {
        group.decide(adopt("seal", version, 0, &public));
    }
    let client = Client::open(&folder(&group)).unwrap();
    assert!(client.renew().await.unwrap());
    assert_eq!(versions(client.known(), "seal").len(), 300);
    let asked: Vec<Vec<u64>> = (1..=4).map(|node| group.node(node).asked.clone()).collect();
    assert_eq!(asked.iter().filter(|asked| asked.len() > 2).count(), 1, "one is asked for the rest: {asked:?}");
    // And all that were quick, whether it has kept something back.
    assert!(asked.iter().filter(|asked| asked.last() == Some(&299)).count() >= 2, "{asked:?}");
    drop(client);
    let known = KnownKeys::open(&folder(&group)).unwrap();
    assert_eq!(versions(&known, "seal")[0], (300, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_checked_is_kept_and_asked_for_once() {
    let mut group = FakeGroup::new();
    let (old, new) = (key(Suite::Bls04MinPk, 1), key(Suite::Bls04MinPk, 2));
    group.decide(adopt("seal", 1, 0, &old.0));
    group.decide(adopt("seal", 2, 0, &new.0));
    let client = Client::open(&folder(&group)).unwrap();
    assert!(client.renew().await.unwrap());
    assert!(!client.renew().await.unwrap());
    // From the last entry on, which shows whether the node has the same history.
    assert_eq!(group.node(1).asked, [0, 1]);
    drop(client);

    let again = Client::open(&folder(&group)).unwrap();
    assert_eq!(versions(again.known(), "seal"), [(2, 0), (1, 0)]);
    assert!(!again.renew().await.unwrap());
    assert_eq!(group.node(1).asked, [0, 1, 1]);
    group.stop();
    // Neither a node nor a runtime is needed to know the keys.
    let known = std::thread::spawn({
        let folder = folder(&group);
        move || versions(&KnownKeys::open(&folder).unwrap(), "seal")
    });
    assert_eq!(known.join().unwrap(), [(2, 0), (1, 0)]);
    assert_eq!(fs::read_dir(folder(&group)).unwrap().count(), 5, "nothing is left lying beside the client's files");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_file_fools_nobody() {
    let mut group = FakeGroup::new();
    let (one, two) = (key(Suite::Bls04MinPk, 1), key(Suite::Bls04MinPk, 2));
    let (three, lie) = (key(Suite::Bls04MinPk, 3), key(Suite::Bls04MinPk, 4));
    for (version, key) in [(1, &one), (2, &two), (3, &three)] {
        group.decide(adopt("seal", version, 0, &key.0));
    }
    let client = Client::open(&folder(&group)).unwrap();
    client.renew().await.unwrap();
    let good = fs::read(ledger_file(&group)).unwrap();
    let all = [(3, 0), (2, 0), (1, 0)];
    let read = |bytes: &[u8]| {
        fs::write(ledger_file(&group), bytes).unwrap();
        let known = KnownKeys::open(&folder(&group)).unwrap();
        for found in known.versions(&name("seal")) {
            let truth = [&one, &two, &three][usize::try_from(found.version.unwrap().get()).unwrap() - 1];
            assert_eq!(found.public.key_id(), truth.0.key_id());
        }
        versions(&known, "seal")
    };
    assert_eq!(read(&good), all);
    // Whatever byte is changed, wherever it is cut off: what is left is a beginning of the true history.
    for at in (0..good.len()).step_by(61) {
        let mut changed = good.clone();
        changed[at] ^= 1;
        let found = read(&changed);
        assert!(found.is_empty() || all.ends_with(&found), "byte {at}: {found:?}");
        let found = read(&good[..at]);
        assert!(found.is_empty() || all.ends_with(&found), "{at} bytes: {found:?}");
    }

    // Entries without votes, before one whose votes are true: the chain of digests gives it away.
    let start = LedgerState::new(&theta_client::genesis_of(&group.prepared.group).unwrap());
    let forged = certified(&start, adopt("seal", 1, 0, &lie.0), &[]);
    let entries = group.node(1).entries.clone();
    let file = |entries: &[&theta_ledger::CertifiedEntry]| {
        let mut file = good[..b"theta ledger 1\n".len() + 32].to_vec();
        for entry in entries {
            let bytes = entry.encode();
            file.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
            file.extend(bytes);
        }
        file
    };
    assert_eq!(read(&file(&[&entries[0], &entries[1], &entries[2]])), all);
    assert_eq!(read(&file(&[&forged])), []);
    assert_eq!(read(&file(&[&forged, &entries[1], &entries[2]])), []);
    // The votes of an older entry are bound by those for a newer one, and need not be there.
    let mut unvoted = entries[0].clone();
    unvoted.certificate = forged.certificate;
    assert_eq!(read(&file(&[&unvoted, &entries[1], &entries[2]])), all);
    assert_eq!(read(&file(&[&entries[0], &unvoted])), [(1, 0)]);
    // The client goes on from whatever is left.
    fs::write(ledger_file(&group), file(&[&entries[0], &unvoted])).unwrap();
    let client = Client::open(&folder(&group)).unwrap();
    assert!(client.renew().await.unwrap());
    assert_eq!((versions(client.known(), "seal"), fs::read(ledger_file(&group)).unwrap()), (all.to_vec(), good));
}

/// Another process holds the lock of the folder for a moment, or for ever: nobody who may read the folder stops a client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_others_lock_is_waited_for_and_not_for_ever() {
    let mut group = FakeGroup::new();
    let client = Client::open(&folder(&group)).unwrap();
    let lock = fs::File::open(folder(&group)).unwrap();
    lock.lock().unwrap();
    let moment = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        drop(lock);
    });
    group.decide(adopt("seal", 1, 0, &key(Suite::Bls04MinPk, 1).0));
    client.renew().await.unwrap();
    moment.join().unwrap();
    let kept = fs::read(ledger_file(&group)).expect("it was waited for");

    let lock = fs::File::open(folder(&group)).unwrap();
    lock.lock().unwrap();
    for version in 2..5 {
        group.decide(adopt("seal", version, 0, &key(Suite::Bls04MinPk, u64::from(version)).0));
        tokio::time::timeout(Duration::from_secs(30), client.renew()).await.expect("it goes on").unwrap();
    }
    assert_eq!(versions(client.known(), "seal").len(), 4);
    assert_eq!(fs::read(ledger_file(&group)).unwrap(), kept);
    // What could not be kept is at the next opportunity.
    drop(lock);
    client.renew().await.unwrap();
    assert!(fs::read(ledger_file(&group)).unwrap().len() > kept.len());
}

/// Two processes keep the same file. The one that has read less does not take from it what the other has written, and garbage is overwritten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_read_less_takes_nothing_from_the_file() {
    let mut group = FakeGroup::new();
    let (one, two) = (key(Suite::Bls04MinPk, 1), key(Suite::Bls04MinPk, 2));
    let (late, early) = (Client::open(&folder(&group)).unwrap(), Client::open(&folder(&group)).unwrap());
    let heights = [&late, &early].map(|client| client.ledger(LedgerState::height));
    assert_eq!(heights, [Some(0), Some(0)], "both have read the file");
    group.decide(adopt("seal", 1, 0, &one.0));
    early.renew().await.unwrap();
    let first = fs::read(ledger_file(&group)).unwrap();
    group.decide(adopt("seal", 2, 0, &two.0));
    early.renew().await.unwrap();
    let whole = fs::read(ledger_file(&group)).unwrap();
    (1..=4).for_each(|number| group.node(number).entries.truncate(1));
    assert!(late.renew().await.unwrap());
    assert_eq!(late.known().of_id(one.0.key_id()).unwrap().version, Some(Version::FIRST));
    assert!(late.known().of_id(two.0.key_id()).is_none());
    assert_eq!(fs::read(ledger_file(&group)).unwrap(), whole);
    // What is longer and not certified is no more.
    let garbage = [&whole[..b"theta ledger 1\n".len() + 32], &[0; 1 << 20]].concat();
    fs::write(ledger_file(&group), garbage).unwrap();
    let again = Client::open(&folder(&group)).unwrap();
    again.renew().await.unwrap();
    assert_eq!(fs::read(ledger_file(&group)).unwrap(), first);
    assert_eq!(versions(&KnownKeys::open(&folder(&group)).unwrap(), "seal"), [(1, 0)]);
    // The ids of versions that come later are learned as well.
    let found = early.known().of_id(two.0.key_id()).unwrap();
    assert_eq!((found.version, found.state), (Version::new(2), Some(KeyState::Active)));
    assert_eq!(early.known().of_id(one.0.key_id()).unwrap().state, Some(KeyState::Retired));
}

/// A liar that answers every request does not make the client ask everybody each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn liars_do_not_make_a_client_ask_for_ever() {
    let mut group = FakeGroup::new();
    let truth = key(Suite::Bls04MinPk, 1);
    group.decide(adopt("seal", 1, 0, &truth.0));
    let client = Client::open(&folder(&group)).unwrap();
    client.renew().await.unwrap();
    group.answer(&outcome(&truth, MESSAGE));
    let mut lie = outcome(&key(Suite::Bls04MinPk, 9), MESSAGE);
    lie.contributors = vec![1];
    group.node(1).outcome = Some(lie);
    let (before, started, mut caught) = (group.asked(), Instant::now(), 0);
    for _ in 0..200 {
        let signed = client.sign("seal", MESSAGE.into()).await.unwrap();
        assert!(signed.bad_answers.iter().all(|bad| bad.node.get() == 1), "{:?}", signed.bad_answers);
        caught += signed.bad_answers.len();
    }
    assert!(caught > 0, "the liar was never first");
    let turns = 6 + usize::try_from(started.elapsed().as_secs()).unwrap();
    assert!(group.asked() - before <= 4 * turns, "{} times in {turns} turns", group.asked() - before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_is_silent_is_reported() {
    let mut group = FakeGroup::new();
    group.stop();
    let client = Client::open(&folder(&group)).unwrap();
    assert!(matches!(client.renew().await, Err(ClientError::NoAnswer { .. })));
    let error = client.sign("seal", Bytes::from_static(MESSAGE)).await.unwrap_err();
    assert!(error.to_string().contains("node 4"), "{error}");
}

/// A history of more than a node says at once, and node 1 is the first to answer.
fn long_history(rest: Rest) -> FakeGroup {
    let mut group = FakeGroup::new();
    let public = key(Suite::Bls04MinPk, 1).0;
    for version in 1..=300 {
        group.decide(adopt("seal", version, 0, &public));
    }
    group.node(1).rest = rest;
    (2..=4).for_each(|number| group.node(number).ledger_delay = Duration::from_millis(50));
    group
}

/// Node 1 begins at once, and tells the rest never, or little by little.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_stalls_keeps_nothing_back() {
    for rest in [Rest::Never, Rest::Every(Duration::from_millis(700))] {
        let group = long_history(rest);
        let client = Client::open(&folder(&group)).unwrap();
        let began = Instant::now();
        assert!(client.renew().await.unwrap());
        assert!(began.elapsed() < Duration::from_secs(8), "{rest:?}: {:?}", began.elapsed());
        assert_eq!(versions(client.known(), "seal").len(), 300, "{rest:?}");
        assert!(group.asked() <= 16, "{rest:?}: nodes were asked {} times", group.asked());
    }
}

/// Nobody tells the rest, and the caller has no more time: the next one begins where this one was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_read_for_a_caller_that_is_gone_is_kept() {
    let group = long_history(Rest::Never);
    (2..=4).for_each(|number| group.node(number).rest = Rest::Never);
    let client = Client::open(&folder(&group)).unwrap();
    let read = tokio::time::timeout(Duration::from_millis(900), client.renew()).await;
    assert!(read.is_err(), "the nodes have told all: {read:?}");
    let kept = versions(&KnownKeys::open(&folder(&group)).unwrap(), "seal").len();
    assert!(kept > 100, "{kept} versions are kept");
}
