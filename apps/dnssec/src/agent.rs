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
    digests::{Current, Guesses, Recogniser},
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
    /// Of what was read; `None` if the system did not read it, for a reason that does not stand in the files.
    stamps: Option<Stamps>,
    /// Counts the changes.
    changes: u64,
    known: Result<Arc<Known>, String>,
    previous: Previous,
    /// When reading the files ended last.
    read: Instant,
    /// How often they were read since the first time.
    #[cfg(test)]
    reads: u64,
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
        let Known { candidates, offline, .. } = self.known.as_ref();
        Current { candidates, offline: offline.as_ref(), number: self.changes }
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
        let stamps = watched.stamps(None);
        let known = match watched.load_first() {
            // It may not have arrived yet.
            Err(SourceError::Transfer(words)) => Err(words),
            known => Ok(Arc::new(known?)),
        };
        let mut previous = Previous::new(sources.terms.previous_seconds);
        previous.change(known.as_deref().ok(), WallTime::now().seconds());
        let state = State {
            stamps: Some(stamps),
            changes: 0,
            known,
            previous,
            read: Instant::now(),
            #[cfg(test)]
            reads: 0,
        };
        let state = Arc::new(Mutex::new(state));
        let guesses = Guesses { ahead: sources.terms.begins_ahead(), ..sources.guesses };
        let recogniser = Arc::new(Recogniser::new(guesses));
        Ok(Self { terms: sources.terms, watched: Arc::new(watched), state, recogniser })
    }

    /// What it knows now. A zone that has become unreadable is not guessed.
    pub(crate) fn now(&self) -> Result<Now, String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        // After the lock: whoever has waited for another one to read a large zone asks about the files as they are then.
        let stamps = self.watched.stamps(state.stamps.as_ref());
        // A file that has just changed may change again unseen, so it is read again; but not for each of the thousands of requests that follow.
        // Nor is one that the system has not read, though nothing about it changes.
        let is_same = state.stamps.as_ref().is_none_or(|before| before.look_like(&stamps));
        let was_read = is_same && state.read.elapsed() < AGAIN;
        let is_read_again = state.stamps.as_ref() != Some(&stamps) && !was_read;
        let has_changed = is_read_again && self.read_again(state, stamps);
        // Whoever asks has waited for that.
        let time = WallTime::now().seconds();
        if has_changed {
            state.previous.change(state.known.as_deref().ok(), time);
        }
        let before = state.previous.copies(time);
        state.known.clone().map(|known| Now { known, changes: state.changes, before, time })
    }

    /// Reads the files. Returns whether anything else follows from them than before.
    fn read_again(&self, state: &mut State, stamps: Stamps) -> bool {
        // Whatever happens meanwhile, what was known before is not in force any more.
        let before = std::mem::replace(&mut state.known, Err("the zone could not be read".to_owned()));
        let loaded = self.watched.load();
        let is_refused = loaded.as_ref().is_err_and(SourceError::is_of_the_system);
        // A large zone is read for seconds, which are not those in which it need not be read again.
        (state.stamps, state.read) = (Some(stamps).filter(|_| !is_refused), Instant::now());
        #[cfg(test)]
        {
            state.reads += 1;
        }
        let loaded = loaded.map(Arc::new).map_err(|error| error.to_string());
        if let Err(error) = &loaded
            && before.as_ref().err() != Some(error)
        {
            tracing::error!("{error}; nothing is consented to until that is mended");
        }
        // What was written anew and is the same leaves what is known of its digests, and what was looked for in vain, as it was.
        let is_same = matches!((&before, &loaded), (Ok(before), Ok(loaded)) if before.says_what(loaded));
        state.known = if is_same { before } else { loaded };
        state.changes = state.changes.wrapping_add(u64::from(!is_same));
        !is_same
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
    fn decide(&self, client: &str, operation: &str, statement: &[u8]) -> Result<(), String> {
        let now = self.now()?;
        let decide = |bytes: &[u8]| self.consent_now(bytes, &now);
        match operation {
            "sign" => decide(statement),
            "sign-digest" => decide(&self.recogniser.recognise(client, statement, now.current(), now.time)?),
            _ => Err(format!("{operation} is nothing that a zone needs: this agent consents to sign and sign-digest")),
        }
    }
}

