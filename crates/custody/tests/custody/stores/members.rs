//! Members who come, go, and get other machines, while ceremonies run.

use std::sync::Arc;

use bytes::Bytes;
use theta_ceremonies::CeremonyKeys;
use theta_custody::{
    Card, Custodian, CustodyEffect, CustodyError, CustodyInput, GroupRequest, MembersState, Roster, Standing,
};
use theta_groups::Secret;
use theta_ledger::founding::{CardContent, Founding, NodeSignatures};
use theta_ledger::{Genesis, MemberChange, OperatorKey, StandIn, Warrant};
use theta_schemes::Suite;
use theta_statements::{KeyChange, MemberRequest, TakeBackRequest};
use theta_store::{Options, Store, disk::SimulatedDisk};

use crate::net::{Net, name, party, roster, sealing_key, secret_of, seeded};

fn operator(node: u16) -> OperatorKey {
    OperatorKey::new(Secret::new([u8::try_from(node).unwrap() ^ 0x90; 32]))
}

/// The secret of a member's second machine.
fn second(node: u16) -> Secret<[u8; 32]> {
    let mut secret = [0xa5; 32];
    secret[..2].copy_from_slice(&node.to_be_bytes());
    Secret::new(secret)
}

fn card(node: u16, secret: Secret<[u8; 32]>, port: u16) -> Card {
    let keys = CeremonyKeys::new(party(node), secret);
    let content = CardContent {
        name: format!("node {node:02}").parse().unwrap(),
        ceremony_key: keys.member().verifying_key().bytes().try_into().unwrap(),
        tls_key: [port.to_be_bytes(); 16].concat().try_into().unwrap(),
        operator_key: operator(node).id().unwrap(),
        peer_address: format!("n{node}.example:{port}").parse().unwrap(),
        api_address: format!("n{node}.example:{}", port + 1).parse().unwrap(),
        made: 1,
        until: u64::MAX,
    };
    let signature = keys.sign(&content.signed());
    content.with_signature(signature, &NodeSignatures).unwrap()
}

fn founding(k: u16, n: u16) -> Founding {
    let cards = (1..=n).map(|node| card(node, secret_of(node), 7000 + 2 * node)).collect();
    Founding::assemble("test.group", k, cards).unwrap()
}

fn founded(k: u16, n: u16) -> Roster {
    Roster { name: "test.group".to_owned(), founding: Some(founding(k, n)), ..roster(k, n) }
}

/// Asks these nodes, and waits until the change is decided at all that run.
fn changes(net: &mut Net, change: &MemberChange, proof: &[u8], whom: &[u16], nonce: u8) {
    let request = MemberRequest { nonce: [nonce; 32], change: change.encode(), proof: proof.to_vec() };
    for node in whom {
        let state = ask(net, *node, &request);
        assert!(!matches!(state, MembersState::Refused(_)), "{state:?}");
    }
    let digest = theta_ledger::Action::Members(change.clone()).digest();
    let decided = |net: &Net| {
        let up = net.up();
        up.iter().all(|node| net.custodian(*node).ledger().unwrap().changed_at(&digest).is_some())
    };
    assert!(net.until(120, decided));
    let state = ask(net, whom[0], &request);
    assert!(matches!(state, MembersState::Decided { .. }), "{state:?}");
}

fn ask(net: &mut Net, node: u16, request: &MemberRequest) -> MembersState {
    let mut effects = Vec::new();
    let state = net.node(node).custodian.as_mut().unwrap().change_members(request, Vec::new(), &mut effects);
    net.deliver(node, effects);
    state.unwrap()
}

fn replacement(node: u16) -> (MemberChange, Vec<u8>) {
    let change = MemberChange::Replace { node, card: card(node, second(node), 8000 + 2 * node) };
    let founding = founding(2, 4);
    let (ledger, gone) =
        (Genesis::of(&founding).unwrap().id(), founding.members()[usize::from(node) - 1].content().ceremony_key);
    let proof = operator(node).sign(&change.signed_by_operator(&ledger, &gone)).to_vec();
    (change, proof)
}

/// Another machine, with nothing but its keys, in a node's place.
fn exchange(net: &mut Net, number: u16) {
    let node = net.node(number);
    (node.custodian, node.disk) = (None, SimulatedDisk::default());
    let options = Options::default().with_rng(seeded(u64::from(number) + 77));
    let store = Store::create_on(node.disk.backend(), &sealing_key(), options).unwrap();
    store.set_identity(&second(number)).unwrap();
    drop(store);
    net.start(number);
    net.connect();
}

