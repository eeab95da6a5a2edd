//! The rules of one decision, one by one: what a member says to what it is shown.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::collections::BTreeMap;

use theta_agreement::{
    Agreement, Ballot, Digest, Electorate, Judge, Signature, Verdict, VoteCertificate, VoteKind, check,
};
use theta_names::NodeId;
use theta_names::codec::Writer;
use theta_rounds::PartyId;

fn party(number: u16) -> PartyId {
    PartyId::of_node(NodeId::try_from(number).unwrap())
}

/// Members 1 to n, who sign with their number.
struct Members(Vec<PartyId>, usize);

impl Electorate for Members {
    fn members(&self) -> &[PartyId] {
        &self.0
    }

    fn faulty(&self) -> usize {
        self.1
    }

    fn first_leader(&self) -> usize {
        0
    }

    fn value_digest(&self, value: &[u8]) -> Digest {
        [value[0]; 32]
    }

    fn is_signed(&self, author: PartyId, _ballot: Ballot, _body: &[u8], signature: &Signature) -> bool {
        *signature == signed(author.get())
    }
}

fn signed(number: u16) -> Signature {
    [u8::try_from(number).unwrap(); 64]
}

fn four() -> Members {
    Members((1..=4).map(party).collect(), 1)
}

/// Wants one value, and no other.
struct Wants(u8);

impl Judge for Wants {
    fn propose(&mut self) -> Option<Vec<u8>> {
        Some(vec![self.0])
    }

    fn judge(&mut self, value: &[u8]) -> Verdict {
        if value == [self.0] { Verdict::Valid } else { Verdict::Invalid }
    }
}

fn polka(value: u8, view: u32, signers: &[u16]) -> VoteCertificate {
    let signatures: BTreeMap<_, _> = signers.iter().map(|number| (party(*number), signed(*number))).collect();
    VoteCertificate::new(Ballot::new(VoteKind::Prevote, view), [value; 32], signatures)
}

fn proposal(value: u8, polka: Option<&VoteCertificate>) -> Vec<u8> {
    let writer = Writer::default().bytes(&[value]);
    polka.into_iter().fold(writer, |writer, polka| writer.bytes(&polka.encode())).finish()
}

/// Shows a member what another says.
fn show(agreement: &mut Agreement, author: u16, kind: VoteKind, view: u32, body: &[u8]) {
    let said = (party(author), Ballot::new(kind, view));
    agreement.take(&four(), said, body, &signed(author));
}

fn vote(agreement: &mut Agreement, author: u16, kind: VoteKind, view: u32, value: u8) {
    show(agreement, author, kind, view, &[value; 32]);
}

/// What a member says now, each with its value if it has one; it hears itself.
fn says(agreement: &mut Agreement, own: u16, wants: u8) -> Vec<(VoteKind, u32, Option<u8>)> {
    let mut said = Vec::new();
    while let Some((ballot, body)) = agreement.next(&mut Wants(wants)) {
        show(agreement, own, ballot.kind, ballot.view, &body);
        let value = if ballot.kind == VoteKind::Proposal { body.get(4) } else { body.first() };
        said.push((ballot.kind, ballot.view, value.copied()));
    }
    said
}

fn ticks(agreement: &mut Agreement, own: u16, wants: u8, count: u32) -> Vec<(VoteKind, u32, Option<u8>)> {
    let tick = |_| {
        agreement.tick();
        says(agreement, own, wants)
    };
    (0..count).flat_map(tick).collect()
}

/// It votes for nothing, and so do the two others that were heard.
fn none_in(view: u32) -> [(VoteKind, u32, Option<u8>); 2] {
    [(VoteKind::Prevote, view, None), (VoteKind::Precommit, view, None)]
}

/// Member 3, locked on value 7 in view 0, and in view `view` by the word of the others.
fn locked(view: u32) -> Agreement {
    let mut agreement = Agreement::new(&four(), Some(party(3)));
    show(&mut agreement, 1, VoteKind::Proposal, 0, &proposal(7, None));
    assert_eq!(says(&mut agreement, 3, 7), [(VoteKind::Prevote, 0, Some(7))]);
    vote(&mut agreement, 1, VoteKind::Prevote, 0, 7);
    vote(&mut agreement, 2, VoteKind::Prevote, 0, 7);
    assert_eq!(says(&mut agreement, 3, 7), [(VoteKind::Precommit, 0, Some(7))]);
    assert!(agreement.is_locked());
    if view > 0 {
        for author in [1, 4] {
            show(&mut agreement, author, VoteKind::Prevote, view, &[]);
        }
        drop(says(&mut agreement, 3, 7));
        assert_eq!(agreement.view(), view);
    }
    agreement
}