#[tonic::async_trait]
impl agent_server::Agent for Agent {
    async fn consent(&self, request: Request<ConsentRequest>) -> Result<Response<ConsentResponse>, Status> {
        let ConsentRequest { client, key, operation, statement, .. } = request.into_inner();
        let (this, account) = (self.clone(), client.clone());
        // It may read a zone.
        let decided = tokio::task::spawn_blocking(move || this.decide(&account, &operation, &statement)).await;
        let decided = decided.map_err(|error| Status::internal(error.to_string()))?;
        match &decided {
            Ok(()) => tracing::debug!(client, key, "consented"),
            Err(objection) => tracing::warn!(client, key, "refused: {objection}"),
        }
        Ok(Response::new(ConsentResponse { consents: decided.is_ok(), reason: decided.err().unwrap_or_default() }))
    }
}

#[cfg(test)]
mod tests {
    use std::{fmt::Write as _, fs, path::Path, thread};

    use super::*;
    use crate::sources::CopyFrom;

    /// An agent of the zone in this file, with keys beside it.
    fn agent(zone: &Path) -> Agent {
        let keys = zone.with_file_name("keys");
        fs::write(&keys, hex::encode([7; 32])).unwrap();
        Agent::open(Sources {
            origin: "example.".to_owned(),
            zone: CopyFrom::File(zone.to_owned()),
            keys,
            nsec3: None,
            terms: Terms::lasting(86_400),
            guesses: Guesses::of_days(&[14]),
            key_request: None,
        })
        .unwrap()
    }

    /// The zone's file has a time in the future: it is read until it has been left alone for a while, and then no more. Nothing that was the same each time has
    /// changed.
    #[test]
    fn a_zone_of_the_future_is_not_read_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let zone = folder.path().join("zone");
        let write = |serial: u32| {
            fs::write(&zone, format!("@ 60 IN SOA ns root {serial} 2 3 4 5\n")).unwrap();
            let hour = std::time::SystemTime::now() + Duration::from_secs(3_600);
            fs::File::options().write(true).open(&zone).unwrap().set_modified(hour).unwrap();
        };
        write(1);
        let agent = agent(&zone);
        let ask = |seconds: u64| {
            let end = Instant::now() + Duration::from_secs(seconds);
            // Once after the end in any case.
            loop {
                agent.now().unwrap();
                if Instant::now() >= end {
                    break;
                }
                thread::sleep(Duration::from_millis(50));
            }
            let state = agent.state.lock().unwrap();
            (state.read, state.changes)
        };
        let (read, changes) = ask(4);
        assert_eq!(changes, 0, "it says the same");
        assert_eq!(ask(2), (read, changes), "it has settled");
        write(2);
        assert_eq!((agent.now().unwrap().known.zone.serial(), agent.now().unwrap().changes), (Some(2), 1));
    }

    /// A zone is read for longer than [`AGAIN`], and many ask at once: it is read once for all of them.
    #[test]
    fn a_large_zone_is_read_once_for_all_who_wait() {
        let folder = tempfile::tempdir().unwrap();
        let [zone, keys] = ["zone", "keys"].map(|name| folder.path().join(name));
        let start = "@ 60 IN SOA ns root 1 2 3 4 5\n".to_owned();
        fs::write(&keys, hex::encode([7; 32])).unwrap();
        fs::write(&zone, &start).unwrap();
        let agent = agent(&zone);
        let names = |from: u32, to: u32| {
            (from..to).fold(String::new(), |mut text, host| {
                writeln!(text, "host-{host} 60 IN A 192.0.2.1").unwrap();
                text
            })
        };
        // So many that it takes long enough on this machine.
        let (mut count, mut text, mut took) = (2_000, start, Duration::ZERO);
        while took < AGAIN + Duration::from_millis(100) {
            text += &names(count / 2, count);
            fs::write(&zone, &text).unwrap();
            let began = Instant::now();
            agent.watched.load().unwrap();
            (count, took) = (count * 2, began.elapsed());
        }
        thread::sleep(AGAIN);
        let before = agent.state.lock().unwrap().reads;
        let began = Instant::now();
        thread::scope(|scope| {
            for _ in 0..32 {
                scope.spawn(|| assert!(agent.now().unwrap().known.zone.len() > 1_000));
            }
        });
        let reads = agent.state.lock().unwrap().reads - before;
        // The file has changed just now, and counts as one that may change again unseen.
        assert!((1..=2).contains(&reads), "{reads} times in {:?}", began.elapsed());
    }
}
