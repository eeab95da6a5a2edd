//! What a threshold of the registries' operators permits though an agent refuses it: one object, by its digest, with a reason; or what it states in a member's
//! place ([`crate::statements::ByOperators`]).

mod read;
mod seen;
pub(crate) mod shown;
pub mod words;

use std::collections::BTreeSet;

use rpki::{
    crypto::PublicKey,
    repository::{
        cert::TbsCert,
        crl::{RevokedCertificates, TbsCertList},
    },
};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

pub(crate) use self::read::MOST_TEXT;
pub use self::read::{Overrides, Overriding};
use crate::{
    consent::Facts,
    memory::{Digest, Entry, Number},
    objects::{Attributes, Kind, Object, read_manifest},
    registry::{Authority, Registry},
    signatures::Signed,
    statements::StatementError,
};
use words::check_reason;

/// What an operator's signature is of begins with this.
const DOMAIN: &[u8] = b"theta/rpki/override/v1";

/// Why a file is no override.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// It is not such a file.
    #[error("{0}")]
    Text(String),
    /// What it states in a member's place makes no sense.
    #[error(transparent)]
    Statement(#[from] StatementError),
    /// The registry knows no operators.
    #[error("the registry's data name no operators, so nothing is overridden")]
    NoOperators,
    /// Too few operators have signed.
    #[error("{count} of {need} operators have signed")]
    Signatures {
        /// How many have.
        count: usize,
        /// How many have to.
        need: usize,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OverrideText {
    digest: String,
    key: String,
    reason: String,
    until: i64,
    #[serde(default)]
    signature: Vec<Signed>,
}

/// An override.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// SHA-256 of the bytes that are to be signed.
    pub digest: [u8; 32],
    /// The name of the key that is to sign them.
    pub key: String,
    /// Why, for everybody who reads the log.
    pub reason: String,
    /// When it ends, in seconds since 1970.
    pub until: i64,
}

impl Override {
    /// The bytes that an operator signs (`spec/rpki.md`).
    #[must_use]
    pub fn signed_bytes(&self) -> Vec<u8> {
        let mut bytes = [DOMAIN, &[0]].concat();
        for part in [&self.digest[..], self.key.as_bytes(), self.reason.as_bytes(), &self.until.to_be_bytes()] {
            bytes.extend(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            bytes.extend_from_slice(part);
        }
        bytes
    }

    /// Reads a file without asking who has signed it.
    fn parse(text: &str) -> Result<(Self, Vec<Signed>), OverrideError> {
        let OverrideText { digest: digits, key, reason, until, signature } =
            toml::from_str(text).map_err(|error| OverrideError::Text(error.message().to_owned()))?;
        let mut digest = [0; 32];
        hex::decode_to_slice(&digits, &mut digest)
            .map_err(|_| OverrideError::Text("its digest is no SHA-256 in hexadecimal digits".to_owned()))?;
        check_reason(&reason).map_err(OverrideError::Text)?;
        Ok((Self { digest, key, reason, until }, signature))
    }

    /// Whether it permits this, now.
    #[must_use]
    pub fn permits(&self, key: &str, digest: &[u8; 32], now: i64) -> bool {
        self.key == key && self.digest == *digest && now < self.until
    }
}

/// What has to be remembered of an object that operators permit: what a consent to it would have added, so that lists and manifests know of it
/// afterwards. It authorises nothing: what nobody has stated has to be revoked by the next list, unless that is overridden as well. What is not
/// understood adds nothing.
#[must_use]
pub fn entries(key: &str, bytes: &[u8], facts: &Facts<'_>) -> Vec<Entry> {
    let Some(object) = Object::read(bytes) else { return Vec::new() };
    let digest = Sha256::digest(bytes).into();
    match (facts.registry.authority_of_key(key), facts.pool.key(key), object) {
        (Some(issuer), _, Object::Certificate(certificate)) => {
            let (serial, file) =
                (certificate.serial_number().into_array(), file_of(issuer, &certificate, facts.registry));
            let (authority, from, until) =
                (issuer.name.clone(), facts.now, certificate.validity().not_after().timestamp());
            // So that lists have to revoke it, if nobody has authorised what it is for.
            let published = Entry::Published { authority, serial, file: file.clone(), from, until };
            vec![certified(issuer, &certificate, digest, file), published]
        }
        (Some(issuer), _, Object::List(list)) => {
            let (number, from) = (list.crl_number().into_array(), list.this_update().timestamp());
            let mut entries = vec![Entry::List { authority: issuer.name.clone(), number, digest, from }];
            entries.extend(revoked(issuer, &list, facts));
            entries
        }
        (None, Some(public), Object::Attributes(attributes)) => signed(public, attributes, facts),
        _ => Vec::new(),
    }
}

/// Those that were seen here of the certificates that a list revokes.
fn revoked(issuer: &Authority, list: &TbsCertList<RevokedCertificates>, facts: &Facts<'_>) -> Vec<Entry> {
    let Some(issued) = facts.memory.of(&issuer.name) else { return Vec::new() };
    let serials = list.revoked_certs().iter().map(|entry| Number::from(entry.user_certificate.into_array()));
    let seen = serials.filter(|serial| issued.certificate(serial).is_some());
    seen.map(|serial| Entry::Revoked { authority: issuer.name.clone(), serial }).collect()
}

/// The file that a certificate is for, or is in.
fn file_of(issuer: &Authority, certificate: &TbsCert, registry: &Registry) -> String {
    let key = certificate.subject_public_key_info();
    let subject = registry.authorities.iter().find(|authority| authority.public == *key);
    let address = certificate.signed_object().map(|address| address.as_str());
    // A word of a line in the memory.
    let object = address.and_then(|address| address.strip_prefix(issuer.repository.as_str()));
    let object = object.filter(|file| !file.is_empty() && file.bytes().all(|c| c.is_ascii_graphic()));
    match (subject, object) {
        (Some(subject), _) => subject.certificate_name(),
        (None, Some(file)) => file.to_owned(),
        // It is for no file of this authority: no list may spare it.
        (None, None) => hex::encode(Number::from(key.key_identifier())),
    }
}

fn certified(issuer: &Authority, certificate: &TbsCert, digest: Digest, file: String) -> Entry {
    let serial = certificate.serial_number().into_array();
    let (authority, validity) = (issuer.name.clone(), certificate.validity());
    let (from, until) = (validity.not_before().timestamp(), validity.not_after().timestamp());
    let key = certificate.subject_public_key_info().key_identifier().into();
    Entry::Certificate { authority, serial, digest, file, from, until, key }
}

/// In the place of an authority's name: what operators permit is no member's object.
const NOBODY: &str = "*";

/// A key stays bound to what it was for first: certificates are for that.
fn content(key: &PublicKey, digest: Digest, facts: &Facts<'_>) -> Option<Entry> {
    let key = Number::from(key.key_identifier());
    let authority = NOBODY.to_owned();
    facts.memory.purpose(&key).is_none().then_some(Entry::Content { key, digest, authority, from: facts.now })
}

fn signed(key: &PublicKey, attributes: Attributes, facts: &Facts<'_>) -> Vec<Entry> {
    let entry = match attributes.kind {
        Kind::Manifest => manifest(key, attributes.digest, facts),
        Kind::Roa | Kind::Aspa => None,
    };
    entry.or_else(|| content(key, attributes.digest, facts)).into_iter().collect()
}

/// The manifest with this digest, if it can be seen: its list of revoked certificates says whose it is.
fn manifest(key: &PublicKey, digest: Digest, facts: &Facts<'_>) -> Option<Entry> {
    let content = read_manifest(&facts.store.content(&digest).ok()?)?;
    let name = |file: &[u8]| String::from_utf8_lossy(file).into_owned();
    let files: BTreeSet<_> = content.iter().map(|entry| name(&entry.into_pair().0)).collect();
    let issuer = facts.registry.authorities.iter().find(|authority| files.contains(&authority.list_name()))?;
    let (authority, number) = (issuer.name.clone(), content.manifest_number().into_array());
    let (from, until) = (content.this_update().timestamp(), content.next_update().timestamp());
    Some(Entry::Manifest { authority, number, digest, key: key.key_identifier().into(), from, until })
}
