//! A registry's own data: members with their resources and keys, authorities with their keys and places of publication, operators who
//! may override, the keys of objects, and what is demanded of validity. It comes from the registry's own source, and from nobody who asks for signatures.

mod pool;
mod text;

use std::{collections::BTreeMap, str::FromStr};

use base64ct::{Base64, Encoding as _};
use rpki::{crypto::PublicKey, repository::resources::ResourceSet, uri};

pub use self::pool::Pool;
use self::text::{AuthorityText, MemberText, RegistryText, TermsText};
use crate::signatures::{KeySet, KeySetError};

/// Why the data cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// It is not such a file.
    #[error("{0}")]
    Text(String),
    /// Something in it is wrong.
    #[error("{place}: {reason}")]
    Wrong {
        /// Which entry.
        place: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
}

fn wrong(place: &str, reason: impl Into<String>) -> RegistryError {
    RegistryError::Wrong { place: place.to_owned(), reason: reason.into() }
}

/// A member: who holds resources, and which keys speak for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// What it holds.
    pub resources: ResourceSet,
    /// Its keys, of which some number signs what it states.
    pub keys: KeySet,
    /// So many different objects it may have at most, over all time: each has a key of the pool, which is for nothing else afterwards.
    pub objects: usize,
}

/// A certification authority: the trust anchor, or one with the resources of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// Its name here, which is also that of its files.
    pub name: String,
    /// The name of its key at the nodes.
    pub key: String,
    /// Its public key.
    pub public: PublicKey,
    /// Who certifies it. `None`: it is a trust anchor, and has all resources.
    pub parent: Option<String>,
    /// The member whose resources it has.
    pub member: Option<String>,
    /// Where its certificate is published.
    pub certificate: uri::Rsync,
    /// The folder in which it publishes, with a slash at its end.
    pub repository: uri::Rsync,
    /// Where changes of the repository are told (RRDP).
    pub notify: Option<uri::Https>,
}

impl Authority {
    /// The name of the file with its manifest.
    #[must_use]
    pub fn manifest_name(&self) -> String {
        format!("{}.mft", self.name)
    }

    /// The name of the file with its list of revoked certificates.
    #[must_use]
    pub fn list_name(&self) -> String {
        format!("{}.crl", self.name)
    }

    /// The name of the file with its certificate, where another authority publishes it.
    #[must_use]
    pub fn certificate_name(&self) -> String {
        format!("{}.cer", self.name)
    }

    /// The address of a file that it publishes.
    #[must_use]
    pub fn address(&self, file: &str) -> String {
        format!("{}{file}", self.repository)
    }
}

/// What is demanded of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How long an authority's certificate may be valid, in seconds. It is for half as long at least.
    pub longest_authority: i64,
    /// How long the certificate of a signed object's key may be valid, in seconds.
    pub longest_object: i64,
    /// How long a manifest or a list of revoked certificates may be current, in seconds.
    pub longest_list: i64,
    /// How far clocks may be apart, in seconds.
    pub clocks: i64,
}

impl Terms {
    /// For so many seconds after it has begun a manifest may be current, as far as clocks agree.
    #[must_use]
    pub const fn exposure(&self) -> i64 {
        self.longest_list.saturating_add(self.clocks)
    }
}

fn read_terms(text: &TermsText) -> Terms {
    let days = |days: u32| i64::from(days) * 86_400;
    Terms {
        longest_authority: days(text.authority_days),
        longest_object: days(text.object_days),
        longest_list: i64::from(text.list_hours) * 3_600,
        clocks: i64::from(text.clock_seconds),
    }
}

/// So many times as long as lists certificates have to last.
const LISTS_AT_LEAST: i64 = 4;

/// A registry's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry {
    /// The name of the RPKI, for which members' statements are made.
    pub name: String,
    /// What is demanded of times.
    pub terms: Terms,
    /// The members, by their handles.
    pub members: BTreeMap<String, Member>,
    /// The authorities; an authority's parent comes before it.
    pub authorities: Vec<Authority>,
    /// Who may override, together. `None`: nobody may.
    pub operators: Option<KeySet>,
}

