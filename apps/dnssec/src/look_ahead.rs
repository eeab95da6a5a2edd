//! Tells whoever signs for a name server what will be signed next, so that it can be signed together: after the first digest of an event all others
//! of it follow from the copy of the zone. What may be signed is no different for that: nodes ask their agents about each digest.

use std::path::Path;

pub use theta_look_ahead::Service;
use theta_look_ahead::{Answer, Listing, Question, serve};

use crate::{
    agent::{Agent, AgentError},
    consent::consent,
    digests::{Ahead, Recogniser},
};

/// Knows what an agent knows.
struct Zone {
    agent: Agent,
    /// One of its own, so that whoever asks this takes nothing from the node: neither its turn, nor its part of a core.
    recogniser: Recogniser,
}

impl Listing for Zone {
    fn list(&self, question: &Question) -> Answer {
        let now = self.agent.now()?;
        let wanted = (question.before.into(), question.most.into());
        let Ahead { first, digests } = self.recogniser.ahead(&question.digest, wanted, now.current(), now.time)?;
        // Times and key are the same for all, and everything else is the copy's: what is said of one is said of all.
        if let Some(bytes) = first {
            consent(&bytes, &now.known.zone, &now.known.denial, &now.known.keys, self.agent.terms(), now.time)?;
        }
        Ok(digests)
    }
}

/// Answers on this socket by what the agent knows, until it is dropped. A socket that was left there is replaced.
///
/// # Errors
/// [`AgentError`].
pub fn serve_ahead(agent: &Agent, socket: &Path) -> Result<Service, AgentError> {
    theta_agent::make_way(socket)?;
    Ok(serve(socket, Zone { agent: agent.clone(), recogniser: agent.recogniser() })?)
}
