//! A slot never goes to two messages.

use std::{collections::HashMap, sync::Arc, thread};

use proptest::prelude::*;
use theta_names::{Operation, SlotOrder};
use theta_policy::{
    Decision, MemorySlots, Reason, SlotDecision, SlotScope, SlotStanding, SlotState, SlotStateError, State,
};
use theta_statements::{Ask, Digest};

use crate::support::{NOW, alice, allow, policy, rule, sign, state};

fn with_signing(more: &str) -> theta_policy::Policy {
    let rules = allow("a", "alice", "*", "sign", "") + &allow("b", "*", "*", "*", "");
    policy(&format!("{rules}[[signing]]\nname = \"heights\"\nkeys = [\"root\"]\n{more}\n"))
}

fn at(slot: u64, message: &[u8]) -> Ask<'_> {
    Ask { slot: Some(slot), ..sign(message) }
}

/// Whether this node gives the slot to the message.
fn taken(decision: &Decision) -> bool {
    assert!(decision.allowed && decision.slots.len() == 1);
    decision.slots[0].standing == SlotStanding::Taken
}

fn heights() -> theta_statements::Name {
    "heights".parse().unwrap()
}

/// Which slots an ask takes, where the hosts' order says who is first, by the digest that the slot is then given to.
#[test]
fn races_are_for_the_slots_of_rules_that_want_an_order() {
    let ordered = with_signing("slot = \"claimed\"\nrace = \"ordered\"\nlast = 9");
    let (state, digest) = (state(), |message| ordered.races(&at(5, message))[0].digest);
    let [race] = &ordered.races(&at(5, b"m"))[..] else { panic!("one rule covers it") };
    assert_eq!((race.key.as_str(), race.rule.as_str(), race.slot), ("root", "heights", 5));
    assert_ne!(digest(b"m"), digest(b"n"));
    let decision = ordered.decide(&alice(&ordered).asks(at(5, b"m")), NOW, &state);
    assert_eq!(decision.slots[0].digest, digest(b"m"), "the same digest as the promise");
    for ask in [sign(b"m"), at(10, b"m"), Ask { key: Some("leaf"), ..at(5, b"m") }] {
        assert!(ordered.races(&ask).is_empty(), "{ask:?}");
    }
    assert!(ordered.may_race(Some("root"), Operation::Sign) && !ordered.may_race(Some("leaf"), Operation::Sign));
    assert!(!ordered.may_race(Some("root"), Operation::FlipCoin));
    for without in ["slot = \"claimed\"", "slot = \"claimed\"\nrace = \"void\""] {
        let without = with_signing(without);
        assert!(without.races(&at(5, b"m")).is_empty() && !without.may_race(Some("root"), Operation::Sign));
    }
}

#[test]
fn one_message_a_slot_by_whichever_rule_and_client() {
    let (policy, state) = (with_signing("slot = \"claimed\""), state());
    let asks = |number, ask| {
        let caller = policy.caller_by_certificate(crate::support::fingerprint(number)).unwrap();
        policy.decide(&caller.asks(ask), NOW, &state)
    };
    assert!(asks(1, at(5, b"m")).allowed && asks(1, at(5, b"m")).allowed && asks(2, at(5, b"m")).allowed);
    assert_eq!(asks(1, at(5, b"n")).reason, Reason::SlotContested { signing: heights(), slot: 5 });
    let other = asks(2, at(5, b"n"));
    assert_eq!(other.reason.code(), "slot-contested", "bob has another allow rule and the same slots");
    assert!(asks(1, at(4, b"n")).allowed, "any order");
    assert!(asks(1, Ask { key: Some("leaf"), ..at(5, b"n") }).allowed, "another key");
    assert!(asks(2, Ask { operation: Operation::FlipCoin, ..at(5, b"n") }).allowed, "not an operation of the rule");
    assert_eq!(asks(1, sign(b"m")).reason, Reason::SlotMissing { signing: heights() });
}

#[test]
fn upwards_only_ends_lower_slots() {
    let (policy, state) = (with_signing("slot = \"claimed\"\norder = \"increasing\""), state());
    let asks = |ask| policy.decide(&alice(&policy).asks(ask), NOW, &state).reason;
    assert_eq!((asks(at(5, b"m")), asks(at(5, b"m"))), (Reason::Allowed, Reason::Allowed));
    assert_eq!(asks(at(4, b"m")), Reason::SlotOver { signing: heights(), slot: 4, mark: 4 });
    assert_eq!(asks(at(9, b"m")), Reason::Allowed);
    assert_eq!(asks(at(5, b"m")).code(), "slot-over", "even the same message");
    assert_eq!(asks(at(9, b"n")).code(), "slot-contested");
    assert_eq!(asks(at(0, b"n")).code(), "slot-over");
}