#[test]
fn a_machine_is_replaced_while_a_ceremony_runs_and_recovers_its_share() {
    let mut net = Net::of(founded(2, 4), 4, 41);
    net.create("a", Suite::FrostEd25519, 2, &[1, 2, 3, 4]);
    net.node(3).custodian = None;
    // A refresh goes on without it, and ends by the identities of its begin.
    let request = net.request(KeyChange::Refresh { key: name("a"), version: None });
    let id = net.begin([1, 2, 4], &request);
    let (change, proof) = replacement(3);
    changes(&mut net, &change, &proof, &[1], 1);
    let ended = |net: &Net| [1, 2, 4].iter().all(|node| net.state(*node, &id).is_over());
    assert!(net.until(400, ended));
    assert_eq!(net.epoch(1, "a"), Some(1), "{:?}", net.state(1, &id));
    // The new machine waits for nobody's word but the ledger's.
    exchange(&mut net, 3);
    assert_eq!(net.custodian(3).members().unwrap().standing, Standing::Expected);
    let seated = |net: &Net| net.custodian(3).members().unwrap().standing == Standing::Member;
    assert!(net.until(60, seated));
    assert!(net.until(60, |net| net.custodian(3).is_trusted()), "nobody holds the old machine's store against it");
    net.recovers(3, "a", 1);
    // It counts: of the others one is away.
    net.node(1).custodian = None;
    net.run([2, 3, 4], KeyChange::Refresh { key: name("a"), version: None });
    assert_eq!(net.epoch(3, "a"), Some(2));
}

#[test]
fn who_leaves_knows_it_and_who_holds_a_share_stays() {
    let mut net = Net::of(founded(2, 5), 5, 42);
    net.create("a", Suite::FrostEd25519, 2, &[1, 2, 5]);
    let leaves = |node| MemberRequest {
        nonce: [node; 32],
        change: MemberChange::Remove { node: node.into() }.encode(),
        proof: Vec::new(),
    };
    assert!(matches!(ask(&mut net, 1, &leaves(5)), MembersState::Refused(why) if why.contains("reshare first")));
    // Two members' consents are too few of five: each that leaves or joins counts in all quorums to come.
    let MembersState::Waiting { awaits } = ask(&mut net, 1, &leaves(4)) else { panic!() };
    assert_eq!(awaits.len(), 4);
    changes(&mut net, &MemberChange::Remove { node: 4 }, &[], &[1, 2, 3, 5], 4);
    let told = |net: &Net, node: u16| {
        let effects = net.nodes[&node].told.iter();
        effects
            .filter_map(|effect| if let CustodyEffect::Members(members) = effect { Some(members) } else { None })
            .next_back()
            .cloned()
    };
    let (stays, left) = (told(&net, 1).unwrap(), told(&net, 4).unwrap());
    assert_eq!((stays.standing, stays.cards.len()), (Standing::Member, 4));
    assert_eq!(left.standing, Standing::Gone);
    // Its place is nobody's, its word is nobody's, and the rest go on.
    net.run([1, 2, 5], KeyChange::Refresh { key: name("a"), version: None });
    let members: Vec<u16> = net.custodian(2).group().nodes.iter().map(|node| node.get()).collect();
    assert_eq!(members, [1, 2, 3, 5]);
}

fn take_back(net: &mut Net, node: u16, change: &MemberChange, nonce: u8) -> MembersState {
    let request = TakeBackRequest { nonce: [nonce; 32], change: change.encode() };
    let mut effects = Vec::new();
    let state = net.node(node).custodian.as_mut().unwrap().take_back(&request, &mut effects);
    net.deliver(node, effects);
    state.unwrap()
}

