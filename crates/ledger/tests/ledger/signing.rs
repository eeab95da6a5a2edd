//! What operators may sign one after the other.

use std::collections::BTreeSet;

use theta_ledger::{LedgerState, SignedWarrant, SigningRefusal, StandIn, Warrant, WarrantRefusal};

use crate::keys::operator;
use crate::members::{add, advance, card_of, content_of, founded, name, replace};
use crate::net::node;
use crate::warrants::{END, stand_in, unsigned};

fn signed(state: &LedgerState, numbers: &[u16]) -> SignedWarrant {
    SignedWarrant { height: state.height(), warrant: unsigned(state, numbers) }
}

/// What the operator of node 1 is told that has signed these.
fn asked(state: &LedgerState, warrant: &Warrant, before: &[SignedWarrant]) -> Result<u16, SigningRefusal> {
    let key = operator(&name(1)).id().unwrap();
    state.check_signing(&key, warrant, before).map(theta_names::NodeId::get)
}

fn besides(signed: &[u16], asked: &[u16]) -> Result<u16, SigningRefusal> {
    let nodes = |numbers: &[u16]| numbers.iter().map(|number| node(*number)).collect::<BTreeSet<_>>();
    Err(SigningRefusal::Besides { signed: nodes(signed), asked: nodes(asked) })
}

#[test]
fn an_operator_lets_no_second_machine_in_besides_the_first() {
    let mut state = founded(3, 2);
    let first = signed(&state, &[3]);
    assert_eq!(asked(&state, &first.warrant, &[]), Ok(1));
    // The same once more, as on the other copy of the key.
    assert_eq!(asked(&state, &first.warrant, std::slice::from_ref(&first)), Ok(1));
    assert_eq!(asked(&state, &unsigned(&state, &[2]), std::slice::from_ref(&first)), besides(&[3], &[2]));
    // A third machine of the same member makes no more members that are two machines.
    let other = StandIn { card: card_of(3, 9), ..stand_in(3, 8) };
    let other = Warrant::new(*state.id(), 1, END, vec![other]).unwrap();
    assert_eq!(asked(&state, &other, std::slice::from_ref(&first)), Ok(1));
    // What was signed in another group does not count here.
    let elsewhere = founded(3, 1);
    let strange = SignedWarrant { height: 900, warrant: unsigned(&elsewhere, &[3]) };
    assert_eq!(asked(&state, &unsigned(&state, &[2]), &[strange]), Ok(1));
    // Once the group has replaced the machine, the place is free for another; but not from a height on at which it was not.
    let early = unsigned(&state, &[2]);
    advance(&mut state, replace(3, 8), &[1, 2, 3]);
    assert_eq!(asked(&state, &unsigned(&state, &[2]), std::slice::from_ref(&first)), Ok(1));
    let verdict = asked(&state, &early, std::slice::from_ref(&first));
    assert_eq!(verdict, Err(SigningRefusal::OtherHeight { from: 1, height: 1 }));
    // A ledger of before, in which that has not happened, is not signed by.
    let second = signed(&state, &[2]);
    let old = founded(3, 2);
    let verdict = asked(&old, &first.warrant, &[first.clone(), second]);
    assert_eq!(verdict, Err(SigningRefusal::OldLedger { got: 0, known: 1 }));
}

#[test]
fn what_cannot_serve_is_not_signed() {
    let state = founded(3, 2);
    let verdict = |warrant: &Warrant| asked(&state, warrant, &[]);
    let too_many = WarrantRefusal::TooMany { got: 2, most: 1 };
    assert_eq!(verdict(&unsigned(&state, &[2, 3])), Err(too_many.clone().into()));
    assert_eq!(state.check_unsigned_warrant(&unsigned(&state, &[2, 3])), Err(too_many));
    assert_eq!(state.check_unsigned_warrant(&unsigned(&state, &[3])), Ok(()));
    let early = Warrant::new(*state.id(), 2, END, vec![stand_in(3, 8)]).unwrap();
    assert_eq!(verdict(&early), Err(WarrantRefusal::Early(2).into()));
    let gone = StandIn { gone: content_of(3, 9).ceremony_key, ..stand_in(3, 8) };
    assert_eq!(verdict(&Warrant::new(*state.id(), 1, END, vec![gone]).unwrap()), Err(WarrantRefusal::Done.into()));
    let mut later = founded(5, 3);
    let both = unsigned(&later, &[4, 5]);
    advance(&mut later, replace(4, 8), &[1, 2, 3, 4, 5]);
    let both = Warrant::new(*later.id(), 2, END, both.stand_ins().to_vec()).unwrap();
    assert_eq!(asked(&later, &both, &[]), Err(SigningRefusal::Replaced(node(4))));
    let nobody = operator("somebody else").id().unwrap();
    assert_eq!(state.check_signing(&nobody, &unsigned(&state, &[3]), &[]), Err(SigningRefusal::NoOperator));
    // Where no machine can be stood in for, none is.
    let state = founded(4, 2);
    let verdict = asked(&state, &unsigned(&state, &[3]), &[]);
    assert_eq!(verdict, Err(WarrantRefusal::TooMany { got: 1, most: 0 }.into()));
}

/// Two warrants for one member each are for two together, which is no more than five nodes bear. Then a sixth comes, of six only one can be
/// stood in for, and each of the two still serves. So an operator that signed the one does not sign the other: one for both, instead.
#[test]
fn two_warrants_are_not_too_many_together_when_the_group_grows() {
    let mut state = founded(5, 3);
    assert_eq!(state.most_stand_ins(), 2);
    let one = signed(&state, &[4]);
    assert_eq!(asked(&state, &unsigned(&state, &[5]), std::slice::from_ref(&one)), besides(&[4], &[5]));
    let both = signed(&state, &[4, 5]);
    assert_eq!(asked(&state, &both.warrant, std::slice::from_ref(&one)), Ok(1));
    advance(&mut state, add(6), &[1, 2, 3, 4, 5]);
    assert_eq!(state.most_stand_ins(), 1);
    let all = [1, 2, 3, 4, 5].map(|number| (node(number), operator(&name(number))));
    let by_all = |warrant: Warrant| all.iter().fold(warrant, |warrant, (node, key)| warrant.with_signature(*node, key));
    // What would have come of it: each serves, and they are for two.
    assert_eq!(state.check_warrant(&by_all(one.warrant)), Ok(()));
    assert_eq!(state.check_warrant(&by_all(unsigned(&founded(5, 3), &[5]))), Ok(()));
    assert_eq!(state.check_warrant(&by_all(both.warrant)), Err(WarrantRefusal::TooMany { got: 2, most: 1 }));
}

#[test]
fn copies_are_gathered_and_false_signatures_left_behind() {
    let state = founded(3, 2);
    let plain = unsigned(&state, &[3]);
    let by = |number: u16, who: u16| plain.clone().with_signature(node(number), &operator(&name(who)));
    let true_ones = [by(1, 1), by(2, 2), by(3, 3)];
    // One copy has a signature in another's name, and comes last.
    let copies = [&true_ones[..], &[by(2, 1)], &[by(9, 1)]].concat();
    let (gathered, false_ones) = state.gathered(&copies).unwrap();
    assert_eq!(state.check_warrant(&gathered), Ok(()));
    assert_eq!(false_ones, BTreeSet::from([node(2), node(9)]));
    assert_eq!(state.gathered(&[]), None);
    // What is another warrant is none of its copies.
    let other = unsigned(&state, &[2]).with_signature(node(1), &operator(&name(1)));
    let (gathered, _) = state.gathered(&[plain, other]).unwrap();
    assert!(gathered.signatures().is_empty());
}
