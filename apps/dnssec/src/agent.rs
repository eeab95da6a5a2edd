//! Nodes ask over a socket (`theta.agent.v1.Agent`).

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use theta_names::WallTime;
use theta_wire::agent::{ConsentRequest, ConsentResponse, agent_server};
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status, transport::Server};

use crate::{
    consent::{Terms, consent},
    digests::{Current, Recogniser},
    sources::{Known, SourceError, Sources, Stamps, Watched},
    transfer::tsig::KeyError,
};

/// Why an agent does not serve.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// It does not know its zone.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The key for transfers cannot be read.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The socket cannot be served on.
    #[error("cannot serve on {}: {reason}", path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

#[derive(Debug)]
struct State {
    stamps: Stamps,
    /// Counts the changes.
    changes: u64,
    known: Result<Arc<Known>, String>,
}

/// An operator's agent. It reads its files again when they change.
#[derive(Clone, Debug)]
pub struct Agent {
    terms: Terms,
    watched: Arc<Watched>,
    state: Arc<Mutex<State>>,
    recogniser: Arc<Recogniser>,
}

impl Agent {
    /// Reads the zone and the keys. A zone that is transferred comes later; until then nothing is consented to.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn open(sources: Sources) -> Result<Self, AgentError> {
        let watched = Watched::new(&sources)?;
        let stamps = watched.stamps();
        let known = match watched.load() {
            // It may not have arrived yet.
            Err(SourceError::Transfer(words)) => Err(words),
            known => Ok(Arc::new(known?)),
        };
        let state = Arc::new(Mutex::new(State { stamps, changes: 0, known }));
        let recogniser = Arc::new(Recogniser::new(sources.guesses));
        Ok(Self { terms: sources.terms, watched: Arc::new(watched), state, recogniser })
    }

    /// Serves on a socket until it ends. One that an agent has left there is replaced.
    ///
    /// # Errors
    /// [`AgentError::Socket`].
    pub async fn serve(self, socket: &Path) -> Result<(), AgentError> {
        let failed = |reason: String| AgentError::Socket { path: socket.to_owned(), reason };
        if is_left_over(socket) {
            fs::remove_file(socket).map_err(|error| failed(error.to_string()))?;
        }
        let listener = UnixListener::bind(socket).map_err(|error| failed(error.to_string()))?;
        let server = Server::builder().add_service(agent_server::AgentServer::new(self));
        server.serve_with_incoming(UnixListenerStream::new(listener)).await.map_err(|error| failed(error.to_string()))
    }

    /// What it knows now, and how often that has changed. A zone that has become unreadable is not guessed.
    fn known(&self) -> Result<(Arc<Known>, u64), String> {
        let stamps = self.watched.stamps();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.stamps != stamps {
            state.stamps = stamps;
            state.changes = state.changes.wrapping_add(1);
            state.known = self.watched.load().map(Arc::new).map_err(|error| error.to_string());
            if let Err(error) = &state.known {
                tracing::error!("{error}; nothing is consented to until that is mended");
            }
        }
        state.known.clone().map(|known| (known, state.changes))
    }

    /// Whether it consents.
    ///
    /// # Errors
    /// Its objection.
    fn decide(&self, operation: &str, statement: &[u8]) -> Result<(), String> {
        let (known, number) = self.known()?;
        let now = WallTime::now().seconds();
        let decide = |bytes: &[u8]| consent(bytes, &known.zone, &known.denial, &known.keys, &self.terms, now);
        match operation {
            "sign" => decide(statement),
            "sign-digest" => {
                let current = Current { candidates: &known.candidates, number };
                decide(&self.recogniser.recognise(statement, current, now)?)
            }
            _ => Err(format!("{operation} is nothing that a zone needs: this agent consents to sign and sign-digest")),
        }
    }
}

/// Whether this is a socket on which nobody serves any more.
fn is_left_over(socket: &Path) -> bool {
    use std::os::unix::{fs::FileTypeExt as _, net::UnixStream};
    let is_socket = fs::symlink_metadata(socket).is_ok_and(|data| data.file_type().is_socket());
    is_socket && UnixStream::connect(socket).is_err()
}

#[tonic::async_trait]
impl agent_server::Agent for Agent {
    async fn consent(&self, request: Request<ConsentRequest>) -> Result<Response<ConsentResponse>, Status> {
        let ConsentRequest { client, key, operation, statement, .. } = request.into_inner();
        let this = self.clone();
        // It may read a zone.
        let decided = tokio::task::spawn_blocking(move || this.decide(&operation, &statement)).await;
        let decided = decided.map_err(|error| Status::internal(error.to_string()))?;
        match &decided {
            Ok(()) => tracing::debug!(client, key, "consented"),
            Err(objection) => tracing::warn!(client, key, "refused: {objection}"),
        }
        Ok(Response::new(ConsentResponse { consents: decided.is_ok(), reason: decided.err().unwrap_or_default() }))
    }
}
