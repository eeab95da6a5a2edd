//! One run: what is due is made, and what is finished is published. Certificates of authorities come first, then objects, then lists and manifests,
//! those of children before those of their parents. What cannot be signed for one authority does not stop the others.

mod authorities;
mod objects;
mod points;

use std::{collections::BTreeSet, io};

use rpki::crypto::PublicKey;
use serde::Serialize;
use theta_rpki::{
    registry::{Authority, Pool, Registry},
    statements::Authorised,
};

use crate::{
    hands::Hands,
    made::{MakeError, Stamp},
    output::Output,
    state::{Certified, State, StateError, StateFile},
};

/// What an issuer knows, and who signs for it.
#[derive(Clone, Copy)]
pub struct Issuer<'a> {
    /// The registry's data.
    pub registry: &'a Registry,
    /// What members have authorised, now.
    pub authorised: &'a Authorised,
    /// The keys of objects.
    pub pool: &'a Pool,
    /// The nodes.
    pub hands: &'a dyn Hands,
    /// Where everything is put.
    pub output: &'a Output,
    /// How many objects are signed at once.
    pub most: usize,
    /// The time, in seconds since 1970.
    pub now: i64,
}

/// Why a run ends before its time. What was published before still is.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// The state cannot be kept.
    #[error(transparent)]
    State(#[from] StateError),
    /// A file cannot be written or read.
    #[error("cannot write what is to be published: {0}")]
    Output(#[from] io::Error),
}

/// What a run did for one authority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Published {
    /// Its name.
    pub authority: String,
    /// Whether it has a new manifest.
    pub is_new: bool,
    /// How many files are on its manifest beside the list.
    pub files: usize,
    /// When the next manifest is due at the latest, in seconds since 1970.
    pub until: i64,
}

/// What was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// For whom.
    pub authority: String,
    /// The file.
    pub file: String,
    /// Why.
    pub reason: String,
}

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// How many certificates of authorities are new.
    pub certificates: usize,
    /// How many objects are new.
    pub objects: usize,
    /// What is published.
    pub published: Vec<Published>,
    /// What was not done.
    pub failures: Vec<Failure>,
}

/// A run under way.
struct Run<'a> {
    issuer: Issuer<'a>,
    state: &'a mut StateFile,
    report: Report,
}

impl Issuer<'_> {
    /// Makes what is due.
    ///
    /// # Errors
    /// [`IssueError`]; what nodes do not sign is in the report.
    pub fn run(&self, state: &mut StateFile) -> Result<Report, IssueError> {
        let mut run = Run { issuer: *self, state, report: Report::default() };
        run.forget();
        for authority in &self.registry.authorities {
            run.certify(authority)?;
        }
        run.make_objects()?;
        // A parent's manifest has the certificates of its children, which stand after it.
        for authority in self.registry.authorities.iter().rev() {
            run.publish(authority)?;
        }
        run.sweep()?;
        run.report.published.reverse();
        Ok(run.report)
    }
}

impl<'a> Run<'a> {
    fn known(&mut self) -> &mut State {
        &mut self.state.state
    }

    /// Certificates that have ended are of no interest to anybody.
    fn forget(&mut self) {
        let now = self.issuer.now;
        for issued in self.known().authorities.values_mut() {
            issued.certificates.retain(|certified| certified.until > now);
        }
    }

    fn fail(&mut self, of: &Authority, file: &str, reason: &impl ToString) {
        let reason = reason.to_string();
        tracing::warn!("{file} of {} is not signed: {reason}", of.name);
        self.report.failures.push(Failure { authority: of.name.clone(), file: file.to_owned(), reason });
    }

    fn has_failed(&self, of: &Authority) -> bool {
        self.report.failures.iter().any(|failure| failure.authority == of.name)
    }

    /// A key of the pool for this: one that is for it already, if it may be used, or one that is for nothing yet.
    fn key(&mut self, purpose: &str, may: impl Fn(&str) -> bool) -> Option<(&'a str, &'a PublicKey)> {
        let pool: &'a Pool = self.issuer.pool;
        let keys = &self.known().keys;
        let own = pool.keys().find(|(name, _)| keys.get(*name).is_some_and(|of| of == purpose) && may(name));
        let found = own.or_else(|| pool.keys().find(|(name, _)| !keys.contains_key(*name)))?;
        self.known().keys.insert(found.0.to_owned(), purpose.to_owned());
        Some(found)
    }

    /// Takes away what neither this run nor the one before needs: an agent may still look at what the last one made.
    fn sweep(&mut self) -> Result<(), IssueError> {
        let mut needed = BTreeSet::new();
        for issued in self.known().authorities.values() {
            needed.extend(issued.objects.values().map(|kept| kept.digest.clone()));
            if let Some(current) = &issued.current {
                let own = [&current.list, &current.content, &current.manifest];
                needed.extend(current.files.values().chain(own).cloned());
            }
        }
        let both = needed.union(&self.known().needed).cloned().collect();
        self.issuer.output.sweep(&both)?;
        if self.known().needed != needed {
            self.known().needed = needed;
        }
        Ok(self.state.save()?)
    }
}

impl Run<'_> {
    /// Numbers and times for a certificate, which are noted: those of the last try if that is so recent that agents still take them, since they count
    /// the certificates of a file and take the same one again.
    fn asked(&mut self, of: &Authority, file: &str, key: &str, lasts: i64) -> Result<Stamp, MakeError> {
        let (now, recent) = (self.issuer.now, self.issuer.registry.terms.clocks / 2);
        let certificates = &mut self.known().of(&of.name).certificates;
        let before = certificates.iter().rfind(|certified| certified.file == file);
        let again = |certified: &&Certified| {
            !certified.is_signed && certified.key == key && (0..=recent).contains(&now.saturating_sub(certified.from))
        };
        if let Some(Certified { serial, from, until, .. }) = before.filter(again) {
            return Ok(Stamp { now: *from, until: *until, serial: *serial });
        }
        let (serial, until) = (serial()?, now.saturating_add(lasts));
        let (file, key) = (file.to_owned(), key.to_owned());
        certificates.push(Certified { serial, file, from: now, until, key, is_signed: false, is_revoked: false });
        Ok(Stamp { now, until, serial })
    }
}

/// A serial number that nobody has used: 63 random bits.
fn serial() -> Result<u64, MakeError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| crate::hands::Unsigned(error.to_string()))?;
    Ok((u64::from_be_bytes(bytes) >> 1).max(1))
}

/// What is said where the pool has no more keys.
const NO_KEY: &str = "the pool has no key left that is for nothing yet: have the nodes make more, and add them to its file at every registry";
