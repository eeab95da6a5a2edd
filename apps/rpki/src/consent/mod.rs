//! Whether a registry consents to what its node is asked to sign: a function of its own data, its members' statements, what it has agreed
//! to before, and the object, all of which it sees.

mod bounds;
mod canonical;
mod certificate;
mod list;
mod manifest;
mod refusal;

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use rpki::{
    crypto::PublicKey,
    repository::x509::{Serial, Time},
};
use sha2::{Digest as _, Sha256};
use theta_names::WallTime;

pub use self::refusal::{Refusal, blames_key, blames_quota, spared, usable_keys};
use crate::{
    attestation::{Attestation, aspa_file, roa_file},
    memory::{Counted, Entry, Memory, Number},
    objects::{Attributes, Kind, Object},
    overrides::words::FLAG,
    registry::{Authority, Pool, Registry},
    statements::{Authorised, Identified},
    store::Store,
};

/// What a registry knows.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// Its data.
    pub registry: &'a Registry,
    /// What members have authorised, now.
    pub authorised: &'a Authorised,
    /// The keys of objects.
    pub pool: &'a Pool,
    /// Where contents are found.
    pub store: &'a dyn Store,
    /// What it has agreed to.
    pub memory: &'a Memory,
    /// The time, in seconds since 1970.
    pub now: i64,
}

/// A consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    /// What to, in words for the log.
    pub what: String,
    /// What has to be remembered before anybody hears of it.
    pub entries: Vec<Entry>,
}

/// What an authority publishes beside its manifest and its list.
#[derive(Clone, Copy, Debug)]
enum Published<'a> {
    Attestation(&'a Attestation),
    Authority(&'a Authority),
}

impl Facts<'_> {
    /// Whether it is known what the member of an authority has authorised.
    fn settled(&self, of: &Authority) -> Result<(), Refusal> {
        let reason = of.member.as_deref().and_then(|member| self.authorised.unsettled(member));
        reason.map_or(Ok(()), |reason| Err(Refusal::Unsettled(reason.to_owned())))
    }

    /// What an authority publishes now in the file with this name.
    fn published<'b>(&'b self, of: &'b Authority, file: &str) -> Option<Published<'b>> {
        let attestation = of.member.as_deref().and_then(|member| self.authorised.file(member, file));
        let child = || self.registry.children(of).find(|child| child.certificate_name() == file);
        attestation.map(Published::Attestation).or_else(|| child().map(Published::Authority))
    }

    /// What an authority publishes now, by the names of the files.
    fn publishes<'b>(&'b self, of: &'b Authority) -> BTreeMap<String, Published<'b>> {
        let attestations = of.member.iter().flat_map(|member| self.authorised.files(member));
        let attestations = attestations.map(|(file, one)| (file.to_owned(), Published::Attestation(one)));
        let children = self.registry.children(of).map(|child| (child.certificate_name(), Published::Authority(child)));
        attestations.chain(children).collect()
    }

    /// By which consent of its member an authority publishes something, in words for the record. They come before what that is, which may be cut.
    fn by(&self, issuer: &Authority, file: &str) -> String {
        let Some(member) = issuer.member.as_deref() else { return String::new() };
        let Some(statement) = self.authorised.statement(member, file) else { return String::new() };
        let Counted { number, digest, .. } = statement.counted();
        match statement.reason() {
            Some(_) => flagged(member, std::slice::from_ref(statement)),
            None => format!("by {member}'s statement {number} (SHA-256 {}): ", hex::encode(digest)),
        }
    }

    /// What operators state in the place of an authority's member, in words for the record: its manifests and lists follow from that.
    fn overriding(&self, issuer: &Authority) -> String {
        issuer.member.as_deref().map_or_else(String::new, |member| flagged(member, self.authorised.overriding(member)))
    }

    fn time(&self) -> Time {
        time(self.now)
    }

    /// Whether something begins now, as far as clocks agree, and lasts so long at most.
    fn lasts(&self, from: Time, until: Time, longest: i64) -> Result<(), Refusal> {
        let (from, until) = (from.timestamp(), until.timestamp());
        if (from - self.now).abs() > self.registry.terms.clocks {
            return Err(Refusal::Time("beginning is not now"));
        }
        if until <= self.now || until <= from {
            return Err(Refusal::Time("end is over"));
        }
        if until - from > longest {
            Err(Refusal::Time("end is later than the registry's terms have it"))
        } else {
            Ok(())
        }
    }
}

/// Begins what is said of something that follows from what operators state in a member's place: with the digest and the reason of the first, which are not cut.
fn flagged(member: &str, stated: &[Identified]) -> String {
    let Some(first) = stated.first() else { return String::new() };
    let (digest, reason) = (hex::encode(first.counted().digest), first.reason().unwrap_or_default());
    let more = match stated.len().saturating_sub(1) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{FLAG}SHA-256 {digest} ({reason}){more}, by operators in {member}'s place: ")
}

