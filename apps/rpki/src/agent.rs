//! Nodes ask over a socket (`theta.agent.v1.Agent`).

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use sha2::{Digest as _, Sha256};
use theta_names::WallTime;
use theta_wire::agent::{ConsentRequest, ConsentResponse, agent_server};
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status, transport::Server};

use crate::{
    consent::{Consent, Facts, consent},
    memory::{Kept, MemoryError},
    sources::{Known, SourceError, Sources, Stamps},
    statements::Authorised,
    store::Folder,
};

/// Why an agent does not serve.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// It does not know its registry.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// It does not know what it has agreed to.
    #[error(transparent)]
    Memory(#[from] MemoryError),
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
    known: Result<Known, String>,
    kept: Kept,
}

/// A registry's agent. It reads its files again when they change.
#[derive(Clone, Debug)]
pub struct Agent {
    sources: Arc<Sources>,
    store: Folder,
    state: Arc<Mutex<State>>,
}

fn now() -> i64 {
    i64::try_from(WallTime::now().seconds()).unwrap_or(i64::MAX)
}

impl Agent {
    /// Reads the registry's data, and what was agreed to.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn open(sources: Sources) -> Result<Self, AgentError> {
        let stamps = sources.stamps();
        let known = Ok(sources.load()?);
        let state = State { stamps, known, kept: Kept::open(&sources.memory)? };
        let store = Folder::new(sources.store.clone());
        Ok(Self { sources: Arc::new(sources), store, state: Arc::new(Mutex::new(state)) })
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

    /// Whether it consents, and to what. One at a time: two that are not compatible cannot both be found to be new.
    ///
    /// # Errors
    /// Its objection.
    fn decide(&self, key: &str, operation: &str, statement: &[u8]) -> Result<Decision, String> {
        if operation != "sign" {
            return Err(format!("{operation} does not show what is signed: this agent consents to sign"));
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.refresh(&mut state);
        let State { known, kept, .. } = &mut *state;
        let known = known.as_ref().map_err(Clone::clone)?;
        let now = now();
        let authorised = Authorised::at(&known.statements, now);
        let facts = Facts {
            registry: &known.registry,
            authorised: &authorised,
            pool: &known.pool,
            store: &self.store,
            memory: kept.memory(),
            now,
        };
        match consent(key, statement, &facts) {
            Ok(Consent { what, entries }) => {
                kept.remember(&entries).map_err(|error| error.to_string())?;
                Ok(Decision { what, overridden: None })
            }
            Err(refusal) => {
                let digest = Sha256::digest(statement).into();
                let permits = known.overrides.iter().find(|one| one.permits(key, &digest, now));
                let permits = permits.ok_or_else(|| refusal.to_string())?;
                Ok(Decision { what: refusal.to_string(), overridden: Some(permits.reason.clone()) })
            }
        }
    }

    /// Reads the files again if they have changed. What has become unreadable is not guessed.
    fn refresh(&self, state: &mut State) {
        let stamps = self.sources.stamps();
        if state.stamps == stamps {
            return;
        }
        state.stamps = stamps;
        state.known = self.sources.load().map_err(|error| error.to_string());
        if let Err(error) = &state.known {
            tracing::error!("{error}; nothing is consented to until that is mended");
        }
    }
}

struct Decision {
    /// What it is, or what would have been said against it.
    what: String,
    /// Why operators permit it all the same.
    overridden: Option<String>,
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
        let (this, of) = (self.clone(), key.clone());
        // It reads files, and waits for the disk.
        let decided = tokio::task::spawn_blocking(move || this.decide(&of, &operation, &statement)).await;
        let decided = decided.map_err(|error| Status::internal(error.to_string()))?;
        match &decided {
            Ok(Decision { what, overridden: None }) => tracing::info!(client, key, "consented to {what}"),
            Ok(Decision { what, overridden: Some(reason) }) => {
                tracing::warn!(client, key, "OVERRIDE: operators permit it ({reason}), though {what}");
            }
            Err(objection) => tracing::warn!(client, key, "refused: {objection}"),
        }
        Ok(Response::new(ConsentResponse { consents: decided.is_ok(), reason: decided.err().unwrap_or_default() }))
    }
}
