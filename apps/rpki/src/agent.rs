//! Nodes ask over a socket (`theta.agent.v1.Agent`).

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use sha2::{Digest as _, Sha256};
use theta_agent::SocketError;
use theta_names::WallTime;
use theta_wire::agent::{ConsentRequest, ConsentResponse, agent_server};
use tonic::{Request, Response, Status};

use crate::{
    consent::{Consent, Facts, consent},
    kept::{Kept, MemoryError},
    overrides,
    places::Places,
    sources::{Known, SourceError, Sources},
    statements::{Standing, Stated},
    store::Folder,
};

/// What is said to whoever asks while as many wait as may.
const BUSY: &str =
    "this agent is busy: as many requests of this client, or of all, as may be wait already; ask again later";

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
    #[error(transparent)]
    Socket(#[from] SocketError),
}

/// How much an agent does for those who ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Its files are looked at so often at most.
    pub look: Duration,
    /// So many requests are decided or wait at once at most, half of them of one client; the others hear that it is busy.
    pub waiting: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { look: Duration::from_secs(1), waiting: 32 }
    }
}

#[derive(Debug)]
struct State {
    /// When the files were looked at last.
    looked: Instant,
    known: Result<Known, String>,
    /// What follows from what is known; `None` if that has changed since.
    standing: Option<Standing>,
    kept: Kept,
}

/// A registry's agent. It reads its files again when they change.
#[derive(Clone, Debug)]
pub struct Agent {
    sources: Arc<Sources>,
    store: Folder,
    look: Duration,
    state: Arc<Mutex<State>>,
    places: Places,
}

fn now() -> i64 {
    i64::try_from(WallTime::now().seconds()).unwrap_or(i64::MAX)
}

/// What is authorised now. What has counted is remembered before anything follows from it. Of what stood before what still stands is taken from there.
fn stand(stated: &Stated, kept: &mut Kept, now: i64, before: Option<Standing>) -> Result<Standing, MemoryError> {
    let (standing, entries) = stated.standing(kept.memory(), now, before);
    kept.remember(&entries)?;
    for (_, reason) in standing.authorised.all_unsettled() {
        tracing::error!("{reason}; nothing of this member's is consented to that depends on it");
    }
    Ok(standing)
}

impl Agent {
    /// Reads the registry's data, and what has been authorised by its members.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn open(sources: Sources, mut kept: Kept, pace: Pace) -> Result<Self, AgentError> {
        let looked = Instant::now();
        let known = sources.load(None)?;
        let standing = Some(stand(&known.stated, &mut kept, now(), None)?);
        let state = State { looked, known: Ok(known), standing, kept };
        let store = Folder::new(sources.store.clone());
        let (state, places) = (Arc::new(Mutex::new(state)), Places::new(pace.waiting));
        Ok(Self { sources: Arc::new(sources), store, look: pace.look, state, places })
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
        self.look(&mut state);
        let State { known, standing, kept, .. } = &mut *state;
        let known = known.as_ref().map_err(Clone::clone)?;
        let now = now();
        let current = match standing.take() {
            Some(current) if current.holds(now) => current,
            before => stand(&known.stated, kept, now, before).map_err(|error| error.to_string())?,
        };
        let standing = standing.insert(current);
        let facts = Facts {
            registry: &known.registry,
            authorised: &standing.authorised,
            pool: &known.pool,
            store: &self.store,
            memory: kept.memory(),
            now,
        };
        let (decision, entries) = match consent(key, statement, &facts) {
            Ok(Consent { what, entries }) => (Decision { what, overridden: None }, entries),
            Err(refusal) => {
                let digest = Sha256::digest(statement).into();
                let permits = known.overrides.iter().find(|one| one.permits(key, &digest, now));
                let permits = permits.ok_or_else(|| refusal.to_string())?;
                let decision = Decision { what: refusal.to_string(), overridden: Some(permits.reason.clone()) };
                (decision, overrides::entries(key, statement, &facts))
            }
        };
        kept.remember(&entries).map_err(|error| error.to_string())?;
        Ok(decision)
    }

    /// Reads the files again if they have changed, or could not be read. What has become unreadable is not guessed.
    fn look(&self, state: &mut State) {
        if state.looked.elapsed() < self.look {
            return;
        }
        state.looked = Instant::now();
        if let Ok(known) = &state.known
            && self.sources.stamps(&known.registry).is_some_and(|stamps| stamps == known.stamps)
        {
            return;
        }
        state.standing = None;
        let before = state.known.as_ref().ok().map(|known| &known.verified);
        state.known = self.sources.load(before).map_err(|error| error.to_string());
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

#[tonic::async_trait]
impl agent_server::Agent for Agent {
    async fn consent(&self, request: Request<ConsentRequest>) -> Result<Response<ConsentResponse>, Status> {
        let ConsentRequest { client, key, operation, statement, .. } = request.into_inner();
        let Some(place) = self.places.take(&client) else {
            tracing::warn!(client, key, "refused: {BUSY}");
            return Ok(Response::new(ConsentResponse { consents: false, reason: BUSY.to_owned() }));
        };
        let (this, of) = (self.clone(), key.clone());
        // It reads files, and waits for the disk. Its place is taken until the work is done, even if nobody waits for the answer any more.
        let decided = tokio::task::spawn_blocking(move || (this.decide(&of, &operation, &statement), place)).await;
        let (decided, _place) = decided.map_err(|error| Status::internal(error.to_string()))?;
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
