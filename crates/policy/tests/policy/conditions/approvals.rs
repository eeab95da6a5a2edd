//! Approvals: every reason for which one does not count.

use theta_names::Operation;
use theta_policy::{ApprovalFault, Consents, Reason};
use theta_statements::{
    Approval, ApprovalTerms, Ask, Digest, Invalid, MOST_APPROVAL_LIFETIME, MOST_APPROVALS, UnixTime, Validity,
};

use crate::support::{MINUTE, NOW, allow, ask_once, key, policy, sign};

const SOON: Validity = Validity { from: NOW, until: UnixTime(NOW.0 + MINUTE) };

fn approve(number: u8, change: impl FnOnce(&mut ApprovalTerms)) -> Approval {
    let mut terms = ApprovalTerms::of(&sign(b"m"), SOON).unwrap();
    change(&mut terms);
    Approval::sign(terms, &key(number))
}

fn two_of_three() -> theta_policy::Policy {
    policy(&allow("r", "alice", "*", "*", "approvals = { of = [\"x\", \"y\"], need = 2 }"))
}

fn refused(approvals: &[Approval]) -> Consents {
    match ask_once(&two_of_three(), Ask { approvals, ..sign(b"m") }).reason {
        Reason::TooFewApprovals { need: 2, consents } => consents,
        other => panic!("{other:?}"),
    }
}

#[test]
fn enough_approvals_allow_and_are_named() {
    let approvals = [approve(12, |_| {}), approve(11, |_| {})];
    let decision = ask_once(&two_of_three(), Ask { approvals: &approvals, ..sign(b"m") });
    let names: Vec<_> = decision.approvers.iter().map(ToString::to_string).collect();
    assert_eq!((decision.allowed, names), (true, vec!["y".to_owned(), "x".to_owned()]));
}

#[test]
fn none_is_a_refusal() {
    assert_eq!(refused(&[]), Consents::default());
}

#[test]
fn what_was_approved_otherwise_does_not_count() {
    let good = || approve(11, |_| {});
    let cases: [(Approval, ApprovalFault); 9] = [
        (approve(12, |terms| terms.group = "other".parse().unwrap()), ApprovalFault::Differs("group")),
        (approve(12, |terms| terms.key = Some("leaf".parse().unwrap())), ApprovalFault::Differs("key")),
        (approve(12, |terms| terms.key = None), ApprovalFault::Differs("key")),
        (approve(12, |terms| terms.operation = Operation::Decrypt), ApprovalFault::Differs("operation")),
        (approve(12, |terms| terms.statement = Digest::of(b"n")), ApprovalFault::Differs("statement")),
        (approve(12, |terms| terms.validity.from = NOW.plus(1)), ApprovalFault::Invalid(Invalid::NotYet(NOW.plus(1)))),
        (
            approve(12, |terms| terms.validity = Validity { from: UnixTime(NOW.0 - 1), until: NOW }),
            ApprovalFault::Invalid(Invalid::Expired(NOW)),
        ),
        // z is an approver, but not one of this rule.
        (approve(13, |_| {}), ApprovalFault::UnknownApprover(key(13).verifying_key())),
        (approve(11, |_| {}), ApprovalFault::Repeated("x".parse().unwrap())),
    ];
    for (bad, fault) in cases {
        let consents = refused(&[good(), bad]);
        assert_eq!((consents.approvers.len(), consents.faults), (1, vec![(1, fault)]));
    }
    let long = approve(12, |terms| terms.validity.until = NOW.plus(MOST_APPROVAL_LIFETIME + 1));
    assert!(matches!(refused(&[long]).faults[0].1, ApprovalFault::Invalid(Invalid::Lifetime { .. })));
}

#[test]
fn one_approver_with_two_different_approvals_counts_once() {
    let other = approve(11, |terms| terms.validity.until = NOW.plus(2 * MINUTE));
    assert_eq!(refused(&[approve(11, |_| {}), other]).approvers.len(), 1);
}

#[test]
fn no_changed_byte_goes_unnoticed() {
    let approval = approve(11, |_| {});
    let bytes = approval.encode();
    assert_eq!(Approval::decode(&bytes).as_ref(), Ok(&approval));
    for place in 0..bytes.len() {
        for bit in [1, 0x80] {
            let mut changed = bytes.clone();
            changed[place] ^= bit;
            if let Ok(changed) = Approval::decode(&changed) {
                assert_eq!(refused(&[changed]).approvers.len(), 0, "byte {place}");
            }
        }
        assert!(Approval::decode(&bytes[..place]).is_err());
    }
    assert!(Approval::decode(&[bytes.as_slice(), &[0]].concat()).is_err());
    let last = bytes.len() - 1;
    let mut forged = bytes;
    forged[last] ^= 1;
    let fault = refused(&[Approval::decode(&forged).unwrap()]).faults.remove(0).1;
    assert_eq!(fault, ApprovalFault::FalseSignature);
}

#[test]
fn junk_does_not_keep_good_ones_out_of_a_short_list_and_long_lists_end() {
    let mut approvals = vec![approve(13, |_| {}); MOST_APPROVALS];
    approvals.push(approve(11, |_| {}));
    let consents = refused(&approvals);
    assert_eq!(consents.approvers.len(), 0);
    assert_eq!(consents.faults.last(), Some(&(MOST_APPROVALS, ApprovalFault::TooMany)));
    approvals.truncate(1);
    approvals.extend([approve(11, |_| {}), approve(12, |_| {})]);
    assert!(ask_once(&two_of_three(), Ask { approvals: &approvals, ..sign(b"m") }).allowed);
}

#[test]
fn files_hold_several() {
    let all = [approve(11, |_| {}), approve(12, |_| {})];
    let text: String = all.iter().map(Approval::to_text).collect();
    assert_eq!(Approval::all_from_text(&text).unwrap(), all);
    assert!(Approval::all_from_text("yes").is_err());
    let many = all[0].to_text().repeat(MOST_APPROVALS + 1);
    assert_eq!(
        Approval::all_from_text(&many).unwrap_err().to_string(),
        "not approvals: there are 65, and a request may carry 64"
    );
}
