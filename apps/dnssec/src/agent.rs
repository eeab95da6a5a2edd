//! Nodes ask over a socket (`theta.agent.v1.Agent`).

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use theta_wire::agent::{ConsentRequest, ConsentResponse, agent_server};
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status, transport::Server};

use crate::{
    consent::{Terms, consent},
    digests::{Current, Guesses, Recogniser, candidates::Candidates},
    keys::{Keys, MOST_KEYS},
    zone::{MOST_FILE, Zone, ZoneError},
};

/// What an operator's agent knows.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The zone's name, with its dot.
    pub origin: String,
    /// The operator's own copy of the zone, without signatures.
    pub zone: PathBuf,
    /// The keys that the operators have agreed on ([`Keys::parse`]).
    pub keys: PathBuf,
    /// What is demanded of signatures besides.
    pub terms: Terms,
    /// How digests are recognised.
    pub guesses: Guesses,
}

/// Why an agent does not know its zone.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// A file is too long.
    #[error("{} has more than {MOST_FILE} bytes", .0.display())]
    Long(PathBuf),
    /// A zone file is wrong.
    #[error("{}: {reason}", path.display())]
    Zone {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: ZoneError,
    },
    /// A line of the file of keys is no key.
    #[error(
        "{}: line {line} is no public key as `theta keys export NAME --format dnskey` prints it (algorithm 8, 13 or 15), or the one after \
         {MOST_KEYS}",
        path.display()
    )]
    Keys {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The socket cannot be served on.
    #[error("cannot serve on {}: {reason}", path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

/// What tells a file from the one that was there before: its length and its time.
type Stamp = Option<(u64, SystemTime)>;

fn stamp(path: &Path) -> Stamp {
    let data = fs::metadata(path).ok()?;
    Some((data.len(), data.modified().ok()?))
}

fn read(path: &Path) -> Result<Vec<u8>, AgentError> {
    let failed = |reason| AgentError::Read { path: path.to_owned(), reason };
    if fs::metadata(path).map_err(failed)?.len() > MOST_FILE {
        return Err(AgentError::Long(path.to_owned()));
    }
    fs::read(path).map_err(failed)
}

#[derive(Debug)]
struct Known {
    zone: Zone,
    keys: Keys,
    candidates: Candidates,
    /// Counts the changes.
    number: u64,
}

#[derive(Debug)]
struct State {
    stamps: [Stamp; 2],
    changes: u64,
    known: Result<Arc<Known>, String>,
}

/// An operator's agent. It reads its files again when they change.
#[derive(Clone, Debug)]
pub struct Agent {
    sources: Sources,
    state: Arc<Mutex<State>>,
    recogniser: Arc<Recogniser>,
}

impl Agent {
    /// Reads the zone and the keys.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn open(sources: Sources) -> Result<Self, AgentError> {
        let stamps = [stamp(&sources.zone), stamp(&sources.keys)];
        let known = Ok(Arc::new(load(&sources, 0)?));
        let recogniser = Arc::new(Recogniser::new(sources.guesses.clone()));
        Ok(Self { sources, state: Arc::new(Mutex::new(State { stamps, changes: 0, known })), recogniser })
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

    /// What it knows now. A zone that has become unreadable is not guessed.
    fn known(&self) -> Result<Arc<Known>, String> {
        let stamps = [stamp(&self.sources.zone), stamp(&self.sources.keys)];
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.stamps != stamps {
            state.stamps = stamps;
            state.changes = state.changes.wrapping_add(1);
            state.known = load(&self.sources, state.changes).map(Arc::new).map_err(|error| error.to_string());
            if let Err(error) = &state.known {
                tracing::error!("{error}; nothing is consented to until that is mended");
            }
        }
        state.known.clone()
    }

    /// Whether it consents.
    ///
    /// # Errors
    /// Its objection.
    fn decide(&self, operation: &str, statement: &[u8]) -> Result<(), String> {
        let known = self.known()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let decide = |bytes: &[u8]| consent(bytes, &known.zone, &known.keys, self.sources.terms, now);
        match operation {
            "sign" => decide(statement),
            "sign-digest" => {
                let current = Current { candidates: &known.candidates, number: known.number };
                decide(&self.recogniser.recognise(statement, current, now)?)
            }
            _ => Err(format!("{operation} is nothing that a zone needs: this agent consents to sign and sign-digest")),
        }
    }
}

fn load(sources: &Sources, number: u64) -> Result<Known, AgentError> {
    let wrong = |reason| AgentError::Zone { path: sources.zone.clone(), reason };
    let zone = Zone::parse(&read(&sources.zone)?, &sources.origin).map_err(wrong)?;
    let text = read(&sources.keys)?;
    let wrong = |line| AgentError::Keys { path: sources.keys.clone(), line };
    let keys = Keys::parse(&String::from_utf8_lossy(&text)).map_err(wrong)?;
    let candidates = Candidates::new(&zone, &keys, &sources.guesses.key_ttls);
    tracing::info!(zone = %zone.apex(), names = zone.len(), "the zone is read");
    Ok(Known { zone, keys, candidates, number })
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
