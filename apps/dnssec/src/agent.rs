//! Nodes ask over a socket (`theta.agent.v1.Agent`).

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use theta_agent::SocketError;
use theta_look_ahead::ServeError;
use theta_names::WallTime;
use theta_wire::agent::{ConsentRequest, ConsentResponse, agent_server};
use tonic::{Request, Response, Status};

use crate::{
    consent::{Terms, consent, consent_to_previous},
    digests::{Current, Recogniser},
    previous::{Before, Previous},
    sources::{Known, SourceError, Sources, Stamps, Watched},
    transfer::tsig::KeyError,
};

/// Files that may have changed unseen, since they had changed just before, are read again so often at most.
const AGAIN: Duration = Duration::from_millis(500);

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
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// Nobody can ask what will be signed.
    #[error(transparent)]
    LookAhead(#[from] ServeError),
}

#[derive(Debug)]
struct State {
    stamps: Stamps,
    /// Counts the changes.
    changes: u64,
    known: Result<Arc<Known>, String>,
    previous: Previous,
    /// When the files were read last.
    read: Instant,
}

/// What an agent knows when it is asked.
pub(crate) struct Now {
    pub(crate) known: Arc<Known>,
    /// How often that has changed.
    changes: u64,
    /// What it knew just before, the newest first.
    before: Vec<Before>,
    /// In seconds since 1970.
    pub(crate) time: u64,
}

impl Now {
    /// The digests that may be signed.
    pub(crate) fn current(&self) -> Current<'_> {
        Current { candidates: &self.known.candidates, number: self.changes }
    }
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
        let mut previous = Previous::new(sources.terms.previous_seconds);
        previous.change(known.as_deref().ok(), WallTime::now().seconds());
        let state = Arc::new(Mutex::new(State { stamps, changes: 0, known, previous, read: Instant::now() }));
        let recogniser = Arc::new(Recogniser::new(sources.guesses));
        Ok(Self { terms: sources.terms, watched: Arc::new(watched), state, recogniser })
    }

    /// What it knows now. A zone that has become unreadable is not guessed.
    pub(crate) fn now(&self) -> Result<Now, String> {
        let stamps = self.watched.stamps();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        // A file that has just changed may change again unseen, so it is read again; but not for each of the thousands of requests that follow.
        let was_read = state.stamps.look_like(&stamps) && state.read.elapsed() < AGAIN;
        let has_changed = state.stamps != stamps && !was_read;
        if has_changed {
            (state.stamps, state.read) = (stamps, Instant::now());
            state.changes = state.changes.wrapping_add(1);
            // Whatever happens meanwhile, what was known before is not in force any more.
            state.known = Err("the zone could not be read".to_owned());
            state.known = self.watched.load().map(Arc::new).map_err(|error| error.to_string());
            if let Err(error) = &state.known {
                tracing::error!("{error}; nothing is consented to until that is mended");
            }
        }
        // A large zone is read for seconds, and whoever asks has waited.
        let time = WallTime::now().seconds();
        if has_changed {
            state.previous.change(state.known.as_deref().ok(), time);
        }
        let before = state.previous.copies(time);
        state.known.clone().map(|known| Now { known, changes: state.changes, before, time })
    }

    /// What it demands of signatures.
    pub(crate) const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Recognises digests as it does, and shares neither memory nor CPU with it.
    pub(crate) fn recogniser(&self) -> Recogniser {
        self.recogniser.afresh()
    }

    /// Decides about bytes by the copy in force, and by those of before about what a signer takes away.
    fn consent_now(&self, bytes: &[u8], now: &Now) -> Result<(), String> {
        let Now { known, before, time, .. } = now;
        let Err(objection) = consent(bytes, &known.zone, &known.denial, &known.keys, &self.terms, *time) else {
            return Ok(());
        };
        let previous = before.iter().find_map(|Before { zone, denial }| {
            consent_to_previous(bytes, zone, denial, &known.keys, &self.terms, *time)
        });
        if matches!(previous, Some(Ok(()))) {
            tracing::info!("consented to a record of the copy before: {objection}");
        }
        previous.unwrap_or(Err(objection))
    }

    /// Whether it consents.
    ///
    /// # Errors
    /// Its objection.
    fn decide(&self, operation: &str, statement: &[u8]) -> Result<(), String> {
        let now = self.now()?;
        let decide = |bytes: &[u8]| self.consent_now(bytes, &now);
        match operation {
            "sign" => decide(statement),
            "sign-digest" => decide(&self.recogniser.recognise(statement, now.current(), now.time)?),
            _ => Err(format!("{operation} is nothing that a zone needs: this agent consents to sign and sign-digest")),
        }
    }
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