/// Decides about the bytes that a signature by a key is to cover.
///
/// # Errors
/// The refusal.
pub fn consent(key: &str, bytes: &[u8], facts: &Facts<'_>) -> Result<Consent, Refusal> {
    let object = Object::read(bytes).ok_or(Refusal::Form)?;
    let digest = Sha256::digest(bytes).into();
    let purpose = |of, what| Refusal::Purpose { key: key.to_owned(), of, what };
    if let Some(authority) = facts.registry.authority_of_key(key) {
        return match object {
            Object::Certificate(certificate) => certificate::certificate(authority, &certificate, digest, facts),
            Object::List(list) if canonical::list(&list) != bytes => Err(Refusal::Form),
            Object::List(list) => list::list(authority, &list, digest, facts),
            Object::Attributes(_) => Err(purpose("an authority", "objects")),
        };
    }
    let Some(public) = facts.pool.key(key) else { return Err(Refusal::Key(key.to_owned())) };
    match object {
        Object::Attributes(Attributes { kind, digest, time: at })
            if canonical::attributes(kind, &digest, time(at)) != bytes =>
        {
            Err(Refusal::Form)
        }
        Object::Attributes(attributes) => content(public, attributes, facts),
        Object::Certificate(_) => Err(purpose("one object", "certificates")),
        Object::List(_) => Err(purpose("one object", "lists of revoked certificates")),
    }
}

/// Decides about the attributes of a signed object, by its content.
fn content(key: &PublicKey, attributes: Attributes, facts: &Facts<'_>) -> Result<Consent, Refusal> {
    if (attributes.time - facts.now).abs() > facts.registry.terms.clocks {
        return Err(Refusal::Time("signing time is not now"));
    }
    let (key, digest): (Number, _) = (key.key_identifier().into(), attributes.digest);
    if attributes.kind == Kind::Manifest {
        return manifest::manifest(key, attributes, facts);
    }
    let mut refused = None;
    for (issuer, attestation) in attested(attributes.kind, &attributes, facts)? {
        match bounds::object_key(issuer, &key, digest, facts) {
            Ok(()) => {
                let authority = issuer.name.clone();
                let entry = Entry::Content { key, digest, authority, from: facts.now };
                let by = facts.by(issuer, &attestation.file_name());
                return Ok(Consent { what: format!("{by}{attestation}"), entries: vec![entry] });
            }
            Err(refusal) => {
                refused.get_or_insert(refusal);
            }
        }
    }
    Err(refused.unwrap_or(Refusal::Form))
}

/// The content of a ROA or an ASPA, if it is authorised, and whose object it is: of several, where their holdings overlap and all of them have stated it, so that
/// one that may have no more objects keeps it from nobody. What is authorised is known here, so its digest is recognised; any other content is looked at to say
/// what it is.
fn attested<'a>(
    kind: Kind,
    attributes: &Attributes,
    facts: &'a Facts<'_>,
) -> Result<Vec<(&'a Authority, &'a Attestation)>, Refusal> {
    let digest = &attributes.digest;
    let file = if kind == Kind::Roa { roa_file(digest) } else { aspa_file(digest) };
    let found = facts.registry.authorities.iter().filter_map(|authority| {
        let attestation = facts.authorised.file(authority.member.as_deref()?, &file)?;
        (attestation.digest() == *digest).then_some((authority, attestation))
    });
    let found: Vec<_> = found.collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let bytes = facts.store.content(digest).map_err(Refusal::Unseen)?;
    let read = if kind == Kind::Roa { Attestation::decode_roa(&bytes) } else { Attestation::decode_aspa(&bytes) };
    Err(read.map_or(Refusal::Form, |read| Refusal::Unauthorised { what: read.to_string(), of: None }))
}

/// So many serial numbers are named in a refusal: its words are cut somewhere.
const MOST_NAMED: usize = 4;

/// The first of some serial numbers, in words.
fn first_of<'a>(serials: impl Iterator<Item = &'a Number>) -> String {
    serials.take(MOST_NAMED).copied().map(words).collect::<Vec<_>>().join(", ")
}

/// A serial number in words.
fn words(serial: [u8; 20]) -> String {
    // The library prints nothing for 0.
    if serial == [0; 20] {
        return "0".to_owned();
    }
    Serial::from_array(serial).map_or_else(|_| hex::encode(serial), |serial| serial.to_string())
}

fn time(seconds: i64) -> Time {
    let since = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    Time::from(SystemTime::from(WallTime::since_1970(since)))
}

/// Whether something that is on a manifest lasts until the next one is due. Relying parties look at each thing when they use it, so what ends
/// before goes while the manifest that has it is current.
fn outlasts(end: Time, next: Time) -> Result<(), String> {
    if end >= next {
        return Ok(());
    }
    let (end, next) = (end.to_rfc3339(), next.to_rfc3339());
    Err(format!("it ends at {end}, before the manifest's next update at {next}"))
}
