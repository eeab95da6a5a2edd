//! Nodes ask over a socket (`theta.agent.v1.Agent`).

mod places;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use theta_agent::SocketError;
use theta_names::WallTime;
use theta_wire::agent::{ConsentRequest, ConsentResponse, agent_server};
use tokio::task;
use tonic::{Request, Response, Status};

use self::places::Places;
use crate::{
    consent::{Consent, Facts, Refusal, consent},
    gathered::{Gathered, Readers, Wanted},
    kept::{Kept, MemoryError},
    memory::Counted,
    overrides::{self, Override, Overrides, shown, words::FLAG},
    signatures::KeySet,
    sources::{Known, SourceError, Sources},
    statements::{Identified, Standing, Stated, StatementError},
    store::{Folder, Store},
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
    /// Nobody can look after the overrides that all registries see.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
    /// The socket cannot be served on.
    #[error(transparent)]
    Socket(#[from] SocketError),
}

/// A decision needs what it finds in the store, and may need more by that: a manifest and its files, and the certificates above it. So often at most.
const MOST_ROUNDS: usize = 16;
/// Whoever has not consented for so many days may have a wrong clock.
const BREAK_DAYS: i64 = 45;
const DAY: i64 = 86_400;

/// How an agent goes about what it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Its files are looked at so often at most.
    pub look: Duration,
    /// So many requests are decided or wait at once at most, half of them of one client; the others hear that it is busy.
    pub waiting: usize,
    /// So long it waits for what a decision needs of the store.
    pub patience: Duration,
    /// Whether its last consent may be long ago.
    pub after_break: bool,
}

impl Default for Pace {
    fn default() -> Self {
        let (look, patience) = (Duration::from_secs(1), Duration::from_secs(10));
        Self { look, waiting: 32, patience, after_break: false }
    }
}

#[derive(Debug)]
struct State {
    sources: Sources,
    /// The files are looked at so often at most.
    pause: Duration,
    /// When the files were looked at last.
    looked: Instant,
    known: Result<Known, String>,
    /// What follows from what is known; `None` if that has changed since.
    standing: Option<Standing>,
    kept: Kept,
    /// The overrides that all registries see.
    shown: Overrides,
    /// Whether the last consent may be as long ago as the clock says.
    after_break: bool,
}

impl State {
    /// Looks at the files, unless that was a moment ago.
    fn look_if_due(&mut self) {
        if self.looked.elapsed() >= self.pause {
            self.look();
        }
    }

    /// Reads the files again if they have changed, or could not be read. What has become unreadable is not guessed.
    fn look(&mut self) {
        self.looked = Instant::now();
        if let Ok(known) = &self.known
            && self.sources.stamps(&known.registry, &known.stamps).is_some_and(|stamps| stamps == known.stamps)
        {
            return;
        }
        self.standing = None;
        let before = self.known.as_ref().ok().map(|known| &known.verified);
        let last = self.known.as_ref().ok().map(|known| &known.stamps);
        self.known = self.sources.load(before, last).map_err(|error| error.to_string());
        if let Err(error) = &self.known {
            tracing::error!("{error}; nothing is consented to until that is mended");
        }
        self.see();
    }

    /// Of what this registry has taken up of operators' statements, those that all registries see. Where that has changed something else follows.
    fn see(&mut self) {
        let Ok(Known { overrides, stated, .. }) = &mut self.known else { return };
        let seen = overrides.statements.iter().filter(|one| self.shown.statements.contains(one));
        let seen = seen.map(|one| one.counted().digest).collect();
        if stated.shown != seen {
            (stated.shown, self.standing) = (seen, None);
        }
    }

    /// What follows is remembered at once, and not when somebody asks next: it may be hidden by then. By a clock that may be wrong nothing follows, which whoever
    /// asks is told.
    fn stand(&mut self) -> Result<(), MemoryError> {
        let (Ok(known), None) = (&self.known, &self.standing) else { return Ok(()) };
        let now = now();
        if check_clock(&self.kept, now, self.after_break).is_ok() {
            self.standing = Some(stand(&known.stated, &mut self.kept, now, None)?);
        }
        Ok(())
    }

    /// Whether it is about this RPKI and a member of it, as far as that is known.
    fn concerns(&self, one: &Identified) -> bool {
        let fits = self.known.as_ref().map(|known| one.statement().fits(&known.registry).map(drop));
        !matches!(fits, Ok(Err(StatementError::Elsewhere(_) | StatementError::Stranger(_))))
    }
}

impl shown::Looks for State {
    fn operators(&self) -> Option<KeySet> {
        self.known.as_ref().ok()?.registry.operators.clone()
    }