#[test]
fn serials_have_a_window() {
    let policy = with_signing("slot = \"claimed\"\nfirst = 10\nlast = 12");
    let asks = |slot| policy.decide(&alice(&policy).asks(at(slot, b"m")), NOW, &state()).reason;
    assert_eq!((asks(10), asks(12)), (Reason::Allowed, Reason::Allowed));
    for slot in [0, 9, 13, u64::MAX] {
        assert_eq!(asks(slot), Reason::SlotOutside { signing: heights(), slot, first: 10, last: 12 });
    }
}

#[test]
fn slots_are_read_from_the_message() {
    let prefix = with_signing("slot = \"message-prefix\"");
    let asks = |policy: &theta_policy::Policy, ask| policy.decide(&alice(policy).asks(ask), NOW, &state()).reason;
    assert_eq!(asks(&prefix, sign(b"\0\0\0\0\0\0\0\x05vote")), Reason::Allowed);
    assert_eq!(asks(&prefix, at(5, b"\0\0\0\0\0\0\0\x05vote")), Reason::Allowed);
    assert_eq!(asks(&prefix, at(6, b"\0\0\0\0\0\0\0\x05vote")), Reason::SlotDiffers { signing: heights() });
    assert_eq!(asks(&prefix, at(6, b"short")), Reason::SlotUnreadable { signing: heights() });

    let beacon = with_signing("slot = \"message-sha256\"");
    let round = Digest::of(&7_u64.to_be_bytes()).0;
    assert_eq!(asks(&beacon, at(7, &round)), Reason::Allowed);
    assert_eq!(asks(&beacon, at(8, &round)), Reason::SlotDiffers { signing: heights() });
    assert_eq!(asks(&beacon, sign(&round)), Reason::SlotMissing { signing: heights() });
}

/// What holds for messages holds for their digests: nothing is got around by hashing first.
#[test]
fn a_digest_passes_no_rule_that_its_message_does_not() {
    let digest = |ask| Ask { operation: Operation::SignDigest, ..ask };
    let with = |signing: &str| {
        policy(
            &(allow("digests", "*", "*", "sign-digest", "")
                + "[[signing]]\nname = \"heights\"\nkeys = [\"root\"]\n"
                + signing),
        )
    };
    for source in ["message-prefix", "message-sha256"] {
        let policy = with(&format!("slot = \"{source}\"\n"));
        let asked = digest(at(5, b"\0\0\0\0\0\0\0\x05vote"));
        let reason = policy.decide(&alice(&policy).asks(asked), NOW, &state()).reason;
        assert_eq!(reason, Reason::SlotUnreadable { signing: heights() });
    }
    let (policy_of_claims, state) = (with("slot = \"claimed\"\n"), state());
    let asks = |ask| policy_of_claims.decide(&alice(&policy_of_claims).asks(ask), NOW, &state).reason.code();
    assert_eq!(asks(digest(at(5, b"m"))), "allowed");
    assert_eq!(asks(digest(at(5, b"n"))), "slot-contested");
    // It has to be allowed by its name, and is refused with the messages.
    for (rules, reason) in [
        (allow("all", "*", "*", "*", ""), "no-rule"),
        (allow("messages", "*", "*", "sign", ""), "no-rule"),
        (allow("digests", "*", "*", "sign-digest", ""), "allowed"),
        (rule("deny", "no", "*", "*", "sign", "") + &allow("digests", "*", "*", "sign-digest", ""), "denied"),
        (allow("few", "*", "*", "sign", "rate = \"1/h\"") + &allow("digests", "*", "*", "sign-digest", ""), "no-rule"),
        (
            allow("few", "*", "*", "sign", "rate = \"1/h\"") + &allow("both", "*", "*", "sign\", \"sign-digest", ""),
            "no-rule",
        ),
        (
            allow("few", "*", "other", "sign", "rate = \"1/h\"") + &allow("digests", "*", "*", "sign-digest", ""),
            "allowed",
        ),
        (allow("digests", "*", "*", "sign-digest", "") + &allow("few", "*", "*", "sign", "rate = \"1/h\""), "allowed"),
        (rule("deny", "no", "*", "*", "*", "") + &allow("digests", "*", "*", "sign-digest", ""), "denied"),
    ] {
        let policy = policy(&rules);
        let decided = policy.decide(&alice(&policy).asks(digest(sign(b"m"))), NOW, &crate::support::state());
        assert_eq!(decided.reason.code(), reason, "{rules}");
    }
}

