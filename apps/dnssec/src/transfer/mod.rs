//! The operator's copy from a name server of its own: by AXFR over TCP, signed with TSIG, and by IXFR whenever the serial changes. A copy whose
//! primary is kept away expires.
//!
//! - [`tsig`]: signatures of messages.
//! - `connection`: messages over TCP; `framing`: how TCP carries them.
//! - `answers`: what is asked, and the records that answer it.
//! - [`notify`]: what a primary tells when the zone has changed.
//! - `axfr`: how a zone arrives; `ixfr`: how what has changed of it does.

mod answers;
mod axfr;
mod connection;
mod framing;
mod ixfr;
pub mod notify;
pub mod tsig;

use std::{
    io,
    net::SocketAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::{Duration, Instant},
};

use ixfr::Changes;
use notify::{ListenError, News};
use tsig::{Key, TsigError};

use crate::{
    owner::Owner,
    zone::{Zone, ZoneError, is_after},
};

/// Why a zone was not transferred.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// There is no connection.
    #[error("{0}")]
    Connection(io::Error),
    /// It takes too long.
    #[error("the primary is silent, or too slow")]
    Late,
    /// The connection ended before the zone.
    #[error("the connection ended before the zone did")]
    Ended,
    /// Too many bytes.
    #[error("there are more bytes than a zone may have")]
    Long,
    /// A message is wrong.
    #[error("{0}")]
    Message(&'static str),
    /// The primary says no.
    #[error("the primary says {0}: does it know the key, may the key transfer the zone, and has it the zone?")]
    Refused(String),
    /// A message is not believed.
    #[error(transparent)]
    Tsig(#[from] TsigError),
    /// What arrived is no zone.
    #[error(transparent)]
    Zone(#[from] ZoneError),
}

/// A name server that has the zone.
#[derive(Clone, Debug)]
pub struct Primary {
    /// Its host and port.
    pub address: String,
    /// The key that it is asked with.
    pub key: Key,
    /// How often it is asked for the serial.
    pub refresh: Duration,
}

#[derive(Debug)]
struct State {
    zone: Result<Arc<Zone>, String>,
    /// Counts the transfers.
    transfers: u64,
    /// Counts those that brought differences alone.
    differences: u64,
    /// Counts how often there was another zone, or none any more.
    changes: u64,
    /// When the last question was asked that the primary has answered.
    reached: Instant,
    /// Why the last attempt failed.
    trouble: Option<String>,
}

/// A copy that follows its primary for as long as somebody has it.
#[derive(Debug)]
pub struct Copy {
    primary: Primary,
    origin: Owner,
    state: Mutex<State>,
    news: Arc<News>,
}

impl Copy {
    /// Begins to follow a primary. There is no zone yet.
    #[must_use]
    pub fn follow(primary: Primary, origin: Owner) -> Arc<Self> {
        let zone = Err(format!("{origin} has not been transferred from {} yet", primary.address));
        let reached = Instant::now();
        let state = Mutex::new(State { zone, transfers: 0, differences: 0, changes: 0, reached, trouble: None });
        let news = Arc::new(News::default());
        let copy = Arc::new(Self { primary, origin, state, news: Arc::clone(&news) });
        let weak = Arc::downgrade(&copy);
        // It waits for a socket, and for seconds to pass: no thread of those that answer nodes.
        thread::spawn(move || keep(&weak, &news));
        copy
    }

    /// Listens for what the primary tells, by UDP and TCP: then it is asked at once, though not more than once a second. The address, of which the port is
    /// chosen by the system if it is 0.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn listen(&self, address: SocketAddr) -> Result<SocketAddr, ListenError> {
        notify::listen(address, self.origin.clone(), self.primary.key.clone(), Arc::clone(&self.news))
    }

    /// The zone as it was transferred last.
    ///
    /// # Errors
    /// Why there is none.
    pub fn zone(&self) -> Result<Arc<Zone>, String> {
        self.state().zone.clone()
    }

    /// How often it was transferred.
    #[must_use]
    pub fn transfers(&self) -> u64 {
        self.state().transfers
    }

    /// How often of these only differences came.
    #[must_use]
    pub fn differences(&self) -> u64 {
        self.state().differences
    }

    /// How often there was another zone, or none any more.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.state().changes
    }

    /// What it has now. Whoever keeps the primary away keeps the operator from taking something out of the zone, but not for longer than the SOA
    /// record says (RFC 1035, section 3.3.13).
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let longest = state.zone.as_ref().ok().map(|zone| self.longest(zone));
        if let Some(longest) = longest.filter(|longest| state.reached.elapsed() > *longest) {
            let (origin, address, seconds) = (&self.origin, &self.primary.address, longest.as_secs());
            let words =
                format!("the copy of {origin} has expired: {address} has not been reached for {seconds} seconds");
            tracing::error!("{words}");
            state.zone = Err(words);
            state.changes = state.changes.wrapping_add(1);
        }
        state
    }

    /// How long a copy is good without its primary: that is asked twice at least.
    fn longest(&self, zone: &Zone) -> Duration {
        let expire = Duration::from_secs(zone.expire().unwrap_or_default().into());
        expire.max(self.primary.refresh.saturating_mul(2))
    }

    /// Asks the primary; whether it has answered.
    fn refresh(&self) -> bool {
        let (known, asked) = (self.zone().ok(), Instant::now());
        let arrived = self.ask(known.as_deref());
        let has_answered = arrived.is_ok();
        let mut state = self.state();
        let address = &self.primary.address;
        match arrived {
            Ok(changes) => {
                if state.trouble.take().is_some() {
                    tracing::info!("{address} answers again");
                }
                state.take(changes, asked);
            }
            Err(error) => {
                let words = format!("{} cannot be transferred from {address}: {error}", self.origin);
                if state.transfers == 0 && state.zone.as_ref().err() != Some(&words) {
                    state.zone = Err(words.clone());
                    state.changes = state.changes.wrapping_add(1);
                }
                // Once, and not every few seconds.
                if state.trouble.as_ref() != Some(&words) {
                    let last = if state.zone.is_ok() { "; the last copy stays in force" } else { "" };
                    tracing::error!("{words}{last}");
                    state.trouble = Some(words);
                }
            }
        }
        has_answered
    }

    /// What has changed since this copy, if its serial has.
    fn ask(&self, known: Option<&Zone>) -> Result<Changes, TransferError> {
        let (address, key) = (&self.primary.address, &self.primary.key);
        if let Some((zone, own)) = known.and_then(|zone| Some((zone, zone.serial()?))) {
            let serial = answers::serial(address, key, &self.origin)?;
            if serial == own {
                return Ok(Changes::None);
            }
            // A primary that was set back knows of no differences.
            if is_after(serial, own) {
                match ixfr::changes(address, key, zone) {
                    Ok(changes) => return Ok(changes),
                    Err(error) => {
                        tracing::warn!(
                            "{address} does not say what has changed: {error}; the whole zone is transferred"
                        );
                    }
                }
            }
        }
        axfr::zone(address, key, &self.origin).map(Changes::Whole)
    }
}

