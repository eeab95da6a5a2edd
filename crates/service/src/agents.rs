//! Asks agents over their sockets: programs beside the node that consent to requests by their content.

use core::time::Duration;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use hyper_util::rt::TokioIo;
use theta_authority::{Agents, Hearing, Question};
use theta_network::doorway::Occasionally;
use theta_policy::{Agent, Heard};
use theta_statements::Name;
use theta_wire::agent::{ConsentRequest, ConsentResponse, agent_client::AgentClient};
use tokio::{net::UnixStream, sync::Semaphore, time};
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

/// How many questions to one agent are under way at once, and how many of one client. More wait, as long as their agent may take.
const MOST_QUESTIONS: usize = 256;
const MOST_OF_CLIENT: usize = 64;
/// How many clients' places are remembered that nobody holds.
const IDLE_CLIENTS: usize = 64;
/// The longest answer in bytes.
const MOST_ANSWER: usize = 64 << 10;
/// The most sockets that are remembered: more than a policy that people write has, and few enough for one that changes all the time.
const MOST_SOCKETS: usize = 256;

/// The agents of a node.
#[derive(Debug, Default)]
pub(crate) struct AgentSockets {
    by_path: Mutex<HashMap<PathBuf, Arc<Socket>>>,
}

/// One agent.
#[derive(Debug)]
struct Socket {
    /// The connection comes up when it is needed, and again when the agent has been started anew.
    channel: Channel,
    questions: Semaphore,
    silent: Occasionally,
    /// So that one client that asks too much keeps nobody else from this agent.
    by_client: Mutex<HashMap<Option<Name>, Arc<Semaphore>>>,
}

impl Socket {
    /// The places of a client, or of all strangers.
    fn places_of(&self, client: &Option<Name>) -> Arc<Semaphore> {
        let mut by_client = self.by_client.lock().unwrap_or_else(PoisonError::into_inner);
        if by_client.len() >= IDLE_CLIENTS && !by_client.contains_key(client) {
            by_client.retain(|_, places| Arc::strong_count(places) > 1);
        }
        let places = by_client.entry(client.clone()).or_insert_with(|| Arc::new(Semaphore::new(MOST_OF_CLIENT)));
        Arc::clone(places)
    }
}

impl Agents for AgentSockets {
    fn ask<'a>(&'a self, agent: &'a Agent, question: Question) -> Hearing<'a> {
        Box::pin(async move {
            let (name, most) = (agent.name().clone(), agent.timeout());
            let socket = self.socket(agent.socket());
            let places = socket.places_of(&question.account);
            // Waiting for a place is not the agent's time.
            let place = time::timeout(most, async { (places.acquire().await, socket.questions.acquire().await) }).await;
            let Ok((Ok(_of_client), Ok(_of_all))) = place else {
                let client = &question.client;
                return Heard::silence(
                    name,
                    &format!("it has more questions of client {client}, or of all, than it answers"),
                );
            };
            match time::timeout(most, answer(socket.channel.clone(), (agent.socket(), &socket.silent), most, question))
                .await
            {
                Ok(Ok(Answer { consents: true, words })) => Heard::consent(name, &words),
                Ok(Ok(Answer { consents: false, words })) => Heard::refusal(name, &words),
                Ok(Err(why)) => Heard::silence(name, &why),
                Err(_) => Heard::silence(name, &late(most)),
            }
        })
    }
}

fn late(most: Duration) -> String {
    format!("it did not answer within {} ms", most.as_millis())
}

/// What an agent says.
struct Answer {
    consents: bool,
    words: String,
}

async fn answer(
    channel: Channel,
    (socket, silent): (&Path, &Occasionally),
    most: Duration,
    question: Question,
) -> Result<Answer, String> {
    let Question { group, node, client, account: _, key, operation, label, statement, slot, time } = question;
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
    let mut agent = AgentClient::new(channel).max_decoding_message_size(MOST_ANSWER);
    match agent.consent(request).await {
        Ok(answer) => {
            let ConsentResponse { consents, reason } = answer.into_inner();
            Ok(Answer { consents, words: reason })
        }
        Err(status) => {
            // The words of a status come from the agent or, if it is not there, from the system.
            silent.warn(format_args!("the agent at {} does not answer: {status}", socket.display()));
            Err(match status.code() {
                tonic::Code::Unavailable => format!("nothing answers on its socket {}", socket.display()),
                // The library's clock for the same deadline may be the quicker one.
                tonic::Code::Cancelled | tonic::Code::DeadlineExceeded => late(most),
                code => format!("it answers {code:?}: {}", status.message()),
            })
        }
    }
}

impl AgentSockets {
    fn socket(&self, path: &Path) -> Arc<Socket> {
        let mut by_path = self.by_path.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(socket) = by_path.get(path) {
            return Arc::clone(socket);
        }
        if by_path.len() >= MOST_SOCKETS {
            by_path.clear();
        }
        let to = path.to_owned();
        let connect = service_fn(move |_| {
            let path = to.clone();
            async move { UnixStream::connect(path).await.map(TokioIo::new) }
        });
        // The address names the host in requests, and nobody connects to it.
        let channel = Endpoint::from_static("http://agent").connect_with_connector_lazy(connect);
        let questions = Semaphore::new(MOST_QUESTIONS);
        let socket =
            Arc::new(Socket { channel, questions, silent: Occasionally::default(), by_client: Mutex::default() });
        by_path.insert(path.to_owned(), Arc::clone(&socket));
        socket
    }
}