#[test]
fn a_locked_member_votes_for_nothing_else() {
    let mut agreement = locked(1);
    show(&mut agreement, 2, VoteKind::Proposal, 1, &proposal(8, None));
    assert_eq!(says(&mut agreement, 3, 8), none_in(1));
}

#[test]
fn a_lock_gives_way_to_a_later_quorum_alone() {
    // Locked in view 2: a quorum of view 1 does not free it.
    let mut agreement = Agreement::new(&four(), Some(party(4)));
    for author in [1, 2] {
        show(&mut agreement, author, VoteKind::Prevote, 2, &[]);
    }
    assert!(says(&mut agreement, 4, 7).is_empty());
    show(&mut agreement, 3, VoteKind::Proposal, 2, &proposal(7, None));
    assert_eq!(says(&mut agreement, 4, 7), [(VoteKind::Prevote, 2, Some(7))]);
    for author in [2, 3] {
        vote(&mut agreement, author, VoteKind::Prevote, 2, 7);
    }
    assert_eq!(says(&mut agreement, 4, 7), [(VoteKind::Precommit, 2, Some(7))]);
    for author in [1, 2] {
        show(&mut agreement, author, VoteKind::Prevote, 4, &[]);
    }
    drop(says(&mut agreement, 4, 7));
    let older = polka(8, 1, &[1, 2, 3]);
    show(&mut agreement, 1, VoteKind::Proposal, 4, &proposal(8, Some(&older)));
    assert_eq!(says(&mut agreement, 4, 8), none_in(4));

    let mut agreement = locked(4);
    let later = polka(8, 3, &[1, 2, 4]);
    show(&mut agreement, 1, VoteKind::Proposal, 4, &proposal(8, Some(&later)));
    assert_eq!(says(&mut agreement, 3, 7), [(VoteKind::Prevote, 4, Some(8))]);
}

#[test]
fn a_member_does_not_lock_what_it_has_not_read() {
    let mut agreement = Agreement::new(&four(), Some(party(3)));
    for author in [1, 2, 4] {
        vote(&mut agreement, author, VoteKind::Prevote, 0, 7);
    }
    let said = ticks(&mut agreement, 3, 7, 6);
    assert!(!agreement.is_locked());
    assert_eq!(said[..2], [(VoteKind::Prevote, 0, None), (VoteKind::Precommit, 0, None)]);
    // It can ask what the value is.
    assert_eq!(agreement.wanted_value(), Some([7; 32]));
}

#[test]
fn a_restarted_member_is_where_it_was() {
    let mut agreement = Agreement::new(&four(), Some(party(3)));
    let (members, own) = (four(), signed(3));
    agreement.recall(&members, Ballot::new(VoteKind::Prevote, 0), &[7; 32], &own);
    agreement.recall(&members, Ballot::new(VoteKind::Precommit, 0), &[7; 32], &own);
    agreement.take_polka(polka(7, 0, &[1, 2, 3]), &[7]);
    assert!(agreement.is_locked());
    // Shown another proposal of that view, it has voted already; in the next one it votes for nothing else.
    show(&mut agreement, 1, VoteKind::Proposal, 0, &proposal(8, None));
    assert!(says(&mut agreement, 3, 8).is_empty());
    for author in [1, 4] {
        show(&mut agreement, author, VoteKind::Prevote, 1, &[]);
    }
    show(&mut agreement, 2, VoteKind::Proposal, 1, &proposal(8, None));
    assert_eq!(says(&mut agreement, 3, 8), none_in(1));
    // When it leads, it proposes what it is locked on, with the votes that locked it.
    for author in [1, 4] {
        show(&mut agreement, author, VoteKind::Prevote, 2, &[]);
    }
    let said = says(&mut agreement, 3, 8);
    assert_eq!(said, [(VoteKind::Proposal, 2, Some(7)), (VoteKind::Prevote, 2, Some(7))]);
}

/// Members 1 and 4 have prevoted for nothing, and member 3 for what does not count here: member 2 waits no longer for the leader's vote, which
/// never comes.
#[test]
fn a_vote_that_does_not_count_lets_time_pass() {
    let slot = Ballot::new(VoteKind::Prevote, 0);
    let waiting = |others: &[u16]| {
        let mut agreement = Agreement::new(&four(), Some(party(2)));
        assert_eq!(ticks(&mut agreement, 2, 7, 2), [(VoteKind::Prevote, 0, None)]);
        others.iter().for_each(|author| show(&mut agreement, *author, VoteKind::Prevote, 0, &[]));
        agreement
    };
    let mut stuck = waiting(&[4]);
    vote(&mut stuck, 2, VoteKind::Prevote, 0, 9);
    assert_eq!(ticks(&mut stuck, 2, 7, 20), [], "one member that says two things is one member");
    let mut agreement = waiting(&[4]);
    agreement.note_vote(party(3), slot);
    assert_eq!(ticks(&mut agreement, 2, 7, 1), [(VoteKind::Precommit, 0, None)]);
    let mut decided = waiting(&[]);
    [1, 3, 4].into_iter().for_each(|author| decided.note_vote(party(author), slot));
    assert_eq!(
        ticks(&mut decided, 2, 7, 1),
        [(VoteKind::Precommit, 0, None)],
        "and nothing else follows from such votes"
    );
}

