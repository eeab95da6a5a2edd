//! Which rule decides, and every reason for which a rule does not match.

use proptest::prelude::*;
use theta_names::{Label, Operation};
use theta_policy::{Answer, Effect, Policy, Reason, Unidentified};
use theta_statements::{Ask, Invalid, Token, UnixTime, Validity};

use crate::support::{NOW, alice, allow, ask_once, fingerprint, label, people, policy, rule, sign, state};

#[test]
fn nothing_is_allowed_by_default() {
    let empty = policy("");
    let decision = ask_once(&empty, sign(b"m"));
    assert_eq!((decision.allowed, decision.rule, decision.reason), (false, None, Reason::NoRule));
}

#[test]
fn a_rule_is_about_its_clients_keys_operations_and_labels_alone() {
    let policy = policy(&allow("r", "alice", "mail-*", "decapsulate", "labels = [\"in/\", \"out/\"]"));
    let good = Ask { key: Some("mail-1"), label: label(b"in/1"), ..Ask::new("demo", Operation::Decapsulate) };
    let decision = ask_once(&policy, good);
    assert_eq!((decision.allowed, decision.rule.unwrap().as_str()), (true, "r"));
    assert!(ask_once(&policy, Ask { label: label(b"out/"), ..good }).allowed);
    for other in [
        Ask { key: Some("root"), ..good },
        Ask { key: None, ..good },
        Ask { operation: Operation::Sign, ..good },
        Ask { label: Label::EMPTY, ..good },
        Ask { label: label(b"in"), ..good },
        Ask { label: label(b"\xff\xfe"), ..good },
    ] {
        assert_eq!(ask_once(&policy, other).reason, Reason::NoRule, "{other:?}");
    }
    let bob = policy.caller_by_certificate(fingerprint(2)).unwrap();
    assert_eq!(policy.decide(&bob.asks(good), NOW, &state()).reason, Reason::NoRule);
}

#[test]
fn deny_beats_every_allow_wherever_it_stands() {
    for order in [true, false] {
        let (yes, no) = (allow("yes", "*", "*", "*", ""), rule("deny", "no", "alice", "root", "sign", ""));
        let policy = policy(&if order { yes + &no } else { no + &yes });
        let decision = ask_once(&policy, sign(b"m"));
        assert_eq!((decision.reason, decision.rule.unwrap().as_str()), (Reason::Denied, "no"));
        assert!(ask_once(&policy, Ask { operation: Operation::FlipCoin, ..sign(b"m") }).allowed);
    }
}

#[test]
fn the_first_allow_decides_and_nothing_falls_through() {
    let strict = allow("strict", "alice", "root", "sign", "approvals = { of = [\"x\"], need = 1 }");
    let policy = policy(&(strict + &allow("lax", "*", "*", "*", "")));
    let decision = ask_once(&policy, sign(b"m"));
    assert_eq!(decision.rule.unwrap().as_str(), "strict");
    assert!(matches!(decision.reason, Reason::TooFewApprovals { need: 1, .. }));
}

#[test]
fn what_answers_are_checked_by_is_read_by_all_who_may_do_anything() {
    let strict = "approvals = { of = [\"x\"], need = 1 }\nrate = \"1/day\"\nlabels = [\"a\"]";
    let rules =
        policy(&(allow("signs", "alice", "root", "sign", strict) + &allow("draws", "bob", "coin", "flip-coin", "")));
    let public = |policy: &Policy, key| {
        let ask = Ask { key, ..Ask::new("demo", Operation::KeysList) };
        policy.decide_public(&alice(policy).asks(ask), NOW, &state())
    };
    // The key that the client uses and the ledger, without the conditions under which it uses the key; neither other keys nor lists.
    for key in [Some("root"), None] {
        let decision = public(&rules, key);
        assert_eq!((decision.allowed, decision.rule.unwrap().as_str()), (true, "signs"), "{key:?}");
        assert!(decision.slots.is_empty() && decision.approvers.is_empty());
        assert_eq!(ask_once(&rules, Ask { key, ..Ask::new("demo", Operation::KeysList) }).reason, Reason::NoRule);
    }
    assert_eq!(public(&rules, Some("coin")).reason, Reason::NoRule);
    // A rule about it goes before, with its conditions.
    let deny = rule("deny", "secret", "*", "*", "keys.list", "");
    let denied = policy(&(allow("signs", "alice", "root", "sign", "") + &deny));
    assert_eq!((public(&denied, None).reason, public(&denied, Some("root")).reason), (Reason::Denied, Reason::Denied));
    let approved = policy(&allow("lists", "alice", "*", "keys.list", "approvals = { of = [\"x\"], need = 1 }"));
    assert!(matches!(public(&approved, None).reason, Reason::TooFewApprovals { .. }));
    // Neither a client without rules, nor one whose rule is over.
    let of_bob = policy(&allow("draws", "bob", "*", "*", ""));
    assert_eq!(public(&of_bob, None).reason, Reason::NoRule);
    let over = policy(&allow("signs", "alice", "root", "sign", "until = 2026-11-21T08:30:00Z"));
    assert_eq!(public(&over, Some("root")).reason, Reason::NoRule);
}