    fn take(&mut self, shown: Overrides) {
        // Whether this registry has taken it up is said as it is now.
        self.look();
        let none = Overrides::default();
        let own = self.known.as_ref().map_or(&none, |known| &known.overrides);
        let here = |is_own: bool| if is_own { "and so does this registry" } else { "and this registry does not" };
        for one in shown.objects.iter().filter(|one| !self.shown.objects.contains(one) && now() < one.until) {
            let (Override { key, digest, reason, until }, here) = (one, here(own.objects.contains(one)));
            let digest = hex::encode(digest);
            tracing::warn!(
                "{FLAG}operators permit {} to sign the bytes with the SHA-256 {digest} until {until} ({reason}), {here}",
                key.escape_debug()
            );
        }
        let lasts = |one: &&Identified| one.counted().grants(now()) && self.concerns(one);
        for one in shown.statements.iter().filter(|one| !self.shown.statements.contains(one)).filter(lasts) {
            let (Counted { digest, until, .. }, here) = (one.counted(), here(own.statements.contains(one)));
            let (digest, until) = (hex::encode(digest), until.unwrap_or_default());
            tracing::warn!(
                "{FLAG}{}, from {} until {until}, SHA-256 {digest}, {here}",
                one.overriding(),
                one.statement().begins()
            );
        }
        for one in self.shown.statements.iter().filter(|one| !shown.statements.contains(one)).filter(lasts) {
            tracing::warn!("{FLAG}not all registries see any more that {}", one.overriding());
        }
        self.shown = shown;
        self.see();
        if let Err(error) = self.stand() {
            tracing::error!("{error}");
        }
    }
}

/// A registry's agent. It reads its files again when they change.
#[derive(Clone, Debug)]
pub struct Agent {
    readers: Readers,
    state: Arc<Mutex<State>>,
    places: Places,
}

/// What it is asked.
struct Asked {
    key: String,
    operation: String,
    statement: Bytes,
}

/// What becomes of a request by what has been read of the store.
enum Step {
    Decided(Decision),
    /// It takes more of the store.
    Wants(BTreeSet<Wanted>),
}

fn now() -> i64 {
    i64::try_from(WallTime::now().seconds()).unwrap_or(i64::MAX)
}

