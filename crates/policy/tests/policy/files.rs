//! Policy files: each mistake, with its line and its error.

use proptest::prelude::*;
use theta_policy::{Limits, MOST_FILE, Policy, PolicyProblem, Rate};

use crate::support::{key, people};

const RULE: &str =
    "[[rule]]\nname = \"r\"\neffect = \"allow\"\nclients = [\"alice\"]\nkeys = [\"k\"]\noperations = [\"sign\"]\n";
const SIGNING: &str = "[[signing]]\nname = \"s\"\nkeys = [\"k\"]\nslot = \"claimed\"\n";

fn error(text: &str) -> String {
    Policy::parse(text, "p").unwrap_err().to_string()
}

/// The error for a correct file in which one text was replaced.
fn error_with(from: &str, to: &str) -> String {
    let good = people() + RULE + SIGNING;
    Policy::parse(&good, "p").unwrap();
    assert!(good.contains(from), "{from}");
    error(&good.replacen(from, to, 1))
}

#[test]
fn every_mistake_in_clients_and_approvers_is_explained() {
    let carol = key(3).verifying_key().to_string();
    for (from, to, expected) in [
        ("format = 1", "format = 2", "p:1: format = 2 is not known here; this program reads format = 1"),
        ("format = 1", "", "missing field `format`"),
        ("format = 1", "format = 1\nextra = 1", "p:2: unknown field `extra`"),
        ("name = \"bob\"", "name = \"alice\"", "p:6: two clients are named \"alice\"; give each a name of its own"),
        ("name = \"bob\"", "name = \"b b\"", "p:6: \"b b\" is not a name; use 1 to 64"),
        ("name = \"y\"", "name = \"x\"", "two approvers are named \"x\""),
        (&format!("[\"{:064x}\"]", 2), "[]", "p:7: certificates = [] is empty"),
        (&format!("certificates = [\"{:064x}\"]", 2), "", "p:6: client \"bob\" has nothing to recognise it by"),
        (&format!("{:064x}", 2), "00", "p:7: \"00\" is not a certificate fingerprint"),
        (&format!("{:064x}", 2), &format!("{:064x}", 1), "0001 appears twice; every client"),
        (&format!("[\"{:064x}\"]", 2), &format!("[\"{0:064x}\", \"{0:064x}\"]", 2), "stands twice in certificates"),
        (&carol, "ed25519:00", "is not an Ed25519 public key"),
        (&carol, &key(11).verifying_key().to_string(), "appears twice; every client and approver must have its own"),
        ("signing_keys = [\"ed", "tokens = [\"md", "p:10: this is not the key of a token; write ed25519: and"),
        ("signing_keys = [\"ed25519", "tokens = [\"sha255", "this is not the key of a token"),
    ] {
        let said = error_with(from, to);
        assert!(said.contains(expected), "{said}\n{expected}");
    }
}

#[test]
fn a_token_has_a_key_of_its_own() {
    let token = key(11).verifying_key().to_string();
    let said = error_with(&format!("{:064x}\"]", 2), &format!("{:064x}\"]\ntokens = [\"{token}\"]", 2));
    assert!(said.contains("appears twice"), "whoever asks must not approve: {said}");
    let carol = key(3).verifying_key().to_string();
    let said = error_with(&format!("{:064x}\"]", 2), &format!("{:064x}\"]\ntokens = [\"{carol}\"]", 2));
    assert!(said.contains("appears twice"), "{said}");
}

#[test]
fn hashes_of_tokens_recognise_nobody_and_are_told() {
    let text = |entry: &str| format!("format = 1\n[[client]]\nname = \"old\"\ntokens = [\"{entry}\"]\n");
    let policy = theta_policy::Policy::parse(&text(&format!("sha256:{}", "ab".repeat(32))), "p").unwrap();
    assert!(!policy.has_tokens() && policy.is_empty());
    let told = policy.outdated_tokens().unwrap();
    assert!(told.contains("of old recognises nobody") && told.contains("theta token new"), "{told}");
    let now = theta_policy::Policy::parse(&text(&key(3).verifying_key().to_string()), "p").unwrap();
    assert_eq!(now.outdated_tokens(), None);
}

#[test]
fn tokens_in_the_file_are_noticed_and_never_repeated() {
    let token = "theta-token2-AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
    for place in [format!("tokens = [\"{token}\"]"), format!("tokens = \"{token}\""), format!("# {token}")] {
        let said = error(&format!("format = 1\n[[client]]\nname = \"a\"\n{place}\n"));
        assert!(said.starts_with("p:4: this is a token, not its key: take it out"), "{said}");
        assert!(!said.contains("AAECAw"), "{said}");
    }
}

