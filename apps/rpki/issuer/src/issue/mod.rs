//! One run: what is due is made, and what is finished is published. Certificates of authorities come first, then objects, then lists and manifests,
//! those of children before those of their parents. What cannot be signed for one authority does not stop the others.

mod authorities;
mod keys;
mod objects;
mod points;

use std::{collections::BTreeSet, io};

use serde::Serialize;
use theta_rpki::{
    registry::{Authority, Pool, Registry},
    statements::Authorised,
};

use self::keys::Keyring;
pub(crate) use self::keys::manifests_of;
use crate::{
    hands::Hands,
    made::{MakeError, Stamp},
    output::Output,
    state::{Certified, SerialNumber, State, StateError, StateFile},
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
    /// How many objects are signed in one call.
    pub most: usize,
    /// The time, in seconds since 1970.
    pub now: i64,
    /// Whether the last run may be long ago.
    pub after_break: bool,
    /// Whether what was refused often is asked for at once, and not only now and then.
    pub retry: bool,
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
    /// The time is far from that of the last run.
    #[error(
        "this machine's clock says that the last run was {0} days ago, and nothing is done by a clock that may be wrong: mend it, or, if that is so, say --after-break once"
    )]
    Clock(i64),
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
    keyring: Keyring<'a>,
    /// The digests of what this run has put where agents find it, signed or not.
    put: BTreeSet<String>,
    /// The authorities whose members have as many objects as agents permit.
    full: BTreeSet<&'a str>,
    report: Report,
}

const DAY: i64 = 86_400;
/// A run that is so many days after the last one may be one by a wrong clock.
const BREAK_DAYS: i64 = 45;
/// After so many tries in a day that came to nothing there is one in so many seconds: fewer than agents count in a day.
const MOST_TRIES: usize = 8;
const PAUSE: i64 = 1_800;
/// What has ended is known for so long, in case a clock was wrong.
const KNOWN_FOR: i64 = 60 * DAY;

/// Refuses a time that is far from that of the last run, unless somebody has said that it may be (`after_break`). Before anything is read by it.
///
/// # Errors
/// [`IssueError::Clock`].
pub fn check_clock(state: &State, now: i64, after_break: bool) -> Result<(), IssueError> {
    let away = now.saturating_sub(state.ran) / DAY;
    if state.ran > 0 && away > BREAK_DAYS && !after_break { Err(IssueError::Clock(away)) } else { Ok(()) }
}

