//! Clients whose file was made of the group's ledger: they reach members of whom the founding says nothing, and take no other history.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use theta_client::{Checkpoint, Client, ClientError, ClientFile, Problem, genesis_of, group_node};
use theta_ledger::{Action, LedgerState, MemberChange, founding::Founding, founding::NodeSignatures};
use theta_names::NodeId;
use theta_network::Identity;
use theta_schemes::{
    Suite,
    groups::Secret,
    keys::{AnyPublicKey, KeyId},
};

use crate::fake::{FakeGroup, Key, adopt, card, certified, key, keys_of, outcome};

const MESSAGE: &[u8] = b"a message";

/// Writes a client file with the members, and the checkpoint, of this state of the ledger.
fn file_of(group: &FakeGroup, state: &LedgerState, name: &str) -> PathBuf {
    let given = &group.prepared.group;
    let founding = Founding::from_text(given.founding().unwrap(), &NodeSignatures).unwrap();
    let seats = state.seats().iter();
    let nodes = seats.map(|(node, seat)| group_node(*node, seat.card().unwrap())).collect();
    let folder = group.prepared.folder.path().join("client");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let file = ClientFile {
        name: "ann".parse().unwrap(),
        group: given.clone().with_clients(Vec::new()).unwrap().with_members(nodes, state.members_since()).unwrap(),
        founding: Some(founding),
        checkpoint: Some(Checkpoint { height: state.height(), entry: *state.head() }),
        identity: Some((read("client.crt"), Secret::new(read("client.key")))),
        request_key: None,
        public_keys: Vec::new(),
    };
    let path = group.prepared.folder.path().join(name);
    fs::write(&path, file.to_text().expose()).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// The machine of a node is thrown away, and another one with the same key of ceremonies and another TLS key is elsewhere.
fn is_elsewhere(group: &mut FakeGroup, number: u16) {
    let node = NodeId::try_from(number).unwrap();
    group.stop_node(number.into());
    let identity = Identity::generate(&format!("node {number} again")).unwrap();
    let folder = group.prepared.folder.path().join(format!("node-{number}"));
    fs::write(folder.join("node.crt"), &identity.certificate_pem).unwrap();
    fs::write(folder.join("node.key"), identity.key_pem.as_bytes()).unwrap();
    let address = group.serve_elsewhere(number.into());
    let mut listed = group.prepared.group.node(node).unwrap().clone();
    listed.certificate = identity.fingerprint;
    let card = card(&listed, &keys_of(number), &address, 2);
    group.decide(Action::Members(MemberChange::Renew { node: number, card }));
}

/// A group with one key, all of whose machines have other TLS keys and addresses than it was founded with.
fn moved() -> (FakeGroup, Key) {
    let mut group = FakeGroup::founded();
    let seal = key(Suite::Bls04MinPk, 1);
    group.decide(adopt("seal", 1, 0, &seal.0));
    (1..=4).for_each(|number| is_elsewhere(&mut group, number));
    group.answer(&outcome(&seal, MESSAGE));
    (group, seal)
}

fn height(client: &Client) -> u64 {
    client.ledger(LedgerState::height).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_with_other_machines_than_it_was_founded_with_is_reached_at_once() {
    let (mut group, _) = moved();
    let file = file_of(&group, &group.state, "ann.client");
    let client = Client::open(&file).unwrap();
    assert_eq!(height(&client), 0);
    assert_eq!(client.group().nodes(), ClientFile::load(&file).unwrap().group.nodes());
    let signed = client.sign("seal", MESSAGE.into()).await.unwrap();
    assert!(signed.bad_answers.is_empty(), "{:?}", signed.bad_answers);
    assert_eq!(height(&client), 5);
    // What is decided later is followed as by everybody.
    is_elsewhere_later(&mut group);
    assert!(client.renew().await.unwrap());
    assert_eq!(height(&client), 6);
    // It is kept, and reaches the checkpoint.
    assert_eq!(height(&Client::open(&file).unwrap()), 6);
}

fn is_elsewhere_later(group: &mut FakeGroup) {
    let beacon = key(Suite::Bls04MinPk, 9);
    group.decide(adopt("beacon", 1, 0, &beacon.0));
}

/// Who stole the keys of three of the founders writes a history in which another key has the name.
fn by_thieves(group: &FakeGroup, public: &AnyPublicKey) -> LedgerState {
    let mut state = LedgerState::new(&genesis_of(&group.prepared.group).unwrap());
    let mut entries = Vec::new();
    for version in 1..=6 {
        let entry = certified(&state, adopt("seal", version, 0, public), &[1, 2, 3]);
        state.advance(&entry).unwrap();
        entries.push(entry);
    }
    for number in 1..=3 {
        group.node(number).entries.clone_from(&entries);
    }
    state
}

/// The id of the key that the client takes for the active version.
fn seal_of(client: &Client) -> KeyId {
    *client.known().find(&"seal".parse().unwrap()).unwrap().public.key_id()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_the_keys_of_a_quorum_of_back_then_shows_no_other_history() {
    let (group, seal) = moved();
    let file = file_of(&group, &group.state, "ann.client");
    let theirs = key(Suite::Bls04MinPk, 7);
    by_thieves(&group, &theirs.0);
    // One honest node is enough, whoever answers first.
    let client = Client::open(&file).unwrap();
    assert!(client.renew().await.unwrap());
    assert_eq!(height(&client), 5);
    assert_eq!(seal_of(&client), *seal.0.key_id());
    // Somebody who keeps the entries itself is told as well.
    let mut state = LedgerState::new(&genesis_of(client.given_group()).unwrap());
    let followed = client.follow_ledger(&mut state).await.unwrap();
    assert_eq!((state.height(), state.head()), (5, group.state.head()));
    let false_ones = followed.problems.iter().filter(|node| matches!(node.problem, Problem::FalseAnswer(_)));
    assert_eq!(false_ones.count(), 3, "{:?}", followed.problems);

    // Without one, nothing is believed.
    group.node(4).entries.truncate(4);
    let alone = Client::open(&file_of(&group, &group.state, "ben.client")).unwrap();
    let error = alone.renew().await.unwrap_err();
    assert_eq!(height(&alone), 0);
    let ClientError::NoAnswer { nodes, .. } = &error else { panic!("{error}") };
    let told = |number: u16| nodes.iter().find(|node| node.node.get() == number).unwrap().problem.to_string();
    assert!(told(1).contains("another history") && told(4).contains("ends before entry 5"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_history_that_does_not_go_through_the_checkpoint_is_none() {
    let (group, _) = moved();
    let file = file_of(&group, &group.state, "ann.client");
    let client = Client::open(&file).unwrap();
    client.renew().await.unwrap();
    let kept = |file: &Path| file.with_file_name(format!("{}.ledger", file.file_name().unwrap().to_str().unwrap()));
    let true_one = fs::read(kept(&file)).unwrap();
    // A client that the thieves have talked to, since it has no checkpoint.
    let state = by_thieves(&group, &key(Suite::Bls04MinPk, 7).0);
    group.node(4).entries.clear();
    let text = fs::read_to_string(&file).unwrap();
    let (head, rest) = text.split_once("\n[checkpoint]\n").unwrap();
    let (_, rest) = rest.split_once("\n[group]\n").unwrap();
    let other = group.prepared.folder.path().join("old.client");
    fs::write(&other, format!("{head}\n[group]\n{rest}")).unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o600)).unwrap();
    let fooled = Client::open(&other).unwrap();
    assert!(fooled.renew().await.unwrap());
    assert_eq!(height(&fooled), state.height(), "or this test says nothing");
    fs::copy(kept(&other), kept(&file)).unwrap();
    assert_eq!(height(&Client::open(&file).unwrap()), 0);
    fs::write(kept(&file), &true_one).unwrap();
    assert_eq!(height(&Client::open(&file).unwrap()), 5);
    // One that ends before it may be any.
    fs::write(kept(&file), &true_one[..true_one.len() - 1]).unwrap();
    assert_eq!(height(&Client::open(&file).unwrap()), 0);
}

#[test]
fn a_checkpoint_that_says_nothing_is_refused() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _inside = runtime.enter();
    let (group, _) = moved();
    let file = file_of(&group, &group.state, "ann.client");
    let text = fs::read_to_string(&file).unwrap();
    let digest: String = group.state.head().iter().map(|byte| format!("{byte:02x}")).collect();
    let refused = |text: &str, words: &str| {
        let error = ClientFile::parse(text, &file).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(&text.replace("height = 5\n", "height = 0\n"), "checkpoint.height");
    refused(&text.replace(&digest, "11"), "checkpoint.entry");
    refused(&text.replace("height = 5\n", "tall = 5\n"), "tall");
    let read = ClientFile::parse(&text, &file).unwrap();
    assert_eq!(read.checkpoint, Some(Checkpoint { height: 5, entry: *group.state.head() }));
    let founding = text.find("fingerprint = ").unwrap()..text.find("certificate = ").unwrap();
    refused(&text.replace(&text[founding], ""), "no founding");
}
