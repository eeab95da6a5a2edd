//! Rules whose agent consents by content.

use theta_names::Operation;
use theta_policy::{Answer, Heard, Objection, Policy, Reason, record};
use theta_statements::Ask;

use crate::support::{NOW, alice, allow, ask_once, people, policy, sign, state};

const AGENTS: &str = "[[agent]]\nname = \"zone\"\nsocket = \"/run/zone.sock\"\ntimeout_ms = 500\n\
                      [[agent]]\nname = \"other\"\nsocket = \"/run/other.sock\"\n";

fn with_agent(more: &str) -> Policy {
    policy(&format!("{AGENTS}{}", allow("r", "alice", "root", "sign", &format!("agent = \"zone\"\n{more}"))))
}

#[test]
fn without_its_agents_consent_nothing_is_allowed() {
    let policy = with_agent("");
    let zone = || "zone".parse().unwrap();
    let decide = |heard| policy.decide(&alice(&policy).asks(sign(b"m")).heard(heard), NOW, &state());
    assert_eq!(ask_once(&policy, sign(b"m")).reason, Reason::AgentUnasked { agent: zone() });
    assert_eq!(
        decide(Some(Heard::consent("other".parse().unwrap(), ""))).reason,
        Reason::AgentUnasked { agent: zone() }
    );
    let consents = decide(Some(Heard::consent(zone(), "")));
    assert_eq!((consents.allowed, consents.said), (true, None));
    let refused = decide(Some(Heard::refusal(zone(), " no such\nrecord ")));
    assert_eq!((refused.allowed, refused.rule.unwrap().as_str()), (false, "r"));
    let objection = Objection::Refused("no such record".to_owned());
    assert_eq!(refused.reason, Reason::AgentObjects { agent: zone(), objection });
    assert_eq!(refused.reason.to_string(), "agent zone refuses it: no such record");
    assert_eq!(refused.reason.code(), "agent-refuses");
    let silent = decide(Some(Heard::silence(zone(), &"x".repeat(1_000))));
    assert_eq!(silent.reason.code(), "agent-silent");
    assert_eq!(silent.reason.to_string().len(), "agent zone cannot be heard: ".len() + 300);
}

/// What it says as it consents goes on record, cut and in one line as a refusal's words are.
#[test]
fn the_words_of_a_consent_are_on_record() {
    let policy = with_agent("");
    let detail = |words: &str| {
        let request = alice(&policy).asks(sign(b"m")).heard(Some(Heard::consent("zone".parse().unwrap(), words)));
        let decision = policy.decide(&request, NOW, &state());
        assert!(decision.allowed);
        record(1, NOW, &request, &decision, policy.digest()).detail
    };
    assert_eq!(detail(""), "allowed");
    assert_eq!(detail(" www A,\nas\u{1b}of today "), "allowed; agent zone consents: www A, as of today");
    assert_eq!(detail(&"x".repeat(1_000)).len(), "allowed; agent zone consents: ".len() + 300);
    assert!(detail(&"\u{10ffff}".repeat(1_000)).len() <= 1_024, "a record's text is bounded in bytes");
}

#[test]
fn the_agent_of_the_rule_that_decides_is_asked_and_no_other() {
    let policy = with_agent("");
    let state = state();
    let agent = |ask: Ask<'_>| policy.agent_for(&alice(&policy).asks(ask), NOW, &state).cloned();
    let asked = |ask: Ask<'_>| agent(ask).map(|agent| agent.name().to_string());
    assert!(policy.has_agents());
    assert_eq!(asked(sign(b"m")).as_deref(), Some("zone"));
    assert_eq!(asked(Ask { key: Some("else"), ..sign(b"m") }), None);
    let agent = agent(sign(b"m")).unwrap();
    assert_eq!((agent.socket().to_str(), agent.timeout().as_millis()), (Some("/run/zone.sock"), 500));
}