/// What some have agreed to counts for days, and whoever has heard it may go on with it, unless it is taken back.
#[test]
fn a_change_that_is_taken_back_is_not_decided_by_those_who_agree_later() {
    let mut net = Net::of(founded(2, 5), 5, 44);
    net.until(20, |_| false);
    let change = MemberChange::Remove { node: 4 };
    let asked = |nonce: u8| MemberRequest { nonce: [nonce; 32], change: change.encode(), proof: Vec::new() };
    for node in [1, 2] {
        assert!(matches!(ask(&mut net, node, &asked(1)), MembersState::Waiting { .. }));
    }
    net.until(20, |_| false);
    // Three of five against it are one honest node too many for the others, who would have to be four.
    for node in [1, 2, 3] {
        assert_eq!(take_back(&mut net, node, &change, 2), MembersState::TakenBack);
        assert_eq!(take_back(&mut net, node, &change, 2), MembersState::TakenBack, "as often as it is asked");
    }
    // They remember it.
    net.kill(2);
    net.start(2);
    net.connect();
    let refused = |state: &MembersState, word: &str| matches!(state, MembersState::Refused(why) if why.contains(word));
    assert!(refused(&ask(&mut net, 1, &asked(1)), "taken back"), "by the request that was taken back");
    for node in [1, 2, 3] {
        let state = ask(&mut net, node, &asked(3));
        assert!(refused(&state, "70 minutes"), "node {node}, by what may have been signed before: {state:?}");
    }
    // The two others agree: with the consents of before these are the four that it takes.
    for node in [4, 5] {
        assert!(matches!(ask(&mut net, node, &asked(1)), MembersState::Waiting { .. }));
    }
    let digest = theta_ledger::Action::Members(change.clone()).digest();
    let decided = move |net: &Net| net.custodian(1).ledger().unwrap().changed_at(&digest).is_some();
    assert!(!net.until(200, decided));
    // An hour later, when nothing is valid any more that was signed before, it is asked for anew.
    net.now += 5_000;
    net.until(1, |_| false);
    assert!(refused(&ask(&mut net, 1, &asked(1)), "taken back"), "and not by what was used up");
    changes(&mut net, &change, &[], &[1, 2, 3, 5], 5);
    let late = take_back(&mut net, 1, &change, 6);
    assert!(matches!(late, MembersState::Decided { .. }), "{late:?}");
}

/// The operator's word, and a member's own, are nobody else's to take back.
#[test]
fn what_takes_nobodys_consent_is_not_taken_back() {
    let mut net = Net::of(founded(2, 4), 4, 45);
    net.until(20, |_| false);
    let (replaced, proof) = replacement(3);
    for node in 1..=4 {
        assert_eq!(take_back(&mut net, node, &replaced, 1), MembersState::TakenBack, "without the operator's word");
    }
    net.node(3).custodian = None;
    changes(&mut net, &replaced, &proof, &[1, 2], 2);
    let renewed = MemberChange::Renew { node: 2, card: card(2, secret_of(2), 7_204) };
    let state = take_back(&mut net, 1, &renewed, 3);
    assert!(matches!(&state, MembersState::Refused(why) if why.contains("own word")), "{state:?}");
}

/// Whoever brought a warrant need not do so again after a restart of the node that took it.
#[test]
fn a_warrant_is_kept_in_the_store() {
    let mut net = Net::of(founded(2, 3), 3, 43);
    net.until(20, |_| false);
    net.node(3).custodian = None;
    let (founding, until) = (founding(2, 3), net.now + 86_400);
    let stand_in =
        StandIn { node: party(3), gone: founding.members()[2].content().ceremony_key, card: card(3, second(3), 8006) };
    let (ledger, next) = (Genesis::of(&founding).unwrap().id(), net.custodian(1).ledger().unwrap().height() + 1);
    let warrant = Warrant::new(ledger, next, until, vec![stand_in]).unwrap();
    let warrant = (1..=3).fold(warrant, |warrant, node| warrant.with_signature(party(node), &operator(node)));
    let mut effects = Vec::new();
    let brought = net.node(1).custodian.as_mut().unwrap().bring_warrant(&warrant.encode(), &mut effects);
    assert!(matches!(brought, Ok(MembersState::Waiting { .. })), "{brought:?}");
    // What it would tell the others is lost with it.
    drop(effects);
    for node in [1, 2] {
        net.kill(node);
    }
    for node in [1, 2] {
        net.start(node);
    }
    assert_eq!(net.custodian(1).members().unwrap().stand_ins.len(), 1);
    net.connect();
    exchange(&mut net, 3);
    let seated = |net: &Net| (1..=3).all(|node| net.custodian(node).ledger().unwrap().members_since() == next);
    assert!(net.until(200, seated));
    assert_eq!(net.custodian(3).members().unwrap().standing, Standing::Member);
    assert!((1..=3).all(|node| net.custodian(node).store().ledger_warrants().unwrap().is_empty()), "it has served");
}

