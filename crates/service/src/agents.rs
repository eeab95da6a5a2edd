//! Asks agents over their sockets: programs beside the node that consent to requests by their content.

use core::time::Duration;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use hyper_util::rt::TokioIo;
use theta_authority::{Agents, Hearing, Question};
use theta_policy::{Agent, Heard};
use theta_wire::agent::{ConsentRequest, agent_client::AgentClient};
use tokio::{net::UnixStream, sync::Semaphore, time};
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

/// How many questions are under way at once. More wait, as long as their agent may take.
const MOST_QUESTIONS: usize = 256;
/// The longest answer in bytes.
const MOST_ANSWER: usize = 64 << 10;
/// The most sockets that are remembered: more than a policy that people write has, and few enough for one that changes all the time.
const MOST_SOCKETS: usize = 256;

/// The agents of a node.
#[derive(Debug)]
pub(crate) struct AgentSockets {
    questions: Semaphore,
    /// Connections come up when they are needed, and again when an agent has been started anew.
    channels: Mutex<HashMap<PathBuf, Channel>>,
}

impl Default for AgentSockets {
    fn default() -> Self {
        Self { questions: Semaphore::new(MOST_QUESTIONS), channels: Mutex::default() }
    }
}

impl Agents for AgentSockets {
    fn ask<'a>(&'a self, agent: &'a Agent, question: Question) -> Hearing<'a> {
        Box::pin(async move {
            let (name, most) = (agent.name().clone(), agent.timeout());
            match time::timeout(most, self.answer(agent.socket(), most, question)).await {
                Ok(Ok(None)) => Heard::consent(name),
                Ok(Ok(Some(reason))) => Heard::refusal(name, &reason),
                Ok(Err(why)) => Heard::silence(name, &why),
                Err(_) => Heard::silence(name, &late(most)),
            }
        })
    }
}

fn late(most: Duration) -> String {
    format!("it did not answer within {} ms", most.as_millis())
}

impl AgentSockets {
    /// `None` if it consents, else why not.
    async fn answer(&self, socket: &Path, most: Duration, question: Question) -> Result<Option<String>, String> {
        let _turn = self.questions.acquire().await.map_err(|error| error.to_string())?;
        let Question { group, node, client, key, operation, label, statement, slot, time } = question;
        let mut request = tonic::Request::new(ConsentRequest {
            group,
            node: node.get().into(),
            client: client.to_string(),
            key: key.unwrap_or_default(),
            operation: operation.name().to_owned(),
            label: label.get().clone(),
            statement,
            slot,
            time_ms: time.0,
        });
        request.set_timeout(most);
        let mut agent = AgentClient::new(self.channel(socket)).max_decoding_message_size(MOST_ANSWER);
        match agent.consent(request).await {
            Ok(answer) => {
                let answer = answer.into_inner();
                let refused = !answer.consents;
                Ok(refused.then_some(answer.reason))
            }
            Err(status) => {
                // The words of a status come from the agent or, if it is not there, from the system.
                tracing::warn!(socket = %socket.display(), %status, "an agent does not answer");
                Err(match status.code() {
                    tonic::Code::Unavailable => format!("nothing answers on its socket {}", socket.display()),
                    // The library's clock for the same deadline may be the quicker one.
                    tonic::Code::Cancelled | tonic::Code::DeadlineExceeded => late(most),
                    code => format!("it answers {code:?}: {}", status.message()),
                })
            }
        }
    }

    fn channel(&self, socket: &Path) -> Channel {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = channels.get(socket) {
            return channel.clone();
        }
        if channels.len() >= MOST_SOCKETS {
            channels.clear();
        }
        let path = socket.to_owned();
        let connect = service_fn(move |_| {
            let path = path.clone();
            async move { UnixStream::connect(path).await.map(TokioIo::new) }
        });
        // The address names the host in requests, and nobody connects to it.
        let channel = Endpoint::from_static("http://agent").connect_with_connector_lazy(connect);
        channels.entry(socket.to_owned()).or_insert(channel).clone()
    }
}
