//! Members come, go, move and are replaced, while the others run: no file is edited and nobody is restarted.

mod founded;

use theta_ledger::{MemberChange, StandIn, Warrant};
use theta_names::Version;
use theta_statements::{KeyChange, MemberRequest};
use theta_wire::v1::CeremonyState;

use crate::group::{KEYS, SIGNER};
use founded::{Founded, eventually, node, operator};

/// A fifth member is added, gets shares by a reshare, signs, and leaves when it holds nothing any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_joins_signs_and_leaves() {
    let mut group = Founded::new(2, 4).await;
    group.ready(&[1, 2, 3, 4]).await;
    group.machine(5, 7);
    let card = group.machines[&5].card.clone();
    // Two of four are too few, whoever they are.
    let request =
        MemberRequest { nonce: [99; 32], change: MemberChange::Add(card.clone()).encode(), proof: Vec::new() };
    assert_eq!(group.ask(1, &request).await.state, "waiting");
    assert_eq!(group.ask(2, &request).await.state, "waiting");
    eventually("the node says for whom it waits", async || group.ask(1, &request).await.awaits == [3, 4]).await;
    group.change(&MemberChange::Add(card), &[], &[1, 2, 3, 4]).await;
    group.listed(&[1, 2, 3, 4], &[1, 2, 3, 4, 5]).await;
    group.join(5, 1);
    group.start(5).await;
    group.ready(&[5]).await;
    group.signs(&[1, 2], "with five members").await;
    let key = || SIGNER.parse().unwrap();
    let to = |holders: &[u16]| KeyChange::Reshare { key: key(), version: None, k: 2, holders: holders.to_vec() };
    group.hold(to(&[1, 2, 5]), &[1, 2, 3, 4, 5], CeremonyState::Activated).await;
    group.signs(&[5, 1], "the new member signs").await;
    // It holds a share, and stays.
    let leaves = MemberChange::Remove { node: 5 };
    let request = MemberRequest { nonce: [98; 32], change: leaves.encode(), proof: Vec::new() };
    let refused = group.ask(1, &request).await;
    assert!(refused.state == "refused" && refused.text.contains("reshare first"), "{refused:?}");
    group.hold(to(&[1, 2, 3]), &[1, 2, 3, 5], CeremonyState::Activated).await;
    group.change(&leaves, &[], &[1, 2, 3, 4]).await;
    group.listed(&[1, 2, 3, 4], &[1, 2, 3, 4]).await;
    group.signs(&[1, 3], "without it").await;
    let gone = group.nodes[&5].orchestrator();
    eventually("who has left knows it", async || gone.departure().is_some_and(|why| why.contains("has left"))).await;
}