/// Refuses a time that is far from that of the last consent, unless somebody has said that it may be. By a clock that is ahead statements would count that have not
/// begun.
fn check_clock(kept: &Kept, now: i64, after_break: bool) -> Result<(), String> {
    let away = kept.memory().latest().map_or(0, |latest| now.saturating_sub(latest) / DAY);
    if away <= BREAK_DAYS || after_break {
        return Ok(());
    }
    Err(format!(
        "this machine's clock says that the last consent was {away} days ago, and nothing is consented to by a clock that may be wrong: mend it, or, if that is so, start the agent once with --after-break"
    ))
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
    pub fn open(sources: Sources, kept: Kept, pace: Pace) -> Result<Self, AgentError> {
        let store = Folder::new(sources.store.clone());
        Self::open_with(sources, kept, pace, Arc::new(store))
    }

    /// The same with another store than the folder.
    ///
    /// # Errors
    /// [`AgentError`].
    pub fn open_with(sources: Sources, kept: Kept, pace: Pace, store: Arc<dyn Store>) -> Result<Self, AgentError> {
        let Pace { look, waiting, patience, after_break } = pace;
        let looked = Instant::now();
        let known = sources.load(None, None)?;
        let folder = sources.store.join(shown::FOLDER);
        let (known, shown) = (Ok(known), Overrides::default());
        let state = State { sources, pause: look, looked, known, standing: None, kept, shown, after_break };
        let state = Arc::new(Mutex::new(state));
        shown::watch(folder, &state, look, patience)?;
        {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = check_clock(&state.kept, now(), after_break) {
                tracing::error!("{error}");
            }
            state.stand()?;
        }
        let (readers, places) = (Readers::new(store, patience), Places::new(waiting));
        Ok(Self { readers, state, places })
    }

    /// Whether it consents, and to what. What it needs of the store is read while others are decided about.
    ///
    /// # Errors
    /// Its objection.
    async fn decide(&self, asked: Asked) -> Result<Decision, String> {
        let (mut gathered, deadline) = (Gathered::about(&asked.statement), self.readers.deadline());
        let asked = Arc::new(asked);
        for _ in 0..MOST_ROUNDS {
            let (this, asked) = (self.clone(), Arc::clone(&asked));
            // It reads files, waits for the disk, and verifies signatures.
            let step = task::spawn_blocking(move || (this.decide_by(&asked, &gathered), gathered));
            let (said, read) = step.await.map_err(|error| error.to_string())?;
            gathered = read;
            match said? {
                Step::Decided(decision) => return Ok(decision),
                Step::Wants(wanted) => self.readers.gather(&mut gathered, wanted, deadline).await,
            }
        }
        Err("what it covers leads to ever more of the store".to_owned())
    }

    /// Decides by what has been read of the store, if that is all that it takes. One at a time: two that are not compatible cannot both be found to be new.
    fn decide_by(&self, asked: &Asked, gathered: &Gathered) -> Result<Step, String> {
        let Asked { key, operation, statement } = asked;
        if operation != "sign" {
            return Err(format!("{operation} does not show what is signed: this agent consents to sign"));
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.look_if_due();
        let State { known, standing, kept, shown, after_break, .. } = &mut *state;
        let known = known.as_ref().map_err(Clone::clone)?;
        let now = now();
        check_clock(kept, now, *after_break)?;
        let current = match standing.take() {
            Some(current) if current.holds(now) => current,
            before => stand(&known.stated, kept, now, before).map_err(|error| error.to_string())?,
        };
        let standing = standing.insert(current);
        let facts = Facts {
            registry: &known.registry,
            authorised: &standing.authorised,
            pool: &known.pool,
            store: gathered,
            memory: kept.memory(),
            now,
        };
        let decided = match consent(key, statement, &facts) {
            Ok(Consent { what, entries }) => {
                let is_overridden = what.starts_with(FLAG);
                Ok((Decision { what, is_overridden }, entries))
            }
            Err(refusal) => {
                let digest = Sha256::digest(statement).into();
                overridden((key, &digest), (&known.overrides, shown), &refusal, &facts)
                    .map(|decision| (decision, overrides::entries(key, statement, &facts)))
            }
        };
        // Whatever was decided without that was decided for the lack of it.
        let missing = gathered.missing();
        if !missing.is_empty() {
            return Ok(Step::Wants(missing));
        }
        let (decision, entries) = decided?;
        kept.remember(&entries).map_err(|error| error.to_string())?;
        Ok(Step::Decided(decision))
    }
}

/// What was consented to, and why, in words for the record.
struct Decision {
    what: String,
    /// Whether operators permit it, though the agent has said no.
    is_overridden: bool,
}

/// What is not consented to, if an override permits it that this registry has taken up, and that all registries see.
fn overridden(
    (key, digest): (&str, &[u8; 32]),
    (own, shown): (&Overrides, &Overrides),
    refusal: &Refusal,
    facts: &Facts<'_>,
) -> Result<Decision, String> {
    let now = facts.now;
    let mut permits = own.objects.iter().filter(|one| one.permits(key, digest, now)).peekable();
    let elsewhere = shown.objects.iter().find(|one| one.permits(key, digest, now));
    match (permits.peek(), elsewhere) {
        (None, None) => Err(stated_elsewhere((own, shown), refusal, facts)),
        (None, Some(Override { reason, .. })) => Err(format!(
            "OVERRIDE elsewhere: operators permit it ({reason}), and this registry has not taken that up: {refusal}"
        )),
        (Some(_), _) => match permits.find(|one| shown.objects.contains(one)) {
            Some(Override { reason, .. }) => {
                let what =
                    format!("{FLAG}operators permit the SHA-256 {} ({reason}), though {refusal}", hex::encode(digest));
                Ok(Decision { what, is_overridden: true })
            }
            None => Err(format!(
                "an override permits it that not all registries see: put it into {}/ of the store as well; {refusal}",
                shown::FOLDER
            )),
        },
    }
}

/// A refusal, with what operators state about the same in a member's place, if that is not both here and where all registries see it.
fn stated_elsewhere((own, shown): (&Overrides, &Overrides), refusal: &Refusal, facts: &Facts<'_>) -> String {
    let lacks = |of: &Overrides, in_: &Overrides| {
        let one = of.statements.iter().find(|one| {
            one.statement().begins() <= facts.now
                && one.counted().grants(facts.now)
                && !in_.statements.contains(one)
                && refusal.is_about(one, facts.registry)
        });
        one.map(Identified::overriding)
    };
    if let Some(stated) = lacks(shown, own) {
        return format!("OVERRIDE elsewhere: {stated}, and this registry has not taken that up: {refusal}");
    }
    if let Some(stated) = lacks(own, shown) {
        let folder = shown::FOLDER;
        return format!(
            "an override has it that not all registries see ({stated}): put it into {folder}/ of the store as well; {refusal}"
        );
    }
    refusal.to_string()
}

#[tonic::async_trait]
impl agent_server::Agent for Agent {
    async fn consent(&self, request: Request<ConsentRequest>) -> Result<Response<ConsentResponse>, Status> {
        let ConsentRequest { client, key, operation, statement, .. } = request.into_inner();
        let Some(place) = self.places.take(&client) else {
            tracing::warn!(client, key, "refused: {BUSY}");
            return Ok(Response::new(ConsentResponse { consents: false, reason: BUSY.to_owned() }));
        };
        let (this, asked) = (self.clone(), Asked { key: key.clone(), operation, statement });
        // Its place is taken until the work is done, even if nobody waits for the answer any more.
        let decided = task::spawn(async move { (this.decide(asked).await, place) }).await;
        let (decided, _place) = decided.map_err(|error| Status::internal(error.to_string()))?;
        match &decided {
            Ok(Decision { what, is_overridden: false }) => tracing::info!(client, key, "consented to {what}"),
            Ok(Decision { what, is_overridden: true }) => tracing::warn!(client, key, "{what}"),
            Err(objection) => tracing::warn!(client, key, "refused: {objection}"),
        }
        let (consents, reason) = match decided {
            Ok(Decision { what, .. }) => (true, what),
            Err(objection) => (false, objection),
        };
        Ok(Response::new(ConsentResponse { consents, reason }))
    }
}
