//! Where an agent knows its zone and the keys from.

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use theta_names::FileStamp;

use crate::{
    consent::Terms,
    denial::{
        Denial,
        hashed::{Collision, Parameters},
    },
    digests::{Guesses, candidates::Candidates, offline::Offline},
    key_request::{self, KeyRequest},
    keys::{Keys, MOST_KEYS},
    transfer::{Copy, Primary, notify::ListenError},
    zone::{MOST_FILE, Zone, ZoneError},
};

/// Where the operator's own copy of the zone comes from.
#[derive(Clone, Debug)]
pub enum CopyFrom {
    /// A zone file.
    File(PathBuf),
    /// A name server of the operator's own, and where it may tell that the zone has changed.
    Primary(Box<Primary>, Vec<SocketAddr>),
}

/// What an operator's agent knows.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The zone's name, with its dot.
    pub origin: String,
    /// The operator's own copy of the zone, without signatures.
    pub zone: CopyFrom,
    /// The keys that the operators have agreed on ([`Keys::parse`]).
    pub keys: PathBuf,
    /// What a key that is kept offline is asked to sign ([`KeyRequest::parse`]), if it signs ahead.
    pub key_request: Option<PathBuf>,
    /// How names are hashed, if the zone denies them by NSEC3; otherwise by NSEC.
    pub nsec3: Option<Parameters>,
    /// What is demanded of signatures besides.
    pub terms: Terms,
    /// How digests are recognised.
    pub guesses: Guesses,
}

/// Why an agent does not know its zone.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
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
    /// The zone has no name.
    #[error(transparent)]
    Origin(ZoneError),
    /// Two names have one hash.
    #[error(transparent)]
    Collision(#[from] Collision),
    /// Nothing can be told where it was to be.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The zone's file is being written.
    #[error(
        "{}: it changes while it is read, or its last line has no end: is it being written? Write it beside, and rename it",
        .0.display()
    )]
    Unfinished(PathBuf),
    /// A file is no key signing request.
    #[error("{}: {reason}: it is no key signing request, as `keymgr ZONE generate-ksr` or `dnssec-ksr request` prints it", path.display())]
    KeyRequest {
        /// The file.
        path: PathBuf,
        /// What is wrong, in words.
        reason: String,
    },
    /// The zone was not transferred.
    #[error("{0}")]
    Transfer(String),
    /// A line of the file of keys is no key.
    #[error(
        "{}: line {line} is no public key as `theta keys export NAME --format dnskey` prints it (algorithm 8, 13 or 15), with \
         ksk or zsk before it if it has a role, or it is there with another role, or is the one after {MOST_KEYS}",
        path.display()
    )]
    Keys {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
}

impl SourceError {
    /// Whether the system has not read a file, or too little of it, for a reason that does not stand in the file: it may next time, though the
    /// file does not change.
    pub(crate) const fn is_of_the_system(&self) -> bool {
        matches!(self, Self::Read { .. })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, SourceError> {
    read_at_most(path, MOST_FILE, || SourceError::Long(path.to_owned()))
}

fn read_at_most(path: &Path, most: u64, long: impl FnOnce() -> SourceError) -> Result<Vec<u8>, SourceError> {
    let failed = |reason| SourceError::Read { path: path.to_owned(), reason };
    if fs::metadata(path).map_err(failed)?.len() > most {
        return Err(long());
    }
    fs::read(path).map_err(failed)
}

/// Zone and keys as they are now, and what follows from them.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) zone: Arc<Zone>,
    pub(crate) denial: Denial,
    pub(crate) keys: Keys,
    pub(crate) offline: Option<Offline>,
    pub(crate) candidates: Candidates,
}

impl Known {
    /// Whether the same follows from both, for the same agent: how names are denied follows from the zone.
    pub(crate) fn says_what(&self, other: &Self) -> bool {
        self.zone == other.zone && self.keys == other.keys && self.request() == other.request()
    }