/// One machine is lost with all that it had. Its operator brings another one, which recovers the shares.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_lost_everything_is_replaced_by_its_operators_word() {
    let mut group = Founded::new(2, 4).await;
    group.ready(&[1, 2, 3, 4]).await;
    group.stop(3).await;
    let mut old = group.machine(3, 8).unwrap();
    let change = MemberChange::Replace { node: 3, card: group.machines[&3].card.clone() };
    let gone = old.card.content().ceremony_key;
    let signed = change.signed_by_operator(&theta_ledger::Genesis::of(&group.founding).unwrap().id(), &gone);
    // Another operator's word is refused at once.
    let other = operator(2).sign(&signed).to_vec();
    let request = MemberRequest { nonce: [99; 32], change: change.encode(), proof: other };
    let refused = group.ask(1, &request).await;
    assert!(refused.state == "refused" && refused.text.contains("not that of the member's"), "{refused:?}");
    let proof = operator(3).sign(&signed).to_vec();
    // One node is asked, and its policy alone says that it is brought: the rest is the group's.
    group.change(&change, &proof, &[1]).await;
    group.signs(&[1, 2], "meanwhile").await;
    for id in [1, 2, 4] {
        let card = group.machines[&3].card.content().peer_address.to_string();
        let known = async || {
            let file = group.machines[&id].group_file();
            file.node(node(3)).is_some_and(|listed| listed.peer_address == card)
        };
        eventually("the new machine is listed", known).await;
    }
    group.join(3, 1);
    group.start(3).await;
    group.ready(&[3]).await;
    for (name, _) in KEYS {
        let change = KeyChange::Recover { key: name.parse().unwrap(), version: Version::new(1), node: 3 };
        group.hold(change, &[1, 2, 3, 4], CeremonyState::Recovered).await;
    }
    group.signs(&[3, 4], "with the new machine").await;
    // The one before it comes back: nobody speaks to it, and it reads at the others why.
    let before = old.start().await;
    let replaced = "another machine has taken the place of this one as node 3";
    let hears = async || before.orchestrator().departure().is_some_and(|why| why.contains(replaced));
    eventually("it hears that it was replaced", hears).await;
    assert!(!before.orchestrator().is_trusted());
    let status = group.status_of(&old).await;
    assert!(status.warnings.iter().any(|warning| warning.contains(replaced)), "{:?}", status.warnings);
    let recorded = || {
        before.authority().flush().unwrap();
        before.authority().store().audit_end().unwrap().len()
    };
    let decisions = recorded();
    let refused = group.refuses_to_sign(&old, SIGNER).await;
    assert!(refused.message().contains(replaced) && !is_not_ready(&refused), "{refused:?}");
    assert_eq!(recorded(), decisions, "it has decided nothing, and so has not allowed it");
    group.signs(&[3, 1], "and not with the old one").await;
    before.shutdown().await;
}

/// One node gets other addresses; the others find it there without being restarted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_moves_and_the_others_find_it() {
    let mut group = Founded::new(2, 4).await;
    group.ready(&[1, 2, 3, 4]).await;
    let old = group.machines[&2].card.content().peer_address.to_string();
    group.stop(2).await;
    let change = group.machines.get_mut(&2).unwrap().moves();
    group.change(&change, &[], &[1, 3, 4]).await;
    group.start(2).await;
    group.ready(&[2]).await;
    // Node 2 and one more: its share is needed.
    group.stop(3).await;
    group.stop(4).await;
    group.signs(&[2, 1], "from another place").await;
    let file = group.machines[&1].group_file();
    assert_ne!(file.node(node(2)).unwrap().peer_address, old);
    // After a restart the ledger's members win over an older file.
    let stale = std::fs::read_to_string(group.machines[&3].folder.join("group.toml")).unwrap();
    let stale = stale.replace(&group.machines[&2].card.content().peer_address.to_string(), &old);
    std::fs::write(group.machines[&3].folder.join("group.toml"), stale).unwrap();
    group.stop(1).await;
    group.start(3).await;
    group.listed(&[3], &[1, 2, 3, 4]).await;
    group.signs(&[3, 2], "with the one that had an old file").await;
}

/// One node gets another TLS key. Whoever still has the old one is let in by nobody, and reads why; the others know the new one without being
/// restarted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_with_another_tls_key_is_known_by_that_alone() {
    let mut group = Founded::new(2, 4).await;
    group.ready(&[1, 2, 3, 4]).await;
    group.stop(2).await;
    let (mut old, change) = group.machines.get_mut(&2).unwrap().rekeys();
    assert_ne!(old.card.content().tls_key, group.machines[&2].card.content().tls_key);
    // Before the entry is there the new one is a stranger's.
    group.join(2, 1);
    group.start(2).await;
    let connected = |status: &theta_wire::v1::GetStatusResponse| {
        let connected = theta_wire::v1::PeerState::Connected;
        status.peers.iter().filter(|peer| peer.state() == connected).count()
    };
    let refused = async || {
        let status = group.status_of(&group.machines[&2]).await;
        assert_eq!(connected(&status), 0);
        status.peers.iter().all(|peer| peer.last_error.contains("before greeting"))
    };
    eventually("all refuse it", refused).await;
    group.change(&change, &[], &[1, 3, 4]).await;
    group.ready(&[2]).await;
    let all = async || connected(&group.status_of(&group.machines[&2]).await) == 3;
    eventually("the new key is let in", all).await;
    // The old key with everything else that the machine had.
    let before = old.start().await;
    let other = "node 2 has another TLS key in the group's ledger";
    let hears = async || before.orchestrator().departure().is_some_and(|why| why.contains(other));
    eventually("it hears that its key is nobody's", hears).await;
    let status = group.status_of(&old).await;
    assert_eq!(connected(&status), 0);
    assert!(status.warnings.iter().any(|warning| warning.contains(other)), "{:?}", status.warnings);
    before.shutdown().await;
    // The new one and one more: its share is needed.
    group.stop(3).await;
    group.stop(4).await;
    group.signs(&[2, 1], "with another key for connections").await;
}