#[test]
fn a_rule_out_of_force_is_absent_and_named() {
    let window = "from = 2026-11-21T08:30:00Z\nuntil = 2026-11-21T08:31:00Z";
    let alone = policy(&allow("r", "alice", "root", "sign", window));
    let at = |millis| alone.decide(&alice(&alone).asks(sign(b"m")), UnixTime(millis), &state());
    assert!(at(NOW.0).allowed && at(NOW.0 + 59_999).allowed);
    assert_eq!(at(NOW.0 - 1).reason, Reason::NotInForce(Invalid::NotYet(NOW)));
    let end = UnixTime(NOW.0 + 60_000);
    let late = at(end.0);
    assert_eq!((late.reason, late.rule.unwrap().as_str()), (Reason::NotInForce(Invalid::Expired(end)), "r"));

    let followed = policy(&(allow("r", "alice", "root", "sign", window) + &allow("next", "alice", "root", "sign", "")));
    let decision = followed.decide(&alice(&followed).asks(sign(b"m")), end, &state());
    assert_eq!((decision.allowed, decision.rule.unwrap().as_str()), (true, "next"));

    let deny = policy(&(rule("deny", "closed", "*", "*", "*", window) + &allow("open", "*", "*", "*", "")));
    assert_eq!(ask_once(&deny, sign(b"m")).reason, Reason::Denied);
    assert!(deny.decide(&alice(&deny).asks(sign(b"m")), end, &state()).allowed);
}

#[test]
fn what_names_no_key_needs_a_rule_for_all_keys() {
    let ask = Ask::new("demo", Operation::Status);
    assert!(ask_once(&policy(&allow("r", "alice", "*", "status", "")), ask).allowed);
    assert!(!ask_once(&policy(&allow("r", "alice", "s*", "status", "")), ask).allowed);
}

#[test]
fn strangers_and_withdrawn_credentials_get_nothing() {
    let open = allow("r", "*", "*", "*", "");
    let before = policy(&open);
    assert!(matches!(before.caller_by_certificate(fingerprint(9)), Err(Unidentified::Certificate(_))));
    let token: Token = "theta-token2-AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8".parse().unwrap();
    let hour = Validity { from: NOW, until: NOW.plus(3_600_000) };
    let proven = token.prove(&[1; 32], hour).verify(&[1; 32], NOW).unwrap();
    assert_eq!(before.caller_by_token(&proven), Err(Unidentified::Token(token.key())));
    assert!(!before.has_token(token.key()));
    let text =
        people().replace("name = \"bob\"\n", &format!("name = \"bob\"\ntokens = [\"{}\"]\n", token.key())) + &open;
    let after =
        theta_policy::Policy::parse(&text.replace(&format!("{:064x}", 1), &format!("{:064x}", 7)), "p").unwrap();
    assert_eq!(after.caller_by_token(&proven).unwrap().client().as_str(), "bob");
    assert!(after.has_token(token.key()));

    let alice = alice(&before);
    assert!(before.decide(&alice.asks(sign(b"m")), NOW, &state()).allowed);
    assert_eq!(after.decide(&alice.asks(sign(b"m")), NOW, &state()).reason, Reason::CredentialWithdrawn);
}