impl Registry {
    /// Reads the data (`spec/rpki.md`).
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse(text: &str) -> Result<Self, RegistryError> {
        let text: RegistryText = toml::from_str(text)
            .map_err(|error| RegistryError::Text(error.to_string().trim_end().replace('\n', " ")))?;
        let rpki = name(&text.name)?;
        let mut members = BTreeMap::new();
        for member in text.member {
            let handle = name(&member.handle)?;
            if members.insert(handle.clone(), read_member(&member)?).is_some() {
                return Err(wrong(&handle, "there are two members with this handle"));
            }
        }
        let mut authorities = Vec::new();
        for text in text.authority {
            let authority = read_authority(text)?;
            check_authority(&authority, &authorities, &members)?;
            authorities.push(authority);
        }
        if authorities.is_empty() {
            return Err(wrong("authority", "there is none: nothing could be signed"));
        }
        authorities.iter().try_for_each(|authority| check_place(authority, &authorities))?;
        let operators = text.operators.map(|keys| KeySet::parse(&keys.keys, keys.need));
        let operators = operators.transpose().map_err(|error| wrong("operators", error.to_string()))?;
        let terms = read_terms(&text.terms);
        // Certificates are renewed in their time, and lists in theirs: else nothing on a manifest would outlast it.
        if terms.longest_object.min(terms.longest_authority) < terms.longest_list.saturating_mul(LISTS_AT_LEAST) {
            return Err(wrong(
                "terms",
                "certificates last four times as long as lists, at least (authority_days, object_days, list_hours)",
            ));
        }
        Ok(Self { name: rpki, terms, members, authorities, operators })
    }

    /// The authority with this name.
    #[must_use]
    pub fn authority(&self, name: &str) -> Option<&Authority> {
        self.authorities.iter().find(|authority| authority.name == name)
    }

    /// The authority whose key has this name at the nodes.
    #[must_use]
    pub fn authority_of_key(&self, key: &str) -> Option<&Authority> {
        self.authorities.iter().find(|authority| authority.key == key)
    }

    /// What an authority may certify: all, or what its member holds.
    #[must_use]
    pub fn resources(&self, authority: &Authority) -> ResourceSet {
        match &authority.member {
            None => ResourceSet::all(),
            Some(handle) => self.members.get(handle).map(|member| member.resources.clone()).unwrap_or_default(),
        }
    }

    /// How many different objects an authority may have, over all time.
    #[must_use]
    pub fn objects(&self, of: &Authority) -> usize {
        let member = of.member.as_ref().and_then(|handle| self.members.get(handle));
        member.map_or(0, |member| member.objects)
    }

    /// The authority that certifies this one; of a trust anchor `None`.
    #[must_use]
    pub fn parent(&self, of: &Authority) -> Option<&Authority> {
        of.parent.as_deref().and_then(|parent| self.authority(parent))
    }

    /// The authorities that this one certifies.
    pub fn children(&self, of: &Authority) -> impl Iterator<Item = &Authority> {
        let name = of.name.clone();
        self.authorities.iter().filter(move |authority| authority.parent.as_ref() == Some(&name))
    }
}

/// A handle or a name of files: as a file on a manifest may be called (RFC 9286, section 4.2.2), in lower case.
fn name(text: &str) -> Result<String, RegistryError> {
    let good = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    if (1..=64).contains(&text.len()) && text.bytes().all(good) {
        Ok(text.to_owned())
    } else {
        Err(wrong(text, "a name has 1 to 64 characters among a to z, 0 to 9 and -"))
    }
}

fn read_member(text: &MemberText) -> Result<Member, RegistryError> {
    let failed = |reason: String| wrong(&text.handle, reason);
    let resources = ResourceSet::from_strs(&text.asns.join(","), &text.v4.join(","), &text.v6.join(","));
    let resources = resources.map_err(|error| failed(format!("its resources cannot be read: {error}")))?;
    if resources.is_empty() {
        return Err(failed("it holds nothing".to_owned()));
    }
    let keys = KeySet::parse(&text.keys, text.need).map_err(|error: KeySetError| failed(error.to_string()))?;
    Ok(Member { resources, keys, objects: text.objects })
}

