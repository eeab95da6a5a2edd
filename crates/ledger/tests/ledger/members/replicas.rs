//! Replicas whose members change.

use theta_ledger::{Action, CertifiedEntry, DropReason, Genesis, Input};

use super::{NOW, add, first_key, founded, founding, name, remove, replace, voted};
use crate::keys::operator;
use crate::net::{Net, node};
use crate::states::{create, machines};

/// A machine that nobody speaks to reads entries wherever it finds them: those that are certified it takes, and no others.
#[test]
fn entries_prove_themselves_whoever_had_them() {
    let mut net = Net::of(Genesis::of(&founding(4, 2)).unwrap(), 4, 5);
    let mut state = founded(4, 2);
    let first = voted(&state, replace(2, 8), NOW, &machines(&[1, 3, 4]));
    let few = voted(&state, replace(2, 8), NOW, &machines(&[1, 3]));
    state.advance(&first).unwrap();
    let second = voted(&state, add(5), NOW, &machines(&[1, 3, 4]));
    let mut feed = |entries: &[&CertifiedEntry]| {
        let entries: Vec<CertifiedEntry> = entries.iter().copied().cloned().collect();
        net.feed(node(2), &|replica, disk| replica.handle(Input::Entries(entries.clone()), disk));
        net.nodes[&node(2)].replica.as_ref().unwrap().state().height()
    };
    assert_eq!((feed(&[&few]), feed(&[&second])), (0, 0));
    // What comes after a false one is not looked at.
    assert_eq!(feed(&[&few, &first]), 0);
    assert_eq!((feed(&[&first, &second]), feed(&[&first])), (2, 2));
}

fn all_know(net: &Net, members: usize) -> bool {
    net.nodes.values().filter_map(|node| node.replica.as_ref()).all(|it| it.state().members().len() == members)
}

#[test]
fn a_group_of_replicas_takes_in_replaces_and_lets_go() {
    let mut net = Net::of(Genesis::of(&founding(4, 2)).unwrap(), 4, 3);
    net.ask_all(&add(5));
    assert!(net.run_until(100, |net| net.all_at(1)));
    // It knows the founding, and reads the rest.
    net.join(node(5));
    assert!(net.run_until(100, |net| net.all_at(1) && all_know(net, 5)));
    // One loses everything. Its operator brings another machine, and nobody else is asked.
    let Action::Members(change) = replace(3, 8) else { unreachable!() };
    let ledger = net.genesis.id();
    let reason = operator(&name(3)).sign(&change.signed_by_operator(&ledger, &first_key(3))).to_vec();
    net.exchange(node(3), 8);
    net.feed(node(3), &|replica, disk| replica.handle(Input::Propose(replace(3, 8), reason.clone()), disk));
    assert!(net.run_until(200, |net| net.all_at(2)), "{:?}", net.nodes[&node(3)].dropped);
    // Four of five decide, the new ones among them.
    net.stop(node(1));
    net.grant(2..=5, &remove(1));
    net.ask([2, 3, 4, 5], &remove(1));
    assert!(net.run_until(200, |net| net.all_at(3) && all_know(net, 4)));
    // Who has left hears of it, and votes no more.
    net.start(node(1));
    net.ask_all(&create("a", 1, 2, &[2, 3, 4]));
    assert!(net.run_until(200, |net| net.all_at(4)));
    let certificate = &net.nodes[&node(2)].disk.entries[3].certificate;
    assert!(certificate.signatures().keys().all(|party| party.get() != 1));
    assert!(net.nodes.values().all(|node| node.blamed.is_empty()));
    let told = net.nodes[&node(1)].dropped.iter().all(|(_, why)| matches!(why, DropReason::Refused(_)));
    assert!(told);
}

/// A liar tells of the replacement first, with its own consent, so that its operator's word is not news.
#[test]
fn an_operators_word_is_news_though_the_change_is_not() {
    let mut net = Net::of(Genesis::of(&founding(4, 2)).unwrap(), 4, 5);
    net.stop(node(3));
    // One member wants it by its policy: too few.
    net.ask([4], &replace(3, 8));
    net.grant([1, 2], &replace(3, 8));
    net.run_until(20, |_| false);
    assert!(net.all_at(0));
    assert!(net.nodes[&node(1)].replica.as_ref().unwrap().wants(&replace(3, 8).digest()));
    let Action::Members(change) = replace(3, 8) else { unreachable!() };
    let reason = operator(&name(3)).sign(&change.signed_by_operator(&net.genesis.id(), &first_key(3))).to_vec();
    net.feed(node(2), &|replica, disk| replica.handle(Input::Propose(replace(3, 8), reason.clone()), disk));
    assert!(net.run_until(100, |net| net.all_at(1)));
    assert_eq!(net.nodes[&node(1)].disk.entries[0].entry.reason, reason);
}

/// Nobody takes part in a change of members that too few want, whatever t members say.
#[test]
fn members_do_not_join_by_the_word_of_a_few() {
    let mut net = Net::of(Genesis::of(&founding(4, 2)).unwrap(), 4, 6);
    net.grant(1..=4, &add(5));
    net.ask([1, 2], &add(5));
    assert!(!net.run_until(60, |net| !net.all_at(0)));
    let waits = net.nodes[&node(1)].replica.as_ref().unwrap().awaited(&add(5).digest());
    assert_eq!(waits, [node(3), node(4)]);
    net.ask([3], &add(5));
    assert!(net.run_until(100, |net| net.all_at(1)));
}