impl Issuer<'_> {
    /// Makes what is due.
    ///
    /// # Errors
    /// [`IssueError`]; what nodes do not sign is in the report.
    pub fn run(&self, state: &mut StateFile) -> Result<Report, IssueError> {
        check_clock(&state.state, self.now, self.after_break)?;
        state.state.ran = self.now;
        let keyring = Keyring::new(self.pool, &state.state);
        let (put, full, report) = (BTreeSet::new(), BTreeSet::new(), Report::default());
        let mut run = Run { issuer: *self, state, keyring, put, full, report };
        run.forget();
        for authority in &self.registry.authorities {
            run.certify(authority)?;
        }
        run.make_objects()?;
        // A child's manifest comes before its parent's, which has its certificate; unless that is a new one, which is published with the parent's manifest, and by which
        // the child's is judged.
        let (after, before): (Vec<_>, Vec<_>) =
            self.registry.authorities.iter().partition(|authority| run.has_new_certificate(authority));
        for authority in before.into_iter().rev().chain(after) {
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

    /// Certificates that have ended long ago are of no interest to anybody; nor are those that were not signed, when agents count them no more. Those for
    /// manifests are, until they end.
    fn forget(&mut self) {
        let (now, registry) = (self.issuer.now, self.issuer.registry);
        let (ended, tried) = (now.saturating_sub(KNOWN_FOR), now.saturating_sub(DAY));
        for (name, issued) in &mut self.state.state.authorities {
            let manifest = registry.authority(name).map(Authority::manifest_name);
            let is_open =
                |one: &Certified| one.from > tried || (one.until > now && Some(&one.file) == manifest.as_ref());
            issued.certificates.retain(|one| one.until > ended && (one.is_signed || is_open(one)));
            issued.told.retain(|_, until| *until > now);
            let files: BTreeSet<_> =
                issued.certificates.iter().filter(|one| !one.is_signed).map(|one| &one.file).collect();
            issued.objections.retain(|file, _| files.contains(file));
        }
    }

    fn fail(&mut self, of: &Authority, file: &str, reason: &impl ToString) {
        let reason = reason.to_string();
        tracing::warn!("{file} of {} is not signed: {reason}", of.name);
        self.report.failures.push(Failure { authority: of.name.clone(), file: file.to_owned(), reason });
    }

    /// The same, of what is asked for again in the next run: the reason is noted for [`Self::wait`].
    fn fail_again(&mut self, of: &Authority, file: &str, reason: &MakeError) {
        if !matches!(reason, MakeError::Later { .. }) {
            self.known().of(&of.name).objections.insert(file.to_owned(), reason.to_string());
        }
        self.fail(of, file, reason);
    }

    /// Puts something where agents find it by its SHA-256, which it returns in hexadecimal digits.
    fn put(&mut self, bytes: &[u8]) -> Result<String, IssueError> {
        let digest = self.issuer.output.put(bytes)?;
        self.put.insert(digest.clone());
        Ok(digest)
    }

    /// Takes away what neither this run nor the one before needs: an agent may still look at what the last one made, or asked for in vain.
    fn sweep(&mut self) -> Result<(), IssueError> {
        let mut needed = std::mem::take(&mut self.put);
        for issued in self.known().authorities.values() {
            needed.extend(issued.objects.values().map(|kept| &kept.digest).chain(issued.children.values()).cloned());
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
    /// What was asked for often in a day, and in vain, waits: agents take so many certificates of a file in a day, and each is noted here. The last try goes on
    /// for `again` seconds.
    fn wait(&mut self, of: &Authority, file: &str, again: i64) -> Result<(), MakeError> {
        let Issuer { now, retry, .. } = self.issuer;
        let issued = self.known().of(&of.name);
        let tries = issued.certificates.iter().filter(|one| one.file == file && !one.is_signed && !one.is_learnt);
        // Those of a clock that was ahead were refused.
        let day = now.saturating_sub(DAY).saturating_add(1)..=now;
        let tries: Vec<i64> = tries.map(|one| one.from).filter(|from| day.contains(from)).collect();
        let Some(last) = tries.iter().max().filter(|_| tries.len() >= MOST_TRIES && !retry) else { return Ok(()) };
        let next = last.saturating_add(PAUSE);
        if now >= next || now <= last.saturating_add(again) {
            return Ok(());
        }
        let (times, minutes) = (tries.len(), next.saturating_sub(now).saturating_add(59) / 60);
        let objection = issued.objections.get(file).cloned().unwrap_or_default();
        Err(MakeError::Later { times, minutes, objection })
    }

    /// A certificate for which nobody was asked, now or before, is none.
    fn unused(&mut self, of: &Authority, stamp: Stamp, error: &MakeError) {
        if stamp.is_new && matches!(error, MakeError::Own(_)) {
            self.known().of(&of.name).certificates.retain(|one| one.serial != stamp.serial);
        }
    }

    /// For so many seconds agents take a certificate's beginning for now.
    fn recent(&self) -> i64 {
        self.issuer.registry.terms.clocks / 2
    }

    /// Numbers and times for a certificate, which are noted: those of the last try if that is so recent that agents still take them, since they count
    /// the certificates of a file and take the same one again.
    fn asked(&mut self, of: &Authority, file: &str, key: &str, lasts: i64) -> Result<Stamp, MakeError> {
        let (now, recent) = (self.issuer.now, self.recent());
        let certificates = &mut self.known().of(&of.name).certificates;
        let before = certificates.iter().rfind(|certified| certified.file == file);
        let again = |certified: &&Certified| {
            let open = !certified.is_signed && !certified.is_revoked && certified.key == key;
            open && (0..=recent).contains(&now.saturating_sub(certified.from))
        };
        if let Some(Certified { serial, from, until, .. }) = before.filter(again) {
            return Ok(Stamp { now: *from, until: *until, serial: *serial, is_new: false });
        }
        self.wait(of, file, 0)?;
        let certificates = &mut self.known().of(&of.name).certificates;
        let (serial, until) = (serial()?, now.saturating_add(lasts));
        let (file, key) = (file.to_owned(), key.to_owned());
        certificates.push(Certified::asked(serial, file, (now, until), key));
        Ok(Stamp { now, until, serial, is_new: true })
    }
}

/// A serial number that nobody has used: 152 random bits.
fn serial() -> Result<SerialNumber, MakeError> {
    let mut number = [0; 20];
    // Above the first byte, which stays 0: the number is positive and has at most 20 bytes (RFC 5280, section 4.1.2.2).
    if let Some((_, random)) = number.split_first_mut() {
        getrandom::fill(random).map_err(|error| crate::hands::Unsigned(error.to_string()))?;
    }
    Ok(SerialNumber(number))
}

/// What is said where the pool has no more keys.
const NO_KEY: &str = "the pool has no key left that is for nothing yet: have the nodes make more, and add them to its file at every registry";
