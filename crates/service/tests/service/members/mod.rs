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
    let signed = change.signed_by_operator(&theta_ledger::Genesis::of(&group.founding).unwrap().id());
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
    // The one before it comes back: nobody speaks to it.
    let before = old.start().await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert!(!before.orchestrator().is_trusted());
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
    let warrant = Warrant::new(ledger, height + 1, vec![StandIn { node: node(3), gone, card }]).unwrap();
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