/// The requests for changes of the members that came to a node by way of others, with what the client signed.
fn forwarded(net: &mut Net, node: u16) -> Vec<(MemberRequest, Vec<u8>)> {
    let told = std::mem::take(&mut net.node(node).told);
    let asked = told.into_iter().filter_map(|effect| match effect {
        CustodyEffect::Asked { request: GroupRequest::Members(request), reason } => Some((request, reason)),
        _ => None,
    });
    asked.collect()
}

fn ask_with(net: &mut Net, node: u16, request: &MemberRequest, reason: &[u8]) -> MembersState {
    let mut effects = Vec::new();
    let state = net.node(node).custodian.as_mut().unwrap().change_members(request, reason.to_vec(), &mut effects);
    net.deliver(node, effects);
    state.unwrap()
}

/// One node is told what a client has signed. It tells the others, and dies; these ask their own policies, of which one refuses, and decide.
#[test]
fn what_a_client_signed_about_members_travels() {
    let mut net = Net::of(founded(2, 5), 5, 44);
    net.until(8, |_| false);
    let request =
        MemberRequest { nonce: [9; 32], change: MemberChange::Remove { node: 5 }.encode(), proof: Vec::new() };
    let signed = b"what the client signed, and others approved";
    assert!(matches!(ask_with(&mut net, 1, &request, signed), MembersState::Waiting { .. }));
    net.drain();
    net.node(1).custodian = None;
    // Nobody grants it here: what each policy says is the service's affair. The whole request comes with its nonce, which the client signed.
    for node in [2, 3, 4, 5] {
        let asked = forwarded(&mut net, node);
        assert_eq!(asked.first(), Some(&(request.clone(), signed.to_vec())), "node {node}");
    }
    // Node 5 refuses. The consents of four of five are needed, and node 1 has given its own before it died.
    for node in [2, 3, 4] {
        assert!(matches!(ask_with(&mut net, node, &request, signed), MembersState::Waiting { .. }));
    }
    let left = |net: &Net| [2, 3, 4].iter().all(|node| net.custodian(*node).group().nodes.len() == 4);
    assert!(net.until(120, left));
    let MembersState::Decided { height } = ask_with(&mut net, 2, &request, signed) else { panic!() };
    let entry = net.custodian(3).store().ledger_entry(height).unwrap().unwrap();
    let entry = theta_ledger::CertifiedEntry::decode(&entry).unwrap().entry;
    assert!(entry.reason.ends_with(signed) && entry.reason.len() == signed.len() + 36);
}

/// What nobody has signed goes no further than the node that was asked.
#[test]
fn what_nobody_signed_does_not_travel() {
    let mut net = Net::of(founded(2, 4), 4, 45);
    let request =
        MemberRequest { nonce: [9; 32], change: MemberChange::Remove { node: 4 }.encode(), proof: Vec::new() };
    ask(&mut net, 1, &request);
    net.until(20, |_| false);
    assert!((2..=4).all(|node| forwarded(&mut net, node).is_empty()));
}

/// A machine that was off when another one took its place reads the entry somewhere, and knows that it is nobody's. A false one is nothing to it.
#[test]
fn a_machine_that_comes_back_believes_a_quorum_and_nobody_else() {
    let mut net = Net::of(founded(2, 4), 4, 46);
    net.until(8, |_| false);
    net.node(3).custodian = None;
    let (change, proof) = replacement(3);
    changes(&mut net, &change, &proof, &[1], 1);
    let height = net.custodian(1).ledger().unwrap().height();
    let entries: Vec<Bytes> =
        (1..=height).map(|height| net.custodian(2).store().ledger_entry(height).unwrap().unwrap().into()).collect();
    net.start(3);
    let take = |net: &mut Net, entries: &[Bytes]| {
        let mut effects = Vec::new();
        let reached = net.node(3).custodian.as_mut().unwrap().take_entries(entries, &mut effects);
        net.deliver(3, effects);
        (reached, net.custodian(3).members().unwrap().standing)
    };
    // Nobody tells it anything: its messages and theirs are lost.
    let from = net.custodian(3).ledger().unwrap().height();
    let mut false_entry = entries.last().unwrap().to_vec();
    *false_entry.last_mut().unwrap() ^= 1;
    for lie in [&[false_entry.into()][..], &[Bytes::from_static(b"leave")], &[]] {
        assert_eq!(take(&mut net, lie), (from, Standing::Member));
    }
    net.node(3).told.clear();
    assert_eq!(take(&mut net, &entries), (height, Standing::Gone));
    let told = net.nodes[&3]
        .told
        .iter()
        .any(|effect| matches!(effect, CustodyEffect::Members(members) if members.standing == Standing::Gone));
    assert!(told);
    assert!(!net.custodian(3).is_behind(), "it has nothing to wait for");
    // It stays so.
    net.kill(3);
    net.start(3);
    assert_eq!(net.custodian(3).members().unwrap().standing, Standing::Gone);
    let former = net.custodian(1).members().unwrap().former;
    assert_eq!(former.get(&founding(2, 4).members()[2].content().tls_key), Some(&height));
}