/// What an agent refuses uses up nothing that others could use.
#[test]
fn what_is_refused_does_not_count_for_the_rate() {
    let policy = with_agent("rate = \"1/h\"");
    let state = state();
    let decide = |heard| policy.decide(&alice(&policy).asks(sign(b"m")).heard(Some(heard)), NOW, &state);
    let zone = || "zone".parse().unwrap();
    assert!(!decide(Heard::refusal(zone(), "no")).allowed);
    assert!(decide(Heard::consent(zone(), "")).allowed);
    assert_eq!(decide(Heard::consent(zone(), "")).reason.code(), "too-often");
}

/// Whoever asks more often than it may has no agent work, and hears why it is refused. Looking takes nothing.
#[test]
fn an_agent_is_not_asked_about_what_the_rate_refuses() {
    let (policy, state) = (with_agent("rate = \"1/h\""), state());
    let due = || policy.agent_for(&alice(&policy).asks(sign(b"m")), NOW, &state).is_some();
    let decide = |heard| policy.decide(&alice(&policy).asks(sign(b"m")).heard(heard), NOW, &state);
    assert!(due() && due());
    assert_eq!(decide(None).reason.code(), "agent-unasked");
    assert!(decide(Some(Heard::consent("zone".parse().unwrap(), ""))).allowed);
    assert!(!due());
    assert_eq!(decide(None).reason.code(), "too-often");
}

/// What too few have approved has no agent work either, and counts for its rate as ever.
#[test]
fn an_agent_is_not_asked_about_what_lacks_approvals() {
    let policy = with_agent("rate = \"1/h\"\napprovals = { of = [\"x\"], need = 1 }");
    let state = state();
    let decide = || policy.decide(&alice(&policy).asks(sign(b"m")), NOW, &state).reason;
    assert!(policy.agent_for(&alice(&policy).asks(sign(b"m")), NOW, &state).is_none());
    assert!(matches!(decide(), Reason::TooFewApprovals { need: 1, .. }));
    assert_eq!(decide().code(), "too-often");
}

/// A digest does not get around the agent that would have seen the message.
#[test]
fn a_digest_does_not_pass_by() {
    let lax = allow("lax", "alice", "root", "sign-digest", "");
    let rules = format!("{AGENTS}{}{lax}", allow("r", "alice", "root", "sign", "agent = \"zone\""));
    let digest = Ask { operation: Operation::SignDigest, ..sign(&[7; 32]) };
    assert!(!ask_once(&policy(&rules), digest).allowed);
    assert!(ask_once(&policy(&lax), digest).allowed);
}

#[test]
fn it_is_explained() {
    let policy = with_agent("");
    let explained = policy.explain("alice", &sign(b"m"), NOW);
    assert_eq!(explained.answer, Answer::Depends);
    assert!(explained.to_string().contains("the consent of agent zone (/run/zone.sock)"), "{explained}");
}

#[test]
fn mistakes_are_named() {
    let error = |agents: &str, rule: &str| {
        let text = format!("{}{agents}{rule}", people());
        Policy::parse(&text, "p").unwrap_err().to_string()
    };
    let rule = allow("r", "alice", "root", "sign", "agent = \"zone\"");
    for (agents, rule, words) in [
        (AGENTS.replace("/run/zone.sock", "zone.sock"), rule.clone(), "write an absolute path"),
        (AGENTS.replace("500", "0"), rule.clone(), "timeout_ms = 0 is not between 1 and 60000"),
        (AGENTS.replace("\"other\"", "\"zone\""), rule.clone(), "two agents are named"),
        (String::new(), rule.clone(), "no [[agent]] is named \"zone\""),
        (AGENTS.to_owned(), rule.replace("\"sign\"", "\"keys.rotate\""), "agents are not asked about keys.rotate"),
        (AGENTS.to_owned(), rule.replace("\"sign\"", "\"*\""), "agents are not asked about"),
        (AGENTS.to_owned(), rule.replace("\"allow\"", "\"deny\""), "agent"),
    ] {
        let said = error(&agents, &rule);
        assert!(said.contains(words), "{said}\n{words}");
    }
}
