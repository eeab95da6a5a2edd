//! The operator's copy from a name server of its own: by AXFR over TCP, signed with TSIG, again whenever the serial changes.
//!
//! - [`tsig`]: signatures of messages.
//! - `connection`: messages over TCP.
//! - `axfr`: what is asked, and how a zone arrives.

mod axfr;
mod connection;
pub mod tsig;

use std::{
    io,
    sync::{Arc, Mutex, PoisonError, Weak},
    thread,
    time::Duration,
};

use tsig::{Key, TsigError};

use crate::{
    owner::Owner,
    zone::{Zone, ZoneError},
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
    /// Why the last attempt failed.
    trouble: Option<String>,
}

/// A copy that follows its primary for as long as somebody has it.
#[derive(Debug)]
pub struct Copy {
    primary: Primary,
    origin: Owner,
    state: Mutex<State>,
}

impl Copy {
    /// Begins to follow a primary. There is no zone yet.
    #[must_use]
    pub fn follow(primary: Primary, origin: Owner) -> Arc<Self> {
        let zone = Err(format!("{origin} has not been transferred from {} yet", primary.address));
        let state = Mutex::new(State { zone, transfers: 0, trouble: None });
        let copy = Arc::new(Self { primary, origin, state });
        let weak = Arc::downgrade(&copy);
        // It waits for a socket, and for seconds to pass: no thread of those that answer nodes.
        thread::spawn(move || keep(&weak));
        copy
    }

    /// The zone as it was transferred last.
    ///
    /// # Errors
    /// Why there is none.
    pub fn zone(&self) -> Result<Arc<Zone>, String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).zone.clone()
    }

    /// How often it was transferred.
    #[must_use]
    pub fn transfers(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).transfers
    }

    fn refresh(&self) {
        let known = self.zone().ok().and_then(|zone| zone.serial());
        let arrived = self.ask(known);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let address = &self.primary.address;
        match arrived {
            Ok(zone) => {
                if state.trouble.take().is_some() {
                    tracing::info!("{address} answers again");
                }
                if let Some(zone) = zone {
                    tracing::info!(zone = %zone.apex(), names = zone.len(), serial = zone.serial(), "the zone is transferred");
                    state.zone = Ok(Arc::new(zone));
                    state.transfers = state.transfers.wrapping_add(1);
                }
            }
            Err(error) => {
                let words = format!("{} cannot be transferred from {address}: {error}", self.origin);
                if state.zone.is_err() {
                    state.zone = Err(words.clone());
                }
                // Once, and not every few seconds.
                if state.trouble.as_ref() != Some(&words) {
                    let last = if state.zone.is_ok() { "; the last copy stays in force" } else { "" };
                    tracing::error!("{words}{last}");
                    state.trouble = Some(words);
                }
            }
        }
    }

    /// The zone, if its serial is another one than this.
    fn ask(&self, known: Option<u32>) -> Result<Option<Zone>, TransferError> {
        let (address, key) = (&self.primary.address, &self.primary.key);
        if known.is_some() && axfr::serial(address, key, &self.origin).map(Some)? == known {
            return Ok(None);
        }
        axfr::zone(address, key, &self.origin).map(Some)
    }
}

/// Asks again and again, until nobody has the copy.
fn keep(copy: &Weak<Copy>) {
    while let Some(copy) = copy.upgrade() {
        copy.refresh();
        let refresh = copy.primary.refresh;
        drop(copy);
        thread::sleep(refresh);
    }
}