fn read_authority(text: AuthorityText) -> Result<Authority, RegistryError> {
    let AuthorityText { name: of, key, public, parent, member, certificate, repository, notify } = text;
    let of = name(&of)?;
    let failed = |reason: String| wrong(&of, reason);
    let rsync = |text: &str| uri::Rsync::from_str(text).map_err(|error| failed(format!("{text}: {error}")));
    let (certificate, repository) = (rsync(&certificate)?, rsync(&repository)?);
    if !repository.path_is_dir() {
        return Err(failed("its repository is a folder, and ends with /".to_owned()));
    }
    let notify = notify.map(|text| uri::Https::from_str(&text).map_err(|error| failed(format!("{text}: {error}"))));
    let notify = notify.transpose()?;
    let public = read_key(&public).ok_or_else(|| failed(KEY_FORM.to_owned()))?;
    Ok(Authority { name: of, key, public, parent, member, certificate, repository, notify })
}

/// What is wrong with a key that is not written as keys are.
const KEY_FORM: &str = "its public key is no SubjectPublicKeyInfo of RSA in base64";

/// A key in base64, as between the lines of a PEM file.
fn read_key(text: &str) -> Option<PublicKey> {
    let digits: String = text.split_whitespace().collect();
    let bytes = Base64::decode_vec(&digits).ok()?;
    let key = PublicKey::decode(bytes.as_slice()).ok()?;
    // Nothing after it, and in its one form.
    (key.allow_rpki_cert() && key.to_info_bytes().as_ref() == bytes.as_slice()).then_some(key)
}

/// Whether an anchor's certificate is where it stays: an authority leaves nothing in its folder but what is on its manifest, which an anchor's own certificate is not.
fn check_place(authority: &Authority, all: &[Authority]) -> Result<(), RegistryError> {
    if authority.parent.is_some() {
        return Ok(());
    }
    let is_in = |other: &&Authority| {
        let file = authority.certificate.as_str().strip_prefix(other.repository.as_str());
        file.is_some_and(|file| !file.contains('/'))
    };
    let found = all.iter().find(is_in);
    found.map_or(Ok(()), |other| {
        let reason = format!(
            "its certificate is in the folder in which {} publishes, and nothing stays there that is on no manifest: put it into another one, such as rsync://HOST/ta/{}",
            other.name,
            authority.certificate_name()
        );
        Err(wrong(&authority.name, reason))
    })
}

/// Whether an authority fits those before it.
fn check_authority(
    authority: &Authority,
    before: &[Authority],
    members: &BTreeMap<String, Member>,
) -> Result<(), RegistryError> {
    let failed = |reason: &str| Err(wrong(&authority.name, reason));
    let twice = before.iter().any(|other| {
        other.name == authority.name
            || other.key == authority.key
            || other.public == authority.public
            || other.repository.as_str() == authority.repository.as_str()
            || (other.member.is_some() && other.member == authority.member)
    });
    if twice {
        return failed("another authority has the same name, key, repository or member");
    }
    match (&authority.parent, &authority.member) {
        (None, None) => Ok(()),
        (Some(parent), Some(member)) => {
            let Some(parent) = before.iter().find(|other| other.name == *parent) else {
                return failed("its parent is no authority before it");
            };
            if !members.contains_key(member) {
                return failed("its member is none of the members");
            }
            if authority.certificate.as_str() != parent.address(&authority.certificate_name()) {
                return failed(
                    "its certificate is published by its parent: the parent's repository, its own name and .cer",
                );
            }
            // Flat: only the trust anchor certifies others, so that nobody's resources depend on another member's.
            if parent.parent.is_some() { failed("only a trust anchor certifies authorities") } else { Ok(()) }
        }
        _ => failed("an authority has both a parent and a member, or, as a trust anchor, neither"),
    }
}

#[cfg(test)]
pub(crate) mod tests;