    fn request(&self) -> Option<&KeyRequest> {
        self.offline.as_ref().map(Offline::request)
    }
}

/// What tells sources from what they were before.
#[derive(Debug, PartialEq)]
pub(crate) struct Stamps {
    zone: ZoneStamp,
    keys: Option<FileStamp>,
    key_request: Option<FileStamp>,
}

impl Stamps {
    /// Whether nothing tells them apart, though a file may have changed so recently that another change may be behind that.
    pub(crate) fn look_like(&self, other: &Self) -> bool {
        let files = |one: Option<FileStamp>, other: Option<FileStamp>| match (one, other) {
            (Some(one), Some(other)) => one.looks_like(&other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let zones = match (&self.zone, &other.zone) {
            (ZoneStamp::File(one), ZoneStamp::File(other)) => files(*one, *other),
            (one, other) => one == other,
        };
        zones && files(self.keys, other.keys) && files(self.key_request, other.key_request)
    }
}

#[derive(Debug, PartialEq)]
enum ZoneStamp {
    File(Option<FileStamp>),
    /// How often there was another one, or none any more.
    Changes(u64),
}

#[derive(Debug)]
enum ZoneSource {
    File(PathBuf),
    Transferred(Arc<Copy>),
}

/// Sources that are being looked at.
#[derive(Debug)]
pub(crate) struct Watched {
    origin: String,
    zone: ZoneSource,
    keys: PathBuf,
    key_request: Option<PathBuf>,
    nsec3: Option<Parameters>,
    key_ttls: Vec<u32>,
    /// That of the last copy, whose hashes serve the next one: with many names and iterations they take seconds.
    denial: Mutex<Option<Denial>>,
}

impl Watched {
    /// Begins to transfer, if that is where the zone comes from.
    pub(crate) fn new(sources: &Sources) -> Result<Self, SourceError> {
        let zone = match &sources.zone {
            CopyFrom::File(path) => ZoneSource::File(path.clone()),
            CopyFrom::Primary(primary, notified_at) => {
                let origin = Zone::origin(&sources.origin).map_err(SourceError::Origin)?;
                let copy = Copy::follow(primary.as_ref().clone(), origin);
                for address in notified_at {
                    copy.listen(*address)?;
                }
                ZoneSource::Transferred(copy)
            }
        };
        let Sources { origin, keys, key_request, nsec3, terms, .. } = sources.clone();
        Ok(Self { origin, zone, keys, key_request, nsec3, key_ttls: terms.key_ttls, denial: Mutex::default() })
    }

    /// What the sources are now, and were before: a file settles when it has looked the same for a while.
    pub(crate) fn stamps(&self, before: Option<&Stamps>) -> Stamps {
        let zone = match &self.zone {
            ZoneSource::File(path) => {
                let before = before.and_then(|before| match &before.zone {
                    ZoneStamp::File(stamp) => stamp.as_ref(),
                    ZoneStamp::Changes(_) => None,
                });
                ZoneStamp::File(FileStamp::after(path, before))
            }
            ZoneSource::Transferred(copy) => ZoneStamp::Changes(copy.changes()),
        };
        let request = before.and_then(|before| before.key_request.as_ref());
        Stamps {
            zone,
            keys: FileStamp::after(&self.keys, before.and_then(|before| before.keys.as_ref())),
            key_request: self.key_request.as_ref().and_then(|path| FileStamp::after(path, request)),
        }
    }

    fn zone(&self) -> Result<Arc<Zone>, SourceError> {
        match &self.zone {
            ZoneSource::Transferred(copy) => copy.zone().map_err(SourceError::Transfer),
            ZoneSource::File(path) => {
                let wrong = |reason| SourceError::Zone { path: path.clone(), reason };
                let before = FileStamp::of(path);
                let text = read(path)?;
                // What is written in its place, and not beside it and renamed, is seen in parts.
                let is_same = before.zip(FileStamp::of(path)).is_some_and(|(before, after)| before.looks_like(&after));
                if !is_same || text.last() != Some(&b'\n') {
                    return Err(SourceError::Unfinished(path.clone()));
                }
                let zone = Zone::parse(&text, &self.origin).map_err(wrong)?;
                tracing::info!(zone = %zone.apex(), names = zone.len(), "the zone is read");
                Ok(Arc::new(zone))
            }
        }
    }

    /// Goes on without a key signing request that is wrong: all else is what it was, as the request is no consent.
    pub(crate) fn load(&self) -> Result<Known, SourceError> {
        self.load_or(|error| {
            tracing::error!("{error}; what it asks for is not recognised until that is mended");
            Ok(None)
        })
    }

    /// The same as the agent starts: whoever starts it is told.
    pub(crate) fn load_first(&self) -> Result<Known, SourceError> {
        self.load_or(Err)
    }

    fn load_or(
        &self,
        wrong_request: impl FnOnce(SourceError) -> Result<Option<KeyRequest>, SourceError>,
    ) -> Result<Known, SourceError> {
        let text = read(&self.keys)?;
        let wrong = |line| SourceError::Keys { path: self.keys.clone(), line };
        let keys = Keys::parse(&String::from_utf8_lossy(&text)).map_err(wrong)?;
        let zone = self.zone()?;
        let mut last = self.denial.lock().unwrap_or_else(PoisonError::into_inner);
        let denial = Denial::new(&zone, self.nsec3.as_ref(), last.as_ref())?;
        *last = Some(denial.clone());
        drop(last);
        let candidates = Candidates::new(&zone, &denial, &keys, &self.key_ttls);
        let request = self.key_request(&zone).or_else(wrong_request)?;
        let offline = request.map(|request| Offline::new(Arc::clone(&zone), &keys, &self.key_ttls, request));
        Ok(Known { zone, denial, keys, offline, candidates })
    }

    /// What a key that is kept offline is asked to sign of this zone, if there is such a key.
    fn key_request(&self, zone: &Zone) -> Result<Option<KeyRequest>, SourceError> {
        let Some(path) = &self.key_request else { return Ok(None) };
        let wrong = |reason| SourceError::KeyRequest { path: path.clone(), reason };
        let long = || wrong(format!("it has more than {} bytes", key_request::MOST_BYTES));
        let text = read_at_most(path, key_request::MOST_BYTES, long)?;
        KeyRequest::parse(&String::from_utf8_lossy(&text), zone.apex()).map_err(wrong).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An operator changes a record, adds a name, takes one away, and changes the keys.
    #[test]
    fn a_change_of_the_zone_costs_the_hashes_of_new_names() {
        let folder = tempfile::tempdir().unwrap();
        let [zone, keys] = ["zone", "keys"].map(|name| folder.path().join(name));
        let hosts: String = (0..200).map(|host| format!("host-{host} 60 IN A 192.0.2.{host}\n")).collect();
        let text = format!("@ 60 IN SOA ns root 1 2 3 4 5\n{hosts}");
        fs::write(&keys, hex::encode([7; 32])).unwrap();
        fs::write(&zone, &text).unwrap();
        let watched = Watched::new(&Sources {
            origin: "example.".to_owned(),
            zone: CopyFrom::File(zone.clone()),
            keys: keys.clone(),
            nsec3: Some("100,aabb".parse().unwrap()),
            terms: Terms::lasting(86_400),
            guesses: Guesses::of_days(&[14]),
            key_request: None,
        })
        .unwrap();
        let hashed = || match watched.load().unwrap().denial {
            Denial::Hashes(ring) => ring.hashed(),
            Denial::Names => panic!("the parameters are those of NSEC3"),
        };
        assert_eq!(hashed(), 201);
        fs::write(&zone, text.replace("192.0.2.7\n", "192.0.2.8\n")).unwrap();
        assert_eq!(hashed(), 0);
        fs::write(&zone, format!("{text}a.new 60 IN A 192.0.2.1\n")).unwrap();
        assert_eq!(hashed(), 2, "what is above it has a record, too");
        fs::write(&zone, &text).unwrap();
        fs::write(&keys, hex::encode([8; 32])).unwrap();
        assert_eq!(hashed(), 0);
        fs::write(&zone, "no zone").unwrap();
        assert!(watched.load().is_err());
        fs::write(&zone, &text).unwrap();
        assert_eq!(hashed(), 0, "what was hashed is not forgotten for a mistake");
    }
}
