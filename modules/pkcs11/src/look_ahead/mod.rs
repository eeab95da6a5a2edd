//! Signatures that are made before the host asks for them. A name server asks for those of a zone one after the other, each after the answer to the
//! one before; whoever has a copy of the zone knows after a few which ones follow (`theta-look-ahead`), and the nodes make many together for less.
//! Nothing that fails here fails a call of the host: it is signed as it would be without.
//!
//! - `event`: what is to be asked about and signed, and when; `recent` sees that there is something larger, `shelf` has what is signed, `pace` says
//!   how much is under way.
//! - `crew`: the threads that ask and sign; `service`: whom they ask.

mod crew;
mod event;
mod pace;
mod recent;
mod service;
mod shelf;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use theta_client::blocking::Client;
use theta_look_ahead::Digest;
use theta_schemes::keys::KeyId;

use self::{crew::Crew, event::Event, service::Service, shelf::Taken};
use crate::{log::Log, objects::LiveKey};

/// The most keys that sign ahead at one time.
const MOST_KEYS: usize = 16;

/// What is looked ahead with the keys of a token.
#[derive(Debug)]
pub(crate) struct LookAhead {
    service: Arc<Service>,
    keys: Mutex<HashMap<KeyId, Arc<Ahead>>>,
}

/// What is looked ahead with one key.
#[derive(Debug, Default)]
struct Ahead {
    event: Mutex<Event>,
    /// Told of each change of what is under way.
    changed: Condvar,
}

impl Ahead {
    fn event(&self) -> MutexGuard<'_, Event> {
        self.event.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a signature that is under way, so long at most.
    fn take(&self, digest: &Digest, patience: Duration) -> Taken {
        let (mut event, deadline) = (self.event(), Instant::now() + patience);
        loop {
            let now = Instant::now();
            let taken = event.take(digest, now);
            let left = deadline.saturating_duration_since(now);
            if taken != Taken::UnderWay || left.is_zero() {
                return taken;
            }
            event = self.changed.wait_timeout(event, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl LookAhead {
    /// Asks at this socket, and the nodes for so long.
    pub(crate) fn new(socket: PathBuf, timeout: Duration, log: Log) -> Self {
        Self { service: Arc::new(Service::new(socket, timeout, log)), keys: Mutex::default() }
    }

    /// The signature of a digest, if it was made before it is asked for. Otherwise it is to be made now, and what follows it may be made by the
    /// same client meanwhile.
    pub(crate) fn signature(&self, client: &Client, key: &LiveKey, digest: &Digest) -> Option<Bytes> {
        let ahead = self.of(*key.public.key_id())?;
        // Half of the time is left for the nodes, should it not come.
        let taken = ahead.take(digest, self.service.timeout / 2);
        let (report, is_due) = {
            let mut event = ahead.event();
            (event.report(taken == Taken::Unknown), event.is_due(Instant::now()))
        };
        if let Some(counts) = report {
            self.service.report(&key.reference, counts);
        }
        if is_due {
            let (service, client, key) = (Arc::clone(&self.service), client.clone(), key.clone());
            Crew { service, ahead, client, key }.hire();
        }
        match taken {
            Taken::Made(signature) => Some(signature),
            Taken::UnderWay | Taken::Known | Taken::Unknown => None,
        }
    }

    fn keys(&self) -> MutexGuard<'_, HashMap<KeyId, Arc<Ahead>>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None`: too many keys sign at one time.
    fn of(&self, key: KeyId) -> Option<Arc<Ahead>> {
        let mut keys = self.keys();
        if !keys.contains_key(&key) {
            // What a key has made is forgotten with it.
            let now = Instant::now();
            keys.retain(|_, ahead| !ahead.event().is_idle(now));
            if keys.len() >= MOST_KEYS {
                return None;
            }
        }
        Some(Arc::clone(keys.entry(key).or_default()))
    }

    /// Forgets what was made with this key.
    pub(crate) fn forget(&self, key: &KeyId) {
        if let Some(ahead) = self.keys().remove(key) {
            forgotten(&ahead);
        }
    }

    /// Forgets everything: the host has logged out, and another one may log in.
    pub(crate) fn forget_all(&self) {
        self.keys().drain().for_each(|(_, ahead)| forgotten(&ahead));
    }
}

fn forgotten(ahead: &Ahead) {
    ahead.event().forget();
    ahead.changed.notify_all();
}

/// With the last of its tokens a module ends, and what was made with it.
impl Drop for LookAhead {
    fn drop(&mut self) {
        self.forget_all();
    }
}