#[test]
fn every_mistake_in_rules_is_explained() {
    let rule = |more: &str| format!("operations = [\"sign\"]\n{more}");
    for (from, to, expected) in [
        ("effect = \"allow\"", "effect = \"maybe\"", "effect = \"maybe\" is not known; write \"allow\" or \"deny\""),
        ("effect = \"allow\"\n", "", "missing field `effect`"),
        ("effect = \"allow\"", "effect = \"allow\"\nrecord = \"later\"", "record = \"later\" is neither \"first\""),
        ("effect = \"allow\"", "effect = \"deny\"\nrecord = \"soon\"", "a deny rule has no record"),
        (
            "clients = [\"alice\"]",
            "clients = [\"alicia\"]",
            "no [[client]] is named \"alicia\"; there are: alice, bob, carol",
        ),
        ("clients = [\"alice\"]", "clients = []", "clients = [] is empty and would mean nothing"),
        (
            "clients = [\"alice\"]",
            "clients = [\"alice\", \"*\"]",
            "\"*\" in clients means every client; write it alone",
        ),
        (
            "clients = [\"alice\"]",
            "clients = [\"alice\", \"alice\"]",
            "\"alice\" stands twice in clients; write it once",
        ),
        ("keys = [\"k\"]", "keys = [\"K*\"]", "\"K*\" is no key and no beginning of keys"),
        ("operations = [\"sign\"]", "operations = [\"singe\"]", "\"singe\" is not an operation; there are decrypt"),
        ("operations = [\"sign\"]", &rule("labels = [\"\"]"), "an empty label prefix means every label"),
        (
            "operations = [\"sign\"]",
            &rule("from = 2026-01-01T00:00:00"),
            "is not a point in time between 1970 and 9999",
        ),
        ("operations = [\"sign\"]", &rule("from = \"2026-01-01T00:00:00Z\""), "invalid type: string"),
        (
            "operations = [\"sign\"]",
            &rule("from = 2026-01-02T00:00:00Z\nuntil = 2026-01-01T00:00:00Z"),
            "from 2026-01-02T00:00:00Z to 2026-01-01T00:00:00Z is no time at all",
        ),
        ("operations = [\"sign\"]", &rule("rate = \"often\""), "\"often\" is not a rate; write a number"),
        ("operations = [\"sign\"]", &rule("burst = 5"), "burst needs a rate"),
        ("operations = [\"sign\"]", &rule("rate = \"1/s\"\nburst = 0"), "burst = 0 is not between 1 and 1000000"),
        (
            "operations = [\"sign\"]",
            &rule("approvals = { of = [\"x\"], need = 2 }"),
            "need = 2 of 1 approvers is not possible",
        ),
        (
            "operations = [\"sign\"]",
            &rule("approvals = { of = [\"x\"], need = 0 }"),
            "need = 0 of 1 approvers is not possible",
        ),
        ("operations = [\"sign\"]", &rule("approvals = { of = [], need = 1 }"), "of = [] is empty"),
        ("operations = [\"sign\"]", &rule("approvals = { of = [\"x\", \"x\"], need = 2 }"), "\"x\" stands twice in of"),
        (
            "operations = [\"sign\"]",
            &rule("approvals = { of = [\"w\"], need = 1 }"),
            "no [[approver]] is named \"w\"; there are: x, y, z",
        ),
        ("operations = [\"sign\"]", &rule("approval = 1"), "unknown field `approval`"),
        ("[[signing]]", &format!("{RULE}[[signing]]"), "two rules are named \"r\""),
    ] {
        let said = error_with(from, to);
        assert!(said.contains(expected) && said.starts_with("p:"), "{said}\n{expected}");
    }
    for (line, what) in
        [("rate = \"1/s\"", "rate"), ("burst = 1", "burst"), ("approvals = { of = [\"x\"], need = 1 }", "approvals")]
    {
        let text = people() + &RULE.replace("allow", "deny") + line;
        assert!(error(&text).contains(&format!("a deny rule has no {what}: it refuses")), "{}", error(&text));
    }
}

#[test]
fn every_mistake_in_signing_rules_is_explained() {
    for (from, to, expected) in [
        ("slot = \"claimed\"", "slot = \"guessed\"", "slot = \"guessed\" is not known; write \"claimed\", "),
        (
            "slot = \"claimed\"",
            "slot = \"claimed\"\norder = \"down\"",
            "order = \"down\" is not known; write \"any\" or",
        ),
        ("slot = \"claimed\"", "slot = \"claimed\"\nrace = \"won\"", "race = \"won\" is not known; write \"void\" or"),
        ("slot = \"claimed\"", "slot = \"claimed\"\nfirst = 9\nlast = 8", "first = 9 to last = 8 has no slots"),
        (
            "slot = \"claimed\"",
            "slot = \"claimed\"\nfirst = -1",
            "first = -1 to last = 9223372036854775807 has no slots",
        ),
        ("slot = \"claimed\"", "slot = \"claimed\"\noperations = [\"decrypt\"]", "signing rules are for \"sign\" and"),
        ("slot = \"claimed\"\n", "", "missing field `slot`"),
        ("name = \"s\"", "name = \"S\"", "\"S\" has upper-case letters"),
        ("[[signing]]", &format!("{SIGNING}[[signing]]"), "two signing rules are named \"s\""),
    ] {
        let said = error_with(from, to);
        assert!(said.contains(expected), "{said}\n{expected}");
    }
}