/// A new machine says that it has not caught up until the entry is there that makes it a member's; one that was away, as long as more than may
/// lie say that they are further.
#[test]
fn who_has_not_caught_up_knows_it() {
    let mut net = Net::of(founded(2, 4), 4, 47);
    net.until(8, |_| false);
    assert!((1..=4).all(|node| !net.custodian(node).is_behind()));
    net.node(3).custodian = None;
    let (change, proof) = replacement(3);
    changes(&mut net, &change, &proof, &[1], 1);
    exchange(&mut net, 3);
    assert!(net.custodian(3).is_behind());
    assert!(net.until(60, |net| net.custodian(3).members().unwrap().standing == Standing::Member));
    assert!(net.until(60, |net| !net.custodian(3).is_behind()));
    // Node 4 is away meanwhile, and hears statuses before entries.
    let old = net.node(4).disk.content();
    net.node(4).custodian = None;
    net.create("a", Suite::FrostEd25519, 2, &[1, 2, 3]);
    net.node(4).disk = SimulatedDisk::with_content(old);
    net.start(4);
    for (peer, behind) in [(1, false), (2, true)] {
        net.packets.clear();
        net.step(peer, CustodyInput::Connected(party(4)));
        for (_, _, bytes) in std::mem::take(&mut net.packets).into_iter().filter(|(_, to, _)| *to == 4) {
            net.step(4, CustodyInput::Message { from: party(peer), bytes });
        }
        assert_eq!(net.custodian(4).is_behind(), behind, "one may lie, and two say so");
    }
    net.connect();
    assert!(net.until(60, |net| !net.custodian(4).is_behind()));
    assert_eq!(net.custodian(4).ledger().unwrap().height(), net.custodian(1).ledger().unwrap().height());
}

fn open(disk: &SimulatedDisk, roster: Roster) -> Result<Custodian, CustodyError> {
    let store = Store::open_on(disk.backend(), &sealing_key(), Options::default().with_rng(seeded(5))).unwrap();
    Custodian::open(Arc::new(store), party(1), roster)
}

/// An edited file is another ledger at most once: whoever comes back to the one before does not know what it said there.
#[test]
fn a_node_that_comes_back_to_a_ledger_has_forgotten_its_votes() {
    let disk = SimulatedDisk::default();
    let store = Store::create_on(disk.backend(), &sealing_key(), Options::default().with_rng(seeded(4))).unwrap();
    store.set_identity(&secret_of(1)).unwrap();
    drop(store);
    let lacks = |custodian: Custodian| custodian.store().lacks_ledger_votes().unwrap();
    assert!(!lacks(open(&disk, roster(2, 4)).unwrap()));
    assert!(!lacks(open(&disk, roster(2, 3)).unwrap()), "it has never spoken in that one");
    assert!(lacks(open(&disk, roster(2, 4)).unwrap()));
    // Of a group that was founded with cards there is one ledger, whatever the file says.
    for edited in [Roster { name: "other".to_owned(), ..founded(2, 4) }, Roster { k: 3, ..founded(2, 4) }] {
        assert!(matches!(open(&disk, edited), Err(CustodyError::Genesis(_))));
    }
    let fewer = Roster { nodes: (1..=3).map(party).collect(), members: roster(2, 3).members, ..founded(2, 4) };
    let custodian = open(&disk, fewer).unwrap();
    assert_eq!(custodian.ledger().unwrap().id(), &Genesis::of(&founding(2, 4)).unwrap().id());
}
