//! The owner asks different helpers for different lists.

use super::*;
use crate::support::parties;

/// Asks each helper for the masks of a list of its own, then shows everything to everybody.
fn ask(attack: &mut Attack, lists: &[(u16, &[u16])], even_if_not: bool) {
    attack.call(0);
    let requests: BTreeMap<PartyId, Statement> =
        lists.iter().map(|(who, list)| (party(*who), attack.request(0, &parties(list.iter().copied())))).collect();
    for (who, request) in &requests {
        attack.show(*who, std::slice::from_ref(request));
    }
    for who in requests.keys() {
        requests.values().for_each(|request| attack.press(0, request, *who, even_if_not));
    }
}

/// With these lists, the first answer plus the second less the third, each divided by its distance from the lost index,
/// has no mask left. Helpers that answered any list gave f(0) to the owner of one share of 2 of 5.
#[test]
fn masks_that_cancel_are_never_all_asked_for() {
    let lists: [(u16, &[u16]); 4] = [(2, &[2, 4]), (3, &[3, 5]), (4, &[2, 3, 4, 5]), (5, &[3, 5])];
    let mut attack = Attack::new(Setting::new(2, 5, 1, 77), BTreeSet::new());
    ask(&mut attack, &lists, false);
    let answered = attack.answered();
    let answered: Vec<_> = answered.iter().map(|(who, _, request)| (*who, &attack.requests[&(0, *request)])).collect();
    // A list that all its helpers have accepted is answered, and hides what it should.
    assert_eq!(answered, [(party(3), &parties([3, 5])), (party(5), &parties([3, 5]))]);

    // Showing only some acceptances does not help the owner.
    let mut attack = Attack::new(Setting::new(2, 5, 1, 77), BTreeSet::new());
    ask(&mut attack, &lists[..3], true);
    assert_eq!(attack.answered(), BTreeSet::new());
}

/// A helper that lost its memory may have accepted another request: it accepts none, and answers none.
#[test]
fn who_has_forgotten_accepts_nothing() {
    let mut attack = Attack::new(Setting::new(2, 5, 1, 78), BTreeSet::new());
    attack.call(0);
    let all = parties(2..=5);
    let (first, second) = (attack.request(0, &all), attack.request(0, &all[..2]));
    attack.show_all(std::slice::from_ref(&first));
    assert_eq!(attack.of(Kind::Accepted, 0).count(), 4);
    // The disk of node 2 is set back: it is shown, among other statements, those that it has signed.
    let forgetful = attack.setting.join(party(2), Memory::Kept, 0);
    attack.helpers.insert(party(2), forgetful);
    attack.step(party(2), Input::Start);
    let (masks, accepted): (Vec<_>, Vec<_>) = attack
        .said
        .iter()
        .filter(|said| !matches!(said.slot().kind, Kind::Checked | Kind::EncryptionKey))
        .cloned()
        .partition(|said| said.slot().kind == Kind::Dealing);
    let call = attack.sign(party(1), Kind::Checked, 0, Vec::new());
    attack.show(party(2), &[vec![call, accepted[0].clone()], masks, vec![second.clone()]].concat());
    assert_eq!(attack.of(Kind::Accepted, 0).count(), 4, "it accepts another one");
    // Or the owner shows it the acceptances of all.
    let forgetful = attack.setting.join(party(2), Memory::Kept, 0);
    attack.helpers.insert(party(2), forgetful);
    attack.step(party(2), Input::Start);
    attack.press(0, &first, party(2), false);
    let said = attack.said.len();
    attack.show(party(2), &[second]);
    assert_eq!(attack.said.len(), said);
    assert_eq!(attack.answered(), BTreeSet::new());
}