/// A new machine that runs before the group has taken it in, or has not read that far, says so, whatever it is asked, and not that there is no such key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_no_member_yet_says_ask_again() {
    let mut group = Founded::new(2, 4).await;
    group.ready(&[1, 2, 3, 4]).await;
    group.machine(5, 7);
    group.join(5, 1);
    group.start(5).await;
    for key in [SIGNER, "unheard-of"] {
        let refused = group.refuses_to_sign(&group.machines[&5], key).await;
        assert!(is_not_ready(&refused) && refused.message().contains("not a member yet"), "{refused:?}");
    }
    let status = group.status_of(&group.machines[&5]).await;
    assert!(status.warnings.iter().any(|warning| warning.contains("not a member yet")), "{:?}", status.warnings);
    let card = group.machines[&5].card.clone();
    group.change(&MemberChange::Add(card), &[], &[1, 2, 3, 4]).await;
    group.ready(&[5]).await;
    // From now on what it does not know there is not.
    let unknown = async || {
        let refused = group.refuses_to_sign(&group.machines[&5], "unheard-of").await;
        refused.code() == tonic::Code::NotFound && !is_not_ready(&refused)
    };
    eventually("it has caught up", unknown).await;
}

fn is_not_ready(status: &tonic::Status) -> bool {
    status.code() == tonic::Code::Unavailable && status.metadata().contains_key("theta-not-ready")
}

/// Of 2 of 3 one machine is dead for ever. A quorum of the operators lets another one vote in its place, and it is replaced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_of_three_go_on_by_a_warrant_when_one_is_dead() {
    let mut group = Founded::new(2, 3).await;
    group.ready(&[1, 2, 3]).await;
    eventually("the dealt keys are in the ledger", async || group.height(1) >= u64::try_from(KEYS.len()).unwrap())
        .await;
    group.stop(3).await;
    let old = group.machine(3, 8).unwrap();
    let height = group.height(1);
    let card = group.machines[&3].card.clone();
    let gone = old.card.content().ceremony_key;
    let ledger = theta_ledger::Genesis::of(&group.founding).unwrap().id();
    let until = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() + 86_400;
    let warrant = Warrant::new(ledger, height + 1, until, vec![StandIn { node: node(3), gone, card }]).unwrap();
    let few = [1, 2].into_iter().fold(warrant, |warrant, id| warrant.with_signature(node(id), &operator(id)));
    let refused = group.bring(1, &few).await;
    assert!(refused.state == "refused" && refused.text.contains("2 operators have signed"), "{refused:?}");
    let warrant = few.with_signature(node(3), &operator(3));
    assert_eq!(group.bring(1, &warrant).await.state, "waiting");
    group.signs(&[1, 2], "requests go on").await;
    group.join(3, 1);
    group.start(3).await;
    eventually("the machine is replaced", async || group.bring(1, &warrant).await.state == "decided").await;
    group.ready(&[1, 2, 3]).await;
    for (name, _) in KEYS {
        let change = KeyChange::Recover { key: name.parse().unwrap(), version: Version::new(1), node: 3 };
        group.hold(change, &[1, 2, 3], CeremonyState::Recovered).await;
    }
    group.signs(&[3, 1], "with the new machine").await;
}
