//! Which message for a slot is first in an order, and what a liar can do about it.

use theta_custody::{Races, SlotRace, claim_of};
use theta_names::NodeId;
use theta_statements::Digest;

fn node(number: u16) -> NodeId {
    NodeId::try_from(number).unwrap()
}

fn race(slot: u64, digest: u8) -> SlotRace {
    SlotRace { key: "chain".to_owned(), rule: "heights".parse().unwrap(), slot, digest: Digest([digest; 32]) }
}

fn after(claims: &[(u16, u8)]) -> Option<u8> {
    let mut races = Races::new(2);
    for (from, digest) in claims {
        assert!(races.take(node(*from), &claim_of(&race(7, *digest))));
    }
    races.winner(&race(7, 1)).map(|digest| digest.0[0])
}

/// Four nodes, one of which may lie.
#[test]
fn the_first_message_that_an_honest_node_claims_wins_and_stays() {
    assert_eq!(after(&[]), None);
    assert_eq!(after(&[(1, 9), (1, 9)]), None, "one node is not enough, however often");
    assert_eq!(after(&[(1, 1), (2, 2), (3, 2), (4, 1)]), Some(2), "what was a void slot is a race with a winner");
    assert_eq!(after(&[(1, 1), (2, 2), (3, 2), (4, 1), (4, 1), (2, 1)]), Some(2), "it stays");
    assert_eq!(after(&[(4, 9), (1, 1), (4, 1), (2, 1)]), Some(1), "a liar holds up nobody, and its first claim counts");
    assert_eq!(after(&[(1, 1), (2, 2), (3, 3), (4, 4)]), None);
}

#[test]
fn what_is_no_claim_changes_nothing_and_slots_are_apart() {
    let mut races = Races::new(1);
    let claim = claim_of(&race(1, 5));
    for cut in 0..claim.len() {
        assert!(!races.take(node(1), &claim[..cut]));
    }
    assert!(!races.take(node(1), &[&claim[..], &[0]].concat()) && !races.take(node(1), b"\xffnoise"));
    assert!(races.take(node(1), &claim));
    assert_eq!(races.winner(&race(2, 5)), None);
    assert_eq!(races.winner(&race(1, 6)), Some(Digest([5; 32])));
    assert!(races.has_claimed(node(1), &race(1, 6)) && !races.has_claimed(node(2), &race(1, 6)));
}

#[test]
fn a_node_that_claims_very_many_loses_its_own_oldest() {
    let mut races = Races::new(2);
    races.take(node(1), &claim_of(&race(0, 1)));
    for slot in 1..=5_000 {
        races.take(node(4), &claim_of(&race(slot, 9)));
    }
    assert_eq!((races.claims_of(node(4)), races.claims_of(node(1))), (1_024, 1));
    races.take(node(2), &claim_of(&race(0, 1)));
    assert_eq!(races.winner(&race(0, 1)), Some(Digest([1; 32])), "the others' are as they were");
}

/// A slot's number is known before anybody is asked for it. Who claims it first does not decide for how long the others' claims are known.
#[test]
fn a_liar_that_claims_a_slot_first_cannot_have_it_forgotten() {
    let mut races = Races::new(2);
    races.take(node(4), &claim_of(&race(0, 9)));
    races.take(node(1), &claim_of(&race(0, 1)));
    (1..=5_000).for_each(|slot| assert!(races.take(node(4), &claim_of(&race(slot, 9)))));
    assert!(races.has_claimed(node(1), &race(0, 1)) && !races.has_claimed(node(4), &race(0, 1)));
    races.take(node(2), &claim_of(&race(0, 1)));
    assert_eq!(races.winner(&race(0, 1)), Some(Digest([1; 32])));
    races.take(node(4), &claim_of(&race(0, 2)));
    (5_001..=9_000).for_each(|slot| assert!(races.take(node(4), &claim_of(&race(slot, 9)))));
    races.take(node(3), &claim_of(&race(0, 2)));
    races.take(node(4), &claim_of(&race(0, 2)));
    assert_eq!(races.winner(&race(0, 1)), Some(Digest([1; 32])), "it stays");
}