impl State {
    /// Takes what a primary has answered that was asked then.
    fn take(&mut self, changes: Changes, asked: Instant) {
        let (zone, differences) = match changes {
            // If the copy has expired meanwhile, it is not known any more, and comes whole the next time.
            Changes::None => {
                self.reached = asked;
                return;
            }
            Changes::Whole(zone) => (zone, 0),
            Changes::Differences(zone) => (zone, 1),
        };
        tracing::info!(zone = %zone.apex(), names = zone.len(), serial = zone.serial(), "the zone is transferred");
        (self.zone, self.reached) = (Ok(Arc::new(zone)), asked);
        self.transfers = self.transfers.wrapping_add(1);
        self.differences = self.differences.wrapping_add(differences);
        self.changes = self.changes.wrapping_add(1);
    }
}

/// How long after an attempt that has failed the primary is asked again, if that is not due before.
const AGAIN: Duration = Duration::from_secs(10);

/// Asks again and again, until nobody has the copy.
fn keep(copy: &Weak<Copy>, news: &News) {
    while let Some(copy) = copy.upgrade() {
        let asked = Instant::now();
        // A change that was told of, and was not transferred, is not told again.
        let has_answered = catch_unwind(AssertUnwindSafe(|| copy.refresh())).unwrap_or(false);
        let refresh = copy.primary.refresh;
        let refresh = if has_answered { refresh } else { refresh.min(AGAIN) };
        drop(copy);
        news.wait(refresh, asked);
    }
}
