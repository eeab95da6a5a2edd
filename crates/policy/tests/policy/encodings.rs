//! Known answers of everything that is signed or stored. They never change: a new layout takes a new domain.
//!
//! Made from `spec/policy.md` with Python's `struct` and `hashlib`; the signatures with OpenSSL 3 (`pkeyutl -rawin`).

use theta_statements::audit::{AuditRecord, Checkpoint, verify};
use theta_statements::{Approval, ApprovalTerms, Ask, Digest, RequestTerms, SignedRequest, UnixTime, Validity};

use crate::support::{MINUTE, NOW, append, key, label, sign};

const REQUEST: &str = "0000001074686574612f726571756573742f76310000000464656d6f0100000004726f6f7403000000056c6162656c62c66a\
     7a5dd70c3146618063c344e531e6d4b59e379808443ce962b3abd63c5a19b25856e1c150ca834cffc8b59b23adbd0ec0389e\
     58eb22b3b64768098d002b010000000000000007000001a1fd3a0340000001a1fd3aeda00909090909090909090909090909\
     0909ed4928c628d1c2c6eae90338905995612959273a5c63f93636c14614ac8737d1871632658cd27fd681d921e336e5c966\
     36ccd6c562b851f20ddb05f97e004bd0bda9068e8b57afe38e13934cda15cf6f6507276d90125aa828f3c90edce2a60f";
const REQUEST_ID: &str = "fa305e1375a3fbb80706dbf701fc538df860334378939c0160015fc87977abe4";
const APPROVAL: &str = "0000001174686574612f617070726f76616c2f76310000000464656d6f0100000004726f6f740362c66a7a5dd70c31466180\
     63c344e531e6d4b59e379808443ce962b3abd63c5a000001a1fd3a0340000001a1fd3aeda0ed4928c628d1c2c6eae9033890\
     5995612959273a5c63f93636c14614ac8737d14b67c69986faa5eafd46392c9f71b5bd807d9922357dab793bf5eb9db230ab\
     0e8450f956aa3374a410c800f6878f1cabb46b72ea74a24a539c6884c4560a6b0d";
const RECORD: &str = "0000000e74686574612f61756469742f7631000001a1fd3a034000030100000005616c696365010000000b63657274696669\
     636174650100000004726f6f74000000047369676e62c66a7a5dd70c3146618063c344e531e6d4b59e379808443ce962b3ab\
     d63c5a0100000000000000070101000000017200000007616c6c6f77656400000007616c6c6f776564000000000000000100\
     000001780000000000000000000000000000000000000000000000000000000000000000";

const SOON: Validity = Validity { from: NOW, until: UnixTime(NOW.0 + MINUTE) };

#[test]
fn signed_requests() {
    let ask = Ask { label: label(b"label"), parameters: b"seed", slot: Some(7), ..sign(b"m") };
    let signed = SignedRequest::sign(RequestTerms::of(&ask, SOON, [9; 16]).unwrap(), &key(3));
    assert_eq!(hex::encode(signed.encode()), REQUEST);
    assert_eq!(signed.id().to_string(), REQUEST_ID);
    let read = SignedRequest::decode(&hex::decode(REQUEST).unwrap()).unwrap();
    assert_eq!(read.verify(&ask, NOW), Ok(()));
}

#[test]
fn approvals() {
    let approval = Approval::sign(ApprovalTerms::of(&sign(b"m"), SOON).unwrap(), &key(3));
    assert_eq!(hex::encode(approval.encode()), APPROVAL);
    assert_eq!(Approval::decode(&hex::decode(APPROVAL).unwrap()), Ok(approval));
}

#[test]
fn audit_records_and_their_chain() {
    let record = AuditRecord {
        time: NOW,
        node: 3,
        client: Some("alice".to_owned()),
        recognised_by: Some("certificate".to_owned()),
        key: Some("root".to_owned()),
        operation: "sign".to_owned(),
        statement: Digest::of(b"m"),
        slot: Some(7),
        allowed: true,
        rule: Some("r".to_owned()),
        reason: "allowed".to_owned(),
        detail: "allowed".to_owned(),
        approvers: vec!["x".to_owned()],
        policy: Digest([0; 32]),
    };
    let bytes = hex::decode(RECORD).unwrap();
    assert_eq!(record.encode(), bytes);
    assert_eq!(AuditRecord::decode(&bytes).as_ref(), Ok(&record));

    let before = Checkpoint { count: 258, head: Digest([5; 32]) };
    let mut head = before;
    let entry = append(&mut head, record);
    assert_eq!(verify([&entry], before, None), Ok(head));
    assert_eq!(head, Checkpoint { count: 259, head: entry.hash });
}