#[test]
fn sizes_are_bounded() {
    let problem = |text: &str| *Policy::parse(text, "p").unwrap_err().problem;
    let long = format!("format = 1\n#{}", " ".repeat(MOST_FILE));
    assert_eq!(problem(&long), PolicyProblem::TooLarge(long.len()));
    let many = people() + &"[[signing]]\nname = \"s\"\nkeys = [\"k\"]\nslot = \"claimed\"\n".repeat(5_000);
    assert_eq!(problem(&many), PolicyProblem::TooMany { what: "signing", got: 5_000 });
    let keys: Vec<_> = (0..1_025).map(|number| format!("\"k{number}\"")).collect();
    let long_list = people() + &RULE.replace("\"k\"", &keys.join(", "));
    assert_eq!(problem(&long_list), PolicyProblem::LongList { what: "keys", got: 1_025 });
}

#[test]
fn digests_tell_files_apart() {
    let digest = |text: &str| Policy::parse(text, "p").unwrap().digest();
    assert_eq!(digest(&people()), digest(&people()));
    assert_ne!(digest(&people()), digest(&(people() + RULE)));
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        let _ = Policy::parse(&text, "p");
    }

    /// A correct file with a piece cut out, doubled or overwritten is read or refused with a line that exists.
    #[test]
    fn no_damage_panics(from in 0_usize..1_200, len in 0_usize..40, junk in "[a-z0-9\\[\\]{}=\"\\n*./-]{0,12}") {
        let good: Vec<char> = (people() + RULE + SIGNING).chars().collect();
        let from = from.min(good.len());
        let to = (from + len).min(good.len());
        let text: String = good[..from].iter().copied().chain(junk.chars()).chain(good[to..].iter().copied()).collect();
        if let Err(error) = Policy::parse(&text, "p") {
            prop_assert!(error.line.is_none_or(|line| (1..=text.lines().count() + 1).contains(&line)), "{}", error);
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}

#[test]
fn limits_are_of_all_clients_or_of_one() {
    let alice = "alice".parse().unwrap();
    let bob = "bob".parse().unwrap();
    let plain = Policy::parse(&people(), "p").unwrap();
    assert_eq!(plain.limits_of(&alice), Limits::DEFAULT);
    let text = people()
        .replacen("format = 1", "format = 1\n[limits]\ninstances = 100\nsubmissions = \"50/s\"\nburst = 200", 1)
        .replacen(
            "name = \"bob\"",
            "name = \"bob\"\nlimits = { instances = 5000, streams = 0, result_bytes = 1000 }",
            1,
        );
    let policy = Policy::parse(&text, "p").unwrap();
    let submissions = "50/s".parse::<Rate>().unwrap().with_burst(200).unwrap();
    let all = Limits { instances: 100, submissions, ..Limits::DEFAULT };
    assert_eq!(policy.limits_of(&alice), all);
    assert_eq!(policy.limits_of(&bob), Limits { instances: 5_000, streams: 0, result_bytes: 1_000, ..all });
    assert_eq!(policy.limits_of(&"nobody".parse().unwrap()), all);
}

#[test]
fn every_mistake_in_limits_is_explained() {
    let with = |more: &str| error_with("format = 1", &format!("format = 1\n[limits]\n{more}"));
    for (more, expected) in [
        ("instance = 1", "p:3: unknown field `instance`"),
        ("instances = -1", "p:3: instances = -1 is not between 0 and 1000000"),
        ("streams = 1000001", "p:3: streams = 1000001 is not between 0 and 1000000"),
        ("result_bytes = 2000000000000", "is not between 0 and 1099511627776"),
        ("submissions = \"often\"", "p:3: \"often\" is not a rate"),
        ("burst = 5", "p:3: burst needs submissions"),
        ("submissions = \"5/s\"\nburst = 0", "p:4: burst = 0 is not between 1 and"),
    ] {
        let said = with(more);
        assert!(said.contains(expected), "{said}\n{expected}");
    }
    let said = error_with("name = \"bob\"", "name = \"bob\"\nlimits = { streams = -5 }");
    assert!(said.contains("streams = -5 is not between 0 and 1000000"), "{said}");
}