#[test]
fn a_message_and_a_coin_of_the_same_bytes_are_two() {
    let (policy, state) = (with_signing("slot = \"claimed\"\noperations = [\"sign\", \"flip-coin\"]"), state());
    let asks = |ask| policy.decide(&alice(&policy).asks(ask), NOW, &state).reason.code();
    assert_eq!(asks(at(5, b"m")), "allowed");
    assert_eq!(asks(Ask { operation: Operation::FlipCoin, ..at(5, b"m") }), "slot-contested");
}

#[test]
fn refusals_take_no_slot() {
    let rules = rule("deny", "no", "bob", "*", "*", "")
        + &allow("a", "*", "*", "sign", "approvals = { of = [\"x\"], need = 1 }")
        + "[[signing]]\nname = \"heights\"\nkeys = [\"root\"]\nslot = \"claimed\"\n";
    let (policy, state) = (policy(&rules), state());
    for number in [1, 2] {
        let caller = policy.caller_by_certificate(crate::support::fingerprint(number)).unwrap();
        assert!(!policy.decide(&caller.asks(at(5, b"m")), NOW, &state).allowed);
    }
    let scope = SlotScope { key: "root", rule: "heights" };
    let free = state.slots().decide(scope, 5, Digest::of(b"other"), SlotOrder::Any);
    assert_eq!(free, Ok(SlotDecision::Allowed));
}

#[test]
fn a_state_that_fails_is_a_refusal() {
    struct Broken;
    impl SlotState for Broken {
        fn decide(&self, _: SlotScope<'_>, _: u64, _: Digest, _: SlotOrder) -> Result<SlotDecision, SlotStateError> {
            Err(SlotStateError("the disk is full".to_owned()))
        }

        fn decided(&self, _: SlotScope<'_>, _: u64) -> Result<Option<Digest>, SlotStateError> {
            Err(SlotStateError("the disk is full".to_owned()))
        }
    }
    let policy = with_signing("slot = \"claimed\"");
    let decision = policy.decide(&alice(&policy).asks(at(5, b"m")), NOW, &State::new(Broken));
    assert!(!decision.allowed && matches!(decision.reason, Reason::SlotsUnavailable { .. }), "{:?}", decision.reason);
    assert_eq!(decision.reason.to_string(), "signing rule heights cannot be checked: the disk is full");
}

#[test]
fn threads_that_race_for_a_slot_get_one_message() {
    let (policy, state) = (Arc::new(with_signing("slot = \"claimed\"")), Arc::new(state()));
    let threads: Vec<_> = (0..8_u8)
        .map(|thread| {
            let (policy, state) = (Arc::clone(&policy), Arc::clone(&state));
            thread::spawn(move || {
                let message = [thread % 4];
                let taken = |slot| taken(&policy.decide(&alice(&policy).asks(at(slot, &message)), NOW, &state));
                (0..50).filter(|slot| taken(*slot)).map(|slot| (slot, message)).collect::<Vec<_>>()
            })
        })
        .collect();
    let mut signed = HashMap::new();
    for (slot, message) in threads.into_iter().flat_map(|thread| thread.join().unwrap()) {
        assert_eq!(*signed.entry(slot).or_insert(message), message, "slot {slot}");
    }
    assert_eq!(signed.len(), 50);
}

proptest! {
    /// No order, repetition or restart gives a slot to two messages; with increasing slots, no lower slot is given later.
    #[test]
    fn never_two_messages_for_a_slot(
        increasing in any::<bool>(),
        steps in proptest::collection::vec((0_u64..6, 0_u8..3, 0_u8..10), 0..60),
    ) {
        let order = if increasing { "increasing" } else { "any" };
        let policy = with_signing(&format!("slot = \"claimed\"\norder = \"{order}\""));
        let mut state = state();
        let mut signed: HashMap<u64, u8> = HashMap::new();
        let mut highest = 0;
        for (slot, message, chance) in steps {
            if chance == 0 {
                state = State::new(MemorySlots::clone(state.slots()));
            }
            if taken(&policy.decide(&alice(&policy).asks(at(slot, &[message])), NOW, &state)) {
                prop_assert_eq!(*signed.entry(slot).or_insert(message), message);
                prop_assert!(!increasing || slot >= highest);
                highest = highest.max(slot);
            } else {
                prop_assert!(signed.get(&slot).is_some_and(|other| *other != message) || (increasing && slot < highest));
            }
        }
    }
}
