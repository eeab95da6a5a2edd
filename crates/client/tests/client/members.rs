//! What a client makes of members that have come, moved or been replaced since its file was made.

use std::{fs, path::PathBuf, time::Duration};

use theta_client::{Client, ClientError, ClientOptions, Problem};
use theta_ledger::{Action, LedgerState, MemberChange};
use theta_names::NodeId;
use theta_network::group::GroupFile;
use theta_schemes::Suite;
use theta_wire::v1::MembersStatus;

use crate::fake::{FakeGroup, adopt, card, key, keys_of, outcome};

const MESSAGE: &[u8] = b"a message";

fn folder(group: &FakeGroup) -> PathBuf {
    group.prepared.folder.path().join("client")
}

fn node(number: u16) -> NodeId {
    NodeId::try_from(number).unwrap()
}

fn address(client: &Client, number: u16) -> Option<String> {
    Some(client.group().node(node(number))?.api_address.clone())
}

/// The node has another address for clients, and says so in a card made at this time.
fn moves(group: &mut FakeGroup, number: u16, address: &str, made: u64) {
    let listed = group.prepared.group.node(node(number)).unwrap().clone();
    let card = card(&listed, &keys_of(number), address, made);
    group.decide(Action::Members(MemberChange::Renew { node: number, card }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_moved_is_found_while_one_known_address_is_good() {
    let mut group = FakeGroup::founded();
    let seal = key(Suite::Bls04MinPk, 1);
    group.decide(adopt("seal", 1, 0, &seal.0));
    let client = Client::open(&folder(&group)).unwrap();
    client.renew().await.unwrap();
    let old = address(&client, 3).unwrap();
    let new = group.serve_elsewhere(3);
    [2, 3, 4].into_iter().for_each(|number| group.stop_node(number));
    moves(&mut group, 3, &new, 2);
    // Node 1 knows where it is, and nothing else.
    group.node(3).outcome = Some(outcome(&seal, MESSAGE));
    let late = Client::open(&folder(&group)).unwrap();
    assert_eq!(address(&late, 3), Some(old.clone()));
    let signed = late.sign("seal", MESSAGE.into()).await.unwrap();
    assert_eq!((signed.node.get(), address(&late, 3)), (3, Some(new.clone())));
    // It is kept over restarts, and checked again.
    let again = Client::open(&folder(&group)).unwrap();
    assert_eq!(address(&again, 3), Some(new));
    // An old card, with the votes of too few, moves nobody back.
    let forged = card(group.prepared.group.node(node(3)).unwrap(), &keys_of(3), &old, 3);
    let change = Action::Members(MemberChange::Renew { node: 3, card: forged });
    let forged = crate::fake::certified(&group.state, change, &[1, 2]);
    group.node(1).entries.push(forged);
    assert!(!again.renew().await.unwrap_or(false));
    assert_ne!(address(&again, 3), Some(old));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_came_and_who_left_is_known() {
    let mut group = FakeGroup::founded();
    let client = Client::open(&folder(&group)).unwrap();
    let mut fifth = group.prepared.group.node(node(4)).unwrap().clone();
    (fifth.id, fifth.certificate) = (node(5), [9; 32].into());
    fifth.peer_address = "n5.example:1".to_owned();
    let card = card(&fifth, &keys_of(5), "n5.example:2", 1);
    group.decide(Action::Members(MemberChange::Add(card)));
    assert!(client.renew().await.unwrap());
    assert_eq!(address(&client, 5).as_deref(), Some("n5.example:2"));
    group.decide_by(Action::Members(MemberChange::Remove { node: 2 }), &[1, 2, 3, 4]);
    assert!(client.renew().await.unwrap());
    let numbers: Vec<u16> = client.group().nodes().iter().map(|node| node.id.get()).collect();
    assert_eq!(numbers, [1, 3, 4, 5]);
    assert!(matches!(client.policy(node(2)).await, Err(ClientError::UnknownNode(_))));
    // With what the ledger begins stays what it was given.
    let genesis = theta_client::genesis_of(client.given_group()).unwrap();
    assert_eq!(LedgerState::new(&genesis).id(), group.state.id());
}

/// The file has a machine in node 3's place that neither founding nor ledger know. As long as members can be reached it is asked for nothing,
/// and then for the ledger alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_only_the_file_names_is_asked_for_the_ledger_alone() {
    let mut group = FakeGroup::founded();
    let seal = key(Suite::Bls04MinPk, 1);
    group.decide(adopt("seal", 1, 0, &seal.0));
    group.answer(&outcome(&seal, MESSAGE));
    let listed = group.prepared.group.node(node(3)).unwrap().clone();
    let mut text = group.prepared.group.to_text();
    let key_of = |number: u16| {
        let bytes = keys_of(number).member().verifying_key().bytes().to_vec();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    assert!(text.contains(&key_of(3)), "{text}");
    text = text.replace(&key_of(3), &key_of(33));
    assert_eq!(
        GroupFile::parse(&text, "test".as_ref()).unwrap().node(node(3)).unwrap().certificate,
        listed.certificate
    );
    // Of the founders, nobody is where they were; the machine in node 3's place is at its address.
    let other = group.serve_elsewhere(3);
    text = text.replace(&listed.api_address, &other);
    fs::write(folder(&group).join("group.toml"), text).unwrap();
    (1..=4).for_each(|number| group.stop_node(number));
    let client = Client::open(&folder(&group)).unwrap();
    assert_eq!(address(&client, 3), Some(listed.api_address.clone()), "the founding says where it is");
    assert!(client.renew().await.unwrap());
    assert_eq!(client.ledger(LedgerState::height), Some(1));
    assert!(client.sign("seal", MESSAGE.into()).await.is_err());
    assert_eq!(group.node(3).requests, 0);
    // The group replaces the machine by it: now it is a member.
    moves(&mut group, 3, &other, 2);
    client.sign("seal", MESSAGE.into()).await.unwrap();
    assert_eq!((group.node(3).requests, address(&client, 3)), (1, Some(other)));
}

/// Who has not caught up with its group yet is asked again, and refuses nothing: the client neither gives up nor says that there is no such key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_not_ready_is_asked_again() {
    let mut group = FakeGroup::founded();
    let seal = key(Suite::Bls04MinPk, 1);
    group.decide(adopt("seal", 1, 0, &seal.0));
    group.answer(&outcome(&seal, MESSAGE));
    (1..=4).for_each(|number| group.node(number).not_ready = 2);
    let client = Client::open(&folder(&group)).unwrap();
    let signed = client.sign("seal", MESSAGE.into()).await.unwrap();
    assert!(signed.bad_answers.is_empty());
    assert!((1..=4).any(|number| group.node(number).requests == 3));
    // As long as there is time, and not longer.
    (1..=4).for_each(|number| group.node(number).not_ready = usize::MAX);
    let options = ClientOptions { timeout: Duration::from_millis(1_500), ..ClientOptions::default() };
    let impatient = Client::open_with(&folder(&group), options).unwrap();
    let error = impatient.sign("seal", MESSAGE.into()).await.unwrap_err();
    let ClientError::NoAnswer { nodes, .. } = &error else { panic!("{error}") };
    let words = Problem::NotReady("this machine reads the ledger".to_owned());
    assert!(nodes.iter().all(|node| node.problem == words), "{error}");
}

/// What proves itself takes nobody's leave: one member that refuses it ends nothing, and the group decides it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_refuses_what_proves_itself_ends_nothing() {
    let mut group = FakeGroup::founded();
    let listed = group.prepared.group.node(node(3)).unwrap().clone();
    let renewed = card(&listed, &keys_of(3), "n3.example:2", 2);
    let change = MemberChange::Renew { node: 3, card: renewed };
    let status = |state: &str| MembersStatus { state: state.to_owned(), ..MembersStatus::default() };
    (2..=4).for_each(|number| group.node(number).members = Some(status("waiting")));
    group.node(1).members = Some(status("refused"));
    let options = ClientOptions {
        timeout: Duration::from_secs(5),
        ceremony_timeout: Duration::from_secs(20),
        ..ClientOptions::default()
    };
    let client = Client::open_with(&folder(&group), options).unwrap();
    let request = Client::member_request(&change, Vec::new(), Some([7; 32])).unwrap();
    assert!(request.claims_proof());
    let asked = tokio::spawn({
        let client = client.clone();
        async move { client.change_members(request, |_| {}).await }
    });
    tokio::time::sleep(Duration::from_millis(600)).await;
    group.decide(Action::Members(change));
    let changed = asked.await.unwrap().unwrap();
    assert_eq!((changed.height, changed.problems.len()), (1, 1));
}