#[test]
fn a_quorum_of_prevotes_that_others_show_is_proposed_next() {
    let mut agreement = Agreement::new(&four(), Some(party(2)));
    agreement.take_polka(polka(7, 0, &[1, 3, 4]), &[7]);
    for author in [1, 4] {
        show(&mut agreement, author, VoteKind::Prevote, 1, &[]);
    }
    let (ballot, body) = agreement.next(&mut Wants(8)).unwrap();
    assert_eq!((ballot.kind, ballot.view), (VoteKind::Proposal, 1));
    assert_eq!(body, proposal(7, Some(&polka(7, 0, &[1, 3, 4]))));
}

#[test]
fn t_members_ahead_move_nobody_and_one_more_does() {
    let mut agreement = Agreement::new(&four(), Some(party(3)));
    show(&mut agreement, 1, VoteKind::Prevote, 5, &[]);
    drop(says(&mut agreement, 3, 7));
    assert_eq!(agreement.view(), 0);
    show(&mut agreement, 4, VoteKind::Prevote, 6, &[]);
    drop(says(&mut agreement, 3, 7));
    assert_eq!(agreement.view(), 5);
}

#[test]
fn a_quorum_of_precommits_decides_and_less_does_not() {
    let mut agreement = locked(0);
    vote(&mut agreement, 1, VoteKind::Precommit, 0, 7);
    drop(says(&mut agreement, 3, 7));
    assert!(agreement.decision().is_none());
    vote(&mut agreement, 4, VoteKind::Precommit, 0, 8);
    drop(says(&mut agreement, 3, 7));
    assert!(agreement.decision().is_none());
    vote(&mut agreement, 2, VoteKind::Precommit, 0, 7);
    drop(says(&mut agreement, 3, 7));
    let decision = agreement.decision().unwrap();
    assert_eq!((decision.digest(), decision.signatures().len()), (&[7; 32], 3));
    assert_eq!(agreement.decided_value(), Some(&[7][..]));
}

#[test]
fn a_proposal_that_repeats_a_value_proves_its_prevotes() {
    let members = four();
    let checked = |view, value, polka: &VoteCertificate| {
        check(&members, Ballot::new(VoteKind::Proposal, view), &proposal(value, Some(polka))).is_ok()
    };
    let good = polka(7, 1, &[1, 2, 3]);
    assert!(checked(2, 7, &good));
    // Of the same view, for another value, too few, of strangers, of the other vote, false.
    assert!(!checked(1, 7, &good));
    assert!(!checked(2, 8, &good));
    assert!(!checked(2, 7, &polka(7, 1, &[1, 2])));
    assert!(!checked(2, 7, &polka(7, 1, &[1, 2, 5])));
    let votes = good.signatures().clone();
    assert!(!checked(2, 7, &VoteCertificate::new(Ballot::new(VoteKind::Precommit, 1), [7; 32], votes.clone())));
    let forged = votes.keys().map(|signer| (*signer, [9; 64])).collect();
    assert!(!checked(2, 7, &VoteCertificate::new(Ballot::new(VoteKind::Prevote, 1), [7; 32], forged)));
}

/// A proposal goes to all members, so of many it may take longer: 2 ticks of up to 15, and one more for each 16; in later views, which take
/// longer anyway, two more.
#[test]
fn many_members_wait_longer_for_a_proposal() {
    for (n, waits) in [(4, [2, 3, 4]), (15, [2, 3, 4]), (16, [3, 5, 6]), (127, [9, 17, 18])] {
        let members = Members((1..=n).map(party).collect(), usize::from(n - 1) / 3);
        for (view, wait) in (0..).zip(waits) {
            let mut agreement = Agreement::new(&members, Some(party(n)));
            // More members than may lie are in this view.
            for author in (1..n).take_while(|_| view > 0) {
                agreement.note(party(author), view);
            }
            assert_eq!(says(&mut agreement, n, 7), []);
            assert_eq!(ticks(&mut agreement, n, 7, wait - 1), [], "{n} members, view {view}");
            let said = ticks(&mut agreement, n, 7, 1);
            assert_eq!(said.first(), Some(&(VoteKind::Prevote, view, None)), "{n} members, view {view}");
        }
    }
}
