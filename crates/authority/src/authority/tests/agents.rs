//! How often agents are asked.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use theta_policy::{Agent, Heard};

use super::{Authority, client, open, policy, sign, simulated};
use crate::{Agents, Hearing, Question};
use theta_store::disk::SimulatedDisk;

/// An agent that consents to everything, and counts how often it is asked.
#[derive(Debug, Default)]
struct Counts(AtomicUsize);

impl Agents for Counts {
    fn ask<'a>(&'a self, agent: &'a Agent, _: Question) -> Hearing<'a> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let name = agent.name().clone();
        Box::pin(async move { Heard::consent(name, "") })
    }
}

/// What three requests come to by a policy whose rule and client have these further lines, and how often the agent was asked.
async fn three(of_rule: &str, of_client: &str) -> (Vec<Result<(), String>>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let (rules, _) = policy();
    let agent = format!("{of_client}[[agent]]\nname = \"a\"\nsocket = \"/nowhere\"\n[[rule]]");
    let text = format!("{}agent = \"a\"\n{of_rule}", rules.replace("[[rule]]", &agent));
    let authority: Arc<Authority> = open(folder.path(), &text, simulated(&SimulatedDisk::default()));
    let counts = Arc::new(Counts::default());
    authority.ask_agents_by(Arc::<Counts>::clone(&counts));
    let mut said = Vec::new();
    for slot in 1..=3 {
        let decided = authority.decide(client(), sign("m", slot)).await;
        said.push(decided.map(|_| ()).map_err(|refused| refused.to_string()));
    }
    (said, counts.0.load(Ordering::SeqCst))
}

/// A client that asks more often than its rule lets it has the agent work as often as it may, and no more.
#[tokio::test]
async fn an_agent_is_asked_no_more_often_than_the_rate_permits() {
    let (said, asked) = three("rate = \"1/h\"\n", "").await;
    assert_eq!((said[0].clone(), asked), (Ok(()), 1));
    assert!(said[1..].iter().all(|said| said.as_ref().is_err_and(|said| said.contains("1/h"))), "{said:?}");
}

#[tokio::test]
async fn nor_than_the_clients_submissions_permit() {
    let (said, asked) = three("", "limits = { submissions = \"1/h\" }\n").await;
    assert_eq!((said[0].clone(), asked), (Ok(()), 1));
    assert!(said[1..].iter().all(|said| said.as_ref().is_err_and(|said| said.contains("may send 1/h"))), "{said:?}");
}
