//! A new file replaces the old one, or leaves it in force.

use theta_policy::{MemorySlots, PolicyHandle, Reason};
use theta_statements::Ask;

use crate::support::{NOW, alice, allow, people, policy, rule, sign};

const SIGNING: &str = "[[signing]]\nname = \"heights\"\nkeys = [\"root\"]\nslot = \"claimed\"\n";

#[test]
fn a_bad_file_changes_nothing_and_says_why() {
    let handle = PolicyHandle::new(policy(&allow("r", "alice", "root", "sign", "")), MemorySlots::default());
    let before = handle.current().digest();
    let error = handle.reload("format = 1\n[[rule]]\nnome = \"x\"\n", "/etc/theta/policy.toml").unwrap_err();
    assert!(error.to_string().starts_with("/etc/theta/policy.toml:3: unknown field `nome`"), "{error}");
    assert_eq!(handle.current().digest(), before);
    assert!(handle.decide(&alice(&handle.current()).asks(sign(b"m")), NOW).allowed);
}

#[test]
fn a_good_file_is_in_force_at_once() {
    let open = allow("r", "alice", "root", "sign", "");
    let handle = PolicyHandle::new(policy(&open), MemorySlots::default());
    let alice = alice(&handle.current());
    let same = handle.reload(&(people() + &open), "p").unwrap();
    assert!(!same.changed && same.rules_gone.is_empty());
    let reload = handle.reload(&(people() + &rule("deny", "no", "alice", "root", "sign", "")), "p").unwrap();
    assert!(reload.changed);
    assert_eq!(reload.rules_gone, ["r".parse().unwrap()]);
    assert_eq!(handle.decide(&alice.asks(sign(b"m")), NOW).reason, Reason::Denied);
    handle.reload("format = 1", "p").unwrap();
    assert_eq!(handle.decide(&alice.asks(sign(b"m")), NOW).reason, Reason::CredentialWithdrawn);
}

#[test]
fn slots_outlive_the_rules_that_count_them() {
    let open = people() + &allow("r", "alice", "root", "sign", "");
    let handle =
        PolicyHandle::new(policy(&(allow("r", "alice", "root", "sign", "") + SIGNING)), MemorySlots::default());
    let alice = alice(&handle.current());
    let ask = |message| handle.decide(&alice.asks(Ask { slot: Some(1), ..sign(message) }), NOW).reason;
    assert_eq!(ask(b"m"), Reason::Allowed);
    assert_eq!(handle.reload(&open, "p").unwrap().signing_rules_gone, ["heights".parse().unwrap()]);
    assert_eq!(handle.reload(&(open + SIGNING), "p").unwrap().signing_rules_gone, []);
    assert_eq!(ask(b"n").code(), "slot-contested");
}
