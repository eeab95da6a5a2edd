//! Agents: programs beside a node that see what is to be decided, and consent to it by its content.
//!
//! A policy knows names, rates and approvals; whether a message is a record of the right zone, or an object of the right registry, only
//! a program knows that has the zone or the registry. A rule may name such an agent. It is asked before the decision, by whoever has
//! sockets; the decision itself only looks at what it said ([`Heard`]), and refuses without it.

use core::time::Duration;
use std::path::{Path, PathBuf};

use theta_names::Operation;
use theta_statements::Name;

/// The operations about which agents are asked: those that a client asks of each node by itself, with the content in the request.
pub const AGENT_OPERATIONS: [Operation; 5] =
    [Operation::Sign, Operation::SignDigest, Operation::Decrypt, Operation::Decapsulate, Operation::FlipCoin];
/// The longest time that an agent may take.
pub const MOST_AGENT_TIME: Duration = Duration::from_secs(60);
/// The longest words of an agent that are kept, in characters.
const MOST_WORDS: usize = 300;

/// An agent of the policy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    pub(crate) name: Name,
    pub(crate) socket: PathBuf,
    pub(crate) timeout: Duration,
}

impl Agent {
    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &Name {
        &self.name
    }

    /// The socket (of the family Unix) on which it serves.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// How long it may take.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }
}

/// What an agent said about one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    agent: Name,
    answer: Result<String, Objection>,
}

/// Why an agent's consent is absent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Objection {
    /// It refused, in these words.
    #[error("{0}")]
    Refused(String),
    /// It did not answer, for this reason.
    #[error("{0}")]
    Silent(String),
}

impl Heard {
    /// The agent consents, and may say to what and why, for the record. Its words are cut, and are one line.
    #[must_use]
    pub fn consent(agent: Name, words: &str) -> Self {
        Self { agent, answer: Ok(one_line(words)) }
    }

    /// It refuses. Its words are cut, and are one line.
    #[must_use]
    pub fn refusal(agent: Name, words: &str) -> Self {
        Self { agent, answer: Err(Objection::Refused(one_line(words))) }
    }

    /// It cannot be heard.
    #[must_use]
    pub fn silence(agent: Name, why: &str) -> Self {
        Self { agent, answer: Err(Objection::Silent(one_line(why))) }
    }

    pub(crate) const fn agent(&self) -> &Name {
        &self.agent
    }

    pub(crate) const fn answer(&self) -> &Result<String, Objection> {
        &self.answer
    }
}

fn one_line(words: &str) -> String {
    let words = words.trim().chars().take(MOST_WORDS);
    words.map(|character| if character.is_control() { ' ' } else { character }).collect()
}