#[test]
fn explanations_name_every_rule() {
    let tables = allow("other", "bob", "*", "*", "")
        + &allow("strict", "alice", "root", "sign", "rate = \"5/min\"\napprovals = { of = [\"x\", \"y\"], need = 2 }")
        + &allow("late", "alice", "*", "sign", "until = 2020-01-01T00:00:00Z")
        + &allow("wide", "*", "*", "*", "")
        + "[[signing]]\nname = \"heights\"\nkeys = [\"root\"]\nslot = \"claimed\"\n";
    let policy = policy(&tables);
    let explained = policy.explain("alice", &sign(b"m"), NOW);
    assert_eq!((explained.answer, explained.rule.as_ref().unwrap().as_str()), (Answer::Deny, "strict"));
    let text = explained.to_string();
    for part in [
        "REFUSED: 2 approvals of x, y: has 0: nobody (rule strict)",
        "?   at most 5/min, burst 5",
        "no  signing rule heights: one message for a slot from 0 to 18446744073709551615 (claimed): signing rule heights needs",
        "allow other (line 20): it is not about client alice",
        "-> allow strict (line 27): it is about this request and decides",
        "allow late (line 35): it was valid until 2020-01-01T00:00:00Z",
        "allow wide (line 42): it is about this request, but rule strict comes first",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let json = serde_json::to_value(&explained).unwrap();
    assert_eq!((&json["answer"], &json["rules"][3]["matches"]), (&"deny".into(), &true.into()));
    assert_eq!(json["rules"][0]["effect"], "allow");
    let stranger = policy.explain("mallory", &sign(b"m"), NOW);
    assert_eq!((stranger.answer, stranger.reason.as_str()), (Answer::Deny, "the policy has no client \"mallory\""));
    let vote = Ask { slot: Some(1), ..sign(b"m") };
    assert_eq!(policy.explain("bob", &vote, NOW).answer, Answer::Depends);
    let coin = Ask { operation: Operation::FlipCoin, ..sign(b"m") };
    assert_eq!(policy.explain("alice", &coin, NOW).answer, Answer::Allow);
}

#[test]
fn public_parts_are_explained_as_the_gate_decides() {
    let strict = "approvals = { of = [\"x\"], need = 1 }\nrate = \"1/day\"\nlabels = [\"a\"]";
    let tables = rule("deny", "no", "*", "secret", "keys.list", "")
        + &allow("strict", "alice", "root", "sign", strict)
        + &allow("lists", "bob", "root", "keys.list", "rate = \"1/day\"")
        + &allow("late", "alice", "late", "keys.list", "until = 2020-01-01T00:00:00Z");
    let policy = policy(&tables);
    let state = state();
    let caller = alice(&policy);
    for key in [None, Some("root"), Some("secret"), Some("other"), Some("late")] {
        let ask = Ask { key, ..Ask::new("demo", Operation::KeysList) };
        let explained = policy.explain("alice", &ask, NOW);
        let decision = if key.is_some() {
            policy.decide_public(&caller.asks(ask), NOW, &state)
        } else {
            policy.decide(&caller.asks(ask), NOW, &state)
        };
        assert_eq!((explained.answer == Answer::Allow, &explained.rule), (decision.allowed, &decision.rule), "{key:?}");
    }
    let text =
        |client, key| policy.explain(client, &Ask { key, ..Ask::new("demo", Operation::KeysList) }, NOW).to_string();
    let root = text("alice", Some("root"));
    assert!(root.starts_with("ALLOWED: allowed without conditions, to read the key's public part"), "{root}");
    assert!(root.contains("-> allow strict") && root.contains("not about keys.list, but it lets the client"), "{root}");
    let ledger = text("alice", None);
    assert!(ledger.starts_with("REFUSED: no rule allows it; but the group's ledger"), "{ledger}");
    assert!(ledger.contains("as rule strict lets the client"), "{ledger}");
    assert!(text("bob", Some("root")).starts_with("DEPENDS"), "a rule that is about it decides, with its conditions");
    assert!(text("mallory", Some("root")).starts_with("REFUSED: the policy has no client"));
    let sign = policy.explain("alice", &Ask { key: Some("other"), ..sign(b"m") }, NOW).to_string();
    assert!(sign.starts_with("REFUSED: no rule allows it\n"), "only public parts: {sign}");
}

/// The semantics once more, in the fewest words: `(effect, client is alice, key is root, valid now)`.
fn oracle(rules: &[(bool, bool, bool, bool)]) -> Option<(usize, Effect)> {
    let about = |&(_, client, key, valid): &(bool, bool, bool, bool)| client && key && valid;
    let first = |wanted| rules.iter().position(|rule| rule.0 == wanted && about(rule));
    first(false).map(|at| (at, Effect::Deny)).or_else(|| first(true).map(|at| (at, Effect::Allow)))
}

proptest! {
    #[test]
    fn decisions_and_explanations_agree_with_the_semantics(
        rules in proptest::collection::vec(any::<(bool, bool, bool, bool)>(), 0..7),
    ) {
        let tables: String = rules.iter().enumerate().map(|(at, &(allows, client, key, valid))| rule(
            if allows { "allow" } else { "deny" },
            &format!("r{at}"),
            if client { "alice" } else { "bob" },
            if key { "ro*" } else { "leaf" },
            "sign",
            if valid { "until = 2030-01-01T00:00:00Z" } else { "until = 2020-01-01T00:00:00Z" },
        )).collect();
        let policy = policy(&tables);
        let decision = ask_once(&policy, sign(b"m"));
        let explained = policy.explain("alice", &sign(b"m"), NOW);
        prop_assert_eq!(decision.allowed, explained.answer == Answer::Allow);
        prop_assert_eq!(&decision.rule, &explained.rule);
        match oracle(&rules) {
            Some((at, effect)) => {
                prop_assert_eq!(decision.allowed, effect == Effect::Allow);
                prop_assert_eq!(decision.rule.unwrap().to_string(), format!("r{at}"));
            }
            None => prop_assert!(!decision.allowed),
        }
    }
}

#[test]
fn what_was_allowed_before_needs_a_rule_and_takes_nothing() {
    let limited =
        policy(&allow("r", "alice", "root", "sign", "rate = \"1/day\"\napprovals = { of = [\"x\"], need = 1 }"));
    let state = state();
    let request = alice(&limited).asks(sign(b"m"));
    for _ in 0..3 {
        let decision = limited.still_allows(&request, NOW);
        assert_eq!((decision.allowed, decision.rule.unwrap().as_str()), (true, "r"));
    }
    assert!(
        matches!(limited.decide(&request, NOW, &state).reason, Reason::TooFewApprovals { .. }),
        "the rate is untouched"
    );
    assert_eq!(
        limited.still_allows(&alice(&limited).asks(Ask { key: Some("x"), ..sign(b"m") }), NOW).reason,
        Reason::NoRule
    );
    let without_alice = Policy::parse("format = 1", "policy.toml").unwrap();
    assert_eq!(without_alice.still_allows(&request, NOW).reason, Reason::CredentialWithdrawn);
}

#[test]
fn a_policy_knows_what_kinds_of_clients_and_slots_it_has() {
    let plain = policy("[[signing]]\nname = \"s\"\nkeys = [\"chain\"]\nslot = \"claimed\"\n");
    assert_eq!((plain.is_empty(), plain.has_tokens()), (false, false));
    assert!(plain.takes_slot(Some("chain"), Operation::Sign));
    assert!(!plain.takes_slot(Some("root"), Operation::Sign) && !plain.takes_slot(Some("chain"), Operation::FlipCoin));
    assert!(Policy::parse("format = 1", "policy.toml").unwrap().is_empty());
    let token: Token = "theta-token2-AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8".parse().unwrap();
    let token = format!("format = 1\n[[client]]\nname = \"t\"\ntokens = [\"{}\"]\n", token.key());
    assert!(Policy::parse(&token, "policy.toml").unwrap().has_tokens());
}
