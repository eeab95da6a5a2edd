//! Warrants end.

use theta_ledger::{
    CertifiedEntry, LONGEST_WARRANT, LedgerError, MemberRefusal, Refusal, StandIn, Warrant, WarrantRefusal,
};

use super::several::{by, group, offer};
use super::{END, signed, stand_in, state_of, warrant};
use crate::members::{content_of, founded, replace, sign, voted};
use crate::net::{keys, keys_of, node};
use crate::states::{create, voted_for};

#[test]
fn a_warrant_serves_for_entries_until_its_end() {
    let state = founded(3, 2);
    let served = warrant(&state, &[3], &[1, 2, 3]);
    let voters = [keys(1), keys(2), keys_of(3, 8)];
    let at = |time| -> Result<(), LedgerError> {
        let entry = voted_for(&state, (replace(3, 8), time), served.encode(), (&[], &voters));
        state.clone().advance(&CertifiedEntry { warrants: vec![served.clone()], ..entry })
    };
    assert_eq!((at(END), at(END + 1)), (Ok(()), Err(LedgerError::Refused(1, MemberRefusal::Unproven.into()))));
    // Nor for anything else.
    let entry = voted_for(&state, (create("a", 1, 2, &[1, 2, 3]), END + 1), Vec::new(), (&[keys(1), keys(2)], &voters));
    let entry = CertifiedEntry { warrants: vec![served.clone()], ..entry };
    let ended = WarrantRefusal::Ended(END);
    assert_eq!(state.clone().advance(&entry), Err(LedgerError::Warrant(1, ended.clone())));
    // Once the ledger is later, for ever: who kept it brings nobody back.
    let mut state = state;
    let members = [keys(1), keys(2), keys(3)];
    state.advance(&voted(&state, create("a", 1, 2, &[1, 2, 3]), END + 1, &members)).unwrap();
    assert_eq!(state.check_warrant(&served), Err(ended.clone()));
    assert_eq!(state.check_unsigned_warrant(&served), Err(ended));
}

#[test]
fn an_end_is_near_and_not_after_that_of_the_cards() {
    let state = founded(3, 2);
    let far = 3_000_000;
    let served = Warrant::new(*state.id(), 1, far, vec![stand_in(3, 8)]).unwrap();
    assert_eq!(served.check_end(far), Ok(()));
    assert_eq!(served.check_end(far + 1), Err(WarrantRefusal::Ended(far)));
    assert_eq!(served.check_end(far - LONGEST_WARRANT), Ok(()));
    assert_eq!(served.check_end(far - LONGEST_WARRANT - 1), Err(WarrantRefusal::Long(far)));
    let until = |until| {
        let warrant = Warrant::new(*state.id(), 1, until, vec![stand_in(3, 8)]).unwrap();
        state.check_warrant(&signed(warrant, &[1, 2, 3]))
    };
    let card = content_of(3, 8).until;
    let refusal = Box::new(Refusal::Member(MemberRefusal::Ended));
    assert_eq!(until(card), Ok(()));
    assert_eq!(until(card + 1), Err(WarrantRefusal::StandIn { node: node(3), refusal }));
}

/// The machine was thought to be gone, and somebody kept the paper.
#[test]
fn a_machine_that_came_back_is_not_silenced_by_an_old_warrant() {
    let mut net = group(3, 2);
    let state = state_of(&net, 1);
    let served = warrant(&state, &[3], &[1, 2, 3]);
    net.now = END;
    net.tick();
    for number in 1..=3 {
        assert_eq!(offer(&mut net, number, &served), Err(WarrantRefusal::Ended(END)));
    }
    net.ask_all(&create("a", 1, 2, &[1, 2, 3]));
    assert!(net.run_until(100, |net| net.all_at(1)));
    assert!(net.nodes[&node(1)].disk.entries[0].warrants.is_empty());
}

/// It was brought in time, and the machine of it never came: the old one votes again two days after the end, at the same height.
#[test]
fn a_warrant_that_came_to_nothing_is_dropped() {
    let mut net = group(3, 2);
    let state = state_of(&net, 1);
    let served = warrant(&state, &[3], &[1, 2, 3]);
    for number in 1..=3 {
        offer(&mut net, number, &served).unwrap();
    }
    net.ask_all(&create("a", 1, 2, &[1, 2, 3]));
    assert!(!net.run_until(300, |net| !net.all_at(0)));
    net.now = END + 2 * 86_400 - 20;
    assert!(!net.run_until(15, |net| !net.all_at(0)));
    net.run_until(30, |_| false);
    assert!(net.nodes.values().all(|node| node.replica.as_ref().unwrap().stand_ins().is_empty()));
    net.ask_all(&create("b", 2, 2, &[1, 2, 3]));
    assert!(net.run_until(100, |net| net.all_at(1)));
    assert!(net.nodes[&node(1)].disk.entries[0].warrants.is_empty());
}

/// Just before and after the end: no quorum comes together that decides nothing, and the entry is of a time that the warrant allows.
#[test]
fn what_is_decided_under_a_warrant_is_of_its_time() {
    for (late, decided) in [(0, true), (86_400, true), (2 * 86_400 + 60, false)] {
        let mut net = group(3, 2);
        let state = state_of(&net, 1);
        let served = warrant(&state, &[3], &[1, 2, 3]);
        net.now = END - 20;
        for number in 1..=3 {
            if number == 3 {
                net.exchange(node(3), 8);
                // It is not there yet when the others hear of it.
                net.cut.insert(node(3));
            }
            offer(&mut net, number, &served).unwrap();
        }
        net.run_until(10, |_| false);
        net.now = END + late;
        net.cut.clear();
        assert_eq!(net.run_until(60, |net| net.all_at(1)), decided, "{late}");
        if decided {
            let entry = &net.nodes[&node(1)].disk.entries[0].entry;
            assert!(entry.time <= END, "{late}");
        }
    }
}

/// A machine whose card ends, and nothing else waits for it.
#[test]
fn what_cannot_be_decided_keeps_nothing_waiting() {
    let mut net = group(3, 2);
    net.now = 2_000_001;
    net.tick();
    let state = state_of(&net, 1);
    let mut content = content_of(3, 8);
    content.until = END;
    let late = StandIn { card: sign(content, &keys_of(3, 8)), ..stand_in(3, 8) };
    let late = signed(Warrant::new(*state.id(), 1, 3_000_000, vec![late]).unwrap(), &[1, 2, 3]);
    assert!(matches!(offer(&mut net, 1, &late), Err(WarrantRefusal::StandIn { .. })));
    assert_eq!(offer(&mut net, 1, &by(&state, &[(3, 8)], &[1, 2, 3])), Err(WarrantRefusal::Ended(END)));
    net.ask_all(&create("a", 1, 2, &[1, 2, 3]));
    assert!(net.run_until(40, |net| net.all_at(1)));
}
